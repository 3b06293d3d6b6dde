"""Some rows of a comparison as a table of Markdown, written into a document between two marks, so that no figure is typed by hand.

Each row compares one construct with the same construct of others: fork/join with fork/join, channels with channels. A peer
counts with the best of the styles named here, and the row names its construct.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from compare import analysis, store
from compare import verdict as compare_verdict
from compare.analysis import number

from report import model

BEGIN, END = "<!-- verdict: by ./run report --markdown -->", "<!-- end of verdict -->"


@dataclass(frozen=True)
class Front:
    """A row: a case, its description, and the styles by which each peer counts."""

    case: str
    text: str
    construct: str  # of ramie
    peers: dict  # {system: its construct}


ROWS = (
    *(Front(f"ticker {which}", f"a 1 ms ticker beside eight that never give way, all due ticks counted: {words}, us", "`sleep_until`", {
        "go": "`time.Ticker` or `time.Sleep`", "erlang": "message from a timer"})
      for which, words in (("p99", "99th percentile of the lateness"), ("worst", "lateness of the latest"))),
    Front("memory", "a lightweight thread that waits: resident memory, bytes", "fiber", {
        "go": "goroutine", "tokio": "task", "smol": "task", "kotlin": "coroutine", "erlang": "process", "haskell": "thread", "jdk_virtual": "virtual thread",
        "boost_fiber": "fiber", "std_thread": "thread"}),
    Front("skynet-fork-join", "a tree of 10-way fork/join: ns a node", "`fork_join`", {
        "chili": "`join`", "rayon": "fork/join", "onetbb": "fork/join", "openmp": "task", "jdk_fork_join": "`RecursiveAction`"}),
    *(Front(f"skynet-bursts {leaves} leaves", f"a tree of 10-way fork/join with {leaves} leaves, in bursts with 2 ms of nothing between them: ns a node",
            "`fork_join`", {"chili": "`join`", "rayon": "fork/join", "onetbb": "fork/join", "openmp": "task",
                            "jdk_fork_join": "`RecursiveAction`"}) for leaves in ("10,000", "100,000")),
    Front("skynet-channel", "a tree of ten children a node, each a lightweight thread that reports over a channel: ns a node", "fiber and `channel`", {
        "go": "goroutine and `chan`", "tokio": "task and channel", "smol": "task and channel", "rust_channels": "task and channel",
        "kotlin": "coroutine and `Channel`", "haskell": "thread", "jdk_virtual": "virtual thread and queue",
        "boost_fiber": "fiber and `buffered_channel`", "may": "coroutine and `mpsc`"}),
    Front("pingpong", "there and back over two channels without a buffer: ns a message", "`channel`", {
        "go": "`chan`", "rust_channels": "channel", "kotlin": "`Channel`", "boost_fiber": "`unbuffered_channel`", "jdk_virtual": "`SynchronousQueue`"}),
    Front("stream", "one producer, one consumer, a buffer of 128: ns a message", "`channel`", {
        "go": "`chan`", "tokio": "`mpsc`", "smol": "channel", "rust_channels": "channel", "kotlin": "`Channel`", "boost_fiber": "`buffered_channel`",
        "jdk_virtual": "`ArrayBlockingQueue`"}),
    Front("pingpong-actors", "there and back between two actors: ns a message", "actor", {
        "erlang": "process", "caf": "actor", "pekko": "actor", "ractor": "actor"}),
)  # fmt: skip


class MarkdownError(Exception):
    """The document has no marks, or the results are no comparison."""


def ratio_text(line, confirmed):
    """Bold where ramie is better in a second session too; the sign means that no difference can be shown."""
    ratio = line.ratio
    if ratio.verdict == analysis.UNDECIDED:
        return f"≈ {number(ratio.ratio)}x"
    if ratio.verdict == analysis.SLOWER:
        return f"{number(ratio.ratio)}x (ramie is worse)"
    return f"**{number(ratio.ratio)}x**" if (line.group, line.contestant) in confirmed else f"{number(ratio.ratio)}x"


# A machine's state, and what else runs on its host, lasts for minutes; 45 of them are a guess.
SESSIONS_APART = timedelta(minutes=45)


def began(results):
    return datetime.strptime(results["started"], "%Y-%m-%dT%H:%M:%S%z")


def confirmed_by(results, other):
    """{(group, contestant)} in which ramie is better by these other results. Throws MarkdownError if they are of the same session."""
    if abs(began(other) - began(results)) < SESSIONS_APART:
        raise MarkdownError(f"--confirm: the two comparisons began less than {SESSIONS_APART.seconds // 60} minutes apart")
    m = model.Model(other)
    return {(line.group, line.contestant) for lines in m.lines.values() for line in lines
            if line.ratio and line.ratio.verdict == analysis.FASTER}


def key_of(case):
    return f"{case['family']} {case['label']}".strip()


def offered(m, case, system):
    """The lines of a system's styles."""
    return [line for line in m.lines[case["group"]] if model.system_of(line.contestant) == system]


def best_of(lines):
    """None if none of them has a ratio. Less is better in all rows."""
    return compare_verdict.best_of([line for line in lines if line.ratio])


def conditions(m, front, system, choices, best):
    """In brackets: which style won, where there was a choice, and what is smaller for this peer."""
    said = []
    if any(len(lines) > 1 for lines in choices):
        styles = [model.style_of(line.contestant).replace("+", " with ") for line in best if line]
        said.append(" / ".join(styles if len(set(styles)) > 1 else styles[:1]))
    smaller = m.results["peers"][system].get("parameters", {}).get(front.case, {})
    said += [f"{int(value):,} {name}" for name, value in smaller.items()]
    return f" ({'; '.join(said)})" if said else ""


def peers_of(m, cases, front, confirmed):
    """[(ratios, text)]: one for each peer, the closest first."""
    found = []
    for system, construct in front.peers.items():
        choices = [offered(m, case, system) for case in cases]
        lines = [best_of(choice) for choice in choices]
        if any(lines):
            ratios = [line.ratio for line in lines if line]
            cell = " / ".join(ratio_text(line, confirmed) if line else "-" for line in lines)
            how = conditions(m, front, system, choices, lines)
            found.append((ratios, f"{m.names[system].replace('|', chr(92) + '|')} {construct}{how} {cell}"))
    return sorted(found, key=lambda peer: min(ratio.ratio for ratio in peer[0]))


def standing(peers):
    """The sort key of rows: first those in which a peer is better, then undecided ones, then those that ramie wins."""
    verdicts = {ratio.verdict for ratios, _ in peers for ratio in ratios}
    return 0 if analysis.SLOWER in verdicts else 1 if analysis.UNDECIDED in verdicts else 2


def table_of(m, confirmed):
    by_key = {}
    for case in m.cases:
        if not case["oversubscribed"]:
            by_key.setdefault(key_of(case), []).append(case)
    rows = []
    for front in ROWS:
        cases = sorted(by_key.get(front.case, []), key=lambda case: case["workers"])
        peers = peers_of(m, cases, front, confirmed)
        if peers:
            own = " / ".join(number(m.lines[case["group"]][0].value) for case in cases)
            rows.append((standing(peers), f"| {front.text} | {front.construct} {own} | {'<br>'.join(text for _, text in peers)} |"))
    if not rows:
        raise MarkdownError("the results have none of the rows of the table; see ./run compare")
    rows.sort(key=lambda row: row[0])
    return "\n".join(["| | ramie | peers, relative to ramie |", "| --- | --- | --- |", *(text for _, text in rows)])


def command_of(choice):
    words = ["./run compare"]
    if choice.get("size") != "quick":
        words.append(f"--{choice.get('size')}")
    if choice.get("workloads"):
        words.append(f"--workload {','.join(choice['workloads'])}")
    if choice.get("peers"):
        words.append(f"--peers {','.join(choice['peers'])}")
    if choice.get("runs", 1) != 1:
        words.append(f"--runs {choice['runs']}")
    return " ".join(words)


def machine_text(machine):
    """Processor, cores and kernel."""
    kernel = machine.get("kernel", "").removeprefix("Linux ").split("-")[0]
    return f"{machine.get('cpu', '?')}, {machine.get('cores_allowed', '?')} cores{f', Linux {kernel}' if kernel else ''}"


def verdict(results, others=()):
    """`others`: results of a second session, which may have been measured in parts. Throws MarkdownError."""
    m = model.Model(results)
    if not m.peers():
        raise MarkdownError("the results are of ramie alone; see ./run compare")
    table = table_of(m, set().union(*(confirmed_by(results, other) for other in others)))
    machine = results["machine"]
    workers = sorted({case["workers"] for case in m.cases if not case["oversubscribed"]})
    rounds = max((sample["round"] for sample in results["samples"]), default=0) + 1
    loads = [sample["load"] for sample in results["samples"] if sample.get("load") is not None]
    versions = "; ".join(f"{peer['name']}: {peer['version']}" for peer in results["peers"].values()
                         if peer.get("version") and peer["name"].replace("|", "\\|") in table)
    all_cores = (f" {max(workers)} workers on {max(workers)} cores leave none for anything else on the machine."
                 if max(workers) == machine.get("cores_allowed") and max(workers) > 1 else "")
    load = analysis.median(loads) if loads else 0
    busy = (" **The machine was busy with other programs, so all times are too long; read the ratios only.**"
            if load > 1 + (machine.get("cores_allowed") or 1) else "")
    apart = min((abs(began(other) - began(results)).seconds // 60 for other in others), default=0)
    bold = (f"Bold: ramie is better in this session and in another, which began {apart} minutes before or after it." if others else
            "Nothing is bold, for this is one session: another hour may give other ratios.")
    return (f"{table}\n\n"
            f"{' / '.join(map(str, workers))} worker{'s' if max(workers) > 1 else ''}; lower is better. `4x`: the peer takes four times what "
            f"ramie takes, each in the fastest style that we wrote for it. A ratio is the median of up to {rounds} paired runs. "
            f"{bold} ≈: no difference could be measured."
            f"{all_cores} Other machines, and other hours, give other ratios; those near 1 may turn.{busy}\n\n"
            f"Measured by `{command_of(results['choice'])}`, {results['started'][:10]}, ramie {machine.get('ramie_revision', '?')}, on "
            f"{machine_text(machine)}, load average {number(load) if loads else '?'}."
            f"{f' {versions}.' if versions else ''}\n")


def write_into(path, text):
    """Puts it between the marks. Throws MarkdownError, OSError."""
    path = Path(path)
    document = path.read_text(encoding="utf-8")
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise MarkdownError(f"{path}: must have one line '{BEGIN}' and after it one '{END}'")
    before, rest = document.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}", encoding="utf-8")


def run(results_path, other_paths, into):
    """The table on standard output, or in a document."""
    text = verdict(store.load(results_path), [store.load(path) for path in other_paths])
    if into is None:
        print(text, end="")
    else:
        write_into(into, text)
        print(into)
