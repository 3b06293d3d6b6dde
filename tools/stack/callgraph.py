"""Reads what gcc -fcallgraph-info=su writes: functions, their frames, calls.

Each translation unit has a file of its own, NAME.o's is NAME.ci. A function local to one has the file's name before its own; one
that is defined elsewhere appears as an ellipse without a frame. Frames contain the return address.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

INDIRECT = "__indirect_call"
NODE = re.compile(r'^node: \{ title: "(?P<title>[^"]*)" label: "(?P<label>[^"]*)"(?P<ellipse> shape : ellipse)?')
EDGE = re.compile(r'^edge: \{ sourcename: "(?P<source>[^"]*)" targetname: "(?P<target>[^"]*)"')
FRAME = re.compile(r"^(\d+) bytes \(([a-z,]+)\)$")


class CallgraphError(Exception):
    """Files that cannot be read."""


@dataclass
class Function:
    title: str  # the linker's name, after the file's name if it is local to a file
    name: str = ""  # the compiler's name
    place: str = ""
    frame: int = 0
    known: bool = False  # false: defined elsewhere, in a file without such a table
    unbounded: bool = False  # the frame grows by an amount known only at run time
    calls: set = field(default_factory=set)

    @property
    def symbol(self):
        return self.title.rpartition(":")[2]


class Callgraph:
    def __init__(self):
        self.functions = {}

    def at(self, title):
        return self.functions.setdefault(title, Function(title))

    def add_file(self, path):
        """A function that several files define is one function: the larger frame counts. Throws CallgraphError."""
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise CallgraphError(str(error)) from None
        if not text.startswith("graph:"):
            raise CallgraphError(f"{path}: is not by gcc's -fcallgraph-info")
        for line in text.splitlines():
            if found := NODE.match(line):
                self.add_node(found["title"], found["label"].split("\\n"), bool(found["ellipse"]))
            elif found := EDGE.match(line):
                self.at(found["source"]).calls.add(found["target"])

    def add_node(self, title, lines, elsewhere):
        function = self.at(title)
        if elsewhere and function.known:
            return
        if not function.known or not function.name:
            function.name = readable(lines[0]) if len(lines[0]) > 1 else function.symbol
            function.place = lines[1] if len(lines) > 1 else ""
        if elsewhere:
            return
        function.known = True
        for line in lines[2:]:
            if found := FRAME.match(line):
                function.frame = max(function.frame, int(found[1]))
                function.unbounded = function.unbounded or found[2] == "dynamic"

    def link(self):
        """Calls of one name for a constructor or destructor reach the other, if the compiler emitted only one of them."""
        others = {"C1E": "C2E", "D1E": "D2E", "C2E": "C1E", "D2E": "D1E"}
        for title in {title for function in self.functions.values() for title in function.calls}:
            self.at(title)
        for function in self.functions.values():
            if function.known or function.title == INDIRECT:
                continue
            names = [name.replace(one, other) for one, other in others.items() for name in (function.title, function.symbol)]
            twins = [twin for twin in map(self.functions.get, names) if twin and twin.known and twin is not function]
            if twins:
                function.known, function.frame, function.calls = True, 0, {twins[0].title}


    def name_broken_ones(self, demangle=None):
        """gcc cuts the beginning of long names; then the linker's name is better."""
        broken = [f for f in self.functions.values() if is_broken(f.name)]
        symbols = [re.sub(r"\.(constprop|isra|part|cold|lto_priv)\.?\d*", "", f.symbol) for f in broken]
        for function, name in zip(broken, (demangle or demangled)(symbols)):
            function.name = name


def is_broken(name):
    return not name or any(name.count(opening) != name.count(closing) for opening, closing in ("()", "[]", "{}"))


def demangled(symbols):
    """Unchanged if there is no c++filt."""
    if not symbols or not shutil.which("c++filt"):
        return symbols
    done = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=False)
    names = done.stdout.splitlines()
    return names if len(names) == len(symbols) else symbols


def readable(label):
    """ "void f(T) [with T = int]" is enough; what precedes a function's name is dropped."""
    return re.sub(r"^(static |constexpr |virtual |inline )+", "", label)


def ci_files(paths):
    """The files among `paths`, and those below its folders. Throws CallgraphError if there are none."""
    found = []
    for path in map(Path, paths):
        found += sorted(path.rglob("*.ci")) if path.is_dir() else [path]
    if not found:
        raise CallgraphError(f"there is no .ci file in {', '.join(map(str, paths))}: compile with -fcallgraph-info=su")
    return found


def read(paths):
    """Throws CallgraphError."""
    graph = Callgraph()
    for path in ci_files(paths):
        graph.add_file(path)
    graph.link()
    graph.name_broken_ones()
    return graph
