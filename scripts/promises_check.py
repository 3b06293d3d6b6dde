#!/usr/bin/env python3
"""Checks that the tests which docs/promises.md names are there. Prints what is missing, exits with 1 if anything is.

A name is `folder.file.suite.case`, as ctest has it: runtime.shutdown.* are in ramie/runtime/shutdown.test.cpp, tests.process.* in
tests/process.test.cpp, interleave.runtime.* in tests/interleave/runtime.interleave.test.cpp, http.server.h2.* in the component's room,
components/http/server/h2.test.cpp. `soak` is the soak.
"""

import argparse
import re
import sys
from pathlib import Path

PROMISE = re.compile(r"^(\d+)\. \*\*", re.MULTILINE)
NAME = re.compile(r"`((?:[a-z_0-9]+\.){3,4}[a-z_0-9]+|soak)`")


def source_of(root, folder, file):
    """`file` may be in a room of its component: room/file."""
    if folder == "interleave":
        return root / "tests" / "interleave" / f"{file}.interleave.test.cpp"
    if folder == "tests":
        return root / "tests" / f"{file}.test.cpp"
    component = root / "components" / folder / f"{file}.test.cpp"
    return component if component.is_file() else root / "ramie" / folder / f"{file}.test.cpp"


def is_there(root, name):
    if name == "soak":
        return (root / "tests" / "soak" / "main.cpp").is_file()
    folder, *rooms, suite, case = name.split(".")
    path = source_of(root, folder, "/".join(rooms))
    if not path.is_file():
        return False
    return re.search(rf"\bTEST(_F|_P)?\(\s*{suite},\s*{case}\s*\)", path.read_text(encoding="utf-8")) is not None


def complaints(root, text):
    """All that is wrong with the text of docs/promises.md."""
    parts = PROMISE.split(text)
    numbers, promises = parts[1::2], parts[2::2]
    if not promises:
        yield "no promises are made"
    for number, promise in zip(numbers, promises):
        names = NAME.findall(promise)
        if not names:
            yield f"promise {number} names no test"
        for name in names:
            if not is_there(root, name):
                yield f"promise {number}: there is no test {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    text = (root / "docs" / "promises.md").read_text(encoding="utf-8")
    found = list(complaints(root, text))
    for complaint in found:
        print(complaint)
    print(f"{len(NAME.findall(text))} tests named, {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
