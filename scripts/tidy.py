#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a compilation database, but for those that were found clean as they are now.

What clang-tidy says depends on the program itself, .clang-tidy, the compiler's arguments, and every file that the source
includes, comments and all. A hash of these, as the name of an empty file, is kept for each source in which nothing was found:
$XDG_CACHE_HOME/ramie/tidy, else ~/.cache/ramie/tidy. A source with findings is looked at again each time. The compiler says
which files a source includes, as they may have changed: 0.1 s for each, where clang-tidy takes 5 s.

Most of these 5 s go to headers, so up to eight sources of a target are looked at as one: a file that includes them. If anything
is found there, or they cannot be compiled together, each is looked at alone.

Arguments name the project's folder by its place, so clones of it share what they know. With --minutes, no source is begun
later than that; those left are counted, and do not make it fail: the next run begins where this one ended. With
--changed-since COMMIT, only sources that differ from that commit are looked at, and for each header that differs one source
that includes it.

Prints what is found, once where several sources include the header that it is in, and exits with 1 if there is any.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Tests are left out: GoogleTest's macros break half of the rules. What they run beside themselves is not.
SOURCES = re.compile(r"^(ramie|components|lab|examples|tests)/(?!.*\.test\.cpp$).*\.cpp$")
FINDING = re.compile(r"^\S.*:\d+:\d+: (error|warning): ")
# Two unnamed namespaces of a target may have the same name, so not all of it; the library is compiled in as many at a time.
UNIT_SIZE = 8
# What has not been of use for so long is of an old commit.
KEPT_DAYS = 60


class Source:
    """One source: its name relative to the project, its folder to compile in, and the arguments of its compiler."""

    def __init__(self, root, entry):
        self.folder = entry["directory"]
        self.path = os.path.normpath(os.path.join(self.folder, entry["file"]))
        self.name = os.path.relpath(self.path, root)
        words = entry.get("arguments") or shlex.split(entry["command"])
        self.compiler = words[0]
        # Without what says which file to compile into which.
        self.arguments = [word for before, word in zip(words, words[1:])
                          if word not in ("-c", "-o", entry["file"]) and before != "-o"]
        output = next((word for before, word in zip(words, words[1:]) if before == "-o"), "")
        self.target = output.partition(".dir/")[0]

    def list_includes(self):
        """All files that it consists of, itself included; None where the compiler cannot say."""
        command = [self.compiler, *self.arguments, "-M", "-MT", "_", self.path]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        rule = done.stdout.replace("\\\n", " ").removeprefix("_:")
        return [name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", rule)]


def sources_of(root, build):
    """The sources to check, each as the first entry has it: the others compile them for tests."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        source = Source(root, entry)
        if SOURCES.match(source.name):
            found.setdefault(source.name, source)
    # The library first: if time is short, it is worth more.
    return sorted(found.values(), key=lambda source: (not source.name.startswith("ramie/"), source.name))


def changed_since(commit, root, sources):
    """Those of them that differ from that commit, and one for each header that does and that none of these includes; all of
    them if what is looked for differs."""
    def names(*command):
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=True)
        return set(done.stdout.splitlines())

    changed = names("diff", "--name-only", commit) | names("ls-files", "--others", "--exclude-standard")
    if any(Path(name).name == ".clang-tidy" for name in changed):
        return sources
    chosen = [source for source in sources if source.name in changed]
    headers = {name for name in changed if name.endswith(".hpp") and (root / name).exists()}
    # The source beside a header is the likeliest to include it.
    others = sorted((source for source in sources if source.name not in changed),
                    key=lambda source: source.name.removesuffix(".cpp") + ".hpp" not in headers)
    for source in [*chosen, *others]:
        if not headers:
            break
        included = {os.path.relpath(os.path.join(source.folder, name), root) for name in source.list_includes() or ()}
        if source not in chosen and headers & included:
            chosen.append(source)
        headers -= included
    return chosen


class Hashes:
    """Of the contents of files, each read once."""

    def __init__(self):
        self.known_ = {}

    def of(self, path):
        path = os.path.normpath(path)
        if path not in self.known_:
            self.known_[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return self.known_[path]


class Check:
    def __init__(self, options):
        self.root = Path(options.root).resolve()
        self.build = Path(options.build).resolve()
        self.program = options.program
        self.cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ramie" / "tidy"
        self.stop_at = None if options.minutes is None else time.monotonic() + options.minutes * 60
        self.hashes = Hashes()
        self.lock = threading.Lock()
        self.said = set()
        self.known, self.clean, self.bad, self.left = [], [], [], []
        version = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout
        # The processor of the machine, which some versions name, makes no difference.
        version = "".join(line for line in version.splitlines(True) if "CPU" not in line)
        self.version = version

    def key(self, source):
        """What is in the cache if the source is clean; None where that cannot be known."""
        names = source.list_includes()
        if names is None:
            return None
        lines = [self.version, shlex.join([source.compiler, *source.arguments])]
        # A folder may have more to say than those around it.
        for folder in Path(source.name).parents:
            configuration = self.root / folder / ".clang-tidy"
            if configuration.is_file():
                lines.append(f"{folder} {self.hashes.of(configuration)}")
        lines += [f"{name} {self.hashes.of(os.path.join(source.folder, name))}" for name in names]
        text = "\n".join(lines).replace(str(self.root), ".")  # also in -I<root>
        return hashlib.sha256(text.encode()).hexdigest()

    def is_known(self, source):
        source.key = self.key(source)
        if not source.key or not (self.cache / source.key).exists():
            return False
        (self.cache / source.key).touch()
        self.known.append(source.name)
        return True

    def run(self, unit):
        if self.stop_at is not None and time.monotonic() >= self.stop_at:
            self.left += [source.name for source in unit]
        elif len(unit) > 1 and self.is_clean_together(unit):
            for source in unit:
                self.note_clean(source)
        else:
            for source in unit:
                self.run_alone(source)

    def is_clean_together(self, unit):
        with tempfile.TemporaryDirectory(dir=self.build) as folder:  # where .clang-tidy holds
            file = Path(folder) / "unit.cpp"
            file.write_text("".join(f'#include "{source.path}"  // NOLINT\n' for source in unit), encoding="utf-8")
            # Here they are headers, which are looked at only if the filter says so.
            done = self.ask(unit[0], str(file), f"--header-filter=^{re.escape(str(self.root))}/")
        return done.returncode == 0 and not self.findings(done.stdout)

    def ask(self, source, path, *more):
        # By itself it would look into the database, and check a source as each of its entries has it.
        command = [self.program, "--quiet", *more, path, "--", *source.arguments]
        return subprocess.run(command, cwd=source.folder, capture_output=True, text=True, check=False)

    def note_clean(self, source):
        self.clean.append(source.name)
        if source.key:
            (self.cache / source.key).touch()

    def run_alone(self, source):
        done = self.ask(source, source.path)
        findings = self.findings(done.stdout)
        if done.returncode == 0 and not findings:
            self.note_clean(source)
            return
        with self.lock:
            self.bad.append(source.name)
            if not findings:
                print(f"{source.name}: {self.program} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
            for first, text in findings:
                if first not in self.said:
                    self.said.add(first)
                    print(text)
            sys.stdout.flush()

    def findings(self, output):
        """Pairs: the first line of a finding, which is the same wherever it is found, and all of its lines."""
        found = []
        for line in output.replace(str(self.root) + "/", "").splitlines():
            if FINDING.match(line):
                found.append([line, line])
            elif found:
                found[-1][1] += "\n" + line
        return found

    def forget_old(self):
        oldest = time.time() - KEPT_DAYS * 24 * 3600
        for path in self.cache.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def units_of(root, sources):
    """Those that can be looked at as one, in the order of their first."""
    units, open_units = [], {}
    for source in sources:
        own_rules = any((root / folder / ".clang-tidy").is_file() for folder in list(Path(source.name).parents)[:-1])
        alike = source.name if own_rules else (source.folder, source.target, *source.arguments)
        if len(open_units.get(alike, ())) % UNIT_SIZE == 0:
            open_units[alike] = []
            units.append(open_units[alike])
        open_units[alike].append(source)
    return units


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=Path(__file__).resolve().parents[1], help="the project's folder")
    parser.add_argument("--build", required=True, help="the folder with compile_commands.json")
    parser.add_argument("--program", default="clang-tidy", help="clang-tidy, or what it is called here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many sources at once")
    parser.add_argument("--minutes", type=float, help="begin none later than that")
    parser.add_argument("--changed-since", metavar="COMMIT", help="only what differs from it")
    return parser.parse_args()


def main():
    options = parse()
    check = Check(options)
    check.cache.mkdir(parents=True, exist_ok=True)
    sources = sources_of(check.root, check.build)
    if not sources:
        print(f"{options.build}/compile_commands.json names no source that is to be checked")
        return 1
    if options.changed_since:
        sources = changed_since(options.changed_since, check.root, sources)
    with ThreadPoolExecutor(options.jobs) as pool:
        known = list(pool.map(check.is_known, sources))
        # To ask for the results is to hear of exceptions.
        for _ in pool.map(check.run, units_of(check.root, [source for source, is_known in zip(sources, known) if not is_known])):
            pass
    check.forget_old()
    print(f"{len(sources)} sources: {len(check.known)} known to be clean, {len(check.clean)} found clean, {len(check.bad)} with findings"
          + (f", {len(check.left)} left for want of time" if check.left else ""))
    return 1 if check.bad else 0


if __name__ == "__main__":
    sys.exit(main())
