package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const blockBytes = 4096

// A block where O_DIRECT may write to.
func newBlock() []byte {
	b := make([]byte, 2*blockBytes)
	skip := blockBytes - int(uintptr(unsafe.Pointer(&b[0]))%blockBytes)
	return b[skip : skip+blockBytes : skip+blockBytes]
}

// Each block begins with its number and ends with the number's complement.
func writeBlock(b []byte, number uint64) {
	binary.LittleEndian.PutUint64(b, number)
	binary.LittleEndian.PutUint64(b[blockBytes-8:], ^number)
}

func isBlock(b []byte, number uint64) bool {
	return binary.LittleEndian.Uint64(b) == number && binary.LittleEndian.Uint64(b[blockBytes-8:]) == ^number
}

// A file without a name, on the disk and in the page cache, open for reading.
func makeFile(blocks uint64, direct bool) *os.File {
	folder := os.Getenv("TMPDIR")
	if folder == "" {
		folder = "/var/tmp"
	}
	writer, err := os.CreateTemp(folder, "go-peer")
	if err != nil {
		fail("%v", err)
	}
	defer writer.Close()
	flags := os.O_RDONLY
	if direct {
		flags |= syscall.O_DIRECT
	}
	reader, err := os.OpenFile(writer.Name(), flags, 0)
	os.Remove(writer.Name())
	if err != nil {
		fail("%v", err)
	}
	var all bytes.Buffer
	b := make([]byte, blockBytes)
	for i := uint64(0); i < blocks; i++ {
		writeBlock(b, i)
		all.Write(b)
	}
	if _, err := writer.Write(all.Bytes()); err != nil {
		fail("%v", err)
	}
	if err := writer.Sync(); err != nil {
		fail("%v", err)
	}
	return reader
}

func cpuSeconds() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		fail("%v", err)
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) * 1e-9
}

// Experiment 6b: reads of 4 KiB from a file, a goroutine for each that is under way.
func filesWorkload() workload {
	var count, depth, megabytes, sequential, direct int64
	var file *os.File
	run := func() result {
		blocks := uint64(megabytes) * 256
		if file == nil {
			file = makeFile(blocks, direct != 0)
			runtime.GC()
		}
		var next, right atomic.Int64
		read := func() {
			b := newBlock()
			for {
				i := next.Add(1) - 1
				if i >= count {
					return
				}
				x := uint64(i)
				if sequential == 0 { // the numbers of lab/workloads/files.cpp
					x = (x + 1) * 0x9E3779B97F4A7C15
					x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
					x = (x ^ (x >> 27)) * 0x94D049BB133111EB
					x ^= x >> 31
				}
				x %= blocks
				if _, err := file.ReadAt(b, int64(x*blockBytes)); err != nil {
					fail("%v", err)
				}
				if isBlock(b, x) {
					right.Add(1)
				}
			}
		}
		before := cpuSeconds()
		seconds := timed(func() {
			var all sync.WaitGroup
			for i := int64(0); i < depth; i++ {
				all.Add(1)
				go func() {
					defer all.Done()
					read()
				}()
			}
			all.Wait()
		})
		cpu := cpuSeconds() - before
		return result{seconds: seconds, units: count, ok: right.Load() == count,
			figures: map[string]float64{"cpu_ns_per_read": cpu / float64(count) * 1e9}}
	}
	return workload{
		unit:   "read",
		styles: []style{{"goroutine", run}},
		options: func(f *flag.FlagSet) {
			f.Int64Var(&count, "count", 200_000, "reads")
			f.Int64Var(&depth, "depth", 1, "reads under way at a time")
			f.Int64Var(&megabytes, "megabytes", 64, "size of the file")
			f.Int64Var(&sequential, "sequential", 0, "1: in order, not at random")
			f.Int64Var(&direct, "direct", 0, "1: past the page cache (O_DIRECT)")
		},
	}
}
