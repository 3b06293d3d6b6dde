"""The rows of the table of costs, and its format. Each figure is the median of several runs."""

import math
from dataclasses import dataclass, field

CALL = ("operations", "plain")


@dataclass(frozen=True)
class Row:
    """One figure: the time of a workload in a style, or another of its figures."""

    text: str
    workload: str
    style: str
    figure: str = ""  # empty: ns per unit
    suffix: str = ""  # of figures, the unit


@dataclass(frozen=True)
class Section:
    title: str
    rows: list = field(default_factory=list)


def operations(*pairs):
    return [Row(text, "operations", style) for style, text in pairs]


SECTIONS = [
    Section("Fibers", [
        Row("a bare switch, without a scheduler", "yield", "bare"),
        Row("`this_fiber::yield()`, to another fiber", "yield", "fibers"),
        Row("`spawn` and `detach`; the fiber runs and ends, without a wait", "spawn", "detached"),
        Row("`spawn` and `join`, 100 at a time", "spawn", "batch_join"),
        Row("`spawn` and `join`, one after the other: the parent waits each time", "spawn", "join"),
        Row("`spawn`; the fiber waits, is woken, ends", "spawn", "park"),
        *operations(
            ("fiber_local", "`*fiber_local`"),
            ("stop_requested", "`this_fiber::stop_requested()`"),
            ("shield", "`shield` around nothing"),
            ("stop_token", "`with_stop_token` around nothing"),
            ("with_timeout", "`with_timeout` around nothing"),
            ("cancel", "`spawn`; the fiber waits, `request_stop`, it throws `cancelled`, `join` rethrows it"),
            ("blocking", "`blocking`: to a helper thread and back"),
            ("run", "`runtime::run` of a plain thread: to a worker that sleeps, and back"),
            ("runtime", "start a `runtime`, run a function there, stop it"),
        ),
    ]),
    Section("Fork and join", operations(
        ("fork_join", "`fork_join` of two functions"),
        ("scope", "a `scope` with two children: make it, spawn, `join`"),
        ("scope_result", "a `scope` with one child that has a result"),
        ("limited_scope", "a `limited_scope` with two children"),
        ("parallel_for", "an element of a `parallel_for` over 10,000"),
    )),
    Section("Synchronisation, uncontended", operations(
        ("mutex", "`mutex`: lock and unlock"),
        ("timed_mutex", "`timed_mutex`"),
        ("recursive_mutex", "`recursive_mutex`"),
        ("shared_mutex", "`shared_mutex`: lock and unlock"),
        ("shared_lock", "`shared_mutex`: lock_shared and unlock_shared"),
        ("semaphore", "`counting_semaphore`: acquire and release"),
        ("event_wait", "`event`: wait for one that is set"),
        ("event_set", "`event`: set and reset"),
        ("latch", "`latch`: make, count down, wait"),
        ("wait_group", "`wait_group`: add, done, wait"),
        ("call_once", "`call_once`, after the first time"),
        ("once_value", "`*once_value`, after the first time"),
        ("notify", "`condition_variable::notify_one`, without waiters"),
        ("promise", "`promise` and `future`: make, set, get"),
    )),
    Section("Channels", [
        *operations(
            ("send_recv", "`send` and `recv` by one fiber, with room in the buffer"),
            ("try_send_recv", "`try_send` and `try_recv`"),
            ("select_nothing", "`select` over two empty channels, with `otherwise`"),
            ("select_ready", "`try_send`, then `select` over that channel and an empty one"),
            ("select_event", "`select` over an empty channel and an `event` that is set"),
            ("unbounded", "`send` and `recv` by one fiber, through an `unbounded` channel"),
            ("ends", "copy and drop a `sender` and a `receiver`"),
            ("make_channel", "make a channel for 16 numbers, send one, destroy it"),
        ),
        Row("a message from fiber to fiber, through a buffer of 128", "stream", "buffered"),
        Row("a message from fiber to fiber, without a buffer", "stream", "unbuffered"),
        Row("there and back: each message waits for the one before", "pingpong", "channel"),
        Row("a message through one of four channels with buffers, by `select`", "select", "buffered"),
        Row("a message through one of four channels without buffers, by `select`", "select", "unbuffered"),
        Row("a message of one of four senders to one of four receivers, buffer of 1024", "mpmc", "channel"),
    ]),
    Section("Actors", [
        Row("`tell`, and the handler's run, in bursts of 64", "actors", "tell"),
        Row("a message there and back between two actors", "actors", "pingpong"),
        Row("`ask`, the handler's run, and the reply", "actors", "ask"),
        *operations(("ask_async", "`ask_async`, and `get` of its future"), ("whereis", "`whereis`")),
        Row("`spawn_actor`, `stop`, `join`, 64 at a time", "actors", "spawn"),
    ]),
    Section("Timers", [
        Row("start a timer, and cancel it", "timers", "cancel"),
        Row("start a timer, and have it fire", "timers", "fire"),
        Row("`sleep_for`, many fibers at once", "timers", "sleep"),
    ]),
]

MEMORY = [
    Row("a fiber that waits: resident memory", "memory", "parked", "resident_bytes_per_fiber", "B"),
    Row("the same: page tables of the kernel", "memory", "parked", "page_table_bytes_per_fiber", "B"),
    Row("a fiber that has not begun", "memory", "unstarted", "resident_bytes_per_task", "B"),
    Row("an actor with an empty mailbox and 8 bytes of state", "idle_actors", "idle", "resident_bytes_per_actor", "B"),
    Row("a runtime with nothing to do: share of one processor", "idle", "unused", "cpu_percent", "%"),
]

# What is measured on one worker and on all.
EXPERIMENTS = [
    Row("sum of 1..10,000,000 by halves, a process: `fork_join`", "sum", "fork_join"),
    Row("the same: `scope`", "sum", "scope"),
    Row("skynet, a million leaves, a fiber: `fork_join`", "skynet", "fork_join"),
    Row("the same: `scope`", "skynet", "scope"),
    Row("the same: `spawn` and `join`", "skynet", "spawn"),
    Row("the same, a channel for each node", "skynet", "channel"),
    Row("20 rings of 50 actors (experiment 3), a message", "mixed", "actor"),
    Row("message there and back over unbuffered channels", "pingpong", "channel"),
    Row("message through a buffer of 128", "stream", "buffered"),
    Row("message by `select` over four unbuffered channels", "select", "unbuffered"),
    Row("message, four senders, four receivers, buffer of 1024", "mpmc", "channel"),
    Row("actors: `tell`", "actors", "tell"),
    Row("actors: there and back", "actors", "pingpong"),
    Row("actors: `ask`", "actors", "ask"),
    Row("`mutex`, four fibers, lock and unlock", "mutex", "mutex"),
    Row("spawn, run, end, detached", "spawn", "detached"),
    Row("`yield`", "yield", "fibers"),
]

# What talks to a thread that is no worker. All else on one worker is bound to one core, so that no spare worker is a second one.
NEED_A_SECOND_CORE = {("operations", "blocking"), ("operations", "run"), ("operations", "runtime")}

# Workload, options of its own, and those of a quick run.
SIZES = {
    "operations": ({}, {"count": 50_000}),
    "yield": ({"count": 2_000_000}, {"count": 100_000}),
    "spawn": ({}, {"count": 50_000}),
    "stream": ({"messages": 2_000_000}, {"messages": 100_000}),
    "pingpong": ({"messages": 1_000_000}, {"messages": 50_000}),
    "select": ({"messages": 1_000_000}, {"messages": 50_000}),
    "mpmc": ({"messages": 2_000_000}, {"messages": 100_000}),
    "actors": ({"count": 1_000_000}, {"count": 50_000}),
    "mutex": ({"count": 500_000}, {"count": 20_000}),
    "timers": ({"count": 200_000}, {"count": 10_000}),
    "memory": ({"count": 200_000}, {"count": 5_000}),
    "idle_actors": ({}, {"count": 20_000}),
    "idle": ({"seconds": 5}, {"seconds": 1}),
    "skynet": ({"leaves": 1_000_000}, {"leaves": 10_000}),
    "sum": ({"high": 10_000_000}, {"high": 100_000}),
    "mixed": ({"token": 1000, "repetitions": 1, "messages-only": 1}, {"token": 50, "repetitions": 1, "messages-only": 1}),
}
RUNS = {"memory": 3, "idle_actors": 3, "idle": 1}  # otherwise as requested


def all_rows():
    return [row for section in SECTIONS for row in section.rows] + MEMORY + EXPERIMENTS


def is_experiment(workload, style=None):
    return any(row.workload == workload and style in (None, row.style) for row in EXPERIMENTS)


def styles():
    """By workload, each style once, in the order of the rows."""
    found = {CALL[0]: [CALL[1]]}
    for row in all_rows():
        known = found.setdefault(row.workload, [])
        if row.style not in known:
            known.append(row.style)
    return found


def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def number(value):
    """Two significant digits; of greater numbers, all before the point."""
    if value == 0 or abs(value) >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"


def duration(ns):
    """In the unit that suits it."""
    if ns is None:
        return "-"
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if ns < 1e4 * size:
            break
    return f"{number(ns / size)} {unit}"


def value_of(row, result):
    """Of one result of the lab; None if there is no correct one."""
    if result is None or not result.get("ok"):
        return None
    if not row.figure:
        return result.get("ns_per_unit")
    measured = result.get("figures", {}).get(row.figure)
    return median(measured) if isinstance(measured, list) and measured else measured


def cell(value, suffix=""):
    return "-" if value is None else f"{number(value)} {suffix}".strip()


def find(results, row, workers):
    return next((r for r in results if (r["workload"], r["style"]) == (row.workload, row.style)
                 and (workers is None or r["options"]["workers"] == workers)), None)


def ratio(result):
    """The number of calls in the same time."""
    value = (result or {}).get("ratio_to_plain") if (result or {}).get("ok") else None
    return "-" if value is None else number(value)


def costs_text(results):
    lines = []
    for section in SECTIONS:
        lines += ["", f"### {section.title}", "", "| | time | calls |", "| --- | ---: | ---: |"]
        for row in section.rows:
            result = find(results, row, 1) or find(results, row, None)
            lines.append(f"| {row.text} | {duration(value_of(row, result))} | {ratio(result)} |")
    lines += ["", "### Memory and idle time", "", "| | |", "| --- | ---: |"]
    for row in MEMORY:
        lines.append(f"| {row.text} | {cell(value_of(row, find(results, row, None)), row.suffix)} |")
    return "\n".join(lines).lstrip("\n") + "\n"


def experiments_text(results):
    counts = sorted({r["options"]["workers"] for r in results if r["workload"] == "skynet"})
    names = [{1: "one worker", 2: "two workers"}.get(n, f"{n} workers") for n in counts]
    lines = [f"| ns | {' | '.join(names)} |", f"| --- |{' ---: |' * len(counts)}"]
    for row in EXPERIMENTS:
        cells = [cell(value_of(row, find(results, row, n))) for n in counts]
        lines.append(f"| {row.text} | {' | '.join(cells)} |")
    call = next((r for r in results if (r["workload"], r["style"]) == CALL), None)
    lines.append(f"| a noinline call, for comparison | {cell((call or {}).get('ns_per_unit'))} |{' |' * (len(counts) - 1)}")
    waiting, tables, _, actor, idle = (cell(value_of(row, find(results, row, None)), row.suffix) for row in MEMORY)
    lines += ["", f"A fiber that waits takes {waiting} and {tables} of page tables, an idle actor {actor}; a runtime with nothing to do takes "
                  f"{idle} of a processor."]
    return "\n".join(lines) + "\n"


def source_text(document):
    """Where the figures are from."""
    machine = document["machine"]
    runs, load = document["runs"], machine.get("load_average", 0)
    busy = "" if load < 1 else ", so other programs may have made the figures higher"
    return (f"`{document['command']}`, {document['started'][:10]}, ramie {document['revision']}: {machine.get('cpu', '?')}, "
            f"{machine.get('cores_allowed', '?')} cores, Linux {machine.get('kernel', '?').removeprefix('Linux ').split('-')[0]}, "
            f"{machine.get('compiler', '?')} {machine.get('flags', '?')}; medians of {runs} runs; load average before it {number(load)}{busy}.")
