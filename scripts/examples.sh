# Sourced by ./run: examples.

help_example() {
  cat <<'END'
usage: ./run example [NAME [ARGS]]

Builds and runs one of examples/; without a name, lists them.
END
}

help_trace() {
  cat <<'END'
usage: ./run trace EXAMPLE [FILE]

Runs an example and writes a trace of its workers into FILE (default: build/trace.json), for https://ui.perfetto.dev.
END
}

# Says on standard error how it is built; standard output is the example's.
build_example() { # name, for the command
  [[ -f examples/$1.cpp ]] || die "$2: which example? There are: $(cd examples && printf '%s ' *.cpp | sed 's/\.cpp//g')"
  need_build
  build release --target "example_$1" >&2
}

command_example() { # name, its arguments
  build_example "${1:-}" example
  exec "build/release/bin/example_$1" "${@:2}"
}

command_trace() { # example, file
  local file=${2:-build/trace.json}
  build_example "${1:-}" trace
  rm -f "$file"
  RAMIE_TRACE=$(realpath -m "$file") "build/release/bin/example_$1"
  note "open $file in https://ui.perfetto.dev or chrome://tracing"
}
