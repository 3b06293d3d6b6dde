# Sourced by ./run: the lab. Its commands have options, and help, of their own: ./run bench --help.

# Standard output belongs to the lab, so all that is said while it is built goes to standard error: everything the first
# time, which takes minutes, and later only what is wrong.
lab_program=build/release/bin/ramie-lab
build_lab() {
  local log=build/lab.build.log
  need_build || return 1
  if [[ ! -x $lab_program ]]; then
    build release --target ramie-lab >&2
  elif ! cmake --build build/release --parallel "$jobs" --target ramie-lab >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

command_lab() {
  build_lab
  exec "$lab_program" "$@"
}

lab_python() { # module [arguments]
  need python3=python3 || return 1
  PYTHONPATH=lab PYTHONDONTWRITEBYTECODE=1 "${RAMIE_PYTHON:-python3}" -m "$@"
}

command_model() {
  [[ ${1:-} != measure ]] || asks_for_help "$@" || build_lab
  lab_python model "$@"
}

command_costs() {
  asks_for_help "$@" || build_lab
  lab_python costs "$@"
}

command_peers() { lab_python compare.install "$@"; }

command_report() {
  # Where there are no results there is nothing to draw.
  if [[ " $* " != *" --markdown"* ]] && ! asks_for_help "$@" &&
    { (($# > 0)) || compgen -G 'build/compare/*.json' >/dev/null; }; then
    need_plotting || return 1
  fi
  lab_python report "$@"
}

# The experiments, and a page of what came out. The page is an extra: that it cannot be made is no failure of the bench.
command_bench() {
  local output status=0 words=("$@") i
  build_lab
  output=build/bench/$(date +%Y-%m-%d_%H-%M-%S).json
  for ((i = 0; i < ${#words[@]}; ++i)); do
    case ${words[i]} in
      --output) output=${words[i + 1]:-} ;;
      --output=*) output=${words[i]#--output=} ;;
      -h | --help) "$lab_program" bench --help && return ;;
    esac
  done
  "$lab_program" bench --output "$output" "$@" || status=$?
  # With --json standard output is for objects only.
  if ((status < 2)) && [[ -s $output ]]; then
    { need_plotting && if [[ " $* " == *" --json "* ]]; then lab_python report "$output" >&2; else lab_python report "$output"; fi; } ||
      leave_out "the page of these results; ./run report $output makes it"
  fi
  return "$status"
}

# Of the lab, in a build of its own, unless the arguments say of what.
command_stack_usage() {
  local words=("$@") folder=build/stack
  if [[ " $* " != *" --in"* ]] && ! asks_for_help "$@"; then
    need_build
    { cmake --preset release -B "$folder" -DRAMIE_STACK_USAGE=ON -DRAMIE_BUILD_TESTS=OFF &&
      cmake --build "$folder" --parallel "$jobs" --target ramie-lab; } >build/stack.log 2>&1 || {
      tail -n 40 build/stack.log >&2
      return 1
    }
    words+=(--in "$folder")
  fi
  need python3=python3 || return 1
  PYTHONPATH=tools PYTHONDONTWRITEBYTECODE=1 "${RAMIE_PYTHON:-python3}" -m stack "${words[@]}"
}

command_compare() {
  # Help and a mistyped option need no build.
  asks_for_help "$@" || {
    build_lab
    need_for_compare
  }
  lab_python compare "$@"
}
