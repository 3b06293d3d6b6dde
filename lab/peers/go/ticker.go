package main

import (
	"flag"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// A ticker beside goroutines that never let go of a processor by themselves.
func tickerWorkload() workload {
	var hogs, ticks, periodUs int64
	run := func(byTicker bool) result {
		period := time.Duration(periodUs) * time.Microsecond
		var stop atomic.Bool
		var all sync.WaitGroup
		for i := int64(0); i < hogs; i++ {
			all.Add(1)
			go func() {
				defer all.Done()
				for !stop.Load() {
				}
			}()
		}
		late := make([]float64, 0, ticks)
		missed := 0
		seconds := timed(func() {
			ticker := time.NewTicker(period)
			defer ticker.Stop()
			due := time.Now()
			for int64(len(late)) < ticks {
				due = due.Add(period)
				if byTicker {
					<-ticker.C
				} else {
					time.Sleep(time.Until(due))
				}
				now := time.Now()
				late = append(late, now.Sub(due).Seconds()*1e6)
				for now.Sub(due) >= period && int64(len(late)) < ticks { // those that were slept through count too
					due = due.Add(period)
					late = append(late, now.Sub(due).Seconds()*1e6)
					missed++
				}
			}
		})
		stop.Store(true)
		all.Wait()
		sort.Float64s(late)
		return result{seconds: seconds, units: ticks, ok: true, figures: map[string]float64{
			"lateness_p50_us": late[len(late)/2],
			"lateness_p99_us": late[len(late)*99/100],
			"lateness_max_us": late[len(late)-1],
			"missed_ticks":    float64(missed)}}
	}
	return workload{
		unit:   "tick",
		styles: []style{{"channel", func() result { return run(true) }}, {"sleep", func() result { return run(false) }}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&hogs, "hogs", 8, "goroutines that compute without end")
			f.Int64Var(&ticks, "ticks", 1000, "ticks to wait for")
			f.Int64Var(&periodUs, "period-us", 1000, "from tick to tick")
		},
	}
}
