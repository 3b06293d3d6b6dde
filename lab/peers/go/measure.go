package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"time"
)

// What is printed. The names are ramie-lab's.
type report struct {
	System       string               `json:"system"`
	Version      string               `json:"version"`
	Workload     string               `json:"workload"`
	Style        string               `json:"style"`
	Workers      int                  `json:"workers"`
	Unit         string               `json:"unit"`
	Units        int64                `json:"units"`
	Seconds      []float64            `json:"seconds"`
	Repeats      []int                `json:"repeats"`
	NsPerUnit    float64              `json:"ns_per_unit"`
	PeakRss      int64                `json:"peak_rss_bytes"`
	BaseRss      int64                `json:"base_rss_bytes"`
	Ok           bool                 `json:"ok"`
	PlainSeconds []float64            `json:"plain_seconds,omitempty"`
	PlainUnits   int64                `json:"plain_units,omitempty"`
	Ratio        float64              `json:"ratio_to_plain,omitempty"`
	Figures      map[string][]float64 `json:"figures,omitempty"`
	Options      map[string]any       `json:"options"`
}

// What is asked for of every workload.
type request struct {
	workers, runs, warmup int
	leastMs, pauseMs      int // a measured run repeats the work until it has taken so long, with pauses
}

// A measured run; the result is the mean of its repetitions.
func runMeasured(s style, q request) (result, int) {
	all, repeats := s.run(), 1
	for all.ok && all.seconds*1e3 < float64(q.leastMs) && repeats < 1_000_000 {
		time.Sleep(time.Duration(q.pauseMs) * time.Millisecond)
		next := s.run()
		all.seconds += next.seconds
		all.direct += next.direct
		all.ok = next.ok
		for name, value := range next.figures {
			all.figures[name] += value
		}
		repeats++
	}
	all.seconds /= float64(repeats)
	all.direct /= float64(repeats)
	for name := range all.figures {
		all.figures[name] /= float64(repeats)
	}
	return all, repeats
}

func measure(s style, q request) report {
	runtime.GOMAXPROCS(q.workers)
	r := report{System: "go", Version: runtime.Version(), Workers: q.workers, Ok: true, BaseRss: statusBytes("VmRSS:")}
	for i := 0; i < q.warmup; i++ {
		r.Ok = s.run().ok && r.Ok
	}
	var ratios []float64
	for i := 0; i < q.runs; i++ {
		runtime.GC() // no run pays for the garbage of the one before
		got, repeats := runMeasured(s, q)
		r.Repeats = append(r.Repeats, repeats)
		r.Ok = got.ok && r.Ok
		r.Units = got.units
		r.Seconds = append(r.Seconds, got.seconds)
		if got.direct > 0 {
			r.PlainSeconds = append(r.PlainSeconds, got.direct)
			r.PlainUnits = got.units
			ratios = append(ratios, got.seconds/got.direct)
		}
		for name, value := range got.figures {
			if r.Figures == nil {
				r.Figures = map[string][]float64{}
			}
			r.Figures[name] = append(r.Figures[name], value)
		}
	}
	r.NsPerUnit = median(r.Seconds) * 1e9 / float64(r.Units)
	if len(ratios) > 0 {
		r.Ratio = median(ratios)
	}
	r.PeakRss = statusBytes("VmHWM:")
	return r
}

// Seconds that f takes.
func timed(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

func median(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// A line of /proc/self/status in bytes, 0 if it cannot be read.
func statusBytes(field string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int64
		if strings.HasPrefix(line, field) {
			if _, err := fmt.Sscanf(line[len(field):], "%d", &kib); err == nil {
				return kib * 1024
			}
		}
	}
	return 0
}

// Resident bytes, after what is free has gone back to the system.
func residentBytes() int64 {
	debug.FreeOSMemory()
	return statusBytes("VmRSS:")
}
