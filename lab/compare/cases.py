"""What is compared: workloads with their sizes, and which of ramie's styles represents it.

A case compares one construct with the same construct elsewhere: fork/join with fork/join, tasks that are joined with such tasks, channels
with channels, actors with actors. Its family is the section of a peer.ini that tells how the peer runs it. `quick` sizes take the slowest peers about a
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
    least_ms: int = 50  # a measured run repeats the work until it has taken so long; 0: once is what is to be measured
    pause_ms: int = 0  # between such repetitions

    @property
    def key(self):
        return f"{self.family} {self.label}".strip()


def sized(size, tiny, quick, full):
    return {"tiny": tiny, "quick": quick, "full": full}[size]


def tree_cases(size):
    leaves = sized(size, 1000, 100_000, 1_000_000)
    high = sized(size, 1000, 200_000, 10_000_000)
    # Fork and join is so cheap that a smaller tree measures how fast the workers awake; that is what the bursts are for.
    forked = sized(size, 1000, 10_000_000, 10_000_000)
    e, many = "1 skynet", {"mallocs": True, "spread": size == "full"}
    return [
        Case("skynet-fork-join", e, "Tree of ten-way fork/join", "skynet", "node", ("fork_join", "scope", "plain"), {"leaves": forked},
             mallocs=True),
        *(Case("skynet-bursts", e, f"The same tree in bursts of {nodes:,} nodes, 2 ms of nothing between them", "skynet", "node",
               ("fork_join", "scope"), {"leaves": burst}, mallocs=True, label=f"{burst:,} leaves", pause_ms=2)
          for burst, nodes in sized(size, ((100, 111),), ((10_000, 11_111), (100_000, 111_111)),
                                    ((10_000, 11_111), (100_000, 111_111), (1_000_000, 1_111_111)))),
        Case("skynet-tasks", e, "Tree of spawned tasks, each joined by its parent", "skynet", "task", ("spawn",), {"leaves": leaves}, **many),
        Case("skynet-channel", e, "Tree of lightweight threads that report over channels", "skynet", "fiber", ("channel", "buffered"),
             {"leaves": leaves}, **many),
        Case("skynet-actors", e, "Tree of actors that report by messages", "skynet", "actor", ("actor",), {"leaves": leaves}, **many),
        Case("sum-fork-join", "2 sum", "Sum of a range by fork/join, split down to single numbers", "sum", "part",
             ("fork_join", "scope", "plain"), {"high": forked}, mallocs=True, spread=size == "full"),
        Case("sum-tasks", "2 sum", "The same by spawned tasks, each joined by its parent", "sum", "part", ("spawn",), {"high": high}, **many),
        Case("sum-channel", "2 sum", "The same by lightweight threads that report over channels", "sum", "part", ("channel",),
             {"high": high}, **many),
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
                  {**messages, "messages-only": 1}, label="messages", spread=size == "full", mallocs=True)]
    if both:
        cases.append(Case("mixed", "3 mixed case", "Rings of actors beside factorisations", "mixed", "message",
                          ("actor",), both, warmup=0, rounds_max=4, metric="seconds",
                          metric_title="seconds, all together", label="whole", least_ms=0))
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
                {"connections": connections, "size": size, "rate": rate, **more}, warmup=0, least_ms=0, metric=metric, metric_title=metric_title,
                memory="figures.resident_bytes_per_connection", label=label, rounds_max=11,
                binds_itself=True)


def echo_cases(size):
    """A server, and a load from outside. Where all cores are the server's, the load competes with it for them."""
    time = {"milliseconds": sized(size, 20, 500, 3000), "warm-up": sized(size, 10, 200, 1000)}
    counts = sized(size, (2,), (1, 50, 500), (1, 50, 500, 10_000))
    cases = [echo_case(n, 64, f"{n} x 64 B", **time) for n in counts]
    if size != "tiny":
        cases.append(echo_case(50, 16_384, "50 x 16 KiB", **time))
        late = [("p50", "p50", "median, us"), ("p99", "p99", "99th percentile, us"), ("p99.9", "p999", "99.9th percentile, us")]
        for name, figure, title in late[1:2] if size == "quick" else late:
            cases.append(echo_case(50, 64, f"{name} at 10,000 a second", rate=10_000, metric=f"figures.{figure}_us", metric_title=title, **time))
        cases.append(echo_case(256, 64, "newcomers", newcomers=200, metric="figures.newcomer_p99_us",
                               metric_title="first answer to a new connection beside them, 99th percentile, us", **time))
        cases.append(echo_case(1000, 64, "memory", metric="figures.resident_bytes_per_connection",
                               metric_title="resident bytes of a connection that waits", **time))
        cases.append(echo_case(50, 64, "calls", calls=1, metric="figures.system_calls_per_request",
                               metric_title="system calls a request", **time))
    return cases


def across_cases(size):
    """Two processes of this machine; with fewer than two workers they would take turns on one core."""
    e = "8 across nodes"
    text = {"size": 64}

    def case(name, title, unit, parameters, **more):
        return Case(f"across-{name}", e, title, f"across_{name.replace('-', '_')}", unit, ("actor",), parameters, workers_least=2,
                    rounds_max=11, least_ms=sized(size, 0, 50, 50), **more)

    many = {"count": sized(size, 200, 300_000, 1_000_000), **text}
    processor = {"metric": "figures.processor_ns_per_unit", "metric_title": "ns of processor time a message, all processes"}
    return [
        case("tell", "Messages of 64 bytes to an actor of another process, until all were handled", "message", many, label="time"),
        case("tell", "The same: processor time", "message", many, label="processor", **processor),
        case("ask", "A request to an actor of another process, one at a time", "request", {"count": sized(size, 20, 1000, 5000)},
             metric="figures.p50_us", metric_title="median, us"),
        case("fan-out", "Messages of 64 bytes to a group of 16 in another process", "message",
             {"count": sized(size, 20, 10_000, 50_000), "members": 16, **text}),
        case("queue", "Jobs of 64 bytes into a durable queue, 256 at once, each with an id", "job",
             {"count": sized(size, 50, 10_000, 50_000), "fibers": 256, **text}),
    ]


HTTP = {"http": 1, "json": 2, "websocket": 3, "https": 4, "http2": 5}  # lab/load/measure.cpp


def http_case(family, what, title, label, metric="figures.server_cpu_ns_per_request", metric_title="ns of the server's processor a request", **more):
    return Case(family, "7 http", title, "http", "request", ("fiber",), {"connections": 64, "size": 64, "http": HTTP[what], **more}, warmup=0, least_ms=0,
                metric=metric, metric_title=metric_title, memory="figures.resident_bytes_per_connection", label=label, rounds_max=11,
                binds_itself=True)


def http_cases(size):
    """Servers as a user would write them, with the same load from outside."""
    time = {"milliseconds": sized(size, 20, 500, 3000), "warm-up": sized(size, 10, 200, 1000)}
    if size == "tiny":
        time["connections"] = 2
    rate = sized(size, 100, 10_000, 10_000)
    cases = [
        http_case("http", "http", "Hello, HTTP/1.1, 64 connections", "hello", **time),
        http_case("https", "https", "Hello, HTTP/1.1 over TLS, 64 connections", "hello", **time),
        http_case("http2", "http2", "Hello, HTTP/2 over TLS, 64 connections", "hello", **time),
        http_case("websocket", "websocket", "Messages of 64 bytes that come back on 64 WebSockets", "echo", **time),
    ]
    if size != "tiny":
        cases.append(http_case("http", "json", "10 KB of JSON, HTTP/1.1, 64 connections", "10 KB of JSON", **time))
        late = [("p50", "p50", "median, us"), ("p99", "p99", "99th percentile, us"), ("p99.9", "p999", "99.9th percentile, us")]
        for name, figure, title in late[1:2] if size == "quick" else late:
            cases.append(http_case("http", "http", f"Hello, HTTP/1.1, 64 connections, {rate:,} requests a second", f"{name} at {rate:,} a second",
                                   metric=f"figures.{figure}_us", metric_title=title, rate=rate, **time))
        cases.append(http_case("http", "http", "Hello, HTTP/1.1, 1,000 connections that wait", "memory", metric="figures.resident_bytes_per_connection",
                               metric_title="resident bytes of a connection that waits", **{**time, "connections": 1000, "rest": 2500}))
    return cases


def files_case(label, title, depth, count, metric=("figures.cpu_ns_per_read", "ns of the processor a read"), **more):
    return Case("files", "6b files", title, "files", "read", ("fiber", "blocking", "pread"),
                {"depth": depth, "count": count, "megabytes": 64, **more}, metric=metric[0], metric_title=metric[1], label=label)


def files_cases(size):
    """Reads of 4 KiB. What the page cache holds takes processor time alone; what it does not hold is shown by time, too."""
    cached, direct = sized(size, 200, 100_000, 1_000_000), sized(size, 50, 5000, 50_000)
    time = ("ns_per_unit", "ns a read")
    cases = [files_case("cached, at random", "Cached, at random, one at a time", 1, cached)]
    if size != "tiny":
        cases += [files_case("cached, in order", "Cached, in order, one at a time", 1, cached, sequential=1),
                  files_case("O_DIRECT, 8, time", "Past the page cache, at random, eight at a time", 8, direct, time, direct=1)]
    cases.append(files_case("O_DIRECT, 8", "Past the page cache, at random, eight at a time: the processor", 8, direct, direct=1))
    if size == "full":
        cases += [files_case(f"O_DIRECT, {n}, {way}", f"Past the page cache, {way}, {n} at a time", n, direct, time, direct=1, sequential=order)
                  for n, way, order in ((1, "at random", 0), (1, "in order", 1), (32, "at random", 0))]
    return cases


TASK_PROGRAMS = {  # name: (title, unit, tiny, quick, full)
    "queens": ("All ways to place queens on a board", "placement", 6, 11, 13),
    "uts": ("An unbalanced tree", "node", 50, 5000, 50_000),
    "merge_sort": ("Random numbers sorted by merging", "number", 10_000, 1_000_000, 10_000_000),
    "strassen": ("Strassen's product of matrices", "product", 128, 512, 2048),
    "sparselu": ("L and U of a sparse matrix of tiles", "operation", 4, 24, 64),
    "cholesky": ("The Cholesky factor of a matrix of tiles", "operation", 4, 16, 48),
    "health": ("Villages that send patients upwards", "step", 2, 5, 6),
    "floorplan": ("The smallest floor for some cells", "search", 3, 8, 10),
    "bfs": ("Shortest ways in an R-MAT graph", "edge", 8, 16, 20),
}


def task_cases(size):
    e = "9 task suites"
    fib = Case("fib", e, "Fibonacci numbers by their definition", "fib", "call", ("fork_join",), {"n": sized(size, 10, 32, 40)}, yardstick=True)
    return [fib] + [
        Case(name.replace("_", "-"), e, title, name, unit, ("fork_join", "scope"), {"size": sized(size, *sizes)}, yardstick=True,
             rounds_max=11, mallocs=True)
        for name, (title, unit, *sizes) in TASK_PROGRAMS.items()]


ALGORITHMS = {
    "for_each": "An addition to each element", "transform": "An addition to each element, written elsewhere",
    "reduce": "The sum of all elements", "count_if": "The number of elements below a border", "min_element": "The smallest element",
    "find": "A search for what is not there", "inclusive_scan": "All partial sums", "copy_if": "A copy of every second element or so",
    "histogram": "256 counts", "merge": "Two sorted halves merged", "sort": "Random numbers sorted",
    "stable_sort": "The same, stably", "partition": "Small elements first", "unique": "Neighbours that are equal removed",
    "triangle": "A loop whose elements take ever longer", "power_law": "A loop whose first elements take longest",
    "long_end": "A loop whose last element takes a quarter of the time",
}


def algorithm_cases(size):
    """Over 1,000 elements as over 10 million, with a cheap body and a dear one."""
    def one(name, title, elements, work, label):
        return Case(name.replace("_", "-"), "10 algorithms", title + f", {elements:,} of them, {label}", name, "element", ("parallel",),
                    {"size": elements, "work": work}, yardstick=True, rounds_max=11, label=f"{elements:,} {label}",
                    headline=elements > 1000)

    cases = []
    many = sized(size, 2000, 1_000_000, 10_000_000)
    for name, title in ALGORITHMS.items():
        if name in ("triangle", "power_law", "long_end"):
            cases.append(one(name, title, sized(size, 100, 10_000, 10_000), sized(size, 10, 1000, 1000), "uneven"))
            continue
        cases.append(one(name, title, many, 0, "cheap"))
        if size != "tiny":
            cases.append(one(name, title, 1000, 0, "cheap"))
        if size == "full" and name in ("for_each", "reduce", "count_if", "partition"):
            cases += [one(name, title, 1000, 100, "dear"), one(name, title, 1_000_000, 100, "dear")]
    cases.append(Case("wavefront", "10 algorithms", "A graph of tasks: a grid whose cells need those above and to the left", "wavefront", "task",
                      ("task_graph",), {"side": sized(size, 8, 64, 64), "work": 200}, yardstick=True, rounds_max=11))
    return cases


def small_cases(size):
    def messages(full):
        return {"messages": sized(size, 1000, full // 5, full)}

    def count(full, small=5):
        return {"count": sized(size, 1000, full // small, full)}

    e = "Switches and messages"
    return [
        Case("pingpong", e, "One message at a time, there and back, without a buffer", "pingpong", "message", ("channel",),
             messages(2_000_000), yardstick=True),
        Case("pingpong-buffered", e, "One message at a time, there and back, through buffers", "pingpong", "message", ("buffered",),
             messages(2_000_000)),
        Case("pingpong-actors", e, "One message at a time, from actor to actor", "pingpong", "message", ("actor",),
             messages(2_000_000), mallocs=True),
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
        Case("spawn", e, "Made, run, ended: one after the other", "spawn", "fiber", ("join",), count(1_000_000), mallocs=True),
        Case("spawn-batch", e, "Made, run, ended: a hundred at a time", "spawn", "fiber", ("batch_join", "detached"),
             count(1_000_000), mallocs=True),
        Case("timers", e, "Timers started and cancelled", "timers", "timer", ("cancel",), count(1_000_000)),
        Case("timers-fire", e, "Timers started and fired", "timers", "timer", ("fire",), count(1_000_000)),
        Case("memory", "Memory", "Parked lightweight threads, made cold", "memory", "fiber", ("channel", "parked"),
             count(1_000_000, 10), warmup=0, least_ms=0, metric="figures.resident_bytes_per_fiber",
             metric_title="resident bytes each", memory="figures.resident_bytes_per_fiber", rounds_max=5),
        Case("memory-actors", "Memory", "Actors with nothing to do, made cold", "idle_actors", "actor", ("idle",),
             count(1_000_000, 10), warmup=0, least_ms=0, metric="figures.resident_bytes_per_actor",
             metric_title="resident bytes each", memory="figures.resident_bytes_per_actor", rounds_max=5),
        Case("ticker", "Fairness", "A 1 ms ticker beside 8 that never give way", "ticker", "tick", ("channel", "sleep"),
             {"hogs": 8, "ticks": sized(size, 20, 1000, 3000)}, warmup=0, least_ms=0, metric="figures.lateness_p99_us",
             metric_title="99th percentile of the lateness of all due ticks, us", rounds_max=5, label="p99"),
        Case("ticker", "Fairness", "The same ticker: the tick that came latest", "ticker", "tick", ("sleep",),
             {"hogs": 8, "ticks": sized(size, 20, 1000, 3000)}, warmup=0, least_ms=0, metric="figures.lateness_max_us",
             metric_title="greatest lateness of all due ticks, us", rounds_max=5, label="worst"),
    ]


def savina_cases(size):
    """Classic actor programs."""
    def program(family, title, small, **full):
        parameters = {name: sized(size, max(2, value // 500), value // small if name in ("hops", "count", "messages", "pings", "meetings")
                                  else value, value) for name, value in full.items()}
        return Case(family, "Actor programs", title, family.replace("-", "_"), "message", ("actor",), parameters, mallocs=True)

    return [
        program("thread-ring", "A token goes round a ring of 100 actors", 5, nodes=100, hops=2_000_000),
        program("counting", "One actor sends increments to another, and asks", 2, count=1_000_000),
        program("fork-join-throughput", "Many messages to each of 60 actors", 2, actors=60, messages=10_000),
        program("big", "120 actors ping random others, and wait for each answer", 4, actors=120, pings=10_000),
        program("chameneos", "100 creatures meet in pairs and change colours", 4, creatures=100, meetings=200_000),
    ]


def supervision_cases(size):
    """Crashes that supervisors mend. What is compared is processor time: at a rate both sleep for most of the time."""
    e = "Supervision"
    processor = {"metric": "figures.processor_ns_per_crash", "metric_title": "ns of processor time a crash"}
    children = sized(size, 100, 10_000, 10_000)
    tree = {"children": children, "supervisors": sized(size, 4, 100, 100)}
    return [
        Case("supervision-rate", e, f"1,000 crashes a second in a tree of {children:,}", "supervision", "crash", ("tree",),
             {**tree, "rate": 1000, "count": sized(size, 20, 1000, 5000)}, warmup=0, rounds_max=11, **processor),
        Case("supervision", e, f"A tree of {children:,} in which 64 crash at a time", "supervision", "crash", ("tree",),
             {**tree, "count": sized(size, 100, 20_000, 200_000)}, **processor),
        Case("restart", e, "The 64 children of one supervisor crash", "supervision", "crash", ("restart",),
             {"count": sized(size, 100, 20_000, 200_000)}, **processor),
    ]


def all_cases(size):
    """In the order of a round and of the report. Throws KeyError for an unknown size."""
    return (tree_cases(size) + mixed_cases(size) + overhead_cases(size) + affinity_cases(size) + savina_cases(size)
            + supervision_cases(size) + task_cases(size) + algorithm_cases(size) + echo_cases(size) + http_cases(size)
            + files_cases(size) + across_cases(size) + small_cases(size))
