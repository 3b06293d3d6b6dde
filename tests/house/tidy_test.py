"""Runs scripts/tidy.py with a clang-tidy of the test's own, which dislikes the word "ugly" and counts how often it is asked."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TIDY = Path(__file__).resolve().parents[2] / "scripts" / "tidy.py"

# It looks into the source, or into those that a unit includes, and into shared.hpp, which all of them include; and heeds NOLINT.
PROGRAM = """#!{python}
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1] == "--version":
    print(open(here + "/version").read())
    sys.exit(0)
source = sys.argv[sys.argv.index("--") - 1]
open(here + "/asked", "a").write(os.path.basename(source) + "\\n")
if os.path.exists(here + "/broken"):
    sys.exit("out of order")
status = 0
sources = [line.split('"')[1] for line in open(source) if line.startswith('#include "/')] or [source]
for path in (*sources, os.path.join(os.path.dirname(sources[0]), "shared.hpp")):
    for number, line in enumerate(open(path), 1):
        if "ugly" in line and "NOLINT" not in line:
            print(f"{{path}}:{{number}}:1: error: ugly [misc-ugly]\\n    1 | " + line.rstrip())
            status = 1
sys.exit(status)
"""


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.make_project(self.top / "project")
        self.program = self.top / "clang-tidy"
        self.program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.write(self.top / "version", "1")

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def make_project(self, root):
        self.project = root
        self.write(root / ".clang-tidy", "Checks: '*'\n")
        self.write(root / "ramie/shared.hpp", "#define SHARED 1\n")
        self.write(root / "ramie/one.cpp", '#include "shared.hpp"\nint one;\n')
        self.write(root / "ramie/two.cpp", '#include "shared.hpp"\nint two;\n')
        self.write(root / "ramie/two.test.cpp", "int ugly;\n")
        names = ["ramie/one.cpp", "ramie/two.cpp", "ramie/two.test.cpp"]
        entries = [{"directory": str(root), "file": str(root / name),
                    "command": f"c++ {more} -o {name}.o -c {root / name}"} for name in names for more in ("-O1", "-O2")]
        self.write(root / "build/compile_commands.json", json.dumps(entries))

    def put_into_one_target(self, *names):
        entries = [{"directory": str(self.project), "file": str(self.project / name),
                    "command": f"c++ -o CMakeFiles/all.dir/{name}.o -c {self.project / name}"} for name in names]
        self.write(self.project / "build/compile_commands.json", json.dumps(entries))

    def run_tidy(self, *more):
        """What it was asked about, sorted; what is printed, line by line; the exit status."""
        asked = self.top / "asked"
        asked.unlink(missing_ok=True)
        command = [sys.executable, str(TIDY), "--root", str(self.project), "--build", str(self.project / "build"),
                   "--program", str(self.program), "--jobs", "2", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env=os.environ | {"XDG_CACHE_HOME": str(self.top / "cache")})
        self.assertEqual(done.stderr, "")
        return sorted(asked.read_text().split()) if asked.exists() else [], done.stdout.splitlines(), done.returncode

    def expect_asked(self, *names):
        asked, printed, status = self.run_tidy()
        self.assertEqual(asked, list(names))
        self.assertEqual(status, 0, printed)

    def test_clean_sources_are_known_until_something_changes(self):
        self.expect_asked("one.cpp", "two.cpp")
        self.expect_asked()
        self.write(self.project / "ramie/two.cpp", '#include "shared.hpp"\nint three;\n')
        self.expect_asked("two.cpp")
        self.write(self.project / "ramie/shared.hpp", "#define SHARED 2\n")
        self.expect_asked("one.cpp", "two.cpp")
        self.write(self.project / ".clang-tidy", "Checks: 'misc-*'\n")
        self.expect_asked("one.cpp", "two.cpp")
        self.write(self.project / "ramie/.clang-tidy", "InheritParentConfig: true\n")
        self.expect_asked("one.cpp", "two.cpp")
        self.write(self.top / "version", "2")
        self.expect_asked("one.cpp", "two.cpp")
        database = self.project / "build/compile_commands.json"
        self.write(database, database.read_text().replace("-O1", "-O0"))
        self.expect_asked("one.cpp", "two.cpp")
        self.expect_asked()

    def test_sources_of_a_target_are_looked_at_together(self):
        self.put_into_one_target("ramie/one.cpp", "ramie/two.cpp")
        self.expect_asked("unit.cpp")
        self.expect_asked()
        # Only those that are not known.
        self.write(self.project / "ramie/two.cpp", '#include "shared.hpp"\nint three;\n')
        self.expect_asked("two.cpp")
        # A folder with rules of its own.
        self.write(self.project / "ramie/.clang-tidy", "InheritParentConfig: true\n")
        self.expect_asked("one.cpp", "two.cpp")

    def test_what_is_found_together_is_looked_for_alone(self):
        self.put_into_one_target("ramie/one.cpp", "ramie/two.cpp")
        self.write(self.project / "ramie/one.cpp", '#include "shared.hpp"\nint ugly;\n')
        asked, printed, status = self.run_tidy()
        self.assertEqual(asked, ["one.cpp", "two.cpp", "unit.cpp"])
        self.assertEqual(printed[:2], ["ramie/one.cpp:2:1: error: ugly [misc-ugly]", "    1 | int ugly;"])
        self.assertEqual(status, 1)
        self.assertEqual(self.run_tidy()[0], ["one.cpp"])

    def test_not_more_than_eight_are_looked_at_together(self):
        names = [f"ramie/part_{i}.cpp" for i in range(9)]
        for name in names:
            self.write(self.project / name, f'#include "shared.hpp"\nint {Path(name).stem};\n')
        self.put_into_one_target(*names)
        self.expect_asked("part_8.cpp", "unit.cpp")

    def test_what_was_before_is_known(self):
        self.expect_asked("one.cpp", "two.cpp")
        self.write(self.project / "ramie/shared.hpp", "#define SHARED 2\n")
        self.expect_asked("one.cpp", "two.cpp")
        self.write(self.project / "ramie/shared.hpp", "#define SHARED 1\n")
        self.expect_asked()

    def test_a_clone_knows_the_same(self):
        self.expect_asked("one.cpp", "two.cpp")
        self.make_project(self.top / "clone")
        self.expect_asked()

    def test_findings_are_told_each_time(self):
        self.write(self.project / "ramie/one.cpp", '#include "shared.hpp"\nint ugly;\n')
        for asked in (["one.cpp", "two.cpp"], ["one.cpp"]):
            found, printed, status = self.run_tidy()
            self.assertEqual(found, asked)
            self.assertEqual(printed[:2], ["ramie/one.cpp:2:1: error: ugly [misc-ugly]", "    1 | int ugly;"])
            self.assertEqual(status, 1)

    def test_a_comment_can_silence_and_its_loss_is_noticed(self):
        self.write(self.project / "ramie/one.cpp", '#include "shared.hpp"\nint ugly;  // NOLINT\n')
        self.expect_asked("one.cpp", "two.cpp")
        self.write(self.project / "ramie/one.cpp", '#include "shared.hpp"\nint ugly;\n')
        self.assertEqual(self.run_tidy()[2], 1)

    def test_what_is_wrong_in_a_header_is_told_once(self):
        self.write(self.project / "ramie/shared.hpp", "// ugly\n")
        _, printed, status = self.run_tidy()
        self.assertEqual([line for line in printed if "error" in line], ["ramie/shared.hpp:1:1: error: ugly [misc-ugly]"])
        self.assertEqual(status, 1)

    def test_a_program_that_fails_has_found_nothing_clean(self):
        self.write(self.top / "broken", "")
        _, printed, status = self.run_tidy()
        self.assertIn("out of order", "\n".join(printed))
        self.assertEqual(status, 1)
        (self.top / "broken").unlink()
        self.expect_asked("one.cpp", "two.cpp")

    def test_what_does_not_preprocess_is_left_to_clang_tidy(self):
        self.write(self.project / "ramie/one.cpp", '#include "missing.hpp"\n')
        self.expect_asked("one.cpp", "two.cpp")
        self.expect_asked("one.cpp")

    def test_it_ends_in_time(self):
        asked, printed, status = self.run_tidy("--minutes", "0")
        self.assertEqual(asked, [])
        self.assertIn("2 left for want of time", printed[-1])
        self.assertEqual(status, 0)

    def test_only_what_differs_from_a_commit(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=self.project, check=True,
                           capture_output=True)
        git("init", "--quiet")
        git("add", "ramie", ".clang-tidy")
        git("commit", "--quiet", "--message", "First")
        self.assertEqual(self.run_tidy("--changed-since", "HEAD")[0], [])
        # A source that differs; of a header that differs, one of the sources that include it, even if that is unchanged.
        self.write(self.project / "ramie/two.cpp", "int two = 2;\n")
        self.assertEqual(self.run_tidy("--changed-since", "HEAD")[0], ["two.cpp"])
        self.write(self.project / "ramie/shared.hpp", "#define SHARED 2\n")
        self.assertEqual(self.run_tidy("--changed-since", "HEAD")[0], ["one.cpp"])
        git("commit", "--quiet", "--all", "--message", "Second")
        self.assertEqual(self.run_tidy("--changed-since", "HEAD")[0], [])
        # What is looked for differs: all of them.
        self.write(self.project / ".clang-tidy", "Checks: '-*'\n")
        self.assertEqual(self.run_tidy("--changed-since", "HEAD")[0], ["one.cpp", "two.cpp"])

    def test_an_empty_database_is_a_mistake(self):
        self.write(self.project / "build/compile_commands.json", "[]")
        self.assertEqual(self.run_tidy()[2], 1)


if __name__ == "__main__":
    unittest.main()
