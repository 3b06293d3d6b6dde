"""Plants every kind of mistake that scripts/house_check.py is for, and looks whether it is found, at its place."""

import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "house_check.py"


def write(root, files):
    for name, text in files.items():
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run_check(root, *options):
    """What the check prints, without the closing line; and its exit status."""
    done = subprocess.run([sys.executable, str(CHECK), "--root", root, *options], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[:-1], done.returncode


def complaints(files, compile_headers=False):
    """What the check says about a project of these files."""
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        return run_check(root, *([] if compile_headers else ["--no-compile"]))


class HouseCheck(unittest.TestCase):
    def expect(self, files, *places, **more):
        found, status = complaints(files, **more)
        self.assertEqual([line.split(": ")[0] for line in found], list(places))
        self.assertEqual(status, 1 if places else 0)

    def test_a_clean_house(self):
        lower = "#pragma once\n#include <ramie/base/a.hpp>\n#include <ramie/version.hpp>\n"
        self.expect({"ramie/base/a.hpp": "#pragma once\n", "ramie/version.hpp": "#pragma once\n", "ramie/sched/b.hpp": lower},
                    compile_headers=True)

    def test_length(self):
        self.expect({"ramie/base/a.hpp": "#pragma once\n" + "//\n" * 249, "lab/a.cpp": "//\n" * 600})
        self.expect({"ramie/base/a.hpp": "#pragma once\n" + "//\n" * 250, "lab/a.cpp": "//\n" * 601},
                    "lab/a.cpp:601", "ramie/base/a.hpp:251")

    def test_headers_of_components(self):
        wrong = "#pragma once\nint x = nothing;\n"
        self.expect({"components/prometheus/a.hpp": wrong, "prometheus/collectable.h": "#error\n"}, compile_headers=True)
        self.expect({"components/prometheus/a.hpp": wrong, "prometheus/collectable.h": ""}, "components/prometheus/a.hpp:1",
                    compile_headers=True)

    def test_knows_what_each_component_needs(self):
        there = {path.parent.name for path in CHECK.parents[1].glob("components/*/CMakeLists.txt")}
        self.assertEqual(set(runpy.run_path(str(CHECK))["COMPONENTS"]), there)

    def test_pragma_once(self):
        self.expect({"lab/a.hpp": "int x;\n"}, "lab/a.hpp:1")

    def test_compiles_alone(self):
        self.expect({"ramie/base/a.hpp": "#pragma once\ninline std::string f();\n"}, "ramie/base/a.hpp:1", compile_headers=True)

    def test_compiles_what_changed(self):
        wrong = "#pragma once\ninline std::string f();\n"
        old = {"ramie/version.hpp": "#pragma once\n#include <string>\n", "ramie/base/wrong.hpp": wrong, "lab/a.hpp": "#pragma once\n",
               "components/b/b.hpp": "#pragma once\n#include <ramie/version.hpp>\n",
               "components/b/c.hpp": "#pragma once\n#include <b.hpp>\ninline std::string f();\n"}
        # What was wrong before is not looked at.
        self.expect_since(old, {})
        self.expect_since(old, {"lab/a.hpp": wrong}, "lab/a.hpp:1")
        self.expect_since(old, {"ramie/base/a.hpp": wrong}, "ramie/base/a.hpp:1")
        self.expect_since(old, {"ramie/base/wrong.hpp": wrong + "\n"}, "ramie/base/wrong.hpp:1")
        # Those that lived on another's includes are.
        self.expect_since(old, {"ramie/version.hpp": "#pragma once\n"}, "components/b/c.hpp:1")
        self.expect_since(old, {"ramie/version.hpp": "#pragma once\n#include <string>\nint x;\n"})

    def expect_since(self, old, new, *places):
        with tempfile.TemporaryDirectory() as root:
            write(root, old)
            as_nobody = ("-c", "user.name=n", "-c", "user.email=n@localhost")
            for words in (["init", "--quiet"], ["add", "."], [*as_nobody, "commit", "--quiet", "--message", "old"]):
                subprocess.run(["git", *words], cwd=root, check=True)
            write(root, new)
            found, status = run_check(root, "--changed-since", "HEAD")
        self.assertEqual([line.split(": ")[0] for line in found], list(places))
        self.assertEqual(status, 1 if places else 0)

    def test_floors(self):
        self.expect({"ramie/base/a.cpp": "\n#include <ramie/sched/b.hpp>\n"}, "ramie/base/a.cpp:2")
        self.expect({"ramie/sched/a.test.cpp": "#include <ramie/fiber/b.hpp>\n"})
        self.expect({"ramie/sched/a.cpp": "#include <ramie/fiber.hpp>\n"}, "ramie/sched/a.cpp:1")
        self.expect({"examples/a.cpp": "#include <ramie/fiber/b.hpp>\n"}, "examples/a.cpp:1")
        self.expect({"components/a/a.cpp": "#include <ramie/fiber/b.hpp>\n"}, "components/a/a.cpp:1")
        self.expect({"components/a/a.cpp": "#include <ramie/a/b.hpp>\n", "components/a/ramie/a/b.hpp": "#pragma once\n"})
        self.expect({"components/cluster/a.cpp": "#include <ramie/patterns/foreign.hpp>\nramie::detail::link l;\n"})
        self.expect({"components/cluster/a.cpp": "#include <ramie/fiber/b.hpp>\n"}, "components/cluster/a.cpp:1")
        self.expect({"ramie/fiber/a.cpp": "#include <ramie/sched/b.hpp>\n"})
        self.expect({"ramie/actor/a.cpp": "#include <ramie/ramie.hpp>\n"}, "ramie/actor/a.cpp:1")
        self.expect({"ramie/actor/a.cpp": "#include <lab/b.hpp>\n"}, "ramie/actor/a.cpp:1")
        self.expect({"lab/a.cpp": "#include <ramie/ramie.hpp>\n"})

    def test_unknown_folders(self):
        self.expect({"ramie/attic/a.cpp": "\n"}, "ramie/attic/a.cpp:1")
        self.expect({"ramie/base/a.cpp": "#include <ramie/attic/b.hpp>\n"}, "ramie/base/a.cpp:1")

    def test_quoted_includes(self):
        self.expect({"ramie/base/a.cpp": '#include "b.hpp"\n'}, "ramie/base/a.cpp:1")

    @staticmethod
    def ring(units):
        """Files of units that include each other in a circle; every other one does so from its source."""
        files = {}
        for unit, other in zip(units, units[1:] + units[:1]):
            include = f"#include <ramie/{other}.hpp>\n"
            by_source = units.index(unit) % 2 == 0
            files[f"ramie/{unit}.hpp"] = "#pragma once\n" + ("" if by_source else include)
            if by_source:
                files[f"ramie/{unit}.cpp"] = include
        return files

    def test_knots(self):
        five = [f"sched/{name}" for name in "abcde"]
        self.expect(self.ring(five))
        self.expect(self.ring([*five, "sched/f"]), "ramie/sched/a.cpp:1")
        found, _ = complaints(self.ring([*five, "sched/f"]))
        self.assertIn("a knot of 6 units", found[0])
        self.assertIn("sched/c -> sched/d; sched/d -> sched/e;", found[0])
        # A test closes no circle.
        open_ring = self.ring([*five, "sched/f"])
        open_ring["ramie/sched/f.test.cpp"] = open_ring.pop("ramie/sched/f.hpp").replace("#pragma once\n", "")
        open_ring["ramie/sched/f.hpp"] = "#pragma once\n"
        self.expect(open_ring)

    def test_knots_between_folders(self):
        # By a way that goes up, which is a complaint of its own.
        self.expect(self.ring(["base/a", "sched/b"]), "ramie/base/a.cpp:1", "ramie/base/a.cpp:1")

    def test_full_folders(self):
        self.expect({f"ramie/sched/a{i}.cpp": "\n" for i in range(40)})
        self.expect({f"ramie/sched/a{i:02}.test.cpp": "\n" for i in range(41)}, "ramie/sched/a00.test.cpp:1")

    def test_walks(self):
        code = {"ramie/fiber/a.cpp": "void f() {}\n", "ramie/queue/b.cpp": "template <class T> void g<T>();\n",
                "ramie/task/scheduling.hpp": "#pragma once\nvoid h();\n", "ramie/sched/c.cpp": "void h() {}\n"}

        def walk(*steps):
            lines = "".join(f"{i}. `ramie/{step}`\n" for i, step in enumerate(steps, 1)).replace("` ", "` , ")
            return {**code, "docs/design/scheduler.md": "# Walk\n" + lines.replace("|", "`: `")}

        down = ["fiber/a.cpp|f", "queue/b.cpp|g", "task/scheduling.hpp|h", "sched/c.cpp|h"]
        self.expect(walk(*down))
        place = "docs/design/scheduler.md:"
        self.expect(walk("fiber/a.cpp|f", "queue/z.cpp|g"), place + "3")
        self.expect(walk("fiber/a.cpp|g"), place + "2")
        self.expect(walk("queue/b.cpp|g", "fiber/a.cpp|f"), place + "3")
        self.expect(walk("queue/b.cpp|g", "queue/b.cpp|g"), place + "3")
        code.update({f"ramie/fiber/d{i}.cpp": "void f() {}\n" for i in range(8)})
        self.expect(walk(*(f"fiber/d{i}.cpp|f" for i in range(7))))
        self.expect(walk(*(f"fiber/d{i}.cpp|f" for i in range(8))), place + "9")

    def test_notes_to_self(self):
        self.expect({"cmake/a.cmake": "# TO" + "DO: later\n"}, "cmake/a.cmake:1")


if __name__ == "__main__":
    unittest.main()
