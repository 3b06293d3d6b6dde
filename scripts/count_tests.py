#!/usr/bin/env python3
"""Counts the cases of a run of ctest: prints how many passed, failed and were skipped, in one line.

A test of ctest is one program's run over the cases of one source; how many these were it says itself in the file of counts
(tests/support/main.cpp). One that says nothing, because it crashed, hung, or is no GoogleTest program, counts as one.
"""

import argparse
import re
import sys
from pathlib import Path

RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*( +Passed|\*\*\*[A-Za-z]+)", re.MULTILINE)


def counts_of(text):
    """What the programs say: name -> (passed, failed, skipped). The last run of a name counts."""
    found = {}
    for line in text.splitlines():
        name, *numbers = line.split()
        found[name] = tuple(int(number) for number in numbers)
    return found


def count(log, counts):
    """The sums over all results in the log of ctest."""
    total = [0, 0, 0]
    results = {name: word.strip() for name, word in RESULT.findall(log)}
    for name, word in results.items():
        passed, failed, skipped = counts.get(name, (0, 0, 0))
        if word == "Passed":
            # Whatever is no GoogleTest program says nothing; a source whose cases were all filtered out says zeros.
            passed += name not in counts
        elif word == "***Skipped":
            skipped += 1
        else:
            # A sanitizer may complain when all cases have passed.
            failed = max(failed, 1)
        total = [a + b for a, b in zip(total, (passed, failed, skipped))]
    return tuple(total)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="standard output of ctest")
    parser.add_argument("counts", type=Path, help="the file that RAMIE_TEST_COUNTS named; may be missing")
    options = parser.parse_args()
    counts = counts_of(options.counts.read_text(encoding="utf-8")) if options.counts.exists() else {}
    print(*count(options.log.read_text(encoding="utf-8", errors="replace"), counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
