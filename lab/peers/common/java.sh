# For start scripts, which source it: sets `collector` to the options for the workload, the first argument. Throughput is the parallel
# collector's; where memory is measured, heap that is free goes back to the system.
case ${1:-} in
  memory | idle_actors) collector="-XX:+UseG1GC -XX:MinHeapFreeRatio=5 -XX:MaxHeapFreeRatio=10" ;;
  *) collector="-XX:+UseParallelGC" ;;
esac
