package main

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Goroutines that do nothing but take and release one lock.
func mutexWorkload() workload {
	var fibers, count int64
	run := func() result {
		var mutex sync.Mutex
		var counter int64
		seconds := timed(func() {
			var all sync.WaitGroup
			for i := int64(0); i < fibers; i++ {
				all.Add(1)
				go func() {
					defer all.Done()
					for j := int64(0); j < count; j++ {
						mutex.Lock()
						counter++
						mutex.Unlock()
					}
				}()
			}
			all.Wait()
		})
		return result{seconds: seconds, units: fibers * count, ok: counter == fibers*count}
	}
	return workload{
		unit:   "lock",
		styles: []style{{"mutex", run}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&fibers, "fibers", 4, "goroutines that want the lock")
			f.Int64Var(&count, "count", 1_000_000, "locks of each")
		},
	}
}

func yieldWorkload() workload {
	var fibers, count int64
	run := func() result {
		seconds := timed(func() {
			var all sync.WaitGroup
			for i := int64(0); i < fibers; i++ {
				all.Add(1)
				go func() {
					defer all.Done()
					for j := int64(0); j < count; j++ {
						runtime.Gosched()
					}
				}()
			}
			all.Wait()
		})
		return result{seconds: seconds, units: fibers * count, ok: true}
	}
	return workload{
		unit:   "switch",
		styles: []style{{"fibers", run}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&fibers, "fibers", 2, "goroutines that take turns")
			f.Int64Var(&count, "count", 2_000_000, "yields of each")
		},
	}
}

func spawnWorkload() workload {
	var count int64
	one := func() result {
		var sum int64
		seconds := timed(func() {
			done := make(chan int64)
			for i := int64(0); i < count; i++ {
				go func(v int64) { done <- v }(i)
				sum += <-done
			}
		})
		return result{seconds: seconds, units: count, ok: sum == count*(count-1)/2}
	}
	detached := func() result {
		var ran atomic.Int64
		seconds := timed(func() {
			for made := int64(0); made < count; {
				var batch sync.WaitGroup
				for i := 0; i < 1000 && made < count; i++ {
					batch.Add(1)
					made++
					go func() {
						ran.Add(1)
						batch.Done()
					}()
				}
				batch.Wait()
			}
		})
		return result{seconds: seconds, units: count, ok: ran.Load() == count}
	}
	batches := func() result {
		const size = 100
		var sum int64
		seconds := timed(func() {
			var results [size]int64
			for first := int64(0); first < count; first += size {
				n := count - first
				if n > size {
					n = size
				}
				var batch sync.WaitGroup
				batch.Add(int(n))
				for i := int64(0); i < n; i++ {
					go func(i int64) {
						results[i] = first + i
						batch.Done()
					}(i)
				}
				batch.Wait()
				for i := int64(0); i < n; i++ {
					sum += results[i]
				}
			}
		})
		return result{seconds: seconds, units: count, ok: sum == count*(count-1)/2}
	}
	return workload{
		unit:    "fiber",
		styles:  []style{{"join", one}, {"detached", detached}, {"batch_join", batches}},
		options: func(f *flag.FlagSet) { f.Int64Var(&count, "count", 1_000_000, "goroutines") },
	}
}

// A million timers at once: started and cancelled, or started and fired.
func timersWorkload() workload {
	var count int64
	cancel := func() result {
		timers := make([]*time.Timer, count)
		cancelled := int64(0)
		var started float64
		seconds := timed(func() {
			started = timed(func() {
				for i := range timers {
					timers[i] = time.AfterFunc(time.Hour+time.Duration(i%1000)*time.Second, func() {})
				}
			})
			for _, t := range timers {
				if t.Stop() {
					cancelled++
				}
			}
		})
		return result{seconds: seconds, units: count, ok: cancelled == count, figures: map[string]float64{
			"start_ns_per_timer":  started * 1e9 / float64(count),
			"cancel_ns_per_timer": (seconds - started) * 1e9 / float64(count)}}
	}
	fire := func() result {
		var fired sync.WaitGroup
		fired.Add(int(count))
		seconds := timed(func() {
			for i := int64(0); i < count; i++ {
				time.AfterFunc(time.Duration(i%1000)*time.Microsecond, fired.Done)
			}
			fired.Wait()
		})
		return result{seconds: seconds, units: count, ok: true}
	}
	return workload{
		unit:    "timer",
		styles:  []style{{"cancel", cancel}, {"fire", fire}},
		options: func(f *flag.FlagSet) { f.Int64Var(&count, "count", 1_000_000, "timers at once") },
	}
}
