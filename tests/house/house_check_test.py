"""Plants every kind of mistake that scripts/house_check.py is for, and looks whether it is found, at its place."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "scripts" / "house_check.py"


def complaints(files, compile_headers=False):
    """What the check prints about a project of these files, without the closing line; and its exit status."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, str(CHECK), "--root", root] + ([] if compile_headers else ["--no-compile"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[:-1], done.returncode


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

    def test_pragma_once(self):
        self.expect({"lab/a.hpp": "int x;\n"}, "lab/a.hpp:1")

    def test_compiles_alone(self):
        self.expect({"ramie/base/a.hpp": "#pragma once\ninline std::string f();\n"}, "ramie/base/a.hpp:1", compile_headers=True)

    def test_floors(self):
        self.expect({"ramie/base/a.cpp": "\n#include <ramie/sched/b.hpp>\n"}, "ramie/base/a.cpp:2")
        self.expect({"ramie/sched/a.test.cpp": "#include <ramie/fiber/b.hpp>\n"}, "ramie/sched/a.test.cpp:1")
        self.expect({"ramie/fiber/a.cpp": "#include <ramie/sched/b.hpp>\n"})
        self.expect({"ramie/actor/a.cpp": "#include <ramie/ramie.hpp>\n"}, "ramie/actor/a.cpp:1")
        self.expect({"ramie/actor/a.cpp": "#include <lab/b.hpp>\n"}, "ramie/actor/a.cpp:1")
        self.expect({"lab/a.cpp": "#include <ramie/ramie.hpp>\n"})

    def test_unknown_folders(self):
        self.expect({"ramie/attic/a.cpp": "\n"}, "ramie/attic/a.cpp:1")
        self.expect({"ramie/base/a.cpp": "#include <ramie/attic/b.hpp>\n"}, "ramie/base/a.cpp:1")

    def test_quoted_includes(self):
        self.expect({"ramie/base/a.cpp": '#include "b.hpp"\n'}, "ramie/base/a.cpp:1")

    def test_notes_to_self(self):
        self.expect({"cmake/a.cmake": "# TO" + "DO: later\n"}, "cmake/a.cmake:1")


if __name__ == "__main__":
    unittest.main()
