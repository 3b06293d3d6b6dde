#!/usr/bin/env python3
"""Says what the failures of a run of ctest mean, tries again what chance may have failed, and counts the cases.

A *report* says that something is wrong, whenever it comes, and is never tried again: a race, a memory error, a leak, a failed
assertion, a signal, a finding of the simulator or of a fuzzer, a wrong value in a test that starts no thread and no process.
A test that fails by an expectation or by its time limit may have met a slow machine. It runs twice more, alone: if it passes
both times it is *flaky*, which does not fail the run, but is told in the last lines and, with its output, in build/flaky.txt.
The same test flaky in a run of another commit fails that run, unless it has an entry in tests/flaky.md.

A test of ctest is one program's run over the cases of one source; how many these were, and which failed, it says itself in
the file of counts (tests/support/main.cpp). One that says nothing, because it is no GoogleTest program, counts as one.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

# A line such as " 3/90 Test #17: sync.mutex ....Subprocess aborted***Exception:   0.20 sec".
RESULT = re.compile(r"^ *\d+/\d+ Test +#(\d+): (\S+) \.*( +Passed|[^*\n.]*\*\*\*[^\n]*?) +[\d.]+ sec$", re.MULTILINE)
# What sanitizers, the library, the C++ runtime, glibc, CMake, ctest and Python's tests of child processes print.
REPORT = re.compile(r"WARNING: ThreadSanitizer|ERROR: \w+Sanitizer|\w+Sanitizer: ?(DEADLYSIGNAL|CHECK failed)|: runtime error: "
                    r"|terminate called|\bramie: .*\(\S+\.[hc]pp:\d+\)|Signals\.SIG(SEGV|ABRT|BUS|ILL|FPE)"
                    r"|ended\s+with\s+(-\d|Segmentation|Subprocess|SIG|Abort|Bus|Illegal)|\*\*\*Exception|Segmentation fault"
                    r"|Bus error|double free or corruption|free\(\): |malloc\(\): |stack smashing|: Assertion `.*' failed")
# Whatever these say is said again by the same seed.
REPRODUCIBLE = re.compile(r"^(interleave|fuzz)\.|^soak$")
SEED = re.compile(r"(?i)\b(?:\w*seed)[ =:]+(\d+)")
OUTPUT_MOST = 50_000_000  # bytes of a failed test: far more than any prints
# More failures than this at once are no chance; none of them is tried again.
TRIED_AGAIN_MOST = 10
REMEMBERED_DAYS = 90


class Counts:
    """What the programs of a run say of themselves: how many cases passed, failed, were skipped, and which failed."""

    def __init__(self, text=""):
        self.sums, self.failed, self.alone = {}, {}, set()
        for line in text.splitlines():
            name, *words = line.split()
            if words[0] == "failed":
                self.failed.setdefault(name, []).append(words[1])
                if words[2:] == ["alone"]:
                    self.alone.add((name, words[1]))
            else:
                self.sums[name] = tuple(int(number) for number in words)


class Run:
    """One run of ctest: what it says of each test (Passed, Failed, Timeout, Subprocess aborted Exception: ...), and what
    each printed. Nested logs of others' runs are not taken for its own: a test has its number."""

    def __init__(self, log, output, counts, suite):
        self.words = {name: " ".join(word.replace("***", " ").split()) for number, name, word in RESULT.findall(log)
                      if suite.numbers.get(name) == int(number)}
        self.output, self.counts, self.suite = output, counts, suite

    def classify(self, name):
        """Of a test that failed: (is it a report?, what it is)."""
        word, output = self.words[name], self.output.get(name)
        found = first_report(outside_passed(output or ""))
        if REPRODUCIBLE.search(name):
            return True, "a finding" if word == "Failed" else word
        if word not in ("Failed", "Timeout"):
            return True, word
        if output is None:
            return True, "what it printed is not known"
        if found:
            return True, found
        if word == "Timeout":
            return False, "its time limit"
        if name not in self.suite.programs:
            return False, "an expectation"
        if name not in self.counts.sums:
            return True, "it ended amid its cases"
        failed = self.counts.failed.get(name, [])
        if not failed:
            return True, first_report(output) or "a failure after its last case"
        for case in failed:
            if (name, case) in self.counts.alone:
                return True, f"a wrong value in {case}, which has no threads"
        return False, "an expectation in " + ", ".join(failed)

    def bad(self):
        """Names of tests that failed, and of programs that say nothing of their cases though they exited with 0."""
        return [name for name, word in self.words.items() if word not in ("Passed", "Skipped")
                or (word == "Passed" and name in self.suite.programs and name not in self.counts.sums)]

    def count(self, forgiven=()):
        """The sums over all tests; those forgiven have passed."""
        total, bad = [0, 0, 0], set(self.bad())
        for name, word in self.words.items():
            passed, failed, skipped = self.counts.sums.get(name, (0, 0, 0))
            if name in forgiven:
                passed, failed = max(passed + failed, 1), 0
            elif name in bad:
                # A sanitizer may complain when all cases have passed.
                failed = max(failed, 1)
            elif word == "Passed":
                # Whatever is no GoogleTest program says nothing; a source whose cases were all filtered out says zeros.
                passed += name not in self.counts.sums
            else:
                skipped += 1
            total = [a + b for a, b in zip(total, (passed, failed, skipped))]
        return total


def first_report(output):
    """The first line of it that is a report, shortened; None if there is none."""
    found = REPORT.search(output)
    if not found:
        return None
    begin = output.rfind("\n", 0, found.start() + 1) + 1
    return output[begin:].split("\n", 1)[0].strip()[:200]


def outside_passed(output):
    """The output without that of cases that passed: some make children die on purpose, and some run cases in children."""
    kept, of_case, case = [], [], None
    for line in output.splitlines():
        begun = re.match(r"\[ RUN +\] (\S+)", line)
        if begun and case is None:
            case = begun[1]
        (kept if case is None else of_case).append(line)
        ended = case and re.search(r"\[ +(OK|FAILED|SKIPPED) +\] " + re.escape(case) + r"(?=[\s,]|$)", line)
        if ended:
            kept += of_case if ended[1] == "FAILED" else [line]
            of_case, case = [], None
    return "\n".join(kept + of_case)


class Suite:
    """The tests of a build: the number of each, and which are GoogleTest programs. Runs one of them once more, alone."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        done = subprocess.run([*command, "--show-only=json-v1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False)
        # ctest may print sentences before.
        found = done.stdout.find("{")
        tests = json.loads(done.stdout[found:])["tests"] if done.returncode == 0 and found >= 0 else []
        self.numbers = {test["name"]: number for number, test in enumerate(tests, 1)}
        self.programs = {test["name"] for test in tests if any(word.startswith("--name=") for word in test.get("command", ()))}

    def read_run(self, log, junit, counts):
        output = {}
        if junit.exists():
            for case in xml.parse(junit).getroot().iter("testcase"):
                output[case.get("name")] = case.findtext("system-out") or ""
        text = counts.read_text(encoding="utf-8") if counts.exists() else ""
        return Run(log, output, Counts(text), self)

    def run_again(self, name):
        junit, counts = self.folder / "again.junit.xml", self.folder / "again.counts"
        for file in (junit, counts):
            file.unlink(missing_ok=True)
        done = subprocess.run([*self.command, "--tests-regex", f"^{re.escape(name)}$", "--output-on-failure", "--parallel", "1",
                               "--output-junit", str(junit.resolve()), "--test-output-size-failed", str(OUTPUT_MOST)],
                              env={**os.environ, "RAMIE_TEST_COUNTS": str(counts.resolve())},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        return self.read_run(done.stdout, junit, counts)


def complaints(run, status):
    """What is wrong with the run as a whole; it may not have come to its end."""
    if status not in (0, 8):
        yield f"it ended with status {status}"
    if set(run.words) != set(run.output):
        lacking = sorted(set(run.words) ^ set(run.output))
        yield f"its log and its results are not of the same tests: {', '.join(lacking[:5])}"
    if status == 8 and not run.bad():
        yield "it ended with status 8, though no test failed"


def listed_in(path):
    """The names in the first column of the table."""
    if not path.exists():
        return set()
    return set(re.findall(r"^\| *`([^`]+)`", path.read_text(encoding="utf-8"), re.MULTILINE))


def judge(run, suite, listed, remembered):
    """Of each test that failed: (name, kind, sentence), where kind is "report", "failed" or "flaky"."""
    verdicts, doubtful = [], []
    for name in run.bad():
        certain, what = run.classify(name) if run.words[name] != "Passed" else (True, "it ended with 0 amid its cases")
        if certain:
            verdicts.append((name, "report", what))
        else:
            doubtful.append((name, what))
    if len(doubtful) > TRIED_AGAIN_MOST:
        return verdicts + [(name, "failed", f"{what}; not tried again, as {len(doubtful)} tests failed so")
                           for name, what in doubtful]
    return verdicts + [(name, *try_again(name, what, run, suite, listed, remembered)) for name, what in doubtful]


def try_again(name, what, run, suite, listed, remembered):
    skipped_before = run.counts.sums.get(name, (0, 0, 0))[2]
    for attempt in ("alone", "alone a second time"):
        second = suite.run_again(name)
        word = second.words.get(name)
        if word in (None, "Skipped") or second.counts.sums.get(name, (0, 0, 0))[2] > skipped_before:
            return "failed", f"{what}; {attempt} it did not run"
        if name in second.bad():
            certain, reason = second.classify(name) if word != "Passed" else (True, "it ended with 0 amid its cases")
            return ("report" if certain else "failed"), f"{what}; {attempt}, {reason}"
    if name in remembered and name not in listed:
        return "failed", f"{what}; passed twice alone, but was flaky in {remembered[name]}, too, and has no entry in tests/flaky.md"
    return "flaky", f"{what}; passed twice alone"


class Memory:
    """Which tests were flaky in earlier runs of all clones: lines of a name, a date and a commit."""

    def __init__(self, path, commit):
        self.path, self.commit, self.today = path, commit, datetime.date.today()
        self.lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def other_commits(self):
        """Of each name the commit where it was flaky last, runs of this commit left out: those could not list it."""
        oldest = (self.today - datetime.timedelta(days=REMEMBERED_DAYS)).isoformat()
        words = [line.split() for line in self.lines]
        return {name: commit for name, date, commit in words if date >= oldest and commit != self.commit}

    def add(self, names):
        if names:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{name} {self.today.isoformat()} {self.commit}\n" for name in names))


def write_down(run, verdicts, options, memory):
    """Appends those that passed alone to build/flaky.txt, with their output, and to the memory of all clones."""
    passed = [verdict for verdict in verdicts if "passed twice alone" in verdict[2]]
    if passed:
        with options.flaky.open("a", encoding="utf-8") as file:
            for name, kind, what in passed:
                file.write(f"{kind}: {name} ({options.preset}), {memory.today}, {memory.commit}: {what}\n{run.output.get(name, '')}\n\n")
    memory.add([name for name, _, _ in passed])


def commit_here():
    def git(*words):
        return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-changed" if git("status", "--porcelain") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", required=True)
    parser.add_argument("--status", type=int, required=True, help="of ctest")
    parser.add_argument("--log", type=Path, required=True, help="standard output of ctest")
    parser.add_argument("--junit", type=Path, required=True, help="what ctest wrote for --output-junit")
    parser.add_argument("--counts", type=Path, required=True, help="the file that RAMIE_TEST_COUNTS named; may be missing")
    parser.add_argument("--sums", type=Path, required=True, help="gets how many cases passed, failed, were skipped, in one line")
    parser.add_argument("--flaky", type=Path, required=True, help="gets the output of tests that are flaky")
    parser.add_argument("--listed", type=Path, required=True, help="the list of tests known to be flaky")
    parser.add_argument("--memory", type=Path, required=True, help="which tests were flaky in earlier runs, of all clones")
    parser.add_argument("again", nargs="+", help="ctest's command for one more run, without its choice of tests")
    options = parser.parse_args()

    suite = Suite(options.again, options.sums.parent)
    run = suite.read_run(options.log.read_text(encoding="utf-8", errors="replace"), options.junit, options.counts)
    memory = Memory(options.memory, commit_here())
    verdicts = judge(run, suite, listed_in(options.listed), memory.other_commits())
    write_down(run, verdicts, options, memory)
    for name, kind, what in verdicts:
        seed = SEED.search(run.output.get(name, ""))
        print(f"{kind}: {name} ({options.preset}): {what}" + (f"; seed {seed[1]}" if seed else ""))
    sums = run.count({name for name, kind, _ in verdicts if kind == "flaky"})
    for what in complaints(run, options.status):
        print(f"failed: ctest ({options.preset}): {what}")
        sums[1] += 1
    options.sums.write_text(" ".join(map(str, sums)) + "\n", encoding="utf-8")
    return 1 if sums[1] else 0


if __name__ == "__main__":
    sys.exit(main())
