package main

import (
	"flag"
	"sync"
)

// Goroutines that wait for a channel, all at once.
func memoryWorkload() workload {
	var count int64
	run := func() result {
		before := residentBytes()
		gate := make(chan struct{})
		var parked, ended sync.WaitGroup
		parked.Add(int(count))
		ended.Add(int(count))
		seconds := timed(func() {
			for i := int64(0); i < count; i++ {
				go func() {
					parked.Done()
					<-gate
					ended.Done()
				}()
			}
			parked.Wait()
		})
		grown := residentBytes() - before
		ending := timed(func() {
			close(gate)
			ended.Wait()
		})
		return result{seconds: seconds, units: count, ok: true, figures: map[string]float64{
			"resident_bytes_per_fiber":  float64(grown) / float64(count),
			"wake_and_end_ns_per_fiber": ending * 1e9 / float64(count)}}
	}
	return workload{
		unit:    "fiber",
		styles:  []style{{"channel", run}},
		options: func(f *flag.FlagSet) { f.Int64Var(&count, "count", 1_000_000, "goroutines at once") },
	}
}
