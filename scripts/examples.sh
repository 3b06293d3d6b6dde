# Sourced by ./run: examples.

help_example() {
  cat <<'END'
usage: ./run example [NAME [ARGS]]

Builds and runs one of examples/; without a name, lists them.
END
}

help_cluster() {
  cat <<'HELP'
usage: ./run cluster [--minutes N] [--seed N]

Starts a nats-server and three nodes on this machine (loopback only): accounts as shards, jobs in a queue, numbers told from each node
to each. Shows who owns what, and starts again what you kill -9, until control-C. With --minutes it kills, freezes and cuts by itself,
and then judges what the nodes wrote down: it exits 0 only if every promise held (docs/design/cluster.md).
HELP
}

help_trace() {
  cat <<'END'
usage: ./run trace EXAMPLE [FILE]

Runs an example and writes a trace of its workers into FILE (default: build/trace.json), for https://ui.perfetto.dev.
END
}

# Says on standard error how it is built; standard output is the example's.
build_example() { # name, for the command
  local all=(examples/*.cpp components/*/examples/*.cpp)
  printf '%s\n' "${all[@]##*/}" | grep -qFx -e "$1.cpp" || die "$2: which example? There are: $(printf '%s ' "${all[@]##*/}" | sed 's/\.cpp//g')"
  need_build
  [[ -e examples/$1.cpp ]] || need_for_components
  build release --target "example_$1" >&2
}

command_example() { # name, its arguments
  build_example "${1:-}" example
  exec "build/release/bin/example_$1" "${@:2}"
}

command_cluster() {
  need_build
  need_for_components
  build release --target cluster_soak >&2 || die "ramie::cluster is not built here: see docs/install.md"
  exec build/release/bin/cluster_soak "$@"
}

command_trace() { # example, file
  local file=${2:-build/trace.json}
  build_example "${1:-}" trace
  rm -f "$file"
  RAMIE_TRACE=$(realpath -m "$file") "build/release/bin/example_$1"
  note "open $file in https://ui.perfetto.dev or chrome://tracing"
}
