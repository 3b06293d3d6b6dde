#!/bin/sh
# Starts the emulator with as many schedulers as --workers says; that cannot be changed from inside as cleanly.
build=$1
shift
. "$(dirname "$0")/../common/workers.sh"
export ERL_CRASH_DUMP_BYTES=0
# The process table is resident memory, so it is as large as skynet with a million leaves needs.
# Schedulers that spin before they sleep are faster where they are woken soon, and use more of the processor where not: at a rate.
spin=
case $* in
  *--rate=[1-9]*) spin="+sbwt none +sbwtdcpu none +sbwtdio none" ;;
esac
case ${1-} in
  across_*)
    # Two nodes on two addresses of the loopback, which both listen on one port, so that no daemon has to know them.
    port=$((20000 + $$ % 20000))
    nodes="-setcookie lab$$ -start_epmd false -erl_epmd_port $port"
    # shellcheck disable=SC2086
    erl -noshell -noinput +S "$workers:$workers" -pa "$build" -name "far@127.0.0.2" $nodes \
      -kernel inet_dist_use_interface '{127,0,0,2}' -run lab_across far &
    # shellcheck disable=SC2086
    exec erl -noshell -noinput +S "$workers:$workers" -pa "$build" -name "near@127.0.0.1" $nodes \
      -kernel inet_dist_use_interface '{127,0,0,1}' -run lab_peer main -extra "$@" far@127.0.0.2
    ;;
esac
# shellcheck disable=SC2086  # several words
exec erl $spin -noshell -noinput +S "$workers:$workers" +P 2000000 -pa "$build" -run lab_peer main -extra "$@"
