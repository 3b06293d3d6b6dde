"""The worst path through a call graph.

Functions that call each other in a circle are one knot: it counts with the frames of all of them, times a number of turns (1
by default), which is at least what any path through it takes in that many turns. Knots form no circles, so the worst path
over them is found from the bottom up.
"""

import re
from dataclasses import dataclass, field

from stack.callgraph import INDIRECT


@dataclass
class Options:
    turns: list = field(default_factory=list)  # [(pattern, how often a circle with such a function is taken)]
    calls: list = field(default_factory=list)  # [(pattern, pattern)]: indirect calls of these go to those
    without: list = field(default_factory=list)  # patterns: never called


@dataclass
class Step:
    title: str
    name: str
    place: str
    size: int
    kind: str = ""  # "", "external", "unknown", "indirect", "recursion"


@dataclass
class Worst:
    entry: object
    size: int
    path: list
    recursions: list  # [(names, bytes a turn, turns)]
    indirect: list  # names of functions on any path with an unknown callee
    unknown: list  # symbols on any path that are in no table
    unbounded: list  # names


def matches(pattern, function):
    return re.search(pattern, function.name) or re.search(pattern, function.title)


class Analysis:
    def __init__(self, graph, known, options=None):
        self.functions, self.known, self.options = graph.functions, known, options or Options()
        self.targets = {}
        for function in self.functions.values():
            self.targets[function.title] = sorted(t for t in self.resolved(function) if not self.is_left_out(t))
        self.knots = None  # lists of titles, callees first
        self.knot_of = {}
        self.best = []  # of each knot: (bytes from here down, the next knot or None)

    def is_left_out(self, title):
        function = self.functions.get(title)
        return function is not None and any(matches(p, function) for p in self.options.without)

    def resolved(self, function):
        calls = set(function.calls)
        for source, target in self.options.calls:
            if INDIRECT in function.calls and matches(source, function):
                calls.discard(INDIRECT)
                calls |= {f.title for f in self.functions.values() if f.known and matches(target, f)}
        return calls

    def find(self, pattern):
        """The matching functions with a frame, by name."""
        found = [f for f in self.functions.values() if f.known and matches(pattern, f)]
        return sorted(found, key=lambda f: f.name)

    def own_bytes(self, title):
        """(bytes, kind)"""
        if title == INDIRECT:
            return self.known.indirect_bytes, "indirect"
        function = self.functions.get(title)
        if function is not None and function.known:
            return function.frame, ""
        size, listed = self.known.bytes_of(title.rpartition(":")[2])
        return size, "external" if listed else "unknown"

    def tie_knots(self):
        """Tarjan's algorithm without recursion; returns the knots, callees before callers."""
        index, low, waiting, on_stack, self.knots = {}, {}, [], set(), []
        for root in self.targets:
            if root in index:
                continue
            work = [(root, iter(self.targets[root]))]
            index[root] = low[root] = len(index)
            waiting.append(root)
            on_stack.add(root)
            while work:
                title, rest = work[-1]
                for target in rest:
                    if target not in index:
                        index[target] = low[target] = len(index)
                        waiting.append(target)
                        on_stack.add(target)
                        work.append((target, iter(self.targets.get(target, ()))))
                        break
                    if target in on_stack:
                        low[title] = min(low[title], index[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[title])
                    if low[title] == index[title]:
                        knot = []
                        while not knot or knot[-1] != title:
                            knot.append(waiting.pop())
                            on_stack.discard(knot[-1])
                            self.knot_of[knot[-1]] = len(self.knots)
                        self.knots.append(knot)

    def is_circle(self, knot):
        return len(knot) > 1 or knot[0] in self.targets.get(knot[0], ())

    def turns_of(self, knot):
        named = [self.functions[title] for title in knot if title in self.functions]
        return max([times for pattern, times in self.options.turns if any(matches(pattern, f) for f in named)], default=1)

    def measure(self):
        if self.knots is not None:
            return
        self.tie_knots()
        for number, knot in enumerate(self.knots):
            own = sum(self.own_bytes(title)[0] for title in knot)
            if self.is_circle(knot):
                own *= self.turns_of(knot)
            below, following = 0, None
            for title in knot:
                for target in self.targets.get(title, ()):
                    other = self.knot_of[target]
                    if other != number and self.best[other][0] > below:
                        below, following = self.best[other][0], other
            self.best.append((own + below, following))

    def reachable(self, entry):
        seen, left = {entry}, [entry]
        while left:
            for target in self.targets.get(left.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    left.append(target)
        return seen

    def name_of(self, title):
        return self.functions[title].name if title in self.functions and self.functions[title].name else title

    def step(self, knot):
        if self.is_circle(knot):
            names = ", ".join(sorted(self.name_of(title) for title in knot))
            size = sum(self.own_bytes(title)[0] for title in knot) * self.turns_of(knot)
            return Step(knot[0], names, "", size, "recursion")
        title = knot[0]
        size, kind = self.own_bytes(title)
        place = self.functions[title].place if title in self.functions else ""
        return Step(title, "a call through a pointer" if title == INDIRECT else self.name_of(title), place, size, kind)

    def worst(self, function):
        self.measure()
        path, at = [], self.knot_of[function.title]
        while at is not None:
            path.append(self.step(self.knots[at]))
            at = self.best[at][1]
        below = self.reachable(function.title)
        circles = [self.knots[number] for number in sorted({self.knot_of[title] for title in below})
                   if self.is_circle(self.knots[number])]
        return Worst(
            entry=function,
            size=self.best[self.knot_of[function.title]][0],
            path=path,
            recursions=[(sorted(self.name_of(t) for t in knot), sum(self.own_bytes(t)[0] for t in knot), self.turns_of(knot))
                        for knot in circles],
            indirect=sorted({self.name_of(t) for t in below if INDIRECT in self.targets.get(t, ())}),
            unknown=sorted({t for t in below if self.own_bytes(t)[1] == "unknown"}),
            unbounded=sorted({self.name_of(t) for t in below if t in self.functions and self.functions[t].unbounded}),
        )
