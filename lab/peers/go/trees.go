package main

import (
	"flag"
	"sync"
)

const fanOut = 10

// Experiment 1. A node is a goroutine; an inner one has a channel of its own, through which its children report.
func skynetNode(parent chan<- int64, first, leaves int64, capacity int) {
	if leaves == 1 {
		parent <- first
		return
	}
	children := make(chan int64, capacity)
	part := leaves / fanOut
	for i := int64(0); i < fanOut; i++ {
		go skynetNode(children, first+i*part, part, capacity)
	}
	var sum int64
	for i := 0; i < fanOut; i++ {
		sum += <-children
	}
	parent <- sum
}

// The same by tasks that are waited for.
func skynetTask(first, leaves int64) int64 {
	if leaves == 1 {
		return first
	}
	var sums [fanOut]int64
	var all sync.WaitGroup
	part := leaves / fanOut
	all.Add(fanOut)
	for i := int64(0); i < fanOut; i++ {
		go func() {
			sums[i] = skynetTask(first+i*part, part)
			all.Done()
		}()
	}
	all.Wait()
	var sum int64
	for _, s := range sums {
		sum += s
	}
	return sum
}

func skynetWorkload() workload {
	var leaves int64
	asResult := func(seconds float64, sum int64) result {
		nodes := int64(1)
		for n := leaves; n > 1; n /= fanOut {
			nodes += n
		}
		return result{seconds: seconds, units: nodes, ok: sum == leaves*(leaves-1)/2}
	}
	tasks := func() result {
		var sum int64
		seconds := timed(func() { sum = skynetTask(0, leaves) })
		return asResult(seconds, sum)
	}
	run := func(capacity int) func() result {
		return func() result {
			var sum int64
			seconds := timed(func() {
				root := make(chan int64, capacity)
				go skynetNode(root, 0, leaves, capacity)
				sum = <-root
			})
			return asResult(seconds, sum)
		}
	}
	return workload{
		unit:    "fiber",
		styles:  []style{{"channel", run(0)}, {"buffered", run(fanOut)}, {"wait_group", tasks}},
		options: func(f *flag.FlagSet) { f.Int64Var(&leaves, "leaves", 1_000_000, "a power of ten") },
	}
}

// Experiment 2: both halves are goroutines, which report through a channel that the node made for them.
func sumNode(parent chan<- int64, low, high int64) {
	if low == high {
		parent <- low
		return
	}
	middle := low + (high-low)/2
	halves := make(chan int64, 2)
	go sumNode(halves, low, middle)
	go sumNode(halves, middle+1, high)
	parent <- <-halves + <-halves
}

func sumTask(low, high int64) int64 {
	if low == high {
		return low
	}
	middle := low + (high-low)/2
	var left, right int64
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		left = sumTask(low, middle)
		both.Done()
	}()
	go func() {
		right = sumTask(middle+1, high)
		both.Done()
	}()
	both.Wait()
	return left + right
}

func sumWorkload() workload {
	var high int64
	run := func() result {
		var sum int64
		seconds := timed(func() {
			root := make(chan int64, 1)
			go sumNode(root, 1, high)
			sum = <-root
		})
		return result{seconds: seconds, units: 2*high - 1, ok: sum == high*(high+1)/2}
	}
	tasks := func() result {
		var sum int64
		seconds := timed(func() { sum = sumTask(1, high) })
		return result{seconds: seconds, units: 2*high - 1, ok: sum == high*(high+1)/2}
	}
	return workload{
		unit:    "process",
		styles:  []style{{"channel", run}, {"wait_group", tasks}},
		options: func(f *flag.FlagSet) { f.Int64Var(&high, "high", 10_000_000, "the greatest number") },
	}
}
