"""What is compared: workloads with their sizes, and which of ramie's styles represents it.

A case's family is the section of a peer.ini that tells how the peer runs it. `quick` sizes take the slowest peers about a
second, `full` ones are those of the experiments, `tiny` ones are for tests and mean nothing.
"""

from dataclasses import dataclass, field

SIZES = ("tiny", "quick", "full")


@dataclass(frozen=True)
class Case:
    family: str
    experiment: str  # the chapter of the report
    title: str
    workload: str
    unit: str
    styles: tuple  # of ramie; the first is the one that peers are compared with
    parameters: dict = field(default_factory=dict)
    metric: str = "ns_per_unit"
    metric_title: str = ""  # empty: ns a unit
    more_is_better: bool = False
    memory: str = "peak_rss_bytes"  # the figure for its memory
    warmup: int | None = None  # None: the peer's own
    rounds_max: int = 1000
    yardstick: bool = False  # let ramie alternate with plain calls
    mallocs: bool = False  # also with other mallocs, when those are asked for
    placements: tuple = ()  # of ramie, besides the standard one
    stacks: tuple = ()  # of ramie, besides its pool of guarded ones
    workers_least: int = 1  # fewer mean nothing
    spread: bool = False  # shown against the number of workers, if none is asked for
    headline: bool = True  # has a line in the report's verdict
    label: str = ""  # what distinguishes it within its family
    binds_itself: bool = False  # to its cores, for it has several processes

    @property
    def key(self):
        return f"{self.family} {self.label}".strip()


def sized(size, tiny, quick, full):
    return {"tiny": tiny, "quick": quick, "full": full}[size]


def tree_cases(size):
    leaves = sized(size, 1000, 100_000, 1_000_000)
    high = sized(size, 1000, 200_000, 10_000_000)
    return [
        Case("skynet", "1 skynet", "Tree of lightweight threads that report by channel or message", "skynet", "fiber",
             ("channel", "buffered", "spawn", "actor"), {"leaves": leaves}, mallocs=True, spread=size == "full"),
        Case("skynet-fork-join", "1 skynet", "The same tree, forked and joined", "skynet", "fiber",
             ("fork_join", "scope", "plain"), {"leaves": leaves}),
        Case("sum", "2 sum", "Sum of a range, split down to single numbers", "sum", "process",
             ("fork_join", "scope", "spawn", "channel", "plain"), {"high": high}, spread=size == "full"),
    ]


def matrix_cases(size):
    """Skynet with all variations of Boost.Fiber's performance page. In smaller sizes, since stacks that are mapped one by one
    take two mappings each: the system's default limits allow 32,000 at once. Only peers map them so: ramie has one pool,
    and an option to go without it was a branch all through that pool, for one row here."""
    leaves = sized(size, 1000, 10_000, 100_000)
    return [Case("skynet-matrix", "1 skynet", "Tree of lightweight threads by policy, stacks and malloc", "skynet", "fiber",
                 ("channel",), {"leaves": leaves}, mallocs=True, placements=("shared_queue", "round_robin"),
                 stacks=("pooled",))]


def mixed_cases(size):
    whole = {"rings": 20, "ring-size": 50}
    messages = sized(size, {"rings": 2, "ring-size": 5, "token": 20, "repetitions": 2},
                     {**whole, "token": 1000, "repetitions": 1}, {**whole, "token": 10_000, "repetitions": 5})
    both = sized(size, None, {"rings": 2, "ring-size": 50, "token": 5000, "repetitions": 1}, messages)
    cases = [Case("mixed", "3 mixed case", "Rings of actors, messages only", "mixed", "message", ("actor",),
                  {**messages, "messages-only": 1}, label="messages", spread=size == "full")]
    if both:
        cases.append(Case("mixed", "3 mixed case", "Rings of actors beside factorisations", "mixed", "message",
                          ("actor",), both, warmup=0, rounds_max=4, metric="seconds",
                          metric_title="seconds, all together", label="whole"))
    return cases


def overhead_title(n, x):
    roots = "One square root" if n == 1 else f"{n:,} square roots"
    return f"{roots} per goroutine, {x:,} of them"


def overhead_cases(size):
    """Pairs of n and X; the verdict uses the greatest X that all n have."""
    pairs = sized(size, [(1, 100)],
                  [(1, 1000), (1, 100_000), (10, 100_000), (100, 1000), (100, 100_000), (1000, 10_000)],
                  [(n, x) for n in (1, 10, 100, 1000, 5000) for x in (1000, 10_000, 100_000, 1_000_000)])
    telling = {(n, 100_000) for n, _ in pairs} | ({(1000, 10_000)} if size == "quick" else set())
    return [
        Case("overhead", "4 goroutine overhead", overhead_title(n, x), "overhead", "call", ("channel",),
             {"n": n, "x": x}, metric="figures.share_of_direct", metric_title="share of the direct speed",
             more_is_better=True, headline=(n, x) in telling, label=f"n={n} x={x}", rounds_max=11)
        for n, x in pairs
    ]


PLACEMENTS = ("stealing_no_affinity", "shared_queue", "round_robin", "dedicated")


def affinity_case(actors, state, accesses, in_flight, count, workers_least):
    talking = in_flight > 0
    parameters = {"actors": actors, "state": state, "accesses": accesses, "talking": int(talking), "count": count}
    if talking:
        parameters["messages"] = in_flight
    return Case("affinity", "5 cache affinity",
                f"{actors:,} actors of {state:,} bytes, {accesses} accesses a message, "
                + ("talking" if talking else "to themselves"), "affinity", "message", ("actor",), parameters,
                placements=PLACEMENTS, rounds_max=11, workers_least=workers_least, headline=state in (64, 32_000, 320_000),
                label=f"actors={actors} state={state} accesses={accesses} " + ("talking" if talking else "alone"))


AFFINITY_BYTES_MOST = 8 * 2**30
IN_FLIGHT = {6: 4, 8: 6, 24: 12, 240: 60, 8000: 1000}  # messages among that many actors, if they talk


def affinity_cells(size):
    """[(actors, bytes of state, accesses, talking)]"""
    states = (64, 256, 2000, 4000, 32_000, 320_000, 3_200_000)
    few = {False: 6, True: 8}
    return [cell for talking in (False, True) for cell in sized(
        size, ((6, 64, 20, talking),), ((24, 64, 20, talking), (24, 32_000, 100, talking)),
        tuple((actors, state, accesses, talking) for actors in (few[talking], 24, 240, 8000) for state in states for accesses in (20, 100)))]


def is_too_large(cell):
    return cell[0] * cell[1] > AFFINITY_BYTES_MOST


def too_large(size):
    """What is not measured, in words."""
    cells = sorted({cell[:2] for cell in affinity_cells(size) if is_too_large(cell)})
    return [f"affinity with {actors:,} actors of {state:,} bytes: {actors * state / 2**30:.1f} GiB, more than "
            f"{AFFINITY_BYTES_MOST // 2**30}" for actors, state in cells]


def affinity_cases(size):
    count = sized(size, 1000, 200_000, 1_000_000)
    # With one worker there is no choice; the full comparison shows the cost of each there.
    least = sized(size, 1, 2, 1)
    return [affinity_case(actors, state, accesses, IN_FLIGHT[actors] if talking else 0, count, least)
            for actors, state, accesses, talking in affinity_cells(size) if not is_too_large((actors, state))]


def echo_case(connections, size, label, rate=0, metric="figures.server_cpu_ns_per_request", metric_title="ns of the server's processor a request", **more):
    return Case("echo", "6 echo", f"{connections:,} connection{'s' if connections > 1 else ''}, {size:,} bytes"
                + (f", {rate:,} requests a second" if rate else ""), "echo", "request", ("fiber",),
                {"connections": connections, "size": size, "rate": rate, **more}, warmup=0, metric=metric, metric_title=metric_title,
                memory="figures.resident_bytes_per_connection", label=label, rounds_max=11,
                binds_itself=True)


def echo_cases(size):
    """A server, and a load from outside. Where all cores are the server's, the load competes with it for them."""
    time = {"milliseconds": sized(size, 20, 500, 3000), "warm-up": sized(size, 10, 200, 1000)}
    counts = sized(size, (2,), (1, 50, 500), (1, 50, 500, 10_000))
    cases = [echo_case(n, 64, f"{n} x 64 B", **time) for n in counts]
    if size != "tiny":
        cases.append(echo_case(50, 16_384, "50 x 16 KiB", **time))
        cases.append(echo_case(50, 64, "p99 at 10,000 a second", rate=10_000, metric="figures.p99_us", metric_title="99th percentile, us", **time))
    return cases


def small_cases(size):
    def messages(full):
        return {"messages": sized(size, 1000, full // 5, full)}

    def count(full, small=5):
        return {"count": sized(size, 1000, full // small, full)}

    e = "Switches and messages"
    return [
        Case("pingpong", e, "One message at a time, there and back", "pingpong", "message",
             ("channel", "buffered"), messages(2_000_000), yardstick=True),
        Case("pingpong-actors", e, "One message at a time, from actor to actor", "pingpong", "message", ("actor",),
             messages(2_000_000)),
        Case("stream", e, "One producer, one consumer, buffer of 128", "stream", "message", ("buffered",),
             messages(10_000_000)),
        Case("stream-unbuffered", e, "One producer, one consumer, no buffer", "stream", "message", ("unbuffered",),
             messages(2_000_000)),
        Case("select", e, "Select among four channels with buffers", "select", "message", ("buffered",),
             messages(4_000_000)),
        Case("select-unbuffered", e, "Select among four channels without buffers", "select", "message", ("unbuffered",),
             messages(2_000_000)),
        Case("mpmc", e, "Four producers, four consumers, buffer of 1024", "mpmc", "message", ("channel",),
             messages(8_000_000)),
        Case("mutex", e, "Four that want one lock", "mutex", "lock", ("mutex", "std"), count(2_000_000)),
        Case("yield", e, "Two that give way to each other", "yield", "switch", ("fibers", "bare"), count(2_000_000)),
        Case("spawn", e, "Made, run, ended: one after the other", "spawn", "fiber", ("join",), count(1_000_000)),
        Case("spawn-batch", e, "Made, run, ended: a hundred at a time", "spawn", "fiber", ("batch_join", "detached"),
             count(1_000_000)),
        Case("timers", e, "Timers started and cancelled", "timers", "timer", ("cancel",), count(1_000_000)),
        Case("timers-fire", e, "Timers started and fired", "timers", "timer", ("fire",), count(1_000_000)),
        Case("memory", "Memory", "Parked lightweight threads, made cold", "memory", "fiber", ("channel", "parked"),
             count(1_000_000, 10), warmup=0, metric="figures.resident_bytes_per_fiber",
             metric_title="resident bytes each", memory="figures.resident_bytes_per_fiber", rounds_max=5),
        Case("memory-actors", "Memory", "Actors with nothing to do, made cold", "idle_actors", "actor", ("idle",),
             count(1_000_000, 10), warmup=0, metric="figures.resident_bytes_per_actor",
             metric_title="resident bytes each", memory="figures.resident_bytes_per_actor", rounds_max=5),
        Case("ticker", "Fairness", "A 1 ms ticker beside 8 that never give way", "ticker", "tick", ("channel", "sleep"),
             {"hogs": 8, "ticks": sized(size, 20, 50, 300)}, warmup=0, metric="figures.lateness_p50_us",
             metric_title="median lateness, us", rounds_max=5),
    ]


def savina_cases(size):
    """Classic actor programs."""
    def program(family, title, small, **full):
        parameters = {name: sized(size, max(2, value // 500), value // small if name in ("hops", "count", "messages", "pings", "meetings")
                                  else value, value) for name, value in full.items()}
        return Case(family, "Actor programs", title, family.replace("-", "_"), "message", ("actor",), parameters)

    return [
        program("thread-ring", "A token goes round a ring of 100 actors", 5, nodes=100, hops=2_000_000),
        program("counting", "One actor sends increments to another, and asks", 2, count=1_000_000),
        program("fork-join-throughput", "Many messages to each of 60 actors", 2, actors=60, messages=10_000),
        program("big", "120 actors ping random others, and wait for each answer", 4, actors=120, pings=10_000),
        program("chameneos", "100 creatures meet in pairs and change colours", 4, creatures=100, meetings=200_000),
    ]


def all_cases(size):
    """In the order of a round and of the report. Throws KeyError for an unknown size."""
    return (tree_cases(size) + mixed_cases(size) + overhead_cases(size) + affinity_cases(size) + savina_cases(size)
            + echo_cases(size) + small_cases(size))
