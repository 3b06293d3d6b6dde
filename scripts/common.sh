# Sourced by ./run: what all topics use.

jobs=${RAMIE_JOBS:-$(nproc)}

# A compiler cache, where there is one, knows the sources by their place in the project, so that clones share it. (Debuggers
# would look for the sources in the clone that was first; in CI there are none.)
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD
  if [[ -n ${CI:-} ]]; then export CCACHE_NOHASHDIR=1; fi
fi

note() { printf './run: %s\n' "$*" >&2; }
die() {
  note "$@"
  exit 1
}
heading() { printf '\n== %s ==\n' "$*"; }

# What a command does without because something is missing. It is said at once, and again in the last lines of the command.
left_out=()
leave_out() {
  note "left out: $*"
  left_out+=("$*")
}
say_left_out() {
  local what
  for what in "${left_out[@]}"; do note "left out: $what"; done
  left_out=()
}
trap say_left_out EXIT

# Is there only help to be shown, for which nothing has to be built?
asks_for_help() { [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; }

# The counts of a command, and its last lines.
passed=0
failed=0
skipped=0
verdicts=() # sentences about tests that failed, and about those that failed by chance
closing_line() {
  ((skipped == 0)) || printf '\n%s skipped, see "SKIPPED" and "Skipped" above or in build/*.test.log\n' "$skipped"
  say_left_out
  ((${#verdicts[@]} == 0)) || printf '%s\n' "${verdicts[@]}"
  printf '\n%s passed, %s failed\n' "$passed" "$failed"
}
