#!/usr/bin/env python3
"""Checks a trace against the format that viewers read (Chrome's "Trace Event Format"): trace_test.py PROGRAM runs it with RAMIE_TRACE.

Each entry has what its phase needs; slices of a track do not overlap but for those inside another; every arrow has one beginning and
one end, in this order, and both lie in slices, for viewers attach them there."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

NEEDED = {
    "M": {"name", "pid", "args"},
    "X": {"name", "pid", "tid", "ts", "dur"},
    "i": {"name", "pid", "tid", "ts", "s"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}
ROUNDING_US = 0.0021  # numbers have three decimals


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            subprocess.run(
                [PROGRAM], env={**os.environ, "RAMIE_TRACE": str(path)}, stdout=subprocess.DEVNULL, timeout=600, check=True
            )
            cls.document = json.loads(path.read_text(encoding="utf-8"))
        cls.entries = cls.document["traceEvents"]
        cls.slices = defaultdict(list)
        for entry in cls.entries:
            if entry["ph"] == "X":
                cls.slices[entry["tid"]].append((entry["ts"], entry["ts"] + entry["dur"], entry["name"]))

    def test_entries_are_complete(self):
        self.assertEqual(self.document["displayTimeUnit"], "ns")
        for entry in self.entries:
            self.assertIn(entry["ph"], NEEDED)
            self.assertLessEqual(NEEDED[entry["ph"]], set(entry), entry)
            for number in ("ts", "dur"):
                self.assertGreaterEqual(entry.get(number, 0), 0, entry)

    def test_tracks_have_names(self):
        named = {entry["tid"] for entry in self.entries if entry["name"] == "thread_name"}
        self.assertLessEqual(set(self.slices), named)
        self.assertEqual(len([entry for entry in self.entries if entry["name"] == "process_name"]), 1)

    def test_slices_follow_each_other(self):
        self.assertGreater(sum(map(len, self.slices.values())), 10)
        for slices in self.slices.values():
            end = 0
            for begin, finish, name in sorted(slices):
                self.assertGreaterEqual(begin + ROUNDING_US, end, name)
                end = max(end, finish)

    def test_arrows_join_slices(self):
        begins, ends = {}, {}
        for entry in self.entries:
            if entry["ph"] in "sf":
                known = begins if entry["ph"] == "s" else ends
                self.assertNotIn(entry["id"], known)
                known[entry["id"]] = entry
                at = entry["ts"]
                self.assertTrue(
                    any(a - ROUNDING_US <= at <= b + ROUNDING_US for a, b, _ in self.slices[entry["tid"]]), entry
                )
        self.assertGreater(len(begins), 5)
        self.assertEqual(set(begins), set(ends))
        for number, begin in begins.items():
            self.assertLessEqual(begin["ts"], ends[number]["ts"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
