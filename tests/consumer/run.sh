#!/usr/bin/env bash
# Builds a user's project in a fresh directory and runs it: run.sh find_package|add_subdirectory BUILD_DIRECTORY
set -euo pipefail

way=$1
build=$2
cmake=${CMAKE:-cmake}
compiler=${CXX:-c++}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() { # what it prints, program
  local printed
  printed=$("$2")
  [[ $printed == "$1" ]] || {
    echo "$2: printed '$printed', not '$1'"
    exit 1
  }
}

build_consumer() { # arguments for cmake
  "$cmake" -S "$here" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" "$@"
  "$cmake" --build "$work/build" --parallel 2
  expect 42 "$work/build/consumer"
}

case $way in
  find_package)
    "$cmake" --install "$build" --prefix "$work/installed"
    # A prefix may be moved after the installation.
    mv "$work/installed" "$work/prefix"
    # shellcheck disable=SC2016
    sed -n '/^```cpp$/,/^```$/p; /^```$/q' "$here/../../README.md" | grep -v '^```' >"$work/readme.cpp"
    build_consumer -DCMAKE_PREFIX_PATH="$work/prefix" -DREADME_PROGRAM="$work/readme.cpp"
    expect 832040 "$work/build/readme"
    if command -v pkg-config >/dev/null; then
      PKG_CONFIG_PATH=$(find "$work/prefix" -type d -name pkgconfig)
      export PKG_CONFIG_PATH
      read -ra flags < <(pkg-config --cflags --libs ramie)
      "$compiler" -std=c++20 "$here/main.cpp" "${flags[@]}" -o "$work/by_pkg_config"
      expect 42 "$work/by_pkg_config"
    fi
    ;;
  add_subdirectory)
    # As a shared library, which no other build of ours is.
    build_consumer -DRAMIE_SOURCE="$here/../.." -DBUILD_SHARED_LIBS=ON
    # A user's build has none of our tests, examples and tools in it.
    if extra=$("$cmake" --build "$work/build" --target help | grep -E 'test_|example_|ramie-lab'); then
      echo "targets that users did not ask for: $extra"
      exit 1
    fi
    ;;
  *)
    echo "usage: $0 find_package|add_subdirectory BUILD_DIRECTORY"
    exit 2
    ;;
esac
