#!/usr/bin/env python3
"""Whether perf's call chains go through fibers: perf_test.py PROGRAM dwarf|fp. The program is tests/perf/subject.cpp. Exits with 77 where
there is no perf, or none that may or can do this here, and says which."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKIPPED = 77
# The software clock: virtual machines often have no counters. Only what happens in the program itself.
RECORD = ["record", "--event", "cpu-clock:u", "--freq", "999"]
START = "ramie_context_start"  # below each fiber's first function


def perf(*arguments):
    return subprocess.run(["perf", *arguments], capture_output=True, text=True, timeout=600, check=False)


def record(method, program, folder):
    """The chains of functions of each sample, innermost first; or why there are none."""
    data = str(Path(folder) / "perf.data")
    done = perf(*RECORD, "--call-graph", method, "--output", data, program)
    if done.returncode != 0:
        return None, done.stdout + done.stderr
    # Without what was inlined: it is looked up by another program, line by line, and takes minutes.
    done = perf("script", "--input", data, "--no-inline", "--fields", "comm,ip,sym")
    if done.returncode != 0:
        return None, done.stdout + done.stderr
    chains = []
    for sample in done.stdout.split("\n\n"):
        frames = [line.split(maxsplit=1)[-1] for line in sample.strip().splitlines()[1:]]
        if frames:
            chains.append(frames)
    return chains, ""


class Chains(unittest.TestCase):
    def setUp(self):
        self.inside = [chain for chain in CHAINS if chain[0].startswith("(anonymous namespace)::compute")]

    def test_there_are_enough(self):
        self.assertGreater(len(self.inside), 20, CHAINS[:5])

    def test_go_from_the_function_to_the_start_of_the_fiber(self):
        whole = [chain for chain in self.inside if self.is_whole(chain)]
        # A sample may fall upon the few instructions at a function's ends at which frame pointers tell nothing.
        self.assertGreaterEqual(len(whole), 0.9 * len(self.inside), [c for c in self.inside if c not in whole][:5])

    def is_whole(self, chain):
        names = iter(chain)
        return all(
            any(wanted in name for name in names) for wanted in ("::answer_requests", "ramie::detail::fiber_task<")
        )

    def test_end_where_the_stack_does(self):
        astray = [chain for chain in self.inside if START in " ".join(chain) and not chain[-1].startswith(START)]
        self.assertEqual(astray, [])
        # perf 6.1 has been seen not to name the last frame of a program that it saw for the first time.
        ended = [
            chain for chain in self.inside
            if chain[-1].startswith(START) or (chain[-1] == "[unknown]" and chain[-2].endswith("loop_entry"))
        ]  # fmt: skip
        self.assertGreaterEqual(len(ended), 0.9 * len(self.inside), [c for c in self.inside if c not in ended][:5])

    def test_know_each_function(self):
        whole = [chain for chain in self.inside if chain[-1].startswith(START)]
        self.assertEqual([chain for chain in whole if "[unknown]" in chain], [])


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


if __name__ == "__main__":
    METHOD = sys.argv.pop(2)
    PROGRAM = sys.argv.pop(1)
    if shutil.which("perf") is None:
        skip("perf is not installed (Debian: linux-perf; Ubuntu: linux-tools-generic)")
    if (probe := perf("stat", "--event", "cpu-clock:u", "true")).returncode != 0:
        skip(f"perf may not count here, see kernel.perf_event_paranoid:\n{probe.stdout}{probe.stderr}")
    with tempfile.TemporaryDirectory() as work:
        CHAINS, complaint = record(METHOD, PROGRAM, work)
        if CHAINS is None:
            skip(f"perf cannot record here:\n{complaint}")
        # A perf that was built without a library for it takes the option, and then has no chains at all, of main neither.
        if METHOD == "dwarf" and max(map(len, CHAINS), default=0) <= 1:
            skip("this perf was built without unwinding by DWARF")
        unittest.main(verbosity=2)
