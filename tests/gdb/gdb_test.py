#!/usr/bin/env python3
"""Tries tools/gdb/ramie.py with gdb, on a live program and on a core file: gdb_test.py PROGRAM. Exits with 77 if there is no gdb
that can run it."""

import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EXTENSION = Path(__file__).resolve().parents[2] / "tools" / "gdb" / "ramie.py"
SKIPPED = 77
LOOKS = ["ramie workers", "ramie fibers", "ramie actors", "ramie bt all"]


def gdb(*arguments):
    command = ["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", f"source {EXTENSION}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def each(commands):
    return [part for command in commands for part in ("-ex", command)]


def number_of(fibers, name):
    return re.search(rf'^[* ] (\d+) +fiber "{name}"', fibers, re.MULTILINE)[1]


def allow_core_files():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Looks:
    """What a live program and its core file have in common."""

    def test_workers(self):
        self.assertRegex(self.said, r'subject/0, thread \d+: runs fiber "main" 0x\w+; \d+ ready, 0 new')

    def test_fibers(self):
        self.assertRegex(
            self.said,
            rf'fiber "left" 0x\w+: waits for channel receive \([\d.]+ s{self.vaguely}\), at .*subject.cpp:\d+\n',
        )
        self.assertRegex(
            self.said, r'fiber "right" 0x\w+: waits for mutex \(.*subject.cpp:\d+, which fiber "main" 0x\w+ holds\n'
        )
        self.assertRegex(self.said, r'fiber "main" 0x\w+: runs on subject/0')

    def test_actors(self):
        self.assertRegex(self.said, r'actor .*till "busy" 0x\w+: 3 messages, waits for event')
        self.assertRegex(self.said, r'actor .*idler "idle" 0x\w+: 0 messages, is idle')

    def test_frames(self):
        frames = self.said.split('fiber "left"')[2].split("fiber ")[0]
        self.assertRegex(frames, r"(?s)#0 .*channel<int>::recv.*#1 .*wait_for_number")
        self.assertRegex(self.said, r'(?s)fiber "main" 0x\w+: runs on subject/0, thread \d+\n(#\d+ +[^\n]*\n){0,5}#\d+ [^\n]*everything_is_set')

    def test_selected_fiber(self):
        with_fiber = self.look(
            [
                f"ramie fiber {number_of(self.said, 'left')}",
                "bt",
                "info locals",
                "ramie fiber off",
            ]
        )
        self.assertRegex(with_fiber, r"#\d+ .*wait_for_number")
        self.assertRegex(with_fiber, r"marker = 4711")

    def test_complaint(self):
        self.assertIn("there is no fiber 999", self.look(["ramie bt 999"]))


class Live(Looks, unittest.TestCase):
    vaguely = ""

    @classmethod
    def setUpClass(cls):
        cls.said = cls.look(LOOKS)

    @classmethod
    def look(cls, commands):
        done = gdb("-ex", "break everything_is_set", "-ex", "run", *each(commands), PROGRAM)
        return done.stdout + done.stderr

    def test_sockets(self):
        peer = re.search(r"^client (127\.0\.0\.1:\d+)$", self.said, re.MULTILINE)[1]
        self.assertRegex(
            self.said,
            rf'fiber "reader" 0x\w+: waits for read \([\d.]+ s\), at .*subject.cpp:\d+, descriptor \d+, to {peer}, to be readable\n',
        )

    def test_printers(self):
        said = self.look(
            ["up", "print numbers", "print taken", "print open", "print gate", "print left", "print busy", "print idle"]
        )
        self.assertIn("= 0 of 8 places taken, 1 receivers wait", said)
        self.assertRegex(said, r'= held by fiber "main"')
        self.assertIn("= not set", said)
        self.assertRegex(said, r"= 3\n")
        self.assertRegex(said, r'= fiber "left" 0x\w+\n')
        self.assertRegex(said, r'= actor .*"busy" 0x\w+, 3 messages')

    def test_goes_on_to_its_end(self):
        self.assertIn("exited normally", self.look(["ramie fiber 0", "ramie fiber off", "continue"]))


class Core(Looks, unittest.TestCase):
    vaguely = " or longer"  # nobody knows what time it was

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # By the kernel: gdb's own `gcore` gives up on memory with guard pages in it.
        subprocess.run([PROGRAM, "die"], cwd=cls.folder.name, preexec_fn=allow_core_files, timeout=60, check=False)
        cores = list(Path(cls.folder.name).iterdir())
        if not cores:
            raise unittest.SkipTest("this system keeps no core files here")
        cls.core = cores[0]
        cls.said = cls.look(LOOKS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_sockets(self):
        self.assertRegex(self.said, r'fiber "reader" 0x\w+: waits for read \(.*subject.cpp:\d+, descriptor \d+, to be readable\n')

    @classmethod
    def look(cls, commands):
        done = gdb(*each(commands), PROGRAM, str(cls.core))
        return done.stdout + done.stderr


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if shutil.which("gdb") is None:
        print("skipped: gdb is not installed")
        sys.exit(SKIPPED)
    probe = gdb("-ex", "break main", "-ex", "run", "-ex", "kill", PROGRAM)
    if "Breakpoint 1, " not in probe.stdout:
        print(f"skipped: gdb cannot run a program here:\n{probe.stdout}{probe.stderr}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
