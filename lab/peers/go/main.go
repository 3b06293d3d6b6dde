// The workloads of ramie-lab as a Go programmer would write them. Prints one JSON object a run of this program, the
// same that ramie-lab --json prints; lab/README.md says what its members mean.
//
//	go-peer WORKLOAD [--style NAME] [--workers N] [--runs N] [--warmup N] [--OPTION=VALUE ...]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
)

// What a run of a workload found out.
type result struct {
	seconds float64
	units   int64
	ok      bool
	direct  float64            // seconds that plain calls took for the same units, 0 if there are none
	figures map[string]float64 // what else, unit last in the name
}

// One way to write a workload; runs once.
type style struct {
	name string
	run  func() result
}

type workload struct {
	unit    string
	styles  []style // the first is the default
	options func(flags *flag.FlagSet)
}

func workloads() map[string]workload {
	return map[string]workload{
		"skynet":   skynetWorkload(),
		"sum":      sumWorkload(),
		"pingpong": pingpongWorkload(),
		"stream":   streamWorkload(),
		"select":   selectWorkload(),
		"mpmc":     mpmcWorkload(),
		"mutex":    mutexWorkload(),
		"yield":    yieldWorkload(),
		"spawn":    spawnWorkload(),
		"timers":   timersWorkload(),
		"overhead": overheadWorkload(),
		"memory":   memoryWorkload(),
		"mixed":    mixedWorkload(),
		"ticker":   tickerWorkload(),
		"files":    filesWorkload(),
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "go-peer: "+format+"\n", args...)
	os.Exit(2)
}

func main() {
	all := workloads()
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		sort.Strings(names)
		fail("which workload? There are: %s", strings.Join(names, ", "))
	}
	name := os.Args[1]
	if name == "echo_server" {
		serveEcho(os.Args[2:])
	}
	w, known := all[name]
	if !known {
		fail("there is no workload %q", name)
	}

	flags := flag.NewFlagSet(name, flag.ExitOnError)
	styleName := flags.String("style", w.styles[0].name, "how it is written")
	workers := flags.Int("workers", runtime.NumCPU(), "GOMAXPROCS")
	runs := flags.Int("runs", 5, "measured runs")
	warmup := flags.Int("warmup", 1, "runs before those, not measured")
	leastMs := flags.Int("least-ms", 0, "repeat the work inside a measured run until it has taken so long")
	pauseMs := flags.Int("pause-ms", 0, "between such repetitions")
	flags.Bool("json", true, "accepted for the sake of sameness; JSON is all there is")
	w.options(flags)
	if err := flags.Parse(os.Args[2:]); err != nil || flags.NArg() > 0 {
		fail("%s: unexpected argument %q", name, flags.Arg(0))
	}
	if *runs < 1 {
		fail("--runs: at least 1")
	}
	for _, s := range w.styles {
		if s.name == *styleName {
			report := measure(s, request{*workers, *runs, *warmup, *leastMs, *pauseMs})
			report.Workload, report.Style, report.Unit = name, s.name, w.unit
			report.Options = map[string]any{"runs": *runs, "warmup": *warmup, "least_ms": *leastMs, "pause_ms": *pauseMs, "parameters": parameters(flags)}
			if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
				fail("%v", err)
			}
			if !report.Ok {
				os.Exit(1)
			}
			return
		}
	}
	fail("%s has no style %q", name, *styleName)
}

// The workload's own options with their values.
func parameters(flags *flag.FlagSet) map[string]string {
	values := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) {
		switch f.Name {
		case "style", "workers", "runs", "warmup", "least-ms", "pause-ms", "json":
		default:
			values[f.Name] = f.Value.String()
		}
	})
	return values
}
