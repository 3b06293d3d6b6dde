#!/usr/bin/env python3
"""Runs the simulator's programs with schedules that nobody has run before, for a bounded time.

Takes the tests in random order, those of planted bugs left out, each from a first seed of its own. All of them follow from
one number, which is printed first: --seed repeats a run, as far as its time reaches. What fails prints the seed of its
schedule, and how to replay it; that seed belongs into the test (docs/design/interleaving.md).
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import time

import mutants


def run(binary, test, first_seed, seconds):
    """None if its time ran out; else whether it passed, and what it printed."""
    try:
        done = subprocess.run([binary, f"--gtest_filter={test}"], timeout=seconds, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              env={**os.environ, "RAMIE_FIRST_SEED": str(first_seed)})
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0, done.stdout


def main():
    parser = argparse.ArgumentParser(prog="./run check seeds", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="default: %(default)g")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31),
                        help="what all others follow from (default: a fresh one)")
    parser.add_argument("--binaries", type=pathlib.Path, default=mutants.ROOT / "build" / "release" / "bin",
                        help="where the test programs are (default: those of the release build)")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("RAMIE_JOBS", os.cpu_count() or 1)))
    options = parser.parse_args()

    programs = [options.binaries / f"test_interleave_{name}" for name in mutants.programs_in(options.binaries)]
    if not programs:
        sys.exit(f"seeds: no test_interleave_* in {options.binaries}; ./run build release makes them")
    tests = [(program, test) for program in programs for test in mutants.tests_of(program)]
    end = time.monotonic() + options.seconds
    print(f"seeds: --seed {options.seed}", flush=True)
    choices = random.Random(options.seed)
    counts = {True: 0, False: 0}

    def run_next(choice):
        (binary, test), first_seed = choice
        left = end - time.monotonic()
        ended = run(binary, test, first_seed, left) if left > 0 else None
        if ended is None:
            return False
        passed, output = ended
        counts[passed] += 1
        if not passed:
            print(f"{binary.name} {test}, RAMIE_FIRST_SEED={first_seed}:\n{output}", flush=True)
        return True

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while time.monotonic() < end:
            order = choices.sample(tests, len(tests))
            if not all(pool.map(run_next, [(t, choices.randrange(1 << 32, 1 << 48)) for t in order])):
                break
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
