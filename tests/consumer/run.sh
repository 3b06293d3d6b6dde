#!/usr/bin/env bash
# Builds a user's project in a fresh directory and runs it: run.sh WAY BUILD_DIRECTORY; the ways are at the end
set -euo pipefail

way=$1
build=$2
cmake=${CMAKE:-cmake}
compiler=${CXX:-c++}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Most of what is built here is the library, again and again.
if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

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

skip() { # why
  echo "skipped: $*"
  exit 77
}

# Whether a project builds and links in these ways does not depend on what the compiler optimises, so it optimises nothing. And
# users may have unity builds: with these the library compiles in a third of the time.
quick=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_UNITY_BUILD=ON)

# A compiler cache that knows sources by their place below the directory of this run, which has another name each time.
share_cache() {
  export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
}

build_project() { # folder of sources, arguments for cmake
  "$cmake" -S "$1" -B "$work/build" -G Ninja "${quick[@]}" -DCMAKE_CXX_COMPILER="$compiler" "${@:2}"
  "$cmake" --build "$work/build" --parallel 2
}

build_consumer() { # arguments for cmake
  build_project "$here" "$@"
  expect 42 "$work/build/consumer"
}

refuse_component() { # prefix, component that is not there
  if "$cmake" -S "$here" -B "$work/refused" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$1" \
    -DRAMIE_COMPONENTS="$2" >"$work/refused.log" 2>&1; then
    echo "find_package found a component that is not there: $2"
    exit 1
  fi
  grep -q "$2" "$work/refused.log" || {
    cat "$work/refused.log"
    exit 1
  }
}

block_of() { # document, language, number
  awk -v fence="\`\`\`$2" -v wanted="$3" '$0 == fence { on = ++n == wanted; next } /^```$/ { on = 0 } on' "$here/../../$1"
}

# A project as docs/install.md shows it: the program that README.md begins with, and the page's block number N of CMake.
documented_project() { # N, more for cmake
  local project=$work/documented_$1
  mkdir -p "$project/third_party"
  ln -s "$(realpath "$here/../..")" "$project/third_party/ramie"
  block_of README.md cpp 1 >"$project/main.cpp"
  block_of docs/install.md cmake "$1" >"$project/CMakeLists.txt"
  "$cmake" -S "$project" -B "$project/build" -G Ninja "${quick[@]}" -DCMAKE_CXX_COMPILER="$compiler" "${@:2}"
  "$cmake" --build "$project/build" --parallel 2
  expect 832040 "$project/build/my_program"
}

by_pkg_config() { # prefix, program to make, more for the compiler
  local prefix=$1 program=$2 flags
  shift 2
  command -v pkg-config >/dev/null || return 0
  PKG_CONFIG_PATH=$(find "$prefix" -type d -name pkgconfig)
  export PKG_CONFIG_PATH
  read -ra flags < <(pkg-config --cflags --libs ramie)
  "$compiler" -std=c++20 "$@" "$here/main.cpp" "${flags[@]}" -o "$program"
}

# A user's program under a sanitizer, with a library that is not. ThreadSanitizer needs to know of each switch of stacks.
watched_user() { # prefix
  by_pkg_config "$1" "$work/address" -fsanitize=address
  [[ ! -e $work/address ]] || expect 42 "$work/address"
  by_pkg_config "$1" "$work/thread" -fsanitize=thread
  [[ ! -e $work/thread ]] || ! setarch -R true 2>/dev/null || {
    ! setarch -R "$work/thread" 2>"$work/thread.log" && grep -q "the ramie library is not" "$work/thread.log"
  } || {
    cat "$work/thread.log"
    exit 1
  }
}

# Only what is ramie's is seen, and all of it belongs to one version of the ABI.
check_symbols() { # shared library
  local strangers
  readelf --dynamic "$1" | grep -Eq 'SONAME.*libramie\.so\.[0-9]+\.[0-9]+\]' || {
    echo "$1 has no versioned soname"
    exit 1
  }
  if strangers=$(nm --dynamic --demangle --defined-only "$1" | cut -c 20- | grep -Ev '^((typeinfo( name)?|vtable|guard variable|TLS .* function) for )?ramie(::|_)|^RAMIE_'); then
    echo "symbols that are not ramie's: $strangers"
    exit 1
  fi
}

# An example of each component that was installed. Where nothing is expected it needs a server; without one, it says how it is
# called, but for the cluster's, which looks for its server.
of_components() { # prefix, COMPONENT:EXAMPLE...
  local prefix=$1 part program example parts=()
  shift
  for part in "$@"; do
    [[ -z $(find "$prefix" -name "ramie_${part%:*}Targets.cmake") ]] || parts+=("$part")
  done
  rm -rf "$work/build"
  build_project "$here/components" -DCMAKE_PREFIX_PATH="$prefix" -DRAMIE_EXAMPLES="$(IFS=';' && echo "${parts[*]}")"
  for part in "${parts[@]}"; do
    program=$work/build/${part%:*}/of_${part%:*}
    example=$here/../../components/${part%:*}/examples/${part#*:}
    if [[ -e $example.expected ]]; then
      expect "$(<"$example.expected")" "$program"
    elif [[ $part != cluster:* ]]; then
      "$program" >/dev/null
    fi
  done
}

# Conan 2: the one on PATH, or else the project's own, a virtual environment below the build folder that is made once.
find_conan() {
  conan=$(command -v conan) || true
  [[ -z $conan || $("$conan" --version) != "Conan version 2."* ]] || return 0
  conan=$build/conan/bin/conan
  [[ ! -x $conan ]] || return 0
  rm -rf "$build/conan"
  python3 -m venv "$build/conan" || skip "no Conan 2 on PATH, and no python3-venv to install it with"
  timeout 300 "$build/conan/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 'conan>=2,<3' ||
    skip "no Conan 2 on PATH, and pip could not install it"
}

case $way in
  find_package)
    share_cache
    "$cmake" --install "$build" --prefix "$work/installed"
    # A prefix may be moved after the installation.
    mv "$work/installed" "$work/prefix"
    build_consumer -DCMAKE_PREFIX_PATH="$work/prefix"
    documented_project 1 -DCMAKE_PREFIX_PATH="$work/prefix"
    by_pkg_config "$work/prefix" "$work/by_pkg_config" -fno-rtti
    watched_user "$work/prefix"
    of_components "$work/prefix" prometheus:metrics http:hello_http cluster:cluster_bank asio:asio_echo postgres:postgres_fruit \
      redis:redis_fruit kafka:kafka_fruit curl:curl_fetch
    refuse_component "$work/prefix" of_no_such_name
    [[ ! -e $work/by_pkg_config ]] || expect 42 "$work/by_pkg_config"
    # A user with another compiler than the library's.
    for other in clang++ clang++-{20,19,18,17,16} g++; do
      if [[ $(command -v "$other") != "$(command -v "$compiler")" ]] && command -v "$other" >/dev/null; then
        rm -rf "$work/build"
        compiler=$other build_consumer -DCMAKE_PREFIX_PATH="$work/prefix"
        break
      fi
    done
    ;;
  add_subdirectory)
    share_cache
    # A user whose own libraries are shared ones gets a shared one of ours; fetch_content is the same with a static one.
    documented_project 2 -DBUILD_SHARED_LIBS=ON
    check_symbols "$(find "$work/documented_2/build" -name libramie.so)"
    # A user's build has none of our tests, examples and tools in it.
    if extra=$("$cmake" --build "$work/documented_2/build" --target help | grep -E 'test_|example_|ramie-lab'); then
      echo "targets that users did not ask for: $extra"
      exit 1
    fi
    ;;
  fetch_content)
    share_cache
    # In one of those projects that do without run-time type information.
    documented_project 3 -DFETCHCONTENT_SOURCE_DIR_RAMIE="$here/../.." -DCMAKE_CXX_FLAGS=-fno-rtti
    ;;
  sanitized)
    build_consumer -DRAMIE_SOURCE="$here/../.." -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined -DCMAKE_BUILD_TYPE=Debug
    ;;
  packaged)
    # A shared library, from Debian packages.
    "$cmake" -S "$here/../.." -B "$work/shared" -G Ninja "${quick[@]}" -DCMAKE_CXX_COMPILER="$compiler" \
      -DCMAKE_INSTALL_PREFIX=/usr -DBUILD_SHARED_LIBS=ON -DRAMIE_BUILD_TESTS=OFF -DRAMIE_BUILD_LAB=OFF -DRAMIE_BUILD_EXAMPLES=OFF
    "$cmake" --build "$work/shared" --parallel 2
    check_symbols "$work/shared/libramie.so"
    if command -v dpkg-deb >/dev/null; then
      (cd "$work/shared" && "${cmake%cmake}cpack" -G DEB)
      ! command -v lintian >/dev/null || lintian --fail-on error "$work"/shared/*.deb
      for package in "$work"/shared/*.deb; do dpkg-deb --extract "$package" "$work/root"; done
    else
      "$cmake" --install "$work/shared" --prefix "$work/root/usr"
    fi
    LD_LIBRARY_PATH=$(dirname "$(find "$work/root" -name 'libramie.so')")
    export LD_LIBRARY_PATH
    build_consumer -DCMAKE_PREFIX_PATH="$work/root/usr"
    by_pkg_config "$work/root" "$work/by_pkg_config"
    # Components that need other libraries are not in them.
    refuse_component "$work/root/usr" prometheus
    [[ ! -e $work/by_pkg_config ]] || expect 42 "$work/by_pkg_config"
    ;;
  conan)
    find_conan
    share_cache
    # Neither the user's profiles and packages are touched, nor is anything left in the folder of the recipe.
    export CONAN_HOME=$work/conan CXX=$compiler
    for_conan=(-s compiler.cppstd=20 -c tools.cmake.cmaketoolchain:generator=Ninja -c tools.build:jobs=2
      -c 'tools.cmake.cmaketoolchain:extra_variables={"CMAKE_CXX_FLAGS_RELEASE": "-O0", "CMAKE_UNITY_BUILD": "ON"}')
    "$conan" profile detect
    "$conan" create "$here/../../packaging/conan" "${for_conan[@]}" -c "tools.cmake.cmake_layout:test_folder=$work/test_package" \
      -c 'tools.cmake.cmaketoolchain:user_presets='
    # The user's project has the first block of CMake in docs/install.md, and the first of ini.
    mkdir "$work/documented_1"
    block_of docs/install.md ini 1 >"$work/documented_1/conanfile.txt"
    "$conan" install "$work/documented_1" "${for_conan[@]}" --output-folder="$work/documented_1/build"
    documented_project 1 -DCMAKE_TOOLCHAIN_FILE="$work/documented_1/build/conan_toolchain.cmake"
    ;;
  vcpkg)
    # Whether the port is in order without vcpkg is the test `vcpkg_port`.
    vcpkg=$(command -v vcpkg) || vcpkg=${VCPKG_ROOT:-}/vcpkg
    [[ -x $vcpkg ]] || skip "no vcpkg on PATH or in VCPKG_ROOT"
    root=${VCPKG_ROOT:-$(dirname "$(realpath "$vcpkg")")}
    [[ -e $root/scripts/buildsystems/vcpkg.cmake ]] || skip "vcpkg is there, but not its scripts: VCPKG_ROOT should say where"
    export VCPKG_ROOT=$root VCPKG_DISABLE_METRICS=1 CXX=$compiler
    mkdir "$work/documented_1"
    block_of docs/install.md json 1 >"$work/documented_1/vcpkg.json"
    documented_project 1 -DCMAKE_TOOLCHAIN_FILE="$root/scripts/buildsystems/vcpkg.cmake" \
      -DVCPKG_OVERLAY_PORTS="$(realpath "$here/../../packaging/vcpkg")" -DVCPKG_INSTALLED_DIR="$work/vcpkg" \
      -DVCPKG_INSTALL_OPTIONS="--x-buildtrees-root=$work/buildtrees;--x-packages-root=$work/packages;--binarysource=clear"
    ;;
  *)
    echo "usage: $0 find_package|add_subdirectory|fetch_content|sanitized|packaged|conan|vcpkg BUILD_DIRECTORY"
    exit 2
    ;;
esac
