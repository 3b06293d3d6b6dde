#!/usr/bin/env python3
"""Checks docs/environment.md against the code. Prints what differs, exits with 1 if anything does.

1. Each variable that the code reads has a row, and each row is of a variable that the code reads.
2. Those under "tests of ramie only" are the ones that ramie/machine/test_options.hpp names, and no others.
"""

import argparse
import re
import sys
from pathlib import Path

PAGE = Path("docs/environment.md")
TEST_HEADER = Path("ramie/machine/test_options.hpp")
TEST_SECTION = "For tests of ramie only"
ROW = re.compile(r"^\| `(RAMIE_[A-Z_]+)` \|", re.MULTILINE)
# The reader of a variable names it in a string of its own; texts that only mention it say more.
IN_CODE = re.compile(r'"(RAMIE_[A-Z_]+)"')
IN_PYTHON = re.compile(r"""environ(?:\.get\(|\[)["'](RAMIE_[A-Z_]+)["']""")
IN_SHELL = re.compile(r"\$\{?(RAMIE_[A-Z_]+)")
# What ctest tells a test's script; nobody sets it by hand.
BETWEEN_TESTS = {"RAMIE_COMPILER", "RAMIE_LIBRARY"}


def files(root):
    """(path, pattern) of all that may read variables."""
    for folder in ("ramie", "components", "lab", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if "peers" in path.parts:
                continue
            if path.suffix in {".cpp", ".hpp"}:
                yield path, IN_CODE
    for folder in ("lab", "scripts", "tests", "tools"):
        for path in sorted((root / folder).rglob("*.py")):
            if path.name != "environment_check_test.py":
                yield path, IN_PYTHON
    yield from ((path, IN_SHELL) for path in [root / "run", *sorted((root / "scripts").rglob("*.sh"))] if path.is_file())


def variables_read(root):
    """Name: the first place that names it."""
    found = {}
    for path, pattern in files(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name in pattern.findall(line):
                found.setdefault(name, f"{path.relative_to(root)}:{number}")
    return {name: place for name, place in found.items() if name not in BETWEEN_TESTS}


def complaints(root):
    text = (root / PAGE).read_text(encoding="utf-8")
    rows = ROW.findall(text)
    found = variables_read(root)
    for name in sorted(set(rows)):
        if rows.count(name) != 1:
            yield f"{PAGE}: {name} has {rows.count(name)} rows"
        if name not in found:
            yield f"{PAGE}: nothing reads {name}"
    for name, place in sorted(found.items()):
        if name not in rows:
            yield f"{place}: {name} is not in {PAGE}"
    section = next((part for part in text.split("\n## ") if part.startswith(TEST_SECTION)), "")
    in_section = set(ROW.findall(section))
    in_header = set(IN_CODE.findall((root / TEST_HEADER).read_text(encoding="utf-8")))
    for name in sorted(in_section ^ in_header):
        yield f"{name} is for tests by {PAGE if name in in_section else TEST_HEADER} alone"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    found = list(complaints(parser.parse_args().root))
    for complaint in found:
        print(complaint)
    print(f"{len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
