#!/bin/sh
# A launcher for a compiler, as CMake has them: by_clang.sh CLANG LAUNCHER GCC ARGUMENTS... runs clang in place of gcc, by the
# other launcher unless that is "-". Arguments that are gcc's alone are left out, and clang's warnings are as in ramie_build.cmake.
clang=$1 launcher=$2
shift 3
for argument; do
  shift
  case $argument in
    --param=* | -Wno-restrict | -Wno-maybe-uninitialized) ;;
    *.gch) rm -f "$argument"; set -- "$@" "$argument" ;;  # it would read the one that it makes anew
    *) set -- "$@" "$argument" ;;
  esac
done
set -- "$@" -Wno-sign-conversion -Wno-shadow -Wno-deprecated-declarations
[ "$launcher" != - ] || exec "$clang" "$@"
exec "$launcher" "$clang" "$@"
