#!/bin/sh
# The number of capabilities is an option of the run-time system.
program=$1
shift
workers=1
for word in "$@"; do
  case $word in
    --workers=*) workers=${word#--workers=} ;;
  esac
done
exec "$program" "$@" +RTS -N"$workers" -A64m -RTS
