#!/usr/bin/env python3
"""Tests the example log_tailer.  usage: log_tailer_test.py PROGRAM"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""


class Tailer:
    def __init__(self, log):
        self.process = subprocess.Popen([PROGRAM, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr.readline().startswith("following ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.rest = self.process.stdout.read()
        errors = self.process.stderr.read()
        if self.process.wait() != 0 or errors:
            raise AssertionError(f"it ended with {self.process.returncode}: {errors}")
        self.process.stdout.close()
        self.process.stderr.close()

    def line(self):
        return self.process.stdout.readline().rstrip("\n")


def append(path, text):
    with open(path, "a", encoding="utf-8") as f:
        f.write(text)


class LogTailer(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.log = self.folder / "log"

    def test_only_what_is_new(self):
        append(self.log, "old\n")
        with Tailer(self.log) as t:
            append(self.log, "new\n")
            self.assertEqual(t.line(), "new")
        self.assertEqual(t.rest, "")

    def test_a_file_that_does_not_exist_yet(self):
        with Tailer(self.log) as t:
            append(self.folder / "other", "not mine\n")
            append(self.log, "first\n")
            self.assertEqual(t.line(), "first")

    def test_whole_lines(self):
        append(self.log, "")
        with Tailer(self.log) as t:
            append(self.log, "a")
            append(self.log, "b\n\nc\nd")
            self.assertEqual([t.line() for _ in range(3)], ["ab", "", "c"])
            long = "x" * 100_000
            append(self.log, f"{long}\n")
            self.assertEqual(t.line(), f"d{long}")

    def test_rotation(self):
        append(self.log, "")
        with Tailer(self.log) as t:
            for n in range(20):
                with open(self.log, "a", encoding="utf-8") as writer:
                    writer.write(f"{n} before\n")
                    writer.flush()
                    os.rename(self.log, self.folder / f"log.{n}")
                    writer.write(f"{n} after\n")  # its writer does not know yet
                append(self.log, f"{n} new\n")
                self.assertEqual([t.line() for _ in range(3)], [f"{n} before", f"{n} after", f"{n} new"])

    def test_deleted_and_made_anew(self):
        append(self.log, "")
        with Tailer(self.log) as t:
            append(self.log, "one\n")
            self.log.unlink()
            append(self.log, "two\n")
            self.assertEqual([t.line(), t.line()], ["one", "two"])

    def test_replaced(self):
        append(self.log, "one\n")
        with Tailer(self.log) as t:
            append(self.folder / "next", "two\n")
            os.replace(self.folder / "next", self.log)
            self.assertEqual(t.line(), "two")

    def test_truncated(self):
        append(self.log, "long enough\n")
        with Tailer(self.log) as t:
            append(self.log, "one\n")
            self.assertEqual(t.line(), "one")
            os.truncate(self.log, 0)
            append(self.log, "two\n")
            self.assertEqual(t.line(), "two")

    def test_nothing_is_lost_when_it_ends(self):
        append(self.log, "")
        with Tailer(self.log) as t:
            append(self.log, "".join(f"{n}\n" for n in range(100_000)))
            self.assertEqual(t.line(), "0")
        self.assertEqual(t.rest.split(), [str(n) for n in range(1, 100_000)])

    def test_written_by_a_shell(self):
        append(self.log, "")
        with Tailer(self.log) as t:
            script = 'for i in $(seq 200); do echo $i >>log; done; mv log log.1; for i in $(seq 200); do echo $i >>log; done'
            subprocess.run(["sh", "-c", script], cwd=self.folder, check=True)
            self.assertEqual([t.line() for _ in range(400)], [str(i + 1) for i in range(200)] * 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
