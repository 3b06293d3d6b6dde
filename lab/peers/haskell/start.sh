#!/bin/sh
# The number of capabilities is an option of the run-time system.
program=$1
shift
. "$(dirname "$0")/../common/workers.sh"
exec "$program" "$@" +RTS -N"$workers" -A64m -RTS
