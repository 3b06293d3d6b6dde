"""Compiles each mistake of this folder, and reads the first error: it has to be what the first line of the file says.

Each file is compiled twice: as it is, and with MENDED defined, when it has to compile without a warning. So a text that every program
would cause, or a mended version that is none, is noticed.

    python3 tests/mistakes/mistakes_test.py COMPILER
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
COMPILER = "c++"


def compile_file(path, *options):
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{FOLDER.parents[1]}", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


class Mistakes(unittest.TestCase):
    def check(self, path):
        says = re.match(r"// says: (.*)\n", path.read_text(encoding="utf-8"))
        self.assertIsNotNone(says, f"{path.name}: the first line does not say what the compiler says")
        wrong = compile_file(path)
        errors = [line for line in wrong.stderr.splitlines() if " error: " in line]
        self.assertTrue(errors, f"{path.name} compiles")
        self.assertIn(says.group(1), errors[0], path.name)
        mended = compile_file(path, "-DMENDED")
        self.assertEqual(mended.stderr, "", f"{path.name}, mended, does not compile")

    def test_each_mistake_is_named_by_the_first_error(self):
        paths = sorted(FOLDER.glob("*.cpp"))
        self.assertGreater(len(paths), 5)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(self.check, path) for path in paths]:
                with self.subTest():
                    done.result()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop(1)
    unittest.main()
