"""The opening of the page of ./run bench: a picture each of fibers, channels, actors and fork/join.

Bars of HTML, not a drawing: they use the available width, and stay readable on a phone. All four have one logarithmic
scale, on which a function call and a system thread are marked.
"""

import math
from dataclasses import dataclass

from compare import analysis
from compare.analysis import readable_bytes

from report import page
from report.page import text


@dataclass(frozen=True)
class Row:
    workload: str
    style: str
    text: str


@dataclass(frozen=True)
class Picture:
    title: str
    each: str  # what a bar measures
    rows: tuple


CALL = Row("yield", "plain", "a function call")
THREAD = Row("spawn", "thread", "start and join a thread of the system")
PICTURES = (
    Picture("Fibers", "one operation", (
        Row("yield", "fibers", "yield: switch to another fiber"),
        Row("spawn", "detached", "start a fiber that ends without waiting"),
        Row("spawn", "batch_join", "start a fiber and join it, 100 at a time"),
        Row("spawn", "join", "start a fiber and join it, one after the other"),
        Row("spawn", "park", "start a fiber that waits, wake it, let it end"),
        Row("mutex", "mutex", "lock and unlock a mutex that four fibers want"),
        Row("timers", "cancel", "start a timer and cancel it"))),
    Picture("Channels", "one message", (
        Row("stream", "buffered", "through a buffer of 128"),
        Row("stream", "unbuffered", "without a buffer"),
        Row("pingpong", "channel", "there and back, without a buffer"),
        Row("select", "buffered", "select among four channels with buffers"),
        Row("select", "unbuffered", "select among four channels without buffers"),
        Row("mpmc", "channel", "four senders, four receivers, buffer of 1,024"))),
    Picture("Actors", "one message", (
        Row("actors", "tell", "tell: send, and the handler's run"),
        Row("actors", "pingpong", "there and back between two actors"),
        Row("actors", "ask", "ask: a request and its reply"),
        Row("mixed", "actor", "20 rings of 50 actors"),
        Row("actors", "spawn", "start an actor, stop it, join it"))),
    Picture("Fork and join", "one fork, or one node of a tree", (
        Row("fib", "fork_join", "Fibonacci numbers by fork_join"),
        Row("sum", "fork_join", "sum of a range by fork_join"),
        Row("skynet", "fork_join", "tree with ten children a node, by fork_join"),
        Row("skynet", "scope", "the same tree, a scope a node"),
        Row("skynet", "spawn", "the same tree, a fiber a node"),
        Row("skynet", "channel", "the same tree, a fiber and a channel a node"))),
)  # fmt: skip
TICKS = ((1e-1, "0.1 ns"), (1, "1 ns"), (10, "10 ns"), (100, "100 ns"), (1e3, "1 us"), (1e4, "10 us"), (1e5, "100 us"), (1e6, "1 ms"))


def time_text(ns):
    """With two or three significant digits."""
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if ns < 1000 * size:
            break
    value = ns / size
    return f"{value:.2f} {unit}" if value < 1 else f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"


def times_of(m, row):
    """{workers: median ns}; empty if it was not measured, or was wrong."""
    found = {}
    for case in m.cases:
        contestant = f"ramie/{row.style}"
        if case["workload"] != row.workload or contestant not in case["contestants"]:
            continue
        if values := m.samples(case, contestant, "ns_per_unit"):
            found.setdefault(case["workers"], analysis.median(values))
    return found


class Scale:
    """From ns to a share of the width."""

    def __init__(self, times):
        self.least = 10 ** math.floor(math.log10(min(times)))
        self.most = max(times) * 1.8

    def place(self, ns):
        return 100 * (math.log10(ns) - math.log10(self.least)) / (math.log10(self.most) - math.log10(self.least))

    def ticks(self):
        return [(self.place(ns), label) for ns, label in TICKS if self.least <= ns <= self.most * 0.75]


def grid(scale, marks):
    lines = "".join(f'<i style="left:{place:.1f}%"></i>' for place, _ in scale.ticks())
    return lines + "".join(f'<i class="{kind}" style="left:{scale.place(ns):.1f}%"></i>' for kind, ns in marks)


def bars(times, workers, scale):
    """One for each number of workers; those not measured are left out."""
    out = ""
    for index, n in enumerate(workers):
        if n in times:
            out += (f'<div class="bar w{min(index, 1)}" style="width:{scale.place(times[n]):.1f}%">'
                    f"<b>{text(time_text(times[n]))}</b></div>")
    return out


def picture(m, wanted, workers, scale, marks):
    measured = [(row, times) for row in wanted.rows if (times := times_of(m, row))]
    if not measured:
        return ""
    axis = "".join(f'<span style="left:{place:.1f}%">{label}</span>' for place, label in scale.ticks())
    body = "".join(f'<div class="what">{text(row.text)}</div><div class="track">{grid(scale, marks)}{bars(times, workers, scale)}</div>\n'
                   for row, times in measured)
    return (f'<section class="picture"><h3>{text(wanted.title)} <small>time of {text(wanted.each)}</small></h3>\n<div class="bars">{body}'
            f'<div class="what"></div><div class="axis">{axis}</div></div></section>\n')


def facts(m):
    """A few figures other than times."""
    out = []
    for case in m.cases:
        if case["workload"] == "memory" and (found := m.range_of(case, "ramie/parked", "figures.resident_bytes_per_fiber")):
            out.append((readable_bytes(found[0]), "of memory for a fiber that waits"))
        if case["workload"] == "idle" and (found := m.range_of(case, "ramie/unused", "figures.cpu_percent")):
            out.append((f"{found[0]:.2g} %", "of a processor for a runtime with nothing to do"))
    return out


def workers_name(n):
    return f"{n} worker" if n == 1 else f"{n} workers"


def crowded(m):
    """A warning if other programs had a share of the processor."""
    share = m.results.get("busy_cores")
    if share is None or share > 0.9:
        return ""
    return (f'<p class="warning">Other programs used the processor meanwhile: a single thread ran only {share * 100:.0f} % of the time. '
            "These times are too long; measure again on a quiet machine.</p>\n")


def pictures(m):
    """The four pictures, or nothing if none was measured."""
    every = {ns for wanted in PICTURES for row in wanted.rows for ns in times_of(m, row).values()}
    call, thread = (min(times_of(m, row).values(), default=None) for row in (CALL, THREAD))
    marks = [(kind, ns) for kind, ns in (("call", call), ("thread", thread)) if ns]
    if not every:
        return ""
    scale = Scale(every | {ns for _, ns in marks})
    workers = sorted({n for wanted in PICTURES for row in wanted.rows for n in times_of(m, row)})
    workers = [workers[0], workers[-1]] if len(workers) > 1 else workers
    key = "".join(f'<span><i class="bar w{min(index, 1)}"></i>{workers_name(n)}</span> ' for index, n in enumerate(workers))
    for kind, row, ns in (("call", CALL, call), ("thread", THREAD, thread)):
        if ns:
            key += f'<span><i class="mark {kind}"></i>{row.text}, {time_text(ns)}</span> '
    cards = "".join(f"<div><b>{text(value)}</b>{text(what)}</div>" for value, what in facts(m))
    return ('<p class="soft">Medians; shorter is better. The scale is logarithmic: each line is ten times the one before it.</p>\n'
            f'{crowded(m)}<p class="legend">{key}</p>\n<div class="pictures">'
            + "".join(picture(m, wanted, workers, scale, marks) for wanted in PICTURES) + "</div>\n"
            + (f'<div class="cards">{cards}</div>\n' if cards else ""))


def all_numbers(m, rows_of):
    """The table of every measurement, folded up: `rows_of` makes its rows."""
    return ('<h2 id="numbers">All numbers</h2>\n<details><summary>every style beside the same work in plain function calls</summary>\n'
            + page.table(("", "style", "median", "plain calls", "peak memory", ""), rows_of(m)) + "</details>\n")

