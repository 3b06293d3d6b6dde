# Sourced by ./run: tests, and what runs them in other ways.

help_test() {
  cat <<'END'
usage: ./run test [ARGS]

Builds the release preset and runs its tests: of the library, its components, examples and documents, and those of the
simulator. Left out are the lab, repeats of tests in other ways, and all ways but one to use the library: ./run check --help.
With ARGS, which go to ctest, it builds all, and runs whatever they choose:

  ./run test -R '^channel'             the tests of one folder
  ./run test -R channel.close          the cases of one source, ramie/channel/close.test.cpp
  ./run test -R channel.close.SUITE    only the cases whose name, SUITE.CASE, starts with SUITE

For ctest, one test is one source file; the last line counts single cases.

A report is never tried again: a race, a memory error, a leak, a failed assertion, a signal, a finding of the simulator, a
wrong value in a test without threads. What fails by an expectation or a time limit runs twice more, alone; if it passes both
times, the run is green, and the last lines and build/flaky.txt tell of it as `flaky:`. It then belongs into tests/flaky.md; a
test that is flaky on a later commit, and is not listed there, fails that run.

  RAMIE_TEST_PRESETS  presets to test (default: release)
  RAMIE_JOBS          how many jobs run at once
END
}

help_coverage() {
  cat <<'END'
usage: ./run coverage [ARGS]

Runs the tests in an instrumented build, and lists the lines and branches of ramie/ that they reach, by file in
build/coverage/lines.txt and branches.txt. ARGS go to ctest.
END
}

# Builds a target of a preset and runs tests; adds to passed, failed and skipped. A build that fails counts as one failed test.
test_preset() { # preset target [more for ctest]
  if ! build "$1" --target "$2"; then
    failed=$((failed + 1))
    return 1
  fi
  run_tests "$1" "${@:3}"
}

# Repeats of tests in other ways, the ways to use the library, and the lab: they are ./run check's.
repeats_labels='^(placement|perturbed|at_home|consumer|lab)$'

run_tests() { # preset [more for ctest]
  local preset=$1 base=$PWD/build/$1 status=0 command=(ctest --preset "$1") filter=() words
  shift
  words=("$@")
  split_pattern "$preset"
  # gcc 12's TSan cannot place its shadow where newer kernels scatter mappings more widely than it expects.
  if [[ $preset == tsan && $(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28) -gt 28 ]]; then
    command=(setarch "$(uname -m)" --addr-no-randomize "${command[@]}")
  fi
  rm -f "$base.counts" "$base.junit.xml" "$base.sums"
  # Lines of tests that pass would bury the rest; all of it is in the log.
  env "${filter[@]}" RAMIE_TEST_COUNTS="$base.counts" "${command[@]}" --parallel $((2 * jobs + 1)) --output-on-failure --no-label-summary \
    --output-junit "$base.junit.xml" --test-output-size-failed 50000000 "${words[@]}" 2>&1 | tee "$base.test.log" | without_passed || status=$?
  # Whether what failed has failed for a reason is said there.
  local verdict=0 sums
  env "${filter[@]}" python3 scripts/verdict.py --preset "$preset" --status "$status" --log "$base.test.log" \
    --junit "$base.junit.xml" --counts "$base.counts" --sums "$base.sums" --flaky build/flaky.txt --listed tests/flaky.md \
    --memory "${XDG_CACHE_HOME:-$HOME/.cache}/ramie/flaky.txt" -- "${command[@]}" >"$base.verdict" || verdict=$?
  mapfile -t -O "${#verdicts[@]}" verdicts <"$base.verdict"
  read -ra sums <"$base.sums" || sums=(0 1 0)
  passed=$((passed + sums[0]))
  failed=$((failed + sums[1]))
  skipped=$((skipped + sums[2]))
  return "$verdict"
}

# ctest knows sources, not cases: of -R channel.close.SUITE.CASE it is given channel.close, and GoogleTest the rest. Changes
# the words and the filter of run_tests.
split_pattern() { # preset
  local i names name pattern
  for ((i = 0; i + 1 < ${#words[@]}; ++i)); do
    [[ ${words[i]} == -R || ${words[i]} == --tests-regex ]] || continue
    pattern=${words[i + 1]#^}
    [[ $pattern =~ ^[a-z0-9_.]+$ ]] || continue
    names=$(ctest --test-dir "build/$1" --show-only | sed -n 's/^ *Test *#[0-9]*: //p')
    ! grep -qE "$pattern" <<<"$names" || continue
    while read -r name; do
      [[ $pattern == "$name".* ]] || continue
      words[i + 1]=^$name\$
      filter=("GTEST_FILTER=${pattern#"$name".}*:*/${pattern#"$name".}*")
      return
    done <<<"$names"
  done
}

# Lines of ctest and of GoogleTest about what passed.
without_passed() {
  awk '
    /^ +Start +[0-9]+: / || /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .* Passed +[0-9.]+ sec$/ { next }
    /^\[(----------|       OK )\]/ { begun = ""; next }
    /^\[ RUN      \]/ { begun = $0; next }
    { if (begun != "") print begun; begun = ""; print; fflush() }'
}

command_test() {
  need_build
  need_for_components
  # Tests are compiled by it; without it, by gcc, which takes longer.
  [[ $(clang_version) != 19 ]] || need_clang clang || true
  local preset status=0 chosen=(all_but_lab --label-exclude "$repeats_labels")
  # What is asked for may well be in one of the builds only.
  (($# == 0)) || chosen=(all --no-tests=ignore "$@")
  for preset in ${RAMIE_TEST_PRESETS:-release}; do
    heading "test $preset"
    test_preset "$preset" "${chosen[@]}" || status=1
  done
  ((passed + failed + skipped > 0)) || die "no test was found"
  closing_line
  return "$status"
}

# What a process has counted is written by tests/coverage/dying.cpp when it dies on purpose, but for one that a signal kills.
command_coverage() {
  need_build
  need "${coverage_packages[@]}"
  local status=0
  heading "test coverage"
  [[ ! -d build/coverage ]] || find build/coverage -name '*.gcda' -delete
  test_preset coverage all "$@" || status=1
  heading "coverage of ramie/"
  # Reading what all the objects have counted takes most of the time, so it is done once.
  gcovr --root . --filter 'ramie/' --exclude '.*\.test\.cpp$' --exclude '.*/testing\.hpp$' --exclude-throw-branches \
    --exclude-unreachable-branches --json build/coverage/counts.json -j "$jobs" build/coverage || return 1
  gcovr --root . --add-tracefile build/coverage/counts.json --txt build/coverage/lines.txt --print-summary || return 1
  gcovr --root . --add-tracefile build/coverage/counts.json --branches --txt build/coverage/branches.txt || return 1
  note "by file: build/coverage/lines.txt and branches.txt"
  closing_line
  return "$status"
}

# Of one's own arguments only --preset; the others, and help, are the program's.
command_soak() {
  local preset=release words=() wrapper=()
  while (($# > 0)); do
    case $1 in
      --preset) preset=${2:?} && shift ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  need_build
  build "$preset" --target ramie-soak >&2
  [[ $preset != tsan ]] || wrapper=(setarch "$(uname -m)" --addr-no-randomize)
  "${wrapper[@]}" "build/$preset/bin/ramie-soak" "${words[@]}" || return
  # Then the programs of the simulator, for a tenth of that time.
  [[ $preset == release && " ${words[*]} " =~ \ --hours[\ =]([0-9.]+)\  ]] || return 0
  local hours=${BASH_REMATCH[1]} status=0
  check_seeds --seconds "$(awk -v h="$hours" 'BEGIN { print h * 360 }')" || status=1
  # And, for another tenth, its mutants, in an order of the day: all of them in an hour or so.
  check_mutants --day --unlisted --minutes "$(awk -v h="$hours" 'BEGIN { print h * 6 }')" || status=1
  return "$status"
}
