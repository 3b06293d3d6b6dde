#!/bin/sh
build=$1
shift
exec java -XX:+UseParallelGC -Xms1g -XX:-UsePerfData -cp "$build/pekko-peer-1.jar:$build/lib/*" lab.Main "$@"
