package main

import "flag"

const product = 28_350_160_440_309_881 // 86028157 * 329545133

// Trial division as the original has it: no end at the square root.
func factorise(n uint64) []uint64 {
	var factors []uint64
	for d := uint64(2); d < n; {
		if n%d == 0 {
			factors = append(factors, d)
			n /= d
		} else if d == 2 {
			d = 3
		} else {
			d += 2
		}
	}
	return append(factors, n)
}

type mixedCase struct {
	rings, ringSize, token, repetitions int
	messagesOnly                        bool
	capacity                            int
	results                             chan []uint64 // to the collector
	masters                             chan int      // messages that a master's rings have passed on
}

// Hands tokens to the next in the ring; the token 0 is the last.
func (m *mixedCase) link(from <-chan int, to chan<- int) {
	for t := range from {
		to <- t
		if t == 0 {
			return
		}
	}
}

func (m *mixedCase) worker(tasks <-chan uint64) {
	for n := range tasks {
		m.results <- factorise(n)
	}
}

// Builds its rings one after the other; returns how many messages have come back, times the size of the ring.
func (m *mixedCase) master() {
	tasks := make(chan uint64, m.repetitions)
	if !m.messagesOnly {
		go m.worker(tasks)
	}
	rounds := 0
	for i := 0; i < m.repetitions; i++ {
		if !m.messagesOnly {
			tasks <- product
		}
		first := make(chan int, m.capacity)
		last := first
		for j := 1; j < m.ringSize; j++ {
			next := make(chan int, m.capacity)
			go m.link(last, next)
			last = next
		}
		first <- m.token
		for t := range last {
			rounds++
			if t == 0 {
				break
			}
			first <- t - 1
		}
	}
	close(tasks)
	m.masters <- rounds * m.ringSize
}

func (m *mixedCase) run() result {
	m.results = make(chan []uint64, m.capacity)
	m.masters = make(chan int, m.capacity)
	wanted := m.rings * m.repetitions
	if m.messagesOnly {
		wanted = 0
	}
	messages, right := 0, 0
	seconds := timed(func() {
		for i := 0; i < m.rings; i++ {
			go m.master()
		}
		// This goroutine is the collector.
		for done, got := 0, 0; done < m.rings || got < wanted; {
			select {
			case factors := <-m.results:
				got++
				if len(factors) == 2 && factors[0]*factors[1] == product {
					right++
				}
			case n := <-m.masters:
				done++
				messages += n
			}
		}
	})
	units := m.rings * m.repetitions * m.ringSize * (m.token + 1)
	return result{seconds: seconds, units: int64(units), ok: messages == units && right == wanted}
}

// Experiment 3, a goroutine an actor, its channel the mailbox.
func mixedWorkload() workload {
	var m mixedCase
	run := func(capacity int) func() result {
		return func() result {
			m.capacity = capacity
			return m.run()
		}
	}
	return workload{
		unit:   "message",
		styles: []style{{"buffered", run(128)}, {"unbuffered", run(0)}},
		options: func(f *flag.FlagSet) {
			f.IntVar(&m.rings, "rings", 20, "rings at once")
			f.IntVar(&m.ringSize, "ring-size", 50, "actors in a ring, its master included; at least 2")
			f.IntVar(&m.token, "token", 10_000, "what the token starts with")
			f.IntVar(&m.repetitions, "repetitions", 5, "rings that a master builds, one after the other")
			f.BoolVar(&m.messagesOnly, "messages-only", false, "without the factorisation")
		},
	}
}
