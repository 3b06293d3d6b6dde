#!/usr/bin/env python3
"""Checks the rules of the house that no compiler knows. Prints file:line: message, exits with 1 if there is any.

1. Headers have at most 250 lines, other sources at most 600.
2. Every header has #pragma once, and compiles when it is the only thing included. With --changed-since COMMIT, only those are
   compiled that differ from that commit, or include, by whatever way, a header that has lost an include since. Those of
   components/ are left out where the libraries that they are for are not installed, those of a peer of the lab because its own
   build knows where its libraries are.
3. The folders of ramie/ are the floors of a house: a file may include only what is on its own floor or above it. Tests may
   include any floor: a queue is also tested under a scheduler.
   The headers right in ramie/ are for users, so nothing in its folders includes them, but for tests; examples,
   components and documents include no others. (What a component that adds to actors may include is listed in INSIDE.)
4. Inside ramie/, headers are included as <ramie/...>.
5. No notes to self: what is to be done belongs into an issue.
6. A knot is a set of units (a header and its source together) that include each other in a circle. It lies in one folder of
   ramie/ and has at most five units. Tests count for nothing here.
7. A folder of ramie/ has at most 40 files, tests included.
8. The walks through the code in docs/design/scheduler.md: each file is there and has each function that is named with it. A walk has
   at most seven files, none of them twice, and goes down the floors. From task/scheduling.hpp it may go into sched/.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

FLOORS = [
    "base",
    "machine",
    "context",
    "stack",
    "task",
    "queue",
    "worker",
    "sched",
    "inspect",
    "fiber",
    "runtime",
    "sync",
    "parallel",
    "future",
    "channel",
    "poll",
    "net",
    "actor",
    "supervise",
    "patterns",
]
FOLDERS = ["ramie", "components", "lab", "tests", "examples", "tools", "scripts", "cmake", ".ci"]
FILES = ["CMakeLists.txt", "run"]
SUFFIXES = {".hpp", ".cpp", ".S", ".py", ".sh", ".cmake", ".in"}
# A header of the library that a component needs.
COMPONENTS = {"prometheus": "prometheus/collectable.h", "tls": "openssl/ssl.h", "http": "nghttp2/nghttp2.h", "postgres": "postgresql/libpq-fe.h", "redis": "hiredis/hiredis.h", "kafka": "librdkafka/rdkafka.h",
              "curl": "curl/curl.h", "asio": "boost/asio.hpp", "cluster": "nats/nats.h"}
# A component that adds to actors is built of their own parts: its folder, and the doors in ramie/ that it may use.
INSIDE = {
    "cluster": (
        "ramie/cluster/",
        "ramie/patterns/foreign.hpp",
        "ramie/patterns/group.hpp",
        "ramie/patterns/recipient.hpp",
        "ramie/base/assert.hpp",
    )
}
LINES_MAX_HEADER = 250
LINES_MAX = 600
KNOT_MAX = 5
FOLDER_MAX = 40
WALKS = "docs/design/scheduler.md"
WALK_MAX = 7
DOOR = "ramie/task/scheduling.hpp"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STEP = re.compile(r"^\d+\. `(ramie/[^`]+)`:(.*)")
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


def is_test(path):
    return path.name.endswith(".test.cpp") or path.name == "testing.hpp"


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
        if parts[0] == "ramie" and len(parts) == 2 and len(path.parts) > 2 and parts[1] != "version.hpp" and not is_test(path):
            yield number, f"{match[2]} is for users: include what is needed"
        elif parts[0] == "lab":
            yield number, f"the lab measures ramie, so ramie may not include {match[2]}"
        elif parts[0] == "ramie" and len(parts) > 2 and floor is not None:
            if parts[1] not in FLOORS:
                yield number, f"no such floor: ramie/{parts[1]}"
            elif FLOORS.index(parts[1]) > floor and not is_test(path):
                yield number, f"{path.parts[1]}/ is above {parts[1]}/ and may not include {match[2]}"


def check_public(root, path, lines):
    """Rule 3 for those who use ramie as anybody does, and for components that are built of its parts. A component's own headers
    may be in a folder of its name."""
    own = root / Path(*path.parts[:2])
    doors = INSIDE.get(path.parts[1], ()) if path.parts[0] == "components" else ()
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        inner = match and match[2].startswith("ramie/") and match[2].count("/") > 1
        if inner and not match[2].startswith(doors or "/") and not (own / match[2]).is_file():
            yield number, f"{match[2]} is not for users: include a header right in ramie/"
        if "detail::" in line and not doors:
            yield number, "ramie::detail is not for users"


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
    if path.parts[0] in {"examples", "components"} and not is_test(path):
        yield from check_public(root, path, lines)


def unit_of(name):
    """The unit that a header or source of ramie/ belongs to: its path without ramie/ and suffix."""
    return name.removeprefix("ramie/").rsplit(".", 1)[0]


def include_graph(root, paths):
    """Of each unit in a folder of ramie/ the units that it includes."""
    graph = {}
    for path in paths:
        if path.parts[0] != "ramie" or len(path.parts) < 3 or path.suffix not in {".hpp", ".cpp"} or is_test(path):
            continue
        targets = graph.setdefault(unit_of(path.as_posix()), set())
        for line in (root / path).read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if match and match[2].startswith("ramie/") and match[2].count("/") > 1:
                targets.add(unit_of(match[2]))
    return {unit: {other for other in targets if other in graph and other != unit} for unit, targets in graph.items()}


def knots(graph):
    """The strongly connected components of more than one unit, by R. Tarjan's algorithm."""
    order, low, open_units, found = {}, {}, [], []

    def visit(unit):
        order[unit] = low[unit] = len(order)
        open_units.append(unit)
        for other in sorted(graph[unit]):
            if other not in order:
                visit(other)
                low[unit] = min(low[unit], low[other])
            elif other in open_units:
                low[unit] = min(low[unit], order[other])
        if low[unit] == order[unit]:
            at = open_units.index(unit)
            found.append(sorted(open_units[at:]))
            del open_units[at:]

    for unit in sorted(graph):
        if unit not in order:
            visit(unit)
    return [knot for knot in found if len(knot) > 1]


def check_knots(root, paths):
    """Rule 6; yields (path, line, message) at the knot's first unit."""
    graph = include_graph(root, paths)
    for knot in knots(graph):
        rooms = {unit.split("/")[0] for unit in knot}
        if len(rooms) == 1 and len(knot) <= KNOT_MAX:
            continue
        wrong = f"{len(knot)} units, at most {KNOT_MAX} are allowed" if len(rooms) == 1 else f"folders {', '.join(sorted(rooms))}"
        inside = "; ".join(f"{unit} -> {', '.join(sorted(graph[unit] & set(knot)))}" for unit in knot)
        first = next(path for path in paths if path.parts[0] == "ramie" and unit_of(path.as_posix()) == knot[0])
        yield first, 1, f"a knot of {wrong}: {inside}"


def check_folders(paths):
    """Rule 7; yields (path, line, message) at the first file."""
    for floor in FLOORS:
        files = [path for path in paths if path.parts[:2] == ("ramie", floor)]
        if len(files) > FOLDER_MAX:
            yield files[0], 1, f"ramie/{floor}/ has {len(files)} files; at most {FOLDER_MAX} are allowed"


def check_walks(root):
    """Rule 8; yields (path, line, message) in the document."""
    path = Path(WALKS)
    if not (root / path).is_file():
        return
    walk = []
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            walk = []
        step = STEP.match(line)
        if not step:
            continue
        name, named = step[1], re.findall(r"`([a-z_]+)`", step[2])
        if not (root / name).is_file():
            yield path, number, f"there is no {name}"
            continue
        text = (root / name).read_text(encoding="utf-8")
        for function in named:
            if not re.search(rf"\b{function}(<[^()]*>)?\(", text):
                yield path, number, f"there is no {function} in {name}"
        if not named:
            yield path, number, "no function is named"
        if name in walk:
            yield path, number, f"the walk comes back to {name}"
        floor, before = name.split("/")[1], walk[-1].split("/")[1] if walk else None
        if before and FLOORS.index(floor) > FLOORS.index(before) and not (walk[-1] == DOOR and floor == "sched"):
            yield path, number, f"the walk goes up from {before}/ to {floor}/"
        walk.append(name)
        if len(walk) > WALK_MAX:
            yield path, number, f"a walk of {len(walk)} files; at most {WALK_MAX} are allowed"


def check_compiles(root, path, compiler):
    """Compiles a file that includes nothing but this header; yields the first error."""
    needed = COMPONENTS.get(path.parts[1]) if path.parts[0] == "components" else None
    if needed and not compiles(root, needed, compiler)[0]:
        return
    good, message = compiles(root, path.as_posix(), compiler)
    if not good:
        yield 1, f"does not compile alone: {message}"


@cache
def compiles(root, header, compiler):
    """Whether a file that includes nothing but this header compiles, and the first error."""
    # Included, not compiled itself, because #pragma once in a main file is a warning.
    command = [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", str(root)]
    command += [word for folder in sorted((root / "components").glob("*/")) for word in ("-I", str(folder))]
    command += ["-isystem", "/usr/include/postgresql", "-"]  # where Debian has libpq's headers
    done = subprocess.run(command, input=f"#include <{header}>\n", capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return done.returncode == 0, errors[0] if errors else done.stderr.strip()


def changed_since(commit, root, headers):
    """Those of them that differ from the commit, or include one that has lost an include since."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()

    changed = {Path(name) for name in git("diff", "--name-only", commit) + git("ls-files", "--others", "--exclude-standard")}
    poorer = {path for path in changed.intersection(headers)
              if any(INCLUDE.match(line[1:]) for line in git("diff", commit, "--", str(path)) if line.startswith("-"))}
    places = [Path(), *(folder.relative_to(root) for folder in (root / "components").glob("*/"))]
    graph = {}
    for header in headers:
        found = map(INCLUDE.match, (root / header).read_text(encoding="utf-8").splitlines())
        graph[header] = {place / match[2] for match in found if match for place in places}
    chosen = poorer
    while more := {header for header in headers if header not in chosen and graph[header] & chosen}:
        chosen = chosen | more
    return [header for header in headers if header in chosen or header in changed]


def is_of_a_peer(path):
    """What is in lab/peers/common is for all of them."""
    return path.parts[:2] == ("lab", "peers") and path.parts[2] != "common"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-compile", action="store_true", help="skip the compiling of headers")
    parser.add_argument("--changed-since", metavar="COMMIT", help="compile only headers that this may matter for")
    options = parser.parse_args()

    paths = sources(options.root)
    headers = [path for path in paths if path.suffix == ".hpp" and not options.no_compile]
    headers = [path for path in headers if not is_of_a_peer(path)]
    if options.changed_since:
        headers = changed_since(options.changed_since, options.root, headers)
    complaints = [(path, *found) for path in paths for found in check_text(options.root, path)]
    complaints += [*check_knots(options.root, paths), *check_folders(paths), *check_walks(options.root)]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda path: list(check_compiles(options.root, path, options.compiler)), headers)
        complaints += [(path, *found) for path, result in zip(headers, results) for found in result]

    for path, line, message in sorted(complaints):
        print(f"{path}:{line}: {message}")
    print(f"{len(paths)} files, {len(headers)} headers compiled alone, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
