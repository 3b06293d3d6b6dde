"""Computes the model's costs from figures of the lab, and has the commands for those figures."""

import json
import os
import subprocess

from .costs import Costs
from .engine import VARIANTS, Simulation
from .machine import Machine
from .programs import Actors, Tree

SIZES = (64, 1_000, 4_000, 16_000, 32_000, 64_000, 256_000)  # bytes of state of each of 240 actors
ACTORS = 240
POLICIES = ("work_stealing", "stealing_no_affinity", "shared_queue", "round_robin", "dedicated")
STEALING = ("work_stealing", "stealing_no_affinity")
PAIRS = ("mpmc_pair", "skynet_shared", "skynet_dealt")


def affinity(workers, actors, state, accesses, placement="work_stealing", talking=0, messages=12, count=300_000):
    return ("affinity", workers, placement, {"actors": actors, "state": state, "accesses": accesses, "talking": talking,
                                             "messages": messages, "count": count}, "actor")


def talk(workers, actors, messages, state, accesses, placement="work_stealing", count=300_000):
    return affinity(workers, actors, state, accesses, placement, 1, messages, count)


# The measurements for the costs: workload, workers, placement, parameters, style.
ONE = "work_stealing"
CALIBRATION = {
    "message_24": talk(1, 24, 12, 64, 0),
    "message_240": talk(1, 240, 60, 64, 0),
    "message_8000": talk(1, 8_000, 1_000, 64, 0),
    "self_message": affinity(1, 24, 64, 0),
    "message_shared": talk(1, 24, 12, 64, 0, "shared_queue"),
    "yield": ("yield", 1, ONE, {"count": 300_000}, "fibers"),
    "skynet": ("skynet", 1, ONE, {"leaves": 100_000}, "channel"),
    "sum": ("sum", 1, ONE, {"high": 1_000_000}, "fork_join"),
    "overhead_10": ("overhead", 1, ONE, {"n": 10, "x": 20_000}, "channel"),
    "overhead_1000": ("overhead", 1, ONE, {"n": 1_000, "x": 2_000}, "channel"),
    "ring": ("mixed", 1, ONE, {"token": 300, "messages-only": 1}, "actor"),
    "factor": ("mixed", 1, ONE, {"rings": 1, "repetitions": 1, "token": 1, "ring-size": 2}, "actor"),
    "asleep": ("wake", 2, ONE, {"count": 200, "pause-us": 1_000}, "actor"),
    "mpmc_one": ("mpmc", 1, ONE, {"messages": 200_000}, "channel"),
    "mpmc_pair": ("mpmc", 2, "dedicated", {"messages": 200_000}, "channel"),
    "skynet_shared": ("skynet", 2, "shared_queue", {"leaves": 10_000}, "channel"),
    "skynet_dealt": ("skynet", 2, "dedicated", {"leaves": 10_000}, "channel"),
} | {f"access_{size}": talk(1, ACTORS, 60, size, 100, count=60_000) for size in SIZES}

_CHECKS = {
    "1 skynet": lambda w, p: ("skynet", w, p, {"leaves": 100_000 if p in STEALING else 10_000}, "channel"),
    "2 sum": lambda w, p: ("sum", w, p, {"high": 1_000_000}, "fork_join"),
    "3 mixed, messages only": lambda w, p: (
        "mixed", w, p, {"token": 300 if p in STEALING else 30, "messages-only": 1}, "actor"),
    "4 overhead, n=10": lambda w, p: ("overhead", w, p, {"n": 10, "x": 20_000}, "channel"),
    "4 overhead, n=1000": lambda w, p: ("overhead", w, p, {"n": 1_000, "x": 2_000}, "channel"),
    "5 N=24 S=64 M=20": lambda w, p: affinity(w, 24, 64, 20, p),
    "5 N=24 S=32000 M=100": lambda w, p: affinity(w, 24, 32_000, 100, p),
    "5 N=240 S=4000 M=20": lambda w, p: affinity(w, 240, 4_000, 20, p),
    "5 N=8000 S=2000 M=100": lambda w, p: affinity(w, 8_000, 2_000, 100, p, count=1_000_000),
    "5b N=8 K=6 S=64 M=100": lambda w, p: talk(w, 8, 6, 64, 100, p),
    "5b N=8 K=6 S=32000 M=100": lambda w, p: talk(w, 8, 6, 32_000, 100, p),
    "5b N=24 K=12 S=32000 M=20": lambda w, p: talk(w, 24, 12, 32_000, 20, p),
    "5b N=240 K=60 S=4000 M=20": lambda w, p: talk(w, 240, 60, 4_000, 20, p),
    "5b N=240 K=60 S=32000 M=100": lambda w, p: talk(w, 240, 60, 32_000, 100, p),
    "5b N=8000 K=1000 S=2000 M=100": lambda w, p: talk(w, 8_000, 1_000, 2_000, 100, p, count=1_000_000),
}


def checks():
    """What the model is compared with: {name: command}, the name being "experiment|policy|workers"."""
    all_of_them = {}
    for experiment, command in _CHECKS.items():
        for workers in (1, 2):
            for policy in POLICIES if workers == 2 else POLICIES[:1]:
                all_of_them[f"{experiment}|{policy}|{workers}"] = command(workers, policy)
    return all_of_them


def run(lab, command, runs=5):
    """One command's result: the lab's own object. Threads are not pinned."""
    workload, workers, placement, parameters, style = command
    words = [lab, workload, "--json", "--no-yardstick", "--counters", "--style", style, "--workers", str(workers),
             "--placement", placement, "--runs", str(runs)]
    for name, value in parameters.items():
        words += [f"--{name}", str(value)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAMIE_")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def is_typed(figure):
    """Is it from a document rather than from `measure`?"""
    return "source" in figure


def figures(result, before=None):
    """What is kept of a result, added to earlier measurements: each run's time of a unit, how many cores it kept busy, and
    the least of each latency."""
    units = result["units"]
    kept = before if before and not is_typed(before) else {"runs": [], "units": units}
    kept["runs"] += [[round(s / units * 1e9, 3), round(b, 3)] for s, b in zip(result["seconds"], result["busy_cores"])]
    for name, values in result.get("figures", {}).items():
        kept[name] = min(values + ([kept[name]] if name in kept else []))
    if result.get("counters", {}).get("steals"):
        kept["steals_a_run"] = result["counters"]["steals"] / len(result["seconds"])
    return kept


def time_of(name, figure):
    """The time of a unit when other programs use the machine too: the least of all runs. But a placement that has to use both
    workers is cheaper when one of them gets no processor, so for those it is the median of the runs that had both."""
    runs = figure["runs"]
    two = name.split("|")[-1] == "2" and not any(f"|{p}|" in name for p in STEALING)
    if not two and name not in PAIRS:
        return min(ns for ns, _ in runs)
    most = max(busy for _, busy in runs)
    had_both = sorted(ns for ns, busy in runs if busy >= 0.97 * most)
    return had_both[len(had_both) // 2]


FIT_MOST = 3_000.0  # ns


def fit(costs, name, ns, policy, program):
    """Finds by bisection the cost with which two workers need `ns` a unit for the program. At an end of the range the model
    cannot be made to agree, and says so."""
    low, high = 0.0, FIT_MOST
    for _ in range(14):
        setattr(costs, name, (low + high) / 2)
        p = program()
        if Simulation(costs, Machine(2), VARIANTS[policy][0], p).now / p.units < ns:
            low = (low + high) / 2
        else:
            high = (low + high) / 2
    setattr(costs, name, (low + high) / 2)


def access_curve(costs, m):
    """[[bytes, ns]] of one core's state, from actors that talk, so that each turn is another actor's."""
    curve = [[0, (m[f"access_{SIZES[0]}"] - costs.message_ns(ACTORS)) / 100]]  # all of it is in the nearest cache
    for size in SIZES[1:]:
        lines = size / 64
        first = lines * (1 - (1 - 1 / lines) ** 100)
        rest = m[f"access_{size}"] - costs.message_ns(ACTORS) - (100 - first) * curve[0][1]
        curve.append([ACTORS * size, max(curve[-1][1], rest / first)])  # more state is never nearer
    return curve


# The checks that costs are fitted to.
LINE_FROM = "5b N=24 K=12 S=32000 M=20|shared_queue|2"
SEND_FROM = "5b N=24 K=12 S=32000 M=20|dedicated|2"
NEEDED = (*CALIBRATION, LINE_FROM, SEND_FROM)


def origin(measured, figure, text):
    """The source of a fitted cost, in words."""
    return f"fitted: {text}" + (f" (as in {measured[figure]['source']})" if is_typed(measured[figure]) else "")


def at_the_end(value):
    return not FIT_MOST / 1000 < value < FIT_MOST * 0.999


def costs_of(measured):
    """The model's costs from figures of CALIBRATION."""
    m = {name: time_of(name, measured[name]) for name in CALIBRATION}
    c = Costs()
    c.message = [[n, m[f"message_{n}"]] for n in (24, 240, 8_000)]
    c.self_message = m["self_message"]
    c.message_shared = m["message_shared"]
    c.yield_switch = m["yield"]
    c.node_channel = m["skynet"]
    c.node_fork = m["sum"]
    c.root = (m["overhead_1000"] - m["overhead_10"]) / 990
    c.fiber_small = max(1.0, m["overhead_10"] - 10 * c.root)
    c.ring_message = m["ring"]
    c.factorisation = m["factor"] * measured["factor"]["units"]
    c.access = access_curve(c, m)
    c.wake_call = measured["asleep"]["call_p50_ns"]
    c.channel_pass = max(1.0, m["mpmc_pair"] / 2)
    # The asking worker searches for a while; if waking takes longer, it has to be woken for the answer.
    asleep = measured["asleep"]["round_trip_p50_ns"]
    answer = c.notice if asleep < 2 * c.search else asleep / 2
    c.wake = max(c.notice, asleep - answer - 2 * m["message_24"])

    # What cannot be read off: the values with which the model agrees with the machine on two workers.
    fit(c, "line", time_of(LINE_FROM, measured[LINE_FROM]), "shared_queue",
        lambda: Actors(24, 32_000, 20, 12, 10_000, "random"))
    fit(c, "send", time_of(SEND_FROM, measured[SEND_FROM]), "dedicated",
        lambda: Actors(24, 32_000, 20, 12, 10_000, "random"))
    fit(c, "node_shared", m["skynet_shared"], "shared_queue", lambda: Tree(11_111, 10, c.node_shared, 1))
    fit(c, "node_dealt", m["skynet_dealt"], "dedicated", lambda: Tree(11_111, 10, c.node_dealt, 1))
    given = {"search", "notice", "steal", "touch", "lock_pass", "factor_cache", "factor_node", "private_bytes"}
    c.sources = {name: "measured" for name in c.__dataclass_fields__ if name not in given | {"sources"}}
    c.sources |= {
        "search": "scheduler.cpp",
        "steal": "assumed: a membarrier and some lines of another core; too rare on two workers to be measured",
        "touch": "assumed: a line that another core of the same cache had last",
        "lock_pass": "assumed: the same",
        "notice": "assumed: a pause of the searching loop (32 spin instructions) and some lines from another core",
        "private_bytes": "size of a core's second-level cache",
        "factor_cache": "assumed: the latency alone differs by more, but it is only a part of what a message costs",
        "factor_node": "assumed: the same, across sockets",
        "send": origin(measured, SEND_FROM, "24 talking actors, dedicated, two workers"),
        "line": origin(measured, LINE_FROM, "the same through the common queue"),
        "node_shared": origin(measured, "skynet_shared", "skynet through the common queue, two workers"),
        "node_dealt": origin(measured, "skynet_dealt", "skynet, dedicated, two workers"),
    }
    for name in ("send", "line", "node_shared", "node_dealt"):
        if at_the_end(getattr(c, name)):
            c.sources[name] += "; at the end of its range: the model cannot be made to agree"
    return c
