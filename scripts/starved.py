#!/usr/bin/env python3
"""Runs tests on a machine that is too busy for them, to find those that take a slow machine for a bug.

Each test of the library runs twice: beside busy loops, eight of them for two processors; and while a stopper sends SIGSTOP to
the test's processes, one at a time, and SIGCONT up to three seconds later. When it does so, and for how long, follows from one
number, which is printed first; what then happens in the test does not. A test that fails is to be changed: it waits for a state
or a count, or compares with what it has measured in the same run. The output is in build/starved.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST_STOP_S = 3.0
# Of its time a test is stopped for half: stops of 1.5 s on average, with as much between them.
LONGEST_PAUSE_S = 3.0
# Only ends hangs. What needs a minute at most takes ten times as long with a tenth of the machine.
LIMIT_S = 1800


def tests_of(build, label, pattern):
    """name, command, environment, folder of each test with this label."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "--label-regex", f"^{label}$", *pattern],
                             check=True, capture_output=True, text=True).stdout
    for test in json.loads(listing)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        yield test["name"], test["command"], environment, properties.get("WORKING_DIRECTORY", build)


def processes_of(session):
    """All that the test has started, and itself."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                after_name = pathlib.Path(entry.path, "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(after_name[3]) == session and after_name[0] != "Z":
                found.append(int(entry.name))
    return sorted(found)


def stop_now_and_then(process, choices, end):
    """Until the test has ended."""
    while process.poll() is None and time.monotonic() < end:
        time.sleep(choices.uniform(0, LONGEST_PAUSE_S))
        victims = processes_of(process.pid)
        length = choices.uniform(0, LONGEST_STOP_S)
        if not victims:
            continue
        victim = choices.choice(victims)
        try:
            os.kill(victim, signal.SIGSTOP)
            time.sleep(length)
            os.kill(victim, signal.SIGCONT)
        except ProcessLookupError:
            pass


def run(test, seed, folder):
    """Whether it passed. With a seed it is stopped now and then."""
    name, command, environment, place = test
    log = folder / f"{name}.{'stopped' if seed else 'hogs'}.log"
    end = time.monotonic() + LIMIT_S
    with log.open("wb") as output, subprocess.Popen(command, cwd=place, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                                    stdout=output, stderr=subprocess.STDOUT, start_new_session=True) as process:
        if seed:
            stop_now_and_then(process, random.Random(f"{seed} {name}"), end)
        try:
            status = process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = None
            output.write(f"\nstarved: killed after {LIMIT_S} s\n".encode())
        for left in processes_of(process.pid):
            os.kill(left, signal.SIGKILL)
        process.wait()
    if status in (0, 77):
        log.unlink()
        return True
    return False


def main():
    parser = argparse.ArgumentParser(prog="./run check starved", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31),
                        help="what the stops follow from (default: a fresh one)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="default: the release build")
    parser.add_argument("--label", default="floor", help="of the tests (default: %(default)s)")
    parser.add_argument("-R", dest="pattern", help="only tests whose name matches, as ctest's")
    parser.add_argument("--only", choices=["hogs", "stops"], help="one of the two")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("RAMIE_JOBS", os.cpu_count() or 1)))
    options = parser.parse_args()

    folder = ROOT / "build" / "starved"
    folder.mkdir(parents=True, exist_ok=True)
    tests = list(tests_of(options.build, options.label, ["-R", options.pattern] if options.pattern else []))
    print(f"starved: --seed {options.seed}", flush=True)
    counts = {True: 0, False: 0}
    for way, seed, at_once in (("hogs", None, options.jobs), ("stops", options.seed, 4 * options.jobs)):
        if options.only not in (None, way):
            continue
        hogs = []
        if way == "hogs":
            # Each of its own session: the kernel shares out a processor among sessions first.
            hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
                    for _ in range(4 * options.jobs)]
        try:
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                for test, passed in zip(tests, pool.map(lambda t, s=seed: run(t, s, folder), tests)):
                    counts[passed] += 1
                    if not passed:
                        print(f"starved: {test[0]} fails, {way}: see build/starved", flush=True)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
