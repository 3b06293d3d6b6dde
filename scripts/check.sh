# Sourced by ./run: what a change has to pass besides the tests.

# Which tests run under the emulator: those of code that differs from one processor to the other, and short programs.
aarch64_tests='^(base|machine|context|stack|task|queue|worker|sched|inspect|fiber|runtime|sync|future|channel|poll|net|actor|tests)\.|^example\.'

# What .ci/run runs beside ./run test, and what is left to ./run check all; in the order in which they run.
gate_checks=(house format tsan asan seeds tidy)
other_checks=(components cppcheck debug lab repeats perturbed starved clang aarch64 docs report fuzz models mutants soak)

help_check() {
  cat <<'END'
usage: ./run check NAME...

These, and ./run test, are what a change has to pass (.ci/run):

  house      project rules: file length, include order of folders, self-contained headers (scripts/house_check.py)
  format     clang-format
  tsan       the tests of the library under ThreadSanitizer
  asan       the same under AddressSanitizer and UndefinedBehaviorSanitizer
  seeds      the simulator's tests for a minute, with schedules made from the commit's hash
  tidy       clang-tidy on what differs from the newest commit that is older than a day

These are for an idle machine, before a subject is called done; `all` runs them one after the other:

  components the tests of components and examples under ThreadSanitizer and AddressSanitizer
  cppcheck   cppcheck on the library
  debug      tests of the folders from base to inspect, not optimised
  lab        the tests of ramie-lab, and of what compares and draws
  repeats    tests under the placements that are not the default, and the ways to use the library: find_package, conan ...
  perturbed  tests under tsan and asan with a change of worker at every wait, and with as many thefts as possible
  starved    tests beside busy loops, and stopped at random for seconds, to find those that take a slow machine for a bug
  clang      builds and tests release with clang, each test source by itself
  aarch64    the tests of the library under an emulator
  docs       Doxygen without warnings
  report     the lab's page in a real browser
  fuzz       each fuzzer for RAMIE_FUZZ_SECONDS (20)
  models     the kernels' models in tests/models, searched exhaustively by SPIN
  mutants    small mistakes in the protocols, one at a time, a sample of the day: the simulator's tests have to notice them
  soak       ./run soak for ten minutes

As the only name, seeds, mutants and starved take options of their own: ./run check mutants --help. RAMIE_TIDY_MINUTES limits the time
of `tidy`; the next run continues from there. How failed tests are judged: ./run test --help.
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
  local how=(-i)
  [[ ${1:-} != --check ]] || how=(--dry-run -Werror)
  cpp_files ramie components lab tests examples | xargs -0 --no-run-if-empty -P "$jobs" -n 40 "clang-format$clang_suffix" "${how[@]}"
}

# Headers of components are left out where their libraries are missing, and those for which nothing has changed for a day.
check_house() {
  need_for_components
  local base
  base=$(commit_before_today) || base=
  python3 scripts/house_check.py --jobs "$jobs" ${base:+--changed-since "$base"}
}

# The newest commit that is older than a day; where that is HEAD, the one before it. Nothing in a history that is younger.
commit_before_today() {
  local base
  base=$(git rev-list -1 --before='1 day ago' HEAD 2>/dev/null) || return 1
  [[ $base != "$(git rev-parse HEAD)" ]] || base=$(git rev-parse --verify --quiet HEAD~1) || return 1
  printf '%s\n' "$base"
}

check_format() { command_format --check; }
check_docs() { command_docs; }
check_models() { need "${model_packages[@]}" && python3 scripts/models.py; }
check_asan() { need_for_components && test_preset asan floor_tests --label-regex '^floor$'; }
check_tsan() { need_for_components && test_preset tsan floor_tests --label-regex '^floor$'; }
check_debug() { need_for_components && test_preset debug core_tests --label-regex '^core$'; }
check_lab() { need_for_components && test_preset release all --label-regex '^lab$'; }
check_repeats() { need_for_components && test_preset release all_but_lab --label-regex '^(placement|consumer)$'; }

# A target and options for ctest, in both sanitized builds.
test_sanitized() {
  local preset status=0
  need_for_components
  for preset in tsan asan; do
    test_preset "$preset" "$@" || status=1
  done
  return "$status"
}

check_components() { test_sanitized all --label-exclude "floor|$repeats_labels"; } # what they have beside the floors
check_perturbed() { test_sanitized floor_tests --label-regex '^(perturbed|at_home)$'; }

# The seed is the commit's, so that a run can be repeated, and each commit brings new schedules.
check_seeds() {
  if (($# == 0)); then
    local commit
    commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || commit=1
    set -- --seed $((16#$commit))
  fi
  build release --target all_but_lab >&2 && counted python3 scripts/seeds.py --jobs "$jobs" "$@"
}

check_mutants() {
  (($# > 0)) || set -- --unlisted --sample 40 --day --seconds 20 --minutes 5
  ! asks_for_help "$@" || exec python3 scripts/mutants.py --help
  build release --target all_but_lab >&2 && RAMIE_JOBS=$jobs counted python3 scripts/mutants.py "$@"
}

check_starved() {
  ! asks_for_help "$@" || exec python3 scripts/starved.py --help
  need_for_components
  build release --target all_but_lab >&2 && RAMIE_JOBS=$jobs counted python3 scripts/starved.py "$@"
}

check_soak() { counted command_soak --hours 0.16; }

# What the last lines say of a check besides whether it passed: its seed.
detail=

# Runs a program, notes its seed, and adds what its last line counts.
counted() {
  local log status=0 line
  log=$(mktemp)
  "$@" | tee "$log" || status=$?
  line=$(tail -n 1 "$log")
  detail=$(grep -m 1 -oE -- '--seed [0-9]+|--day [0-9-]+|seed [0-9]+' "$log") || detail=
  rm -f "$log"
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
  fi
  return "$status"
}

# The lab's report in a real browser; where there is none, the tests only skip this.
check_report() {
  need "${browser_packages[@]}" && need_plotting || return 1
  (cd lab && RAMIE_REQUIRE_BROWSER=1 PYTHONDONTWRITEBYTECODE=1 python3 -m unittest report.report_test)
}

# Each fuzzer for RAMIE_FUZZ_SECONDS; inputs that it finds interesting, and those that break something, stay in build/fuzz.
check_fuzz() {
  need "${component_packages[@]}" || return 1
  local name targets=() status=0
  (need "${cluster_packages[@]}") || true # said below
  configure fuzz || return 1
  for name in tests/fuzz/*.cpp components/*/tests/*_fuzz.cpp; do
    name=$(basename "$name" .cpp)
    name=fuzz_${name%_fuzz}
    [[ $name != fuzz_standalone ]] || continue
    if grep -q "/$name:\|build $name:" build/fuzz/build.ninja; then
      targets+=("$name")
    else
      leave_out "$name (its component cannot be built here)"
    fi
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
  need_for_components
  test_preset clang-release all
}

check_aarch64() {
  test_preset aarch64 all -R "$aarch64_tests"
}

# Each source that has changed since it was found clean, or whose includes have: scripts/tidy.py says how it knows.
check_tidy() {
  need_clang clang clang-tidy || return 1
  configure clang-release || return 1
  # Headers that are generated.
  ! grep -q ramie_wire_proto build/clang-release/build.ninja || cmake --build build/clang-release --target ramie_wire_proto >/dev/null || return 1
  local base
  base=$(commit_before_today) || base=
  python3 scripts/tidy.py --build build/clang-release --program "clang-tidy$clang_suffix" --jobs "$jobs" \
    ${base:+--changed-since "$base"} ${RAMIE_TIDY_MINUTES:+--minutes "$RAMIE_TIDY_MINUTES"}
}

# It knows no compiler, so it is told which it is to be, and finds no headers of the system, nor misses them. What it gets wrong
# is listed, with the reasons, in the file that it is given.
check_cppcheck() {
  need "${cppcheck_packages[@]}" || return 1
  cpp_files ramie components | grep -zv '\.test\.cpp$' | grep -z '\.cpp$' |
    xargs -0 cppcheck --quiet -j "$jobs" --enable=warning,performance,portability --std=c++20 --language=c++ --platform=unix64 \
      -D__x86_64__=1 -D__linux__=1 -D__GNUC__=12 -D__OPTIMIZE__=1 -I . -I components/prometheus -I components/tls -I components/http -I components/postgres -I components/redis -I components/kafka -I components/curl -I components/asio -I components/cluster --error-exitcode=1 \
      --suppressions-list=scripts/cppcheck.suppressions --template='{file}:{line}: {severity}: {message} [{id}]'
}

command_check() {
  local known=("${gate_checks[@]}" "${other_checks[@]}") names=() options=() name status lines=() bad=0 before begun
  for name in "$@"; do
    case $name in
      all) names+=("${other_checks[@]}") ;;
      -*) break ;;
      *)
        [[ " ${known[*]} " == *" $name "* ]] || die "no check is called '$name'; there are: ${known[*]}, and all"
        names+=("$name")
        ;;
    esac
    shift
  done
  options=("$@")
  ((${#names[@]} > 0)) || die "which check? ./run check --help lists them"
  ((${#options[@]} == 0)) || [[ ${#names[@]} == 1 && ${names[0]} =~ ^(seeds|mutants|starved)$ ]] || die "of the checks, only seeds, mutants and starved take options"
  need_build
  for name in "${names[@]}"; do
    heading "check $name"
    begun=$SECONDS
    before=$((passed + failed))
    detail=
    # In a condition bash ignores `set -e`, so every step says by its last command whether it succeeded.
    if "check_$name" "${options[@]}"; then status=ok; else status=FAILED bad=1; fi
    if ((passed + failed == before)); then
      if [[ $status == ok ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    fi
    printf '%s: %s\n' "$name" "$status"
    lines+=("$(printf '%-9s %-6s %4d s  %s' "$name" "$status" $((SECONDS - begun)) "$detail")")
  done
  heading "checks"
  printf '%s\n' "${lines[@]}"
  closing_line
  return "$bad"
}
