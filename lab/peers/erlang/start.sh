#!/bin/sh
# Starts the emulator with as many schedulers as --workers says; that cannot be changed from inside as cleanly.
build=$1
shift
. "$(dirname "$0")/../common/workers.sh"
export ERL_CRASH_DUMP_BYTES=0
# The process table is resident memory, so it is as large as skynet with a million leaves needs.
exec erl -noshell -noinput +S "$workers:$workers" +P 2000000 -pa "$build" -run lab_peer main -extra "$@"
