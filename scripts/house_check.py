#!/usr/bin/env python3
"""Checks the rules of the house that no compiler knows. Prints file:line: message, exits with 1 if there is any.

1. Headers have at most 250 lines, other sources at most 600.
2. Every header has #pragma once, and compiles when it is the only thing included. Those of components/ are left out where the
   libraries that they are for are not installed, those of a peer of the lab because its own build knows where its libraries are.
3. The folders of ramie/ are the floors of a house: a file may include only what is on its own floor or above it.
   ramie/ramie.hpp includes all of them and is for users, so nothing in ramie/ includes it.
4. Inside ramie/, headers are included as <ramie/...>.
5. No notes to self: what is to be done belongs into an issue.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLOORS = ["base", "context", "stack", "sched", "fiber", "sync", "channel", "actor"]
FOLDERS = ["ramie", "components", "lab", "tests", "examples", "tools", "scripts", "cmake", ".ci"]
FILES = ["CMakeLists.txt", "run"]
SUFFIXES = {".hpp", ".cpp", ".S", ".py", ".sh", ".cmake", ".in"}
# A header of the library that a component needs.
COMPONENTS = {"prometheus": "prometheus/collectable.h"}
LINES_MAX_HEADER = 250
LINES_MAX = 600

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Put together from parts, so that this file passes its own check.
NOTE_TO_SELF = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")


def sources(root):
    """All files that the rules apply to, relative to the root."""
    found = [Path(name) for name in FILES if (root / name).is_file()]
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            named = path.suffix in SUFFIXES or path.name == "CMakeLists.txt" or path.parent.name == ".ci"
            if named and path.is_file():
                found.append(path.relative_to(root))
    return found


def check_includes(path, lines):
    """Rules 3 and 4, for one file of ramie/."""
    floor = FLOORS.index(path.parts[1]) if len(path.parts) > 2 and path.parts[1] in FLOORS else None
    if len(path.parts) > 2 and floor is None:
        yield 1, f"ramie/{path.parts[1]}/ is no floor known to this check; they are: {', '.join(FLOORS)}"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if match[1] == '"':
            yield number, f'include as <ramie/...>, not "{match[2]}"'
        parts = match[2].split("/")
        if match[2] == "ramie/ramie.hpp":
            yield number, "ramie/ramie.hpp is for users: include what is needed"
        elif parts[0] == "lab":
            yield number, f"the lab measures ramie, so ramie may not include {match[2]}"
        elif parts[0] == "ramie" and len(parts) > 2 and floor is not None:
            if parts[1] not in FLOORS:
                yield number, f"no such floor: ramie/{parts[1]}"
            elif FLOORS.index(parts[1]) > floor:
                yield number, f"{path.parts[1]}/ is above {parts[1]}/ and may not include {match[2]}"


def check_text(root, path):
    """All rules but the compiling of headers; yields (line, message)."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    header = path.suffix == ".hpp"
    most = LINES_MAX_HEADER if header else LINES_MAX
    if len(lines) > most:
        yield most + 1, f"{len(lines)} lines; at most {most} are allowed"
    if header and "#pragma once" not in lines:
        yield 1, "no #pragma once"
    for number, line in enumerate(lines, 1):
        match = NOTE_TO_SELF.search(line)
        if match:
            yield number, f"{match[1]}: write an issue instead"
    if path.parts[0] == "ramie" and path.suffix in {".hpp", ".cpp", ".S"}:
        yield from check_includes(path, lines)


def check_compiles(root, path, compiler):
    """Compiles a file that includes nothing but this header; yields the first error."""
    needed = COMPONENTS.get(path.parts[1]) if path.parts[0] == "components" else None
    if needed and not compiles(root, needed, compiler)[0]:
        return
    good, message = compiles(root, path.as_posix(), compiler)
    if not good:
        yield 1, f"does not compile alone: {message}"


def compiles(root, header, compiler):
    """Whether a file that includes nothing but this header compiles, and the first error."""
    # Included, not compiled itself, because #pragma once in a main file is a warning.
    command = [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", str(root), "-"]
    done = subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return done.returncode == 0, errors[0] if errors else done.stderr.strip()


def is_of_a_peer(path):
    """What is in lab/peers/common is for all of them."""
    return path.parts[:2] == ("lab", "peers") and path.parts[2] != "common"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-compile", action="store_true", help="skip the compiling of headers")
    options = parser.parse_args()

    paths = sources(options.root)
    headers = [path for path in paths if path.suffix == ".hpp" and not is_of_a_peer(path) and not options.no_compile]
    complaints = [(path, *found) for path in paths for found in check_text(options.root, path)]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda path: list(check_compiles(options.root, path, options.compiler)), headers)
        complaints += [(path, *found) for path, result in zip(headers, results) for found in result]

    for path, line, message in sorted(complaints):
        print(f"{path}:{line}: {message}")
    print(f"{len(paths)} files, {len(headers)} headers compiled alone, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
