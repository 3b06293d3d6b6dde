#!/usr/bin/env python3
"""Counts the instructions of the runtime's common operations, by valgrind: unlike times, they are the same on a busy machine.

Each operation is a workload of ramie-lab, run with two sizes on one worker; the difference of the two counts, divided by the difference
of the sizes, is what one operation takes. Name two programs to see the second beside the first:

    python3 scripts/instructions.py                     this build
    python3 scripts/instructions.py --beside OLD/build/release/bin/ramie-lab
"""

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAM = Path("build/release/bin/ramie-lab")

# name: the workload with its style, the option that says how many, how many at least, operations for each of these.
OPERATIONS = {
    "yield": (["yield", "--style", "fibers"], "--count", 10_000, 2),
    "spawn, run, end, detached": (["spawn", "--style", "detached"], "--count", 20_000, 1),
    "spawn and join, 100 at a time": (["spawn", "--style", "batch_join"], "--count", 20_000, 1),
    "spawn, wait, wake, end": (["spawn", "--style", "park"], "--count", 10_000, 1),
    "fork_join, a call of fib": (["fib", "--style", "fork_join"], "--n", 16, None),
    "scope with two children": (["operations", "--style", "scope"], "--count", 20_000, 1),
    "send and recv, buffered": (["operations", "--style", "send_recv"], "--count", 20_000, 1),
    "message to and fro, unbuffered": (["pingpong", "--style", "channel"], "--messages", 20_000, 1),
    "message, stream of 128": (["stream", "--style", "buffered"], "--messages", 40_000, 1),
    "message, select of four, buffered": (["select", "--style", "buffered"], "--messages", 20_000, 1),
    "message, select of four, unbuffered": (["select", "--style", "unbuffered"], "--messages", 20_000, 1),
    "select with otherwise, nothing ready": (["operations", "--style", "select_nothing"], "--count", 20_000, 1),
    "message, four senders and receivers": (["mpmc", "--style", "channel"], "--messages", 40_000, 1),
    "tell": (["actors", "--style", "tell"], "--count", 40_000, 1),
    "ask": (["actors", "--style", "ask"], "--count", 20_000, 1),
    "message to and fro between actors": (["pingpong", "--style", "actor"], "--messages", 20_000, 1),
    "mutex, lock and unlock": (["operations", "--style", "mutex"], "--count", 20_000, 1),
    "mutex, four fibers": (["mutex", "--style", "mutex"], "--count", 10_000, 4),
    "semaphore, acquire and release": (["operations", "--style", "semaphore"], "--count", 20_000, 1),
    "promise and future": (["operations", "--style", "promise"], "--count", 10_000, 1),
    "shield around nothing": (["operations", "--style", "shield"], "--count", 20_000, 1),
    "with_timeout around nothing": (["operations", "--style", "with_timeout"], "--count", 20_000, 1),
}


def fib_calls(n):
    """Calls that the naive Fibonacci function makes."""
    a, b = 1, 1
    for _ in range(n - 1):
        a, b = b, a + b + 1
    return b


def collected(program, words):
    """Instructions of one run."""
    command = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null"]
    command += [str(program), *words, "--workers", "1", "--runs", "1", "--warmup", "1", "--no-yardstick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"Collected : (\d+)", done.stderr)  # the lab measures in a process of its own
    if done.returncode != 0 or not found:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return sum(map(int, found))


def instructions(program, operation):
    """What one operation takes. Each size is run once to warm up and once to count, so the difference counts twice."""
    words, option, small, per_unit = OPERATIONS[operation]
    if per_unit is None:
        large = small + 3
        units = fib_calls(large) - fib_calls(small)
    else:
        large = 3 * small
        units = (large - small) * per_unit
    few = collected(program, [*words, option, str(small)])
    many = collected(program, [*words, option, str(large)])
    return (many - few) / (2 * units)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=PROGRAM, help=f"the lab to count in ({PROGRAM})")
    parser.add_argument("--beside", type=Path, help="another build of the lab, to compare with")
    parser.add_argument("--only", help="operations whose names contain this")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [name for name in OPERATIONS if not options.only or options.only in name]
    programs = [options.program] + ([options.beside] if options.beside else [])
    with ThreadPoolExecutor(options.jobs) as pool:
        columns = [list(pool.map(lambda name, p=program: instructions(p, name), names)) for program in programs]
    print("| instructions |" + (" before | after | ratio |" if options.beside else " each |"))
    print("| --- |" + (" ---: | ---: | ---: |" if options.beside else " ---: |"))
    for i, name in enumerate(names):
        now = columns[0][i]
        if options.beside:
            before = columns[1][i]
            print(f"| {name} | {before:.1f} | {now:.1f} | {now / before:.3f} |")
        else:
            print(f"| {name} | {now:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
