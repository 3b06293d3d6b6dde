"""What scripts/count_tests.py makes of logs of ctest."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_tests.py"
LOG = """
      Start  1: stack.pool
 1/6 Test  #1: stack.pool .......................   Passed    0.10 sec
      Start  2: stack.guard
 2/6 Test  #2: stack.guard ......................***Failed    0.20 sec
[ RUN      ] guards.hold
 3/6 Test #13: stack.overflow ...................***Exception: SegFault  0.20 sec
 4/6 Test #14: example.pipeline .................   Passed    0.20 sec
 5/6 Test #15: consumer.vcpkg ...................***Skipped   0.20 sec
 6/6 Test #16: sync.mutex .......................***Timeout 300.00 sec

50% tests passed, 3 tests failed out of 6
"""


def count(log, counts):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "log"), Path(folder, "counts")]
        paths[0].write_text(log, encoding="utf-8")
        if counts is not None:
            paths[1].write_text(counts, encoding="utf-8")
        done = subprocess.run([sys.executable, str(SCRIPT), *map(str, paths)], capture_output=True, text=True, check=True)
        return done.stdout.split()


class CountTests(unittest.TestCase):
    def test_cases_are_counted_where_they_are_said(self):
        # pool: 10 cases, one skipped; guard: 1 of 4 failed; overflow crashed and mutex hung, so they said nothing.
        self.assertEqual(count(LOG, "stack.pool 9 0 1\nstack.guard 3 1 0\n"), ["13", "3", "2"])

    def test_programs_that_say_nothing_count_once(self):
        self.assertEqual(count(LOG, None), ["2", "3", "1"])

    def test_a_source_whose_cases_were_left_out_counts_nothing(self):
        self.assertEqual(count(" 1/1 Test #1: a.b ....   Passed    0.10 sec\n", "a.b 0 0 0\n"), ["0", "0", "0"])

    def test_a_complaint_after_the_last_case_is_a_failure(self):
        self.assertEqual(count(" 1/1 Test #1: a.b ....***Failed    0.10 sec\n", "a.b 5 0 0\n"), ["5", "1", "0"])

    def test_without_any_test(self):
        self.assertEqual(count("No tests were found!!!\n", None), ["0", "0", "0"])


if __name__ == "__main__":
    unittest.main()
