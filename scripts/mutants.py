#!/usr/bin/env python3
"""Makes small mistakes in ramie's protocols, one at a time, and says which of them the interleaving tests do not notice.

Two kinds of mutants:
  orders  each acquire, release or stronger order made relaxed, and each fence left out, for all that a line of the source
          says. Nothing is compiled for them: a test program of the simulator takes the addresses of such accesses from
          RAMIE_WEAKEN, after another run has listed them (RAMIE_SITES).
  lines   a look that is left out, two stores exchanged, < for <= and > for >=, a lock not taken, a count not taken back.
          What such a line changes is compiled beside the release build, and linked into one program after the other. Beside
          the simulator's tests the folder's own run, too.

A mutant is killed if a test fails that passes without it, or takes ten times as long. Tests that plant bugs of their own are
not run. Each test of the simulator that comes by the place (by the file, for a line) runs until one fails, the quick ones
first, for --seconds in all; for an order then with six times as many schedules, as far as the time reaches. It survives if
all have passed; if their time ended first, nobody knows, and it is called undecided.

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
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mutant_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANTED = "--gtest_filter=-*found*:*.find_*"
SURVIVORS = pathlib.Path("tests", "interleave", "survivors.txt")
SHIMS = ("ramie/base/interleave.hpp", "ramie/base/word.hpp", "ramie/base/atomic.hpp", "ramie/machine/fence.hpp")
# A mistake must not take all memory of the machine.
MEMORY_MOST = 8 << 30

# Which programs are about a folder of ramie/: tried first where tests of several come by a place.
PROGRAMS = {
    "base": ["threads", "runtime"],
    "machine": ["threads", "runtime", "ends"],
    "stack": ["fresh", "runtime", "ends"],
    "context": ["runtime"],
    "queue": ["deques", "threads", "runtime", "sleeping", "ends"],
    "task": ["claims", "orders", "threads", "fresh", "runtime", "scopes", "ends"],
    "worker": ["events", "orders", "workers", "runtime", "sleeping", "ends"],
    "sched": ["handoff", "sleeping", "claims", "fresh", "orders", "runtime", "workers", "scopes", "ends"],
    "fiber": ["scopes", "orders", "runtime", "ends"],
    "runtime": ["runtime", "ends"],
    "sync": ["threads", "favours", "fresh", "ends"],
    "parallel": ["runtime"],
    "future": ["ends"],
    "channel": ["closing", "waiting", "threads", "ends"],
    "actor": ["extras", "runtime", "actors", "ends"],
    "supervise": ["actors", "ends"],
    "patterns": ["active", "actors"],
}
# Seconds for a folder's own tests. Those that take more than a third of it without a mistake (a busy machine) decide nothing
# if they do not end.
HANGS_AFTER = 90
# A line's mistake is linked into so many programs of the simulator at most.
PROGRAMS_MOST = 4


class Mutant:
    def __init__(self, place, what, edit=None):
        self.place = place  # file:line
        self.what = what
        self.edit = edit  # lines only
        self.offsets = collections.defaultdict(set)  # program: addresses; orders only
        self.tests = set()  # those that come by; orders only

    def __str__(self):
        return f"{self.place}: {self.what}"

    def folder(self):
        return self.place.split("/")[1]

    def key(self, root):
        """As in the list of survivors: without the number of the line, with its text."""
        path, line = self.place.split(":")
        text = (root / path).read_text().splitlines()[int(line) - 1].split("//")[0].strip()
        return f"{path} | {self.what} | {text}"


def known_survivors(root):
    """key: reason."""
    if not (root / SURVIVORS).is_file():
        return {}
    known = {}
    for line in (root / SURVIVORS).read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.rpartition(" | ")
            known[key] = reason
    return known


def programs_in(binaries):
    return sorted(p.name.removeprefix("test_interleave_") for p in binaries.glob("test_interleave_*") if not p.suffix)


def tests_of(binary):
    """The names of its tests, but for those that plant bugs."""
    listed = subprocess.run([binary, PLANTED, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
    suite = ""
    for line in listed.splitlines():
        if not line.startswith(" "):
            suite = line.strip() if line.strip().endswith(".") else ""
        elif suite:
            yield suite + line.split("#")[0].strip()


def run(command, seconds, environment=None):
    """True: all passed. False: one failed. None: it did not end in time. What it started ends with it."""
    limited = ["prlimit", f"--data={MEMORY_MOST}", "--core=0", *command, "--gtest_fail_fast", "--gtest_brief=1"]
    with subprocess.Popen(limited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                          env={**os.environ, **(environment or {})}) as process:
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


# ---- what the tests of the simulator come by -------------------------------------------------------------------------

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
            if address is None or (at < 0 and "/tests/" not in line):
                continue
            place = None if "/tests/" in line else line[at + 1:]  # a program's own, inlined into ramie's
            if place is None or not place.startswith(SHIMS):
                found.setdefault(address, place)
    return found


class Sites:
    """Which accesses and fences each test comes by, and how long it takes. Kept beside the programs."""

    def __init__(self, binaries, jobs):
        self.binaries = binaries
        self.seconds = {}  # (program, test): of a tenth of its schedules
        self.found = []  # (program, test, address, place, operation, order)
        names = [n for n in programs_in(binaries) if n != "faults"]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            listed = {n: pool.submit(lambda n=n: list(tests_of(self.path(n)))) for n in names if not self.kept(n)}
            ran = {(n, t): pool.submit(self.list_, n, t) for n, tests in listed.items() for t in tests.result()}
            for name in listed:
                text = "".join(ran[name, test].result() for test in listed[name].result())
                self.path(name).with_suffix(".sites").write_text(text)
            for rows in pool.map(self.read_, names):
                self.found += rows

    def path(self, name):
        return self.binaries / f"test_interleave_{name}"

    def kept(self, name):
        kept = self.path(name).with_suffix(".sites")
        return kept.is_file() and kept.stat().st_mtime > self.path(name).stat().st_mtime and kept.read_text().startswith("test ")

    def list_(self, name, test):
        with tempfile.NamedTemporaryFile("r", suffix=".sites") as sites:
            begun = time.monotonic()
            if not run([self.path(name), f"--gtest_filter={test}"], 600, {"RAMIE_SITES": sites.name}):
                sys.exit(f"mutants: {name} {test} fails without a mutant")
            return f"test {time.monotonic() - begun:.3f} {test}\n" + sites.read()

    def read_(self, name):
        rows = []
        test = ""
        for line in self.path(name).with_suffix(".sites").read_text().splitlines():
            first, second, third = line.split()
            if first == "test":
                test = third
                self.seconds[name, test] = float(second)
            else:
                rows.append((test, int(first, 16), second, third))
        where = places_of(self.path(name), {offset for _, offset, *_ in rows})
        return [(name, test, offset, where[offset], what, order) for test, offset, what, order in set(rows)
                if where.get(offset) is not None]


KILLED, SURVIVES, UNDECIDED, NOT_TRIED = "killed by", "SURVIVES", "undecided", ""


class Tries:
    """The fate of one mutant after the other, each in its own thread."""

    def __init__(self, sites, root, seconds, end):
        self.sites_ = sites
        self.root_ = root
        self.seconds_ = seconds
        self.end_ = end  # of all: what runs then is cut off, and undecided
        self.lock_ = threading.Lock()
        self.build_ = None
        self.usual_ = {}  # a program of a folder's tests, with its arguments: how long it takes without a mistake

    def of(self, mutant):
        return self.line_(mutant) if mutant.edit else self.order_(mutant)

    def each_(self, tests, command, begun):
        for name, test in tests:
            left = min(self.seconds_ - (time.monotonic() - begun), self.end_ - time.monotonic())
            path, environment = command(name)
            passed = run([path, f"--gtest_filter={test}"], left, environment) if left > 0 else None
            if passed is None:
                return UNDECIDED, ""
            if not passed:
                return KILLED, f"{name} {test}"
        return SURVIVES, ""

    def order_(self, mutant):
        tests = sorted(mutant.tests, key=lambda at: self.sites_.seconds[at])
        begun = time.monotonic()

        def weakened(name, more):
            # An address may be met in few schedules only, so a test gets all that any of its program's met.
            offsets = ",".join(hex(o) for o in sorted(mutant.offsets[name]))
            return self.sites_.path(name), {"RAMIE_WEAKEN": offsets, **more}

        fate = self.each_(tests, lambda name: weakened(name, {}), begun)
        if fate[0] != SURVIVES:
            return fate
        # As long as there is time: schedules that the tests do not try.
        more = {"RAMIE_SEEDS": "9"}
        again = self.each_(tests, lambda name: weakened(name, more), begun)
        return again if again[0] == KILLED else fate

    def line_(self, mutant):
        with self.lock_:
            if self.build_ is None:
                self.build_ = mutant_lines.Build(self.root_, self.sites_.binaries.parent)
        with mutant_lines.Mutated(self.build_, mutant.edit) as mutated:
            try:
                return self.programs_with_(mutant, mutated)
            except mutant_lines.Unbuildable:
                return KILLED, "the compiler"

    def programs_with_(self, mutant, mutated):
        """The program nearest to the place, then the folder's own tests, then others."""
        nearest = self.nearest_(mutant)
        spent = 0
        undecided = False
        for round_, name in enumerate([*list(nearest)[:1], None, *list(nearest)[1:PROGRAMS_MOST]]):
            if name is None:
                fate = self.own_tests_(mutant, mutated)
            else:
                path = mutated.link(f"test_interleave_{name}", "ramie_interleave")
                if path is None:
                    continue
                begun = time.monotonic() - spent
                # pylint: disable-next=cell-var-from-loop
                fate = self.each_([(name, t) for t in nearest[name]], lambda _: (path, None), begun)
                spent = time.monotonic() - begun
            if fate[0] == KILLED:
                return fate
            undecided |= fate[0] == UNDECIDED
        return (UNDECIDED if undecided else SURVIVES), ""

    def nearest_(self, mutant):
        """program: its tests that come by the file, the quick ones first; the program that comes nearest to the line first."""
        path, line = mutant.place.split(":")
        apart = {}
        for name, test, _, place, *_ in self.sites_.found:
            file, _, at = place.partition(":")
            if file == path:
                lines = abs(int(re.match(r"\d+", at)[0]) - int(line))
                apart[name, test] = min(lines, apart.get((name, test), lines))
        preferred = PROGRAMS[mutant.folder()]
        if not apart:
            apart = {at: 0 for at in self.sites_.seconds if at[0] in preferred[:2]}
        by_program = collections.defaultdict(list)
        # Some lines between make no difference.
        for (name, test), lines in sorted(apart.items(), key=lambda at: (at[1] // 20, self.sites_.seconds[at[0]])):
            by_program[name].append(test)
        first = {name: min(apart[name, t] // 20 for t in tests) for name, tests in by_program.items()}
        order = sorted(by_program, key=lambda n: (first[n], preferred.index(n) if n in preferred else 99))
        return {name: by_program[name] for name in order}

    def own_tests_(self, mutant, mutated):
        """Those of its source first, then all of the folder."""
        path = pathlib.Path(mutant.place.split(":")[0])
        own = path.parent / (path.name.split(".")[0] + ".test.cpp")
        apart = f"test_{path.parent.name}_{path.name.split('.')[0]}"
        commands = [(f"test_{path.parent.name}", [f"--file={own}"])] if (self.root_ / own).is_file() else []
        if (self.sites_.binaries / apart).is_file():
            commands = [(apart, [])]
        commands.append((f"test_{path.parent.name}", []))
        for program, arguments in commands:
            original = self.sites_.binaries / program
            if not original.is_file():
                continue
            changed = mutated.link(program, "ramie")
            usual = self.usual_seconds_(original, arguments) if changed is not None else None
            if usual is None:
                continue
            left = min(10 * usual + 10, HANGS_AFTER, self.end_ - time.monotonic())
            passed = run([changed, *arguments], left) if left > 0 else None
            if passed is None and (time.monotonic() >= self.end_ or usual > HANGS_AFTER / 3):
                return UNDECIDED, ""
            if not passed:
                return KILLED, program + (", which hangs" if passed is None else "")
        return SURVIVES, ""

    def usual_seconds_(self, program, arguments):
        """None if it fails without a mistake, on this machine and within these limits."""
        key = (program, *arguments)
        with self.lock_:
            if key not in self.usual_:
                begun = time.monotonic()
                self.usual_[key] = time.monotonic() - begun if run([program, *arguments], 300) else None
            return self.usual_[key]


def order_mutants(sites):
    mutants = {}
    for name, test, offset, place, what, order in sites.found:
        # A fence is left out, an access made relaxed.
        said = f"no {what} fence" if order == "fence" else f"{what}, {order} made relaxed"
        mutant = mutants.setdefault((place, said), Mutant(place, said))
        mutant.offsets[name].add(offset)
        mutant.tests.add((name, test))
    return [mutants[key] for key in sorted(mutants)]


# ---- the command -----------------------------------------------------------------------------------------------------

def chosen(mutants, options):
    """A sample has as many of each kind."""
    choices = random.Random(options.day)
    kinds = [[m for m in mutants if not m.edit], [m for m in mutants if m.edit]]
    for kind in kinds:
        choices.shuffle(kind)
    mixed = []
    while any(kinds):
        mixed += [kind.pop() for kind in kinds if kind]
    return mixed[:options.sample or len(mixed)]


def main():
    parser = argparse.ArgumentParser(prog="./run check mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("orders", "lines", "all"), default="orders", help="default: %(default)s")
    parser.add_argument("--only", metavar="REGEX", default="", help="mutants whose place and text match, e.g. queue/ or wait.cpp:10")
    parser.add_argument("--known", metavar="CLASS", help="only those that the list of survivors has in this class, e.g. untested")
    parser.add_argument("--unlisted", action="store_true", help="only those that the list of survivors has not")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them")
    parser.add_argument("--day", metavar="DATE", nargs="?", const=datetime.date.today().isoformat(), default="",
                        help="choose the sample, and the order, by a date, today's if none is named; else always the same")
    parser.add_argument("--seconds", type=float, default=60, help="for the simulator's tests of one mutant (default: %(default)g)")
    parser.add_argument("--minutes", type=float, default=0, help="end after that time; what is left then is not tried")
    parser.add_argument("--list", action="store_true", help="list them and run none")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="of the sources (default: here)")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build" / "release" / "bin",
                        help="where the test programs are (default: those of the release build)")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("RAMIE_JOBS", os.cpu_count() or 1)))
    options = parser.parse_args()
    root = options.root
    needs_programs = options.kind != "lines" or not options.list
    if needs_programs and (not options.binaries.is_dir() or not programs_in(options.binaries)):
        sys.exit(f"mutants: no test_interleave_* in {options.binaries}; ./run build release makes them")

    begun = time.monotonic()
    mutants = []
    if options.kind in ("lines", "all"):
        mutants += [Mutant(*found) for found in mutant_lines.line_mutants(root, PROGRAMS)]
    sites = Sites(options.binaries, options.jobs) if needs_programs else None
    if options.kind in ("orders", "all"):
        mutants += order_mutants(sites)
    known = known_survivors(root)
    mutants = [m for m in mutants if re.search(options.only, str(m))]
    if options.known is not None:
        mutants = [m for m in mutants if known.get(m.key(root), "").startswith(options.known)]
    if options.unlisted:
        mutants = [m for m in mutants if m.key(root) not in known]
    if options.sample is not None or options.day:
        mutants = chosen(mutants, options)
        print(f"mutants: chosen by --day {options.day or '(none)'}", flush=True)
    if options.list:
        for m in mutants:
            print(m)
        print(f"{len(mutants)} mutants")
        return 0

    count = collections.Counter()
    unknown = []
    end = begun + 60 * options.minutes if options.minutes else float("inf")
    tries = Tries(sites, root, options.seconds, end)

    def try_one(m):
        if time.monotonic() > end:
            return NOT_TRIED
        start = time.monotonic()
        fate, killer = tries.of(m)
        print(f"{fate + ' ' + killer:24} {time.monotonic() - start:6.1f} s  {m}", flush=True)
        return fate

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for m, fate in zip(mutants, pool.map(try_one, mutants)):
            explained = m.key(root) in known
            count[fate] += 1
            count["explained"] += fate in (SURVIVES, UNDECIDED) and explained
            if fate in (SURVIVES, UNDECIDED) and not explained:
                unknown.append((fate, m))
    tried = len(mutants) - count[NOT_TRIED]
    print(f"\n{tried} of {len(mutants)} mutants tried: {count[KILLED]} killed, {count[SURVIVES]} survive, "
          f"{count[UNDECIDED]} undecided; {count['explained']} of these are explained")
    for fate, m in unknown:
        print(f"  {fate}: {m.key(root)}")
    failed = sum(fate == SURVIVES for fate, _ in unknown)
    print(f"{tried - len(unknown)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
