# Sourced by ./run: what has to be installed, and how. Debian and Ubuntu only; elsewhere it says what is needed and goes on.

help_setup() {
  cat <<'END'
usage: ./run setup

Installs everything that the other commands need, and ccache (optional). The last lines list what could not be installed and
what that disables.
END
}

# A package, and the program that makes it needless where it came from somewhere else.
# shellcheck disable=SC2191
build_packages=(g++=g++ cmake=cmake ninja-build=ninja python3=python3 libgtest-dev libcli11-dev nlohmann-json3-dev libfmt-dev)
# What optional components need. Where they cannot be had, these components and their tests are left out.
component_packages=(prometheus-cpp-dev libssl-dev openssl=openssl libboost1.81-dev libnghttp2-dev zlib1g-dev libbrotli-dev libzstd-dev libpq-dev libhiredis-dev librdkafka-dev libcurl4-openssl-dev)
# Servers that these are tested with; the tests start their own.
server_packages=(postgresql redis-server=redis-server)
cluster_packages=(libnats-dev nats-server=nats-server libprotobuf-dev protobuf-compiler=protoc openssl=openssl)
# Debian's server, 2.9.10, goes on counting jobs that were handled when it is killed at the wrong moment; queues need this one.
nats_server_version=2.15.2
# For tests that make a virtual environment of Python.
venv_packages=(python3-venv)
# Clients that examples are tested with.
client_packages=(redis-tools=redis-cli netcat-openbsd=nc socat=socat curl=curl nghttp2-client=nghttp)
# What the cases of AutobahnTestsuite are run by.
autobahn_packages=(python3-autobahn python3-twisted)
cross_packages=(g++-aarch64-linux-gnu=aarch64-linux-gnu-g++ qemu-user=qemu-aarch64)
plot_packages=(python3-matplotlib)
browser_packages=(chromium=chromium chromium-driver=chromedriver fonts-dejavu-core)
debug_packages=(gdb=gdb valgrind=valgrind)
coverage_packages=(gcovr=gcovr)
docs_packages=(doxygen=doxygen)
cppcheck_packages=(cppcheck=cppcheck)
model_packages=(spin=spin gcc=gcc)
# Builds are faster with it from the second time on.
cache_packages=(ccache=ccache)

# The version whose clang-format decides, wherever the distribution has it.
clang_version_preferred=19
cmake_version_min=3.22

is_installed() { # package[=program]
  local package=${1%%=*} program=
  [[ $1 == *=* ]] && program=${1#*=}
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
    { [[ -n $program ]] && command -v "$program" >/dev/null; }
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

# apt-get, once more if it fails: mirrors have bad moments.
apt_get() {
  local attempt
  for attempt in 1 2; do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >&2 && return 0
    ((attempt == 1)) && note "apt-get $1 failed; trying once more" && sleep 3
  done
  return 1
}

apt_lists_fresh=no
update_apt_lists() {
  [[ $apt_lists_fresh == yes ]] && return 0
  apt_get update || note "apt-get update failed; going on with the lists that are here"
  apt_lists_fresh=yes
}

# Installs those of the given packages that are missing; where it cannot, it says how to and returns 1.
need() {
  local item missing=()
  if ! command -v dpkg-query >/dev/null; then
    note "not a Debian or Ubuntu: install these packages, or the equivalents of your distribution: ${*%%=*}"
    return 0
  fi
  for item in "$@"; do
    is_installed "$item" || missing+=("${item%%=*}")
  done
  ((${#missing[@]} == 0)) && return 0
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    note "these packages are missing, and without root or sudo they cannot be installed from here: ${missing[*]}"
    note "as root:  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    return 1
  fi
  note "installing ${missing[*]}"
  update_apt_lists
  if ! apt_get install --no-install-recommends "${missing[@]}"; then
    note "could not install: ${missing[*]}"
    note "as root:  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    return 1
  fi
}

# nats-server of that version, by its Go module, in build/tools, where the tests and ./run cluster look first.
need_nats_server() {
  local tool=build/tools/nats-server
  [[ $("$tool" --version 2>/dev/null) != *v$nats_server_version ]] || return 0
  command -v go >/dev/null || return 1
  note "building nats-server $nats_server_version; this takes a minute or two"
  GOBIN=$PWD/build/tools CGO_ENABLED=0 go install "github.com/nats-io/nats-server/v2@v$nats_server_version" >&2
}

# The same for what is merely left out without them: a distribution that has no such packages, or no right to install them,
# is no failure.
need_for_components() {
  (need "${component_packages[@]}") || leave_out "optional components and their tests (${component_packages[*]%%=*})"
  (need "${cluster_packages[@]}") || leave_out "ramie::cluster and its tests (${cluster_packages[*]%%=*})"
  need_nats_server ||
    leave_out "nats-server $nats_server_version (a newer go): $(PATH=$PATH:/usr/sbin nats-server --version 2>/dev/null || echo none) is used, with which queues may count handled jobs"
  (need "${server_packages[@]}") || leave_out "the tests of ramie::postgres and ramie::redis, and of the exchange (${server_packages[*]})"
  (need "${client_packages[@]}") || leave_out "the tests by clients of others (${client_packages[*]%%=*})"
  command -v conan >/dev/null || python3 -c 'import ensurepip' 2>/dev/null || (need "${venv_packages[@]}") ||
    leave_out "the test consumer.conan (${venv_packages[*]})"
}

# Suites of others that the tests of ramie::http run, in build/tools: h2spec for HTTP/2, AutobahnTestsuite for WebSocket.
need_for_conformance() {
  mkdir -p build/tools || return 1
  if [[ ! -x build/tools/h2spec ]] && ! command -v h2spec >/dev/null; then
    { command -v go >/dev/null && GOBIN=$PWD/build/tools go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible >&2; } ||
      leave_out "the cases of h2spec (needs go)"
  fi
  (need "${autobahn_packages[@]}") || leave_out "the cases of AutobahnTestsuite (${autobahn_packages[*]})"
  [[ -d build/tools/autobahntestsuite ]] || fetch_autobahn || leave_out "the cases of AutobahnTestsuite (needs pip)"
}

fetch_autobahn() {
  local folder
  folder=$(mktemp -d -p build/tools) || return 1
  if python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$folder" autobahntestsuite==25.10.1 >&2 &&
    tar -xzf "$folder"/autobahntestsuite-*.tar.gz -C "$folder"; then
    mv "$folder"/autobahntestsuite-*/ build/tools/autobahntestsuite
  fi
  rm -rf "$folder"
  [[ -d build/tools/autobahntestsuite ]]
}

need_for_compare() {
  (need strace=strace) || leave_out "system calls a request in experiment 6 (strace)"
  (need libmimalloc2.0) || true # without it, what allocates much runs with glibc's malloc only, and the comparison says so
}

need_build() {
  local version
  need "${build_packages[@]}" || return 1
  version=$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
  if [[ $(printf '%s\n' "$cmake_version_min" "$version" | sort -V | head -n 1) != "$cmake_version_min" ]]; then
    note "cmake here is $version, and ramie needs $cmake_version_min or newer; this distribution is too old to bring one."
    note "see https://cmake.org/download, or a virtual environment with 'pip install cmake'"
    return 1
  fi
}

# Says which version of clang to use: the preferred one if it is installed or can be, else the newest that can be.
clang_version() {
  local known
  if [[ -n $(command -v "clang-format-$clang_version_preferred" "clang++-$clang_version_preferred") ]]; then
    echo "$clang_version_preferred"
  elif command -v apt-cache >/dev/null; then
    known=$(apt-cache search --names-only '^clang-format-[0-9]+$' | sed 's/^clang-format-\([0-9]*\).*/\1/' | sort -n)
    grep -x "$clang_version_preferred" <<<"$known" || tail -n 1 <<<"$known"
  fi
}

# Installs tools of one version of clang (of clang, clang-tidy, clang-format, libclang-rt, llvm) and sets clang_suffix to what the
# names of their programs end in.
need_clang() {
  local version tool packages=()
  version=$(clang_version)
  if [[ -z $version ]] && command -v apt-cache >/dev/null; then
    update_apt_lists
    version=$(clang_version)
  fi
  if [[ -z $version ]]; then
    clang_suffix=
    note "no package is known that brings clang: make sure that these are installed: $*"
    return 0
  fi
  for tool in "$@"; do
    case $tool in
      libclang-rt) packages+=("libclang-rt-$version-dev") ;;
      llvm) packages+=("llvm-$version=llvm-symbolizer-$version") ;;
      *) packages+=("$tool-$version=$tool-$version") ;;
    esac
  done
  need "${packages[@]}" || return 1
  clang_suffix=-$version
}

# Sets RAMIE_PYTHON to a Python that has matplotlib: the one that is found first may not be the distribution's.
need_plotting() {
  local candidate
  for candidate in "${RAMIE_PYTHON:-python3}" /usr/bin/python3; do
    if "$candidate" -c 'import matplotlib' 2>/dev/null; then
      RAMIE_PYTHON=$candidate
      return 0
    fi
  done
  need "${plot_packages[@]}" || return 1
  RAMIE_PYTHON=/usr/bin/python3
}

# Each part is tried, whatever became of those before it.
command_setup() {
  local status=0
  setup_part() { # what needs it, how it is installed
    ("${@:2}") || { leave_out "what $1 needs" && status=1; }
  }
  setup_part "building and testing" need_build
  need_for_components
  need_for_compare
  need_for_conformance
  (need "${cache_packages[@]}") || leave_out "a compiler cache; all builds work without"
  setup_part "check cppcheck" need "${cppcheck_packages[@]}"
  setup_part "check models" need "${model_packages[@]}"
  setup_part "check aarch64" need "${cross_packages[@]}"
  setup_part "tests with gdb and valgrind" need "${debug_packages[@]}"
  setup_part "coverage" need "${coverage_packages[@]}"
  setup_part "pages of report, bench and compare" need "${plot_packages[@]}"
  setup_part "check report" need "${browser_packages[@]}"
  setup_part "docs" need "${docs_packages[@]}"
  setup_part "check format, asan, tidy, clang and fuzz" need_clang clang clang-tidy clang-format libclang-rt llvm
  ((${#left_out[@]} > 0)) || note "all is installed"
  return "$status"
}
