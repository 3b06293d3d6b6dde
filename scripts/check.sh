# Sourced by ./run: what a change has to pass besides the tests.

# Which tests run under the emulator: those of code that differs from one processor to the other, and short programs.
aarch64_tests='^(base|machine|context|stack|task|queue|worker|sched|inspect|fiber|runtime|sync|future|channel|poll|net|actor|tests)\.|^example\.'

help_check() {
  cat <<'END'
usage: ./run check [NAME...]

What a change has to pass besides ./run test; without names, all of it:

  house     project rules: file length, include order of folders, self-contained headers (scripts/house_check.py)
  format    clang-format
  docs      Doxygen without warnings
  report    the lab's page in a real browser
  tidy      clang-tidy on files that changed since their last clean run
  cppcheck  cppcheck on the library
  clang     builds and tests release with clang, without precompiled headers
  aarch64   the tests of the library under an emulator
  tsan      all tests under ThreadSanitizer; failed tests are not retried
  asan      all tests under AddressSanitizer and UndefinedBehaviorSanitizer
  fuzz      each fuzzer for RAMIE_FUZZ_SECONDS (20)
  models    the kernels' models in tests/models, searched exhaustively by SPIN

Not part of the default. Must be the first name, and have options of their own: --help lists them:

  mutants   puts small mistakes into the protocols, one at a time, and fails if the interleaving tests miss one; needs
            ./run build release
  seeds     runs the interleaving tests with schedules that nobody has run before, for a minute

RAMIE_TIDY_MINUTES limits the time of `tidy`; the next run continues from there.
END
}

help_docs() {
  cat <<'END'
usage: ./run docs

Builds the API reference and the documentation in build/docs/index.html. Fails if Doxygen warns.
END
}

help_format() {
  cat <<'END'
usage: ./run format [--check]

Formats the C++ sources, or lists those that are not formatted.
END
}

# Doxygen's complaints make it fail.
command_docs() {
  need "${docs_packages[@]}" || return 1
  mkdir -p build
  rm -rf build/docs
  RAMIE_VERSION=$(sed -n 's/^#define RAMIE_VERSION_[A-Z]* \([0-9]*\)$/\1/p' ramie/version.hpp | paste -sd.) doxygen docs/Doxyfile &&
    note "see build/docs/index.html"
}

cpp_files() { # folders; NUL-terminated names of their C++ files, tests included
  find "$@" -type f \( -name '*.hpp' -o -name '*.cpp' \) -print0 2>/dev/null | sort -z
}

command_format() {
  need_clang clang-format || return 1
  local formatter=clang-format$clang_suffix file bad=0
  if [[ ${1:-} != --check ]]; then
    cpp_files ramie components lab tests examples | xargs -0 --no-run-if-empty "$formatter" -i
    return
  fi
  while IFS= read -r -d '' file; do
    if ! "$formatter" "$file" | cmp -s - "$file"; then
      printf '%s: not formatted, see ./run format\n' "$file"
      bad=1
    fi
  done < <(cpp_files ramie components lab tests examples)
  return "$bad"
}

check_house() { python3 scripts/house_check.py --jobs "$jobs"; }
check_format() { command_format --check; }
check_docs() { command_docs; }
check_models() { need "${model_packages[@]}" && python3 scripts/models.py; }
check_asan() { test_preset asan; }
check_tsan() { test_preset tsan; }

# The lab's report in a real browser; where there is none, the tests only skip this.
check_report() {
  need "${browser_packages[@]}" && need_plotting || return 1
  (cd lab && RAMIE_REQUIRE_BROWSER=1 PYTHONDONTWRITEBYTECODE=1 python3 -m unittest report.report_test)
}

# Each fuzzer for RAMIE_FUZZ_SECONDS; inputs that it finds interesting, and those that break something, stay in build/fuzz.
check_fuzz() {
  need_clang clang libclang-rt || return 1
  local name targets=() status=0
  for name in tests/fuzz/*.cpp; do
    name=fuzz_$(basename "$name" .cpp)
    [[ $name == fuzz_standalone ]] || targets+=("$name")
  done
  build fuzz --target "${targets[@]}" || return 1
  for name in "${targets[@]}"; do
    mkdir -p "build/fuzz/corpus/$name"
    "build/fuzz/bin/$name" -max_total_time="${RAMIE_FUZZ_SECONDS:-20}" -timeout=60 -rss_limit_mb=8192 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/$name." "build/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1 || {
      tail -n 40 "build/fuzz/$name.log" >&2
      status=1
    }
    printf '%s: %s inputs\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log")"
  done
  return "$status"
}

check_clang() {
  need_clang clang libclang-rt || return 1
  need_for_components
  test_preset clang-release
}

check_aarch64() {
  need "${cross_packages[@]}" || return 1
  test_preset aarch64 -R "$aarch64_tests"
}

# Each source that has changed since it was found clean, or whose includes have: scripts/tidy.py says how it knows.
check_tidy() {
  need_clang clang clang-tidy || return 1
  configure clang-release || return 1
  python3 scripts/tidy.py --build build/clang-release --program "clang-tidy$clang_suffix" --jobs "$jobs" \
    ${RAMIE_TIDY_MINUTES:+--minutes "$RAMIE_TIDY_MINUTES"}
}

# It knows no compiler, so it is told which it is to be, and finds no headers of the system, nor misses them. What it gets wrong
# is listed, with the reasons, in the file that it is given.
check_cppcheck() {
  need "${cppcheck_packages[@]}" || return 1
  cpp_files ramie components | grep -zv '\.test\.cpp$' | grep -z '\.cpp$' |
    xargs -0 cppcheck --quiet -j "$jobs" --enable=warning,performance,portability --std=c++20 --language=c++ --platform=unix64 \
      -D__x86_64__=1 -D__linux__=1 -D__GNUC__=12 -D__OPTIMIZE__=1 -I . -I components/prometheus --error-exitcode=1 \
      --suppressions-list=scripts/cppcheck.suppressions --template='{file}:{line}: {severity}: {message} [{id}]'
}

command_check() {
  local all=(house format docs report tidy cppcheck clang aarch64 tsan asan fuzz models) name status lines=() bad=0 before
  if [[ ${1:-} == mutants ]]; then
    python3 scripts/mutants.py "${@:2}"
    return
  elif [[ ${1:-} == seeds ]]; then
    need_build
    build release >&2 && python3 scripts/seeds.py --jobs "$jobs" "${@:2}"
    return
  fi
  need_build
  (($# > 0)) || set -- "${all[@]}"
  for name in "$@"; do
    [[ " ${all[*]} " == *" $name "* ]] || die "no check is called '$name'; there are: ${all[*]}"
  done
  for name in "$@"; do
    heading "check $name"
    SECONDS=0
    before=$((passed + failed))
    # In a condition bash ignores `set -e`, so every step says by its last command whether it succeeded.
    if "check_$name"; then status=ok; else status=FAILED bad=1; fi
    if ((passed + failed == before)); then
      if [[ $status == ok ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    fi
    printf '%s: %s\n' "$name" "$status"
    lines+=("$(printf '%-8s %-6s %4d s' "$name" "$status" "$SECONDS")")
  done
  heading "checks"
  printf '%s\n' "${lines[@]}"
  closing_line
  return "$bad"
}
