"""Plants every kind of mistake that scripts/docs_check.py is for, and looks whether it is found, at its place."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "docs_check.py"
PROGRAM = "```cpp\n#include <cstdio>\nint main() { std::puts(\"a\"); }\n```\n"


def check(text, more=None):
    """What the check prints about a README of this text, without the closing line; and its exit status."""
    with tempfile.TemporaryDirectory() as root:
        for name, content in {"README.md": text, "run": "  bench [ARGS]   measure\n", **(more or {})}.items():
            Path(root, name).write_text(content, encoding="utf-8")
        library = Path(root, "empty.a")
        subprocess.run(["ar", "rc", library], check=True)
        command = [sys.executable, str(CHECK), "--root", root, "--library", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        return done.stdout.splitlines()[:-1], done.returncode


class DocsCheck(unittest.TestCase):
    def expect(self, text, *places, **more):
        found, status = check(text, **more)
        self.assertEqual([line.split(": ")[0] for line in found if re.match(r"README\.md:\d+: ", line)], list(places))
        self.assertEqual(status, 1 if places else 0)

    def test_what_is_right(self):
        self.expect("# a\n" + PROGRAM + "```text output\na\n```\n```sh\n./run bench\n```\n```go\nx\n```\n")

    def test_other_output(self):
        self.expect(PROGRAM + "```text output\nb\n```\n", "README.md:2")

    def test_a_program_that_does_not_compile_or_fails(self):
        self.expect("```cpp\nint main() { x; }\n```\n", "README.md:2")
        self.expect("```cpp\nint main() { return 3; }\n```\n", "README.md:2")
        self.expect("```cpp not-run\nint main() { return 3; }\n```\n")
        self.expect("```cpp foreign\nint main() { x; }\n```\n")

    def test_parts_of_files(self):
        self.expect("```cpp part=a.cpp\nb;\nc;\n```\n", more={"a.cpp": "a;\n  b;\n  c;\n"})
        self.expect("```cpp part=a.cpp\nb;\nd;\n```\n", "README.md:2", more={"a.cpp": "a;\n  b;\n  c;\n"})
        self.expect("```cpp part=a.cpp\nb;\n```\n", "README.md:2")

    def test_blocks_that_say_too_little(self):
        self.expect("```\nx\n```\n", "README.md:2")
        self.expect("```cpp\nint main() {}\n", "README.md:1")
        self.expect("```text output\nx\n```\n", "README.md:2")
        self.expect("```sh\n# a\n./run bnech\n```\n", "README.md:3")


if __name__ == "__main__":
    unittest.main()
