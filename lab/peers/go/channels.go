package main

import "flag"

// Two goroutines and two channels; one message at a time goes back and forth.
func pingpongWorkload() workload {
	var messages int64
	run := func(capacity int) func() result {
		return func() result {
			ping, pong := make(chan int64, capacity), make(chan int64, capacity)
			rounds := messages / 2
			var last int64
			seconds := timed(func() {
				go func() {
					for v := range ping {
						pong <- v + 1
					}
					close(pong)
				}()
				for i := int64(0); i < rounds; i++ {
					ping <- last
					last = <-pong
				}
				close(ping)
				<-pong
			})
			return result{seconds: seconds, units: 2 * rounds, ok: last == rounds}
		}
	}
	return workload{
		unit:    "message",
		styles:  []style{{"channel", run(0)}, {"buffered", run(1)}},
		options: func(f *flag.FlagSet) { f.Int64Var(&messages, "messages", 2_000_000, "in both directions together") },
	}
}

// One producer, one consumer.
func streamWorkload() workload {
	var messages int64
	var capacity int
	run := func(capacity *int) func() result {
		return func() result {
			var sum int64
			seconds := timed(func() {
				c := make(chan int64, *capacity)
				go func() {
					for i := int64(1); i <= messages; i++ {
						c <- i
					}
					close(c)
				}()
				for v := range c {
					sum += v
				}
			})
			return result{seconds: seconds, units: messages, ok: sum == messages*(messages+1)/2}
		}
	}
	none := 0
	return workload{
		unit:   "message",
		styles: []style{{"buffered", run(&capacity)}, {"unbuffered", run(&none)}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&messages, "messages", 5_000_000, "sent in all")
			f.IntVar(&capacity, "capacity", 128, "of the channel, style buffered")
		},
	}
}

// Four channels with a producer each, and one consumer that selects among them.
func selectWorkload() workload {
	var messages int64
	var capacity int
	run := func(capacity *int) func() result {
		return func() result {
			each := messages / 4
			var sum int64
			seconds := timed(func() {
				var cs [4]chan int64
				for i := range cs {
					c := make(chan int64, *capacity)
					cs[i] = c
					go func() {
						for v := int64(1); v <= each; v++ {
							c <- v
						}
					}()
				}
				a, b, c, d := cs[0], cs[1], cs[2], cs[3]
				for i := int64(0); i < 4*each; i++ {
					select {
					case v := <-a:
						sum += v
					case v := <-b:
						sum += v
					case v := <-c:
						sum += v
					case v := <-d:
						sum += v
					}
				}
			})
			return result{seconds: seconds, units: 4 * each, ok: sum == 4*(each*(each+1)/2)}
		}
	}
	none := 0
	return workload{
		unit:   "message",
		styles: []style{{"buffered", run(&capacity)}, {"unbuffered", run(&none)}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&messages, "messages", 2_000_000, "received in all")
			f.IntVar(&capacity, "capacity", 128, "of each channel, style buffered")
		},
	}
}

// Several producers and consumers of one channel.
func mpmcWorkload() workload {
	var messages int64
	var capacity, producers, consumers int
	run := func() result {
		each := messages / int64(producers)
		var sum int64
		seconds := timed(func() {
			c := make(chan int64, capacity)
			produced, sums := make(chan struct{}, producers), make(chan int64, consumers)
			for i := 0; i < producers; i++ {
				go func() {
					for v := int64(1); v <= each; v++ {
						c <- v
					}
					produced <- struct{}{}
				}()
			}
			for i := 0; i < consumers; i++ {
				go func() {
					var part int64
					for v := range c {
						part += v
					}
					sums <- part
				}()
			}
			for i := 0; i < producers; i++ {
				<-produced
			}
			close(c)
			for i := 0; i < consumers; i++ {
				sum += <-sums
			}
		})
		all := int64(producers) * each
		return result{seconds: seconds, units: all, ok: sum == int64(producers)*(each*(each+1)/2)}
	}
	return workload{
		unit:   "message",
		styles: []style{{"channel", run}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&messages, "messages", 4_000_000, "sent in all")
			f.IntVar(&capacity, "capacity", 1024, "of the channel")
			f.IntVar(&producers, "producers", 4, "goroutines that send")
			f.IntVar(&consumers, "consumers", 4, "goroutines that receive")
		},
	}
}
