#!/bin/sh
# Styles libomp-NAME are of the program that clang has compiled.
program=$1
shift
case " $* " in
  *" --style=libomp-"*) exec "${program}_libomp" "$@" ;;
esac
exec "$program" "$@"
