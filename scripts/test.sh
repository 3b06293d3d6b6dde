# Sourced by ./run: tests, and what runs them in other ways.

help_test() {
  cat <<'END'
usage: ./run test [ARGS]

Builds and tests the release preset, and in the debug preset the folders from base to inspect, where optimisation hides mistakes of
frames, registers and unwinding. ARGS go to ctest:

  ./run test -R '^channel'             the tests of one folder
  ./run test -R channel.close          the cases of one source, ramie/channel/close.test.cpp
  ./run test -R channel.close.SUITE    only the cases whose name, SUITE.CASE, starts with SUITE

For ctest, one test is one source file; the last line counts single cases. Failed tests are not retried.

  RAMIE_TEST_PRESETS  presets to test (default: release debug); other presets run all tests
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

# Builds a preset and runs its tests; adds to passed, failed and skipped. A build that fails counts as one failed test.
# What the debug build could say of the upper floors, the release and the sanitized builds say.
test_preset() { # preset [more for ctest]
  local targets=() labels=()
  if [[ $1 == debug ]]; then
    targets=(--target core_tests)
    labels=(--label-regex '^core$')
  fi
  if ! build "$1" "${targets[@]}"; then
    failed=$((failed + 1))
    return 1
  fi
  run_tests "$1" "${labels[@]}" "${@:2}"
}

run_tests() { # preset [more for ctest]
  local preset=$1 log=build/$1.test.log counts=$PWD/build/$1.counts status=0 wrapper=() filter=() words
  shift
  words=("$@")
  split_pattern "$preset"
  # gcc 12's TSan cannot place its shadow where newer kernels scatter mappings more widely than it expects.
  if [[ $preset == tsan && $(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28) -gt 28 ]]; then
    wrapper=(setarch "$(uname -m)" --addr-no-randomize)
  fi
  rm -f "$counts"
  # Lines of tests that pass would bury the rest; all of it is in the log.
  env "${filter[@]}" RAMIE_TEST_COUNTS="$counts" "${wrapper[@]}" ctest --preset "$preset" --parallel "$jobs" --output-on-failure \
    --no-label-summary "${words[@]}" 2>&1 | tee "$log" | without_passed || status=$?
  count_tests "$log" "$counts" "$status"
  return "$status"
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
    /^\[(-{10}| {7}OK )\]/ { begun = ""; next }
    /^\[ RUN {6}\]/ { begun = $0; next }
    { if (begun != "") print begun; begun = ""; print; fflush() }'
}

# Adds to passed, failed and skipped: cases, where a program has several.
count_tests() { # ctest's log, the programs' counts, ctest's exit status
  local sums
  read -ra sums <<<"$(python3 scripts/count_tests.py "$1" "$2")"
  passed=$((passed + sums[0]))
  failed=$((failed + sums[1]))
  skipped=$((skipped + sums[2]))
  # ctest itself may have failed.
  if (($3 != 0 && sums[1] == 0)); then failed=$((failed + 1)); fi
}

command_test() {
  need_build
  need_for_components
  local preset status=0 filtered=()
  # What is asked for may well be in one of the builds only.
  (($# == 0)) || filtered=(--no-tests=ignore)
  for preset in ${RAMIE_TEST_PRESETS:-release debug}; do
    heading "test $preset"
    test_preset "$preset" "${filtered[@]}" "$@" || status=1
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
  test_preset coverage "$@" || status=1
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
  command_check seeds --seconds "$(awk -v h="${BASH_REMATCH[1]}" 'BEGIN { print h * 360 }')"
}
