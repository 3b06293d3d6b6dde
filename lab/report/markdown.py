"""Six rows of a comparison as a table of Markdown, written into a document between two marks, so that no figure is typed by hand.

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
    peers: dict  # {system: (construct, styles)}


ROWS = (
    Front("memory", "a lightweight thread that waits: resident memory, bytes", "fiber", {
        "go": ("goroutine", ("channel",)), "tokio": ("task", ("mpsc",)), "erlang": ("process", ("message",)),
        "haskell": ("thread", ("mvar",)), "jdk_virtual": ("virtual thread", ("latch",)),
        "boost_fiber": ("fiber", ("round_robin",)), "std_thread": ("thread", ("threads",))}),
    Front("skynet-fork-join", "a tree of 10-way fork/join: ns a node", "`fork_join`", {
        "chili": ("`join`", ("join",)), "rayon": ("`join`", ("join",)), "onetbb": ("`task_group`", ("task_group", "parallel_invoke")),
        "openmp": ("task", ("task",)), "jdk_fork_join": ("`RecursiveAction`", ("fork",))}),
    Front("skynet", "the same tree, each node a lightweight thread that reports over a channel: ns a node", "fiber and `channel`", {
        "go": ("goroutine and `chan`", ("channel", "buffered")),
        "tokio": ("task and `mpsc`", ("mpsc", "current_thread-mpsc")),
        "haskell": ("thread and `MVar`", ("mvar", "chan")), "jdk_virtual": ("virtual thread and queue", ("queue",))}),
    Front("pingpong", "there and back over two channels without a buffer: ns a message", "`channel`", {
        "go": ("`chan`", ("channel",)), "haskell": ("`MVar`", ("mvar",)), "boost_fiber": ("`unbuffered_channel`", ("unbuffered",)),
        "jdk_virtual": ("`SynchronousQueue`", ("synchronous",))}),
    Front("stream", "one producer, one consumer, a buffer of 128: ns a message", "`channel`", {
        "go": ("`chan`", ("buffered",)), "tokio": ("`mpsc`", ("mpsc", "current_thread-mpsc")),
        "boost_fiber": ("`buffered_channel`", ("buffered",)), "jdk_virtual": ("`ArrayBlockingQueue`", ("buffered",))}),
    Front("pingpong-actors", "there and back between two actors: ns a message", "actor", {
        "erlang": ("process", ("message",)), "caf": ("actor", ("stealing", "sharing")), "pekko": ("actor", ("fork_join",))}),
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


def confirmed_by(results, other):
    """{(group, contestant)} in which ramie is better by these other results. Throws MarkdownError if they are of the same session."""
    began, other_began = (datetime.strptime(r["started"], "%Y-%m-%dT%H:%M:%S%z") for r in (results, other))
    if abs(other_began - began) < timedelta(hours=1):
        raise MarkdownError("--confirm: the two comparisons began less than an hour apart")
    m = model.Model(other)
    return {(line.group, line.contestant) for lines in m.lines.values() for line in lines
            if line.ratio and line.ratio.verdict == analysis.FASTER}


def key_of(case):
    return f"{case['family']} {case['label']}".strip()


def best_of(m, case, system, styles):
    """The line of the best of these styles; None if none of them has a ratio. Less is better in all rows."""
    lines = [line for line in m.lines[case["group"]] if model.system_of(line.contestant) == system and line.ratio
             and model.style_of(line.contestant) in styles]
    return compare_verdict.best_of(lines)


def peers_of(m, cases, front, confirmed):
    """[(ratios, text)]: one for each peer, the closest first."""
    found = []
    for system, (construct, styles) in front.peers.items():
        lines = [best_of(m, case, system, styles) for case in cases]
        if any(lines):
            ratios = [line.ratio for line in lines if line]
            cell = " / ".join(ratio_text(line, confirmed) if line else "-" for line in lines)
            found.append((ratios, f"{m.names[system].replace('|', chr(92) + '|')} {construct} {cell}"))
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
    if choice.get("runs", 1) != 1:
        words.append(f"--runs {choice['runs']}")
    return " ".join(words)


def machine_text(machine):
    """Processor, cores and kernel."""
    kernel = machine.get("kernel", "").removeprefix("Linux ").split("-")[0]
    return f"{machine.get('cpu', '?')}, {machine.get('cores_allowed', '?')} cores{f', Linux {kernel}' if kernel else ''}"


def verdict(results, other=None):
    """`other`: results of a second session. Throws MarkdownError."""
    m = model.Model(results)
    if not m.peers():
        raise MarkdownError("the results are of ramie alone; see ./run compare")
    table = table_of(m, confirmed_by(results, other) if other else set())
    machine = results["machine"]
    workers = sorted({case["workers"] for case in m.cases if not case["oversubscribed"]})
    rounds = max((sample["round"] for sample in results["samples"]), default=0) + 1
    loads = [sample["load"] for sample in results["samples"] if sample.get("load") is not None]
    versions = "; ".join(f"{peer['name']}: {peer['version']}" for peer in results["peers"].values() if peer.get("version"))
    all_cores = (f" {max(workers)} workers on {max(workers)} cores leave none for anything else on the machine."
                 if max(workers) == machine.get("cores_allowed") and max(workers) > 1 else "")
    load = analysis.median(loads) if loads else 0
    busy = (" **The machine was busy with other programs, so all times are too long; read the ratios only.**"
            if load > 1 + (machine.get("cores_allowed") or 1) else "")
    bold = (f"Bold: ramie is better in this session and in that of {other['started'][:16].replace('T', ' ')}." if other else
            "Nothing is bold, for this is one session: another hour may give other ratios.")
    return (f"{table}\n\n"
            f"{' / '.join(map(str, workers))} worker{'s' if max(workers) > 1 else ''}; lower is better. `4x`: the peer takes four times what "
            f"ramie takes, each in the fastest style that we wrote for it. A ratio is the median of up to {rounds} paired runs. "
            f"{bold} ≈: no difference could be measured."
            f"{all_cores} Other machines give other ratios.{busy}\n\n"
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


def run(results_path, other_path, into):
    """The table on standard output, or in a document."""
    text = verdict(store.load(results_path), store.load(other_path) if other_path else None)
    if into is None:
        print(text, end="")
    else:
        write_into(into, text)
        print(into)
