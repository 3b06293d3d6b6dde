#!/usr/bin/env python3
"""Compiles and runs the code of the documents: README.md, CONTRIBUTING.md, docs/**/*.md. Exits with 1 if any is wrong.

What a fenced block is, its first line says:

    ```cpp                with a main(): a program. It has to compile, and to return 0.
    ```cpp                without: statements of a function that runs as a fiber, after `#include <ramie/ramie.hpp>`, `<ramie/net.hpp>`,
                          a few headers of the standard library and `using namespace std::chrono_literals`.
    ```cpp declarations   stands before such a function, and is known to all later blocks of the document.
    ```cpp part=FILE      these lines stand in that file just so, but for their indentation. (The file is compiled elsewhere.)
    ```cpp not-run        a program that is only compiled, because it ends badly on purpose.
    ```cpp foreign        C++ that is not for ramie: not looked at.
    ```text output        what the block of C++ before it prints.
    ```sh                 what it calls of ./run has to exist.

Blocks of other languages are not looked at; a block without a language is an error. Code that a reader need not see:

    <!-- cpp              statements in front of the next block
    <!-- cpp declarations

each up to a line with nothing but `-->`.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = {"cpp", "text", "sh", "cmake", "ini", "json", "python", "go", "erlang", "c"}
FLAGS = ["-std=c++20", "-O0", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter"]
SECONDS_MAX = 600  # for one program; it only catches what hangs
STANDARD_HEADERS = [
    "algorithm", "array", "atomic", "cerrno", "chrono", "csignal", "cstdint", "cstdio", "functional", "memory", "mutex", "numeric",
    "optional", "shared_mutex", "span", "stdexcept", "stop_token", "string", "thread", "utility", "variant", "vector", "unistd.h",
]  # fmt: skip
PREAMBLE = "".join(f"#include <{name}>\n" for name in [*STANDARD_HEADERS, "ramie/ramie.hpp", "ramie/net.hpp"])
WORTH_IT = [f"#include <ramie/{name}.hpp>\n#include <ramie/ramie.hpp>\n" for name in ("net", "parallel")]
MARK = "=== block at line "


@dataclass
class Block:
    line: int  # of its first line of text
    words: list  # what stands behind the fence
    text: list  # lines
    hidden: bool = False


class Wrong(Exception):
    """A complaint about a document: (line, message)."""


def blocks_of(text):
    """The fenced blocks and hidden code of a document, in order."""
    found, open_block, end = [], None, None
    for number, line in enumerate(text.splitlines(), 1):
        if open_block is not None:
            if line.strip() == end:
                found.append(open_block)
                open_block = None
            else:
                open_block.text.append(line)
        elif line.startswith("```"):
            open_block, end = Block(number + 1, line[3:].split(), []), "```"
        elif re.fullmatch(r"<!-- cpp( declarations)?", line):
            open_block, end = Block(number + 1, line[5:].split(), [], hidden=True), "-->"
    if open_block is not None:
        raise Wrong(open_block.line - 1, "this block never ends")
    return found


def check_part(root, block, file):
    """The block's lines have to stand together in the file."""
    if not (root / file).is_file():
        raise Wrong(block.line, f"there is no {file}")
    have = [line.strip() for line in (root / file).read_text(encoding="utf-8").splitlines()]
    want = [line.strip() for line in block.text]
    if not any(have[i : i + len(want)] == want for i in range(len(have) - len(want) + 1)):
        raise Wrong(block.line, f"these lines do not stand in {file}")


def check_shell(root, block):
    known = set(re.findall(r"^  ([a-z]+) ", (root / "run").read_text(encoding="utf-8"), re.MULTILINE))
    for offset, line in enumerate(block.text):
        for command in re.findall(r"\./run ([a-z]+)", line):
            if command not in known:
                raise Wrong(block.line + offset, f"./run has no command '{command}'")


class Document:
    """What of a document is to be compiled: a program for each main(), and one for all other blocks."""

    def __init__(self, root, name):
        self.root, self.name = root, name
        self.programs = []  # (line, source, expected output or None, is it run?)
        self.declarations, self.functions, self.expected = [], [], {}
        self.read()

    def read(self):
        before, last = [], None  # hidden statements; where the output of the block before would go
        for block in blocks_of((self.root / self.name).read_text(encoding="utf-8")):
            kind, words = (block.words or [""])[0], block.words[1:]
            if kind not in LANGUAGES:
                raise Wrong(block.line, f"say after ``` what this is: {', '.join(sorted(LANGUAGES))}")
            if kind == "sh":
                check_shell(self.root, block)
            elif kind == "text" and "output" in words:
                if last is None:
                    raise Wrong(block.line, "the output of what?")
                last("\n".join(block.text) + "\n")
            if kind != "cpp" or "foreign" in words:
                continue
            last = None
            text = f'#line {block.line} "{self.name}"\n' + "\n".join(block.text) + "\n"
            parts = [word[5:] for word in words if word.startswith("part=")]
            if parts:
                check_part(self.root, block, parts[0])
            elif "declarations" in words:
                self.declarations.append(text)
            elif block.hidden:
                before.append(text)
            elif any(re.search(r"\bint main\(", line) for line in block.text):
                last = self.add_program(block.line, text, "not-run" not in words)
            else:
                last = self.add_function(block.line, "".join(before) + text)
                before = []

    def add_program(self, line, source, is_run):
        at = len(self.programs)
        self.programs.append((line, source, None, is_run))

        def expect(text):
            self.programs[at] = (line, source, text, is_run)

        return expect

    def add_function(self, line, body):
        # What was declared so far stands before it; later declarations come later.
        self.declarations.append(f"void block_{line}() {{\n{body}}}\n")
        self.functions.append(line)

        def expect(text):
            self.expected[line] = text

        return expect

    def sources(self):
        """(line, source, expected output by line, is it run?) of each program."""
        for line, source, expected, is_run in self.programs:
            yield line, source, {} if expected is None else {line: expected}, is_run
        if self.functions or self.declarations:
            lines = ["using namespace std::chrono_literals;", "namespace {", *self.declarations, "}", '#line 1 "main"', "int main() { return ramie::run([] {"]
            lines += [f'  std::printf("{MARK}{n}\\n"); block_{n}();' for n in self.functions]
            yield 1, PREAMBLE + "\n".join(lines + ["}); }", ""]), self.expected, True


def precompile(options, headers):
    """Half of the time to compile statements, and most of that for a program, goes into these headers: compiles them once."""
    file = options.folder / f"precompiled_{len(options.precompiled)}.hpp"
    file.write_text(headers, encoding="utf-8")
    command = [options.compiler, *FLAGS, "-I", str(options.root), "-x", "c++-header", str(file), "-o", f"{file}.gch"]
    subprocess.run(command, capture_output=True, check=False)  # who needs it will say what is wrong
    options.precompiled[headers] = file


def precompiled_of(source):
    """What a program includes that is worth it. No other header, or it would not be noticed that it is missing."""
    return next((headers for headers in (PREAMBLE, *WORTH_IT) if headers in source), None)


def complaints_of(options, name, line, source, expected, is_run):
    """Compiles and runs one program."""
    with tempfile.TemporaryDirectory() as folder:
        file, program = Path(folder) / "document.cpp", Path(folder) / "document"
        command = [options.compiler, *FLAGS, "-I", str(options.root)]
        if (headers := precompiled_of(source)) in options.precompiled:
            command += ["-include", str(options.precompiled[headers])]  # before it is included once more, which costs nothing
        file.write_text(source, encoding="utf-8")
        command += [str(file), str(options.library)]
        command += [f"-Wl,-rpath,{options.library.parent}", "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [text for text in done.stderr.splitlines() if "error" in text or "undefined" in text]
            return [f"{name}:{line}: does not compile:", *(errors[:8] or done.stderr.splitlines()[:8])]
        if not is_run:
            return []
        try:
            ran = subprocess.run([program], cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return [f"{name}:{line}: has not ended after {SECONDS_MAX} s"]
    printed = {line: ran.stdout}
    if MARK in source:
        pieces = re.split(re.escape(MARK) + r"(\d+)\n", ran.stdout)
        printed = {int(n): text for n, text in zip(pieces[1::2], pieces[2::2])}
        line = max(printed, default=line)
    if ran.returncode != 0:
        return [f"{name}:{line}: ended with {ran.returncode}: {ran.stderr.strip()}"]
    return [
        f"{name}:{at}: prints\n{printed.get(at, '')}and not\n{text}"
        for at, text in expected.items()
        if printed.get(at, "") != text
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--library", type=Path, help="libramie; build/release/libramie.a unless told otherwise")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("documents", nargs="*", help="names relative to the root; all of them if none is given")
    options = parser.parse_args()
    options.library = (options.library or options.root / "build" / "release" / "libramie.a").resolve()

    names = options.documents or [n for n in ("README.md", "CONTRIBUTING.md") if (options.root / n).is_file()]
    if not options.documents:
        names += sorted(p.relative_to(options.root).as_posix() for p in (options.root / "docs").rglob("*.md"))
    complaints, jobs = [], []
    for name in names:
        try:
            jobs += [(options, name, *program) for program in Document(options.root, name).sources()]
        except Wrong as wrong:
            complaints.append(f"{name}:{wrong.args[0]}: {wrong.args[1]}")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        options.folder, options.precompiled = Path(folder), {}
        wanted = Counter(precompiled_of(source) for _, _, _, source, _, _ in jobs)
        for headers in (headers for headers in wanted if headers is not None and wanted[headers] > 1):
            precompile(options, headers)
        for found in pool.map(lambda job: complaints_of(*job), jobs):
            complaints += found
    for text in complaints:
        print(text)
    print(f"{len(names)} documents, {len(jobs)} programs, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
