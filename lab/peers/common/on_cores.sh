#!/bin/sh
# Runs a program that knows nothing of workers on as many cores as --workers says, or on all if there are not so many.
. "$(dirname "$0")/workers.sh"
cores=$(nproc)
if [ "$workers" -lt "$cores" ]; then
  exec taskset --cpu-list 0-$((workers - 1)) "$@"
fi
exec "$@"
