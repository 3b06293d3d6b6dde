#!/usr/bin/env python3
"""Makes small mistakes in ramie's protocols, one at a time, and says which of them the interleaving tests do not notice.

Two kinds of mutants:
  orders  each acquire, release or stronger order made relaxed, and each fence left out, for all that a line of the source
          says. Nothing is compiled for them: a test program of the simulator takes the addresses of such accesses from
          RAMIE_WEAKEN, after another run has listed them (RAMIE_SITES).
  lines   a look that is left out, two stores exchanged, < for <= and > for >=, a lock not taken, a count not taken back.
          Each is compiled in a copy of the sources, in build/mutants.

A mutant is killed if a test fails that passes without it. Those that plant bugs of their own are not run. Each program that
comes by the place runs until one fails, the quick ones first, for --seconds in all.

tests/interleave/survivors.txt lists those that are known to survive, each with the reason: place, mistake and the line of the
source, so that it outlives a change of line numbers. Fails if another one survives.
"""

import argparse
import collections
import concurrent.futures
import datetime
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANTED = "--gtest_filter=-*found*:*.find_*"
SURVIVORS = ROOT / "tests" / "interleave" / "survivors.txt"
SHIMS = ("ramie/base/interleave.hpp", "ramie/base/word.hpp", "ramie/base/atomic.hpp", "ramie/machine/fence.hpp")

# Which programs notice a mistake in a folder of ramie/, the quickest first.
PROGRAMS = {
    "base": ["threads", "runtime"],
    "machine": ["threads", "runtime", "ends"],
    "stack": ["runtime", "ends"],
    "context": ["runtime"],
    "queue": ["deques", "threads", "runtime", "sleeping", "ends"],
    "task": ["threads", "runtime", "scopes", "ends"],
    "worker": ["runtime", "sleeping", "ends"],
    "sched": ["handoff", "runtime", "sleeping", "scopes", "ends"],
    "fiber": ["scopes", "runtime", "ends"],
    "runtime": ["runtime", "ends"],
    "sync": ["threads", "ends"],
    "future": ["ends"],
    "channel": ["closing", "threads", "ends"],
    "actor": ["runtime", "actors", "ends"],
    "supervise": ["actors", "ends"],
    "patterns": ["actors"],
}


class Mutant:
    def __init__(self, place, what):
        self.place = place  # file:line
        self.what = what
        self.offsets = collections.defaultdict(set)  # program: addresses; orders only
        self.edit = None  # (path, first line, number of lines, new lines); lines only

    def __str__(self):
        return f"{self.place}: {self.what}"

    def key(self, root):
        """As in the list of survivors: without the number of the line, with its text."""
        path, line = self.place.split(":")
        text = (root / path).read_text().splitlines()[int(line) - 1].split("//")[0].strip()
        return f"{path} | {self.what} | {text}"


def known_survivors():
    """key: reason."""
    if not SURVIVORS.is_file():
        return {}
    known = {}
    for line in SURVIVORS.read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.rpartition(" | ")
            known[key] = reason
    return known


def programs_in(binaries):
    return sorted(p.name.removeprefix("test_interleave_") for p in binaries.glob("test_interleave_*") if not p.suffix)


def run(binary, seconds, environment=None):
    """True: all passed. False: one failed. None: it did not end in time."""
    try:
        done = subprocess.run([binary, PLANTED, "--gtest_fail_fast", "--gtest_brief=1"], timeout=seconds, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


# ---- orders ----------------------------------------------------------------------------------------------------------

def places_of(binary, offsets):
    """address: file:line of the innermost place that is not one of the shims."""
    found = {}
    listed = sorted(offsets)
    for first in range(0, len(listed), 500):
        text = subprocess.run(["addr2line", "-a", "-i", "-e", binary, *(hex(o) for o in listed[first:first + 500])],
                              check=True, capture_output=True, text=True).stdout
        address = None
        for line in text.splitlines():
            if line.startswith("0x"):
                address = int(line, 16)
                continue
            line = line.split(" ")[0]
            at = line.rfind("/ramie/")
            if address is None or at < 0 or "/tests/" in line:
                continue
            place = line[at + 1:]
            if place.startswith(SHIMS):
                continue
            found.setdefault(address, place)
    return found


def sites_of(binary):
    """What a run without a mutant comes by: lines of address, operation and order. Kept beside the program."""
    kept = binary.with_suffix(".sites")
    if not kept.is_file() or kept.stat().st_mtime < binary.stat().st_mtime:
        with tempfile.NamedTemporaryFile("r", suffix=".sites") as sites:
            if not run(binary, 600, {"RAMIE_SITES": sites.name}):
                sys.exit(f"mutants: {binary.name} fails without a mutant")
            kept.write_text(sites.read())
    return {tuple(line.split()) for line in kept.read_text().splitlines()}


def order_mutants(binaries, names):
    mutants = {}
    for name in names:
        binary = binaries / f"test_interleave_{name}"
        listed = sites_of(binary)
        where = places_of(binary, {int(offset, 16) for offset, *_ in listed})
        for offset, what, order in listed:
            place = where.get(int(offset, 16))
            if place is None:
                continue
            # A fence is left out, an access made relaxed.
            said = f"no {what} fence" if order == "fence" else f"{what}, {order} made relaxed"
            key = (place, said)
            mutants.setdefault(key, Mutant(place, said)).offsets[name].add(int(offset, 16))
    return [mutants[key] for key in sorted(mutants)]


def try_order(mutant, binaries, seconds):
    environment = {}
    begun = time.monotonic()
    folder = mutant.place.split("/")[1]
    preferred = PROGRAMS.get(folder, [])
    for name in sorted(mutant.offsets, key=lambda n: preferred.index(n) if n in preferred else 99):
        environment["RAMIE_WEAKEN"] = ",".join(hex(o) for o in sorted(mutant.offsets[name]))
        left = seconds - (time.monotonic() - begun)
        if left <= 0:
            break
        passed = run(binaries / f"test_interleave_{name}", left, environment)
        if passed is False:
            return name
    return None


# ---- lines -----------------------------------------------------------------------------------------------------------

def line_mutants(root):
    found = []
    for path in sorted((root / "ramie").glob("*/*.[ch]pp")):
        if path.name.endswith((".test.cpp", "testing.hpp")) or path.parent.name not in PROGRAMS or path.parent.name == "base":
            continue
        lines = path.read_text().splitlines()
        relative = path.relative_to(root)
        if not any(re.search(r"atomic<|spin_lock|adaptive_lock|memory_order|wait_list|guard\{", line) for line in lines):
            continue

        def add(i, what, new, count=1, relative=relative):
            m = Mutant(f"{relative}:{i + 1}", what)
            m.edit = (relative, i, count, new)
            found.append(m)

        for i, line in enumerate(lines):
            code = line.split("//")[0].rstrip()
            stripped = code.strip()
            if not stripped or stripped.startswith(("#", "static_assert", "constexpr", "inline constexpr", "template", "using")):
                continue
            if re.match(r"if \(.*\) (return\b.*|continue|break);$", stripped) and "RAMIE_PLANT" not in code:
                add(i, "look left out", [])
            if re.match(r"(const )?std::(lock_guard|unique_lock)( \w+)?\{.*\};$", stripped) and "unique_lock" not in stripped:
                add(i, "lock not taken", [])
            if re.match(r"(--[\w.>-]+|[\w.>-]+--|[\w.>\[\]-]+ -= [^;]+|[\w.>-]+\.fetch_sub\(.*\));$", stripped):
                add(i, "count not taken back", [])
            for old, new in ((r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > ")):
                if len(re.findall(old, code)) == 1 and "<<" not in code and ">>" not in code and "template" not in code:
                    add(i, f"{old.strip()} made {new.strip()}", [code.replace(old, new)])
            after = lines[i + 1].split("//")[0].strip() if i + 1 < len(lines) else ""
            if re.search(r"\.store(_\w+)?\(.*\);$", stripped) and re.search(r"\.store(_\w+)?\(.*\);$", after) \
                    and not re.match(r"(if|else|for|while|return)\b", stripped) and not re.match(r"(if|else|for|while|return)\b", after):
                add(i, "two stores exchanged", [lines[i + 1], line], 2)
    return found


def try_line(mutant, copy, names, seconds, jobs):
    relative, first, count, new = mutant.edit
    path = copy / relative
    before = path.read_text()
    lines = before.splitlines()
    lines[first:first + count] = new or [""]
    path.write_text("\n".join(lines) + "\n")
    try:
        wanted = [n for n in PROGRAMS[relative.parts[1]] if n in names]
        built = subprocess.run(["cmake", "--build", copy / "build", f"-j{jobs}", "--target",
                                *(f"test_interleave_{n}" for n in wanted)], check=False, capture_output=True)
        if built.returncode != 0:
            return "the compiler"
        begun = time.monotonic()
        for name in wanted:
            left = seconds - (time.monotonic() - begun)
            if left <= 0:
                break
            if run(copy / "build" / "bin" / f"test_interleave_{name}", left) is False:
                return name
        return None
    finally:
        path.write_text(before)


def copy_sources(copy, build_type="Release"):
    copy.mkdir(parents=True, exist_ok=True)
    for old in ("ramie", "tests", "cmake"):
        shutil.rmtree(copy / old, ignore_errors=True)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True,
                            text=True).stdout.splitlines()
    for name in listed:
        source, target = ROOT / name, copy / name
        if not source.is_file():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    subprocess.run(["cmake", "-S", copy, "-B", copy / "build", "-G", "Ninja", f"-DCMAKE_BUILD_TYPE={build_type}"], check=True,
                   stdout=subprocess.DEVNULL)


# ---- the command -----------------------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(prog="./run check mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("orders", "lines", "all"), default="orders", help="default: %(default)s")
    parser.add_argument("--only", metavar="REGEX", default="", help="mutants whose place and text match, e.g. queue/ or wait.cpp:10")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them")
    parser.add_argument("--day", metavar="DATE", nargs="?", const=datetime.date.today().isoformat(), default="",
                        help="choose the sample by a date, today's if none is named; else always the same")
    parser.add_argument("--seconds", type=float, default=60, help="for the tests of one mutant (default: %(default)g)")
    parser.add_argument("--minutes", type=float, default=0, help="begin no further mutant after that time")
    parser.add_argument("--list", action="store_true", help="list them and run none")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build" / "release" / "bin",
                        help="where the test programs are (default: those of the release build)")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("RAMIE_JOBS", os.cpu_count() or 1)))
    options = parser.parse_args()

    mutants = []
    names = [n for n in programs_in(options.binaries) if n != "faults"] if options.binaries.is_dir() else []
    if options.kind in ("lines", "all"):
        mutants += line_mutants(options.root)
    if options.kind in ("orders", "all"):
        if not names:
            sys.exit(f"mutants: no test_interleave_* in {options.binaries}; ./run build release makes them")
        mutants += order_mutants(options.binaries, names)
    mutants = [m for m in mutants if re.search(options.only, str(m))]
    if options.sample is not None and options.sample < len(mutants):
        mutants = random.Random(options.day).sample(mutants, options.sample)
    if options.list:
        for m in mutants:
            print(m)
        print(f"{len(mutants)} mutants")
        return 0

    copy = ROOT / "build" / "mutants"
    if any(m.edit for m in mutants):
        copy_sources(copy)
        subprocess.run(["cmake", "--build", copy / "build", f"-j{options.jobs}", "--target",
                        *(f"test_interleave_{n}" for n in names)], check=True, stdout=subprocess.DEVNULL)
    begun = time.monotonic()
    known = known_survivors()
    survivors = []
    unknown = []
    tried = 0

    def try_one(m):
        if options.minutes and time.monotonic() - begun > 60 * options.minutes:
            return None
        start = time.monotonic()
        if m.edit:
            killer = try_line(m, copy, names, options.seconds, options.jobs)
        else:
            killer = try_order(m, options.binaries, options.seconds)
        print(f"{'killed by ' + killer if killer else 'SURVIVES':24} {time.monotonic() - start:6.1f} s  {m}", flush=True)
        return killer or "nobody"

    # Lines are compiled in one copy of the sources, one at a time.
    with concurrent.futures.ThreadPoolExecutor(1 if any(m.edit for m in mutants) else options.jobs) as pool:
        for m, killer in zip(mutants, pool.map(try_one, mutants)):
            tried += killer is not None
            if killer == "nobody":
                survivors.append(m)
                if m.key(options.root) not in known:
                    unknown.append(m)
    print(f"\n{tried} of {len(mutants)} mutants tried, {tried - len(survivors)} killed, {len(survivors)} survive, "
          f"of which {len(survivors) - len(unknown)} are explained")
    for m in unknown:
        print(f"  survives: {m.key(options.root)}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
