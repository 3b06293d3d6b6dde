"""Mistakes of one line, for mutants.py: what they are, and programs that have one.

Only what a mistake changes is compiled, beside the release build and as that was: the source itself, or those that include
the header (of headers that many include: the test's own source, and those of the header's folder). The objects stand before
the library when the program is linked, so that the linker takes none of the library's in their place.
"""

import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import threading

# A header's mistake is compiled into so many objects of the library at most; where more include it, into those of its folder.
INCLUDED_MOST = 10


def line_mutants(root, folders):
    """(place, what, edit): the edit is a path, the first line, how many, and the new ones."""
    found = []
    for path in sorted((root / "ramie").glob("*/*.[ch]pp")):
        if path.name.endswith((".test.cpp", "testing.hpp")) or path.parent.name not in folders or path.parent.name == "base":
            continue
        lines = path.read_text().splitlines()
        relative = path.relative_to(root)
        if not any(re.search(r"atomic<|spin_lock|adaptive_lock|memory_order|wait_list|guard\{", line) for line in lines):
            continue

        def add(i, what, new, count=1, relative=relative):
            found.append((f"{relative}:{i + 1}", what, (relative, i, count, new)))

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


class Build:
    """How the release build compiles and links, and what includes what."""

    def __init__(self, root, folder):
        self.root = root
        self.folder = folder
        self.lock_ = threading.Lock()
        self.links_ = {}
        self.compiles_ = {}
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            words = [w for w in shlex.split(entry["command"]) if w != "-Werror"]
            if words[0].endswith("ccache"):
                words = words[1:]
            if "-Winvalid-pch" in words:  # the precompiled headers do not have the mistake
                del words[words.index("-include"):words.index("-include") + 2]
            self.compiles_[words[words.index("-o") + 1]] = (words, entry["file"])
        self.includers_ = collections.defaultdict(set)
        listed = subprocess.run(["ninja", "-C", folder, "-t", "deps"], check=True, capture_output=True, text=True).stdout
        made = None
        for line in listed.splitlines():
            if ": #deps" in line:
                made = line.split(":")[0]
            elif line.strip():
                path = pathlib.Path(folder, line.strip()).resolve()
                if path.is_relative_to(root):
                    self.includers_[str(path.relative_to(root))].add(made)

    def is_made_of(self, made, source):
        """Of this source alone, or of several, as cmake/merge_tests.cmake writes them."""
        path = pathlib.Path(self.compiles_[made][1])
        return path == self.root / source or (path.is_relative_to(self.folder) and f'"{source}"' in path.read_text())

    def link_of(self, program):
        with self.lock_:
            if program not in self.links_:
                told = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", program], check=True, capture_output=True,
                                      text=True).stdout.splitlines()
                words = [w for w in shlex.split(told[-1]) if w not in (":", "&&")]
                self.links_[program] = words[1:] if words[0].endswith("ccache") else words
            return self.links_[program]


class Unbuildable(Exception):
    """The compiler found it."""


class Mutated:
    """The programs with one mistake. `edit` is as line_mutants has it."""

    def __init__(self, build, edit):
        self.build_ = build
        self.path_, first, count, new = edit
        self.place_ = pathlib.Path(tempfile.mkdtemp(prefix="ramie-mutant-"))
        self.objects_ = {}
        copy = self.place_ / "include" / self.path_
        copy.parent.mkdir(parents=True)
        lines = (build.root / self.path_).read_text().splitlines()
        lines[first:first + count] = new or [""]
        copy.write_text("\n".join(lines) + "\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place_, ignore_errors=True)

    def compile_(self, made):
        if made in self.objects_:
            return self.objects_[made]
        words, source = self.build_.compiles_[made]
        words = list(words)
        result = self.place_ / f"{len(self.objects_)}.o"
        words[words.index("-o") + 1] = str(result)
        include = self.place_ / "include"
        original = str(self.build_.root / self.path_)
        if source == original:
            words[words.index(source)] = str(include / self.path_)
        elif pathlib.Path(source).is_relative_to(self.build_.folder):  # made by the build, of several: they are named there
            several = self.place_ / f"{len(self.objects_)}.cpp"
            several.write_text(pathlib.Path(source).read_text().replace(original, str(include / self.path_)))
            words[words.index(source)] = str(several)
        words.insert(1, f"-I{include}")
        if subprocess.run(words, cwd=self.build_.folder, check=False, capture_output=True).returncode != 0:
            raise Unbuildable
        self.objects_[made] = result
        return result

    def link(self, program, library):
        """The program `program`, which is linked with `library`, e.g. libramie.a of ramie. Raises Unbuildable."""
        words = list(self.build_.link_of(program))
        archive = next(i for i, w in enumerate(words) if w.endswith(f"lib{library}.a"))
        including = self.build_.includers_[str(self.path_)]
        inside = sorted(made for made in including if made.startswith(f"CMakeFiles/{library}.dir/"))
        if len(inside) > INCLUDED_MOST:
            inside = [made for made in inside if f"/{self.path_.parent}/" in made]
        own = [i for i, w in enumerate(words) if w in including]
        stem = self.path_.name.split(".")[0]
        if len(own) > 3:  # of a folder's tests: its own
            own = [i for i in own if self.build_.is_made_of(words[i], f"{self.path_.parent}/{stem}.test.cpp")]
        if not inside and not own:
            return None
        for i in own:
            words[i] = str(self.compile_(words[i]))
        words[archive:archive] = [str(self.compile_(made)) for made in inside]
        result = self.place_ / program
        words[words.index("-o") + 1] = str(result)
        if subprocess.run(words, cwd=self.build_.folder, check=False, capture_output=True).returncode != 0:
            raise Unbuildable
        return result
