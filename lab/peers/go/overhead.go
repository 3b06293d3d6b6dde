package main

import (
	"flag"
	"math"
	"runtime"
)

var thirteen = 13.0 // a variable, so that the compiler does not take the root

func roots(n int64, done chan<- bool) {
	sum := 0.0
	for i := int64(0); i < n; i++ {
		sum += math.Sqrt(thirteen)
	}
	done <- sum > 0
}

// Experiment 4: the same function called in a loop, and as a goroutine each time.
func overheadWorkload() workload {
	var n, x int64
	run := func() result {
		done := make(chan bool, x)
		right := int64(0)
		collect := func() {
			for i := int64(0); i < x; i++ {
				if <-done {
					right++
				}
			}
		}
		direct := timed(func() {
			for i := int64(0); i < x; i++ {
				roots(n, done)
			}
			collect()
		})
		runtime.GC()
		seconds := timed(func() {
			for i := int64(0); i < x; i++ {
				go roots(n, done)
			}
			collect()
		})
		return result{seconds: seconds, units: x, ok: right == 2*x, direct: direct,
			figures: map[string]float64{"share_of_direct": direct / seconds}}
	}
	return workload{
		unit:   "call",
		styles: []style{{"channel", run}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&n, "n", 1, "square roots each")
			f.Int64Var(&x, "x", 100_000, "calls, and then goroutines")
		},
	}
}
