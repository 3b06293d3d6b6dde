# Sourced by ./run: building.

help_build() {
  cat <<'END'
usage: ./run build [PRESET...]

Builds presets of CMakePresets.json (default: release) into build/PRESET. CONTRIBUTING.md lists the presets and what each is
for. RAMIE_JOBS says how many jobs run at once.
END
}

help_clean() {
  cat <<'END'
usage: ./run clean [PRESET...]

Deletes the build folders of these presets, or of all. Results of benchmarks (build/bench, compare, costs) stay.
END
}

configure() { # preset [more for cmake]
  local log=build/$1.configure.log
  case $1 in
    aarch64) need "${cross_packages[@]}" ;;
    asan | fuzz) need_clang clang libclang-rt llvm ;;
    clang-*) need_clang clang libclang-rt ;;
  esac || return 1
  mkdir -p build
  if ! cmake --preset "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# On a terminal one sees it work; in a log only what is wrong matters, the rest is in build/PRESET.build.log.
build() { # preset [more for cmake --build]
  local preset=$1 log=build/$1.build.log
  shift
  configure "$preset" || return 1
  if [[ -t 1 ]]; then
    cmake --build "build/$preset" --parallel "$jobs" "$@"
  elif cmake --build "build/$preset" --parallel "$jobs" "$@" >"$log" 2>&1; then
    printf 'built build/%s, see %s\n' "$preset" "$log"
  else
    grep -Ev '^\[[0-9]+/[0-9]+\] ' "$log" | head -n 200 >&2
    return 1
  fi
}

command_build() {
  need_build
  (($# > 0)) || set -- release
  local preset
  for preset in "$@"; do
    heading "build $preset"
    build "$preset"
  done
}

command_clean() {
  local preset
  for preset in "$@"; do rm -rf "build/$preset"; done
  # The lab keeps its results there; they took more time than a build.
  if (($# == 0)) && [[ -d build ]]; then
    find build -mindepth 1 -maxdepth 1 ! -name bench ! -name compare ! -name costs -exec rm -rf {} +
  fi
}
