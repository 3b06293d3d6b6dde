"""The check of docs/environment.md finds what is missing on either side."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import environment_check  # noqa: E402

PAGE = """# Variables
## For programs
| `RAMIE_A` | what | 1 |
## For tests of ramie only
| `RAMIE_T` | what | 0 |
"""
CODE = {
    "docs/environment.md": PAGE,
    "ramie/a.cpp": 'std::getenv("RAMIE_A");\n',
    "ramie/machine/test_options.hpp": 'const char* t = "RAMIE_T";\n',
}


class Environment(unittest.TestCase):
    def complaints(self, **changed):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in {**CODE, **{key.replace("__", "/"): text for key, text in changed.items()}}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return list(environment_check.complaints(root))

    def expect(self, files, *parts):
        found = self.complaints(**files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_nothing_to_say(self):
        self.assertEqual(self.complaints(), [])

    def test_a_variable_without_a_row(self):
        self.expect({"ramie/b.cpp": '\nf("RAMIE_B");\n'}, "ramie/b.cpp:2", "RAMIE_B")
        self.expect({"run": "jobs=${RAMIE_JOBS:-2}\n"}, "run:1", "RAMIE_JOBS")
        self.expect({"lab/a.py": 'os.environ.get("RAMIE_P")\n'}, "lab/a.py:1", "RAMIE_P")

    def test_a_row_without_a_variable(self):
        self.expect({"ramie/a.cpp": "\n"}, "nothing reads RAMIE_A")

    def test_a_row_too_many(self):
        self.expect({"docs/environment.md": PAGE.replace("## For tests", "| `RAMIE_A` | again | 2 |\n## For tests")}, "2 rows")

    def test_what_is_for_tests_is_marked_so(self):
        self.expect({"docs/environment.md": PAGE.replace("## For tests of ramie only\n", "")}, "RAMIE_T is for tests by ramie")
        self.expect({"ramie/machine/test_options.hpp": "\n", "ramie/b.cpp": '"RAMIE_T"\n'}, "RAMIE_T is for tests by docs")

    def test_texts_that_mention_a_variable(self):
        self.assertEqual(self.complaints(**{"ramie/b.cpp": 'say("ramie: RAMIE_C: wrong");\n'}), [])


if __name__ == "__main__":
    unittest.main()
