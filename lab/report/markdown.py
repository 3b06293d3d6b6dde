"""The verdict as a table of Markdown, written into a document between two marks, so that no figure there is typed by hand."""

from pathlib import Path

from compare import analysis, store
from compare.analysis import number

from report import model

BEGIN, END = "<!-- verdict: by ./run report --markdown -->", "<!-- end of verdict -->"

# What a reader of a front page wants to know; the page of HTML has all of it.
CASES = ("skynet", "skynet-fork-join", "sum", "mixed messages", "mixed whole", "overhead n=1 x=100000", "overhead n=100 x=100000",
         "affinity actors=24 state=32000 accesses=100 alone", "affinity actors=24 state=32000 accesses=100 talking", "thread-ring",
         "counting", "big", "pingpong", "pingpong-actors", "stream", "select", "mpmc", "mutex", "yield", "spawn", "timers", "memory",
         "memory-actors", "ticker")
# A column each; others are named in the last one.
COLUMNS = ("go", "erlang", "caf", "boost_fiber", "tokio", "haskell", "pekko", "jdk_virtual")
OTHERS_SHOWN = 3  # the closest ones


class MarkdownError(Exception):
    """A document without marks, or results that are no comparison."""


def ratio_text(ratio):
    """Bold where ramie is better beyond doubt; the sign says that nothing can be said."""
    if ratio.verdict == analysis.UNDECIDED:
        return f"≈ {number(ratio.ratio)}"
    return f"**{number(ratio.ratio)}**" if ratio.verdict == analysis.FASTER else f"{number(ratio.ratio)} (worse)"


def joined(parts):
    """Of one and two workers, say; one text where there is one."""
    return " / ".join(parts) if any(part != "-" for part in parts) else ""


def key_of(case):
    return f"{case['family']} {case['label']}".strip()


def cell_of(lines):
    return joined([ratio_text(line.ratio) if line and line.ratio else "failed" if line and line.error else "-" for line in lines])


def others_of(m, cases, shown):
    """By how close they come to ramie, on the greatest number of workers."""
    found = []
    for peer in m.peers():
        if peer in shown:
            continue
        lines = [m.best(case, peer) for case in cases]
        if ratios := [line.ratio.ratio for line in lines if line and line.ratio]:
            found.append((ratios[-1], f"{m.names[peer]} {cell_of(lines)}"))
    return ", ".join(text for _, text in sorted(found)[:OTHERS_SHOWN])


def row_of(m, cases, columns):
    own = [m.lines[case["group"]][0] for case in cases]
    unit = cases[0]["metric_title"]
    cells = [f"{cases[0]['title']}, {unit}", joined([number(line.value) if line.value is not None else "-" for line in own])]
    cells += [cell_of([m.best(case, peer) for case in cases]) for peer in columns]
    return cells + [others_of(m, cases, columns)]


def table_of(m):
    by_key = {}
    for case in m.cases:
        if not case["oversubscribed"]:
            by_key.setdefault(key_of(case), []).append(case)
    columns = [peer for peer in COLUMNS if peer in m.peers()]
    rows = [["", "ramie", *(m.names[peer] for peer in columns), "others, the closest"], ["---"] * (len(columns) + 3)]
    rows += [row_of(m, sorted(by_key[key], key=lambda case: case["workers"]), columns) for key in CASES if key in by_key]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def verdict(results):
    """Throws MarkdownError."""
    m = model.Model(results)
    if not m.peers():
        raise MarkdownError("the results are of ramie alone; see ./run compare")
    counts = m.tally()
    machine = results["machine"]
    workers = sorted({case["workers"] for case in m.cases if not case["oversubscribed"]})
    rounds = max((sample["round"] for sample in results["samples"]), default=0) + 1
    loads = [sample["load"] for sample in results["samples"] if sample.get("load") is not None]
    command = "./run compare" if results["choice"].get("size") == "quick" else f"./run compare --{results['choice'].get('size')}"
    return (f"In {sum(counts.values())} comparisons with the best style of each peer ramie was better in {counts[analysis.FASTER]}, worse in "
            f"{counts[analysis.SLOWER]}, and in {counts[analysis.UNDECIDED]} the measurements do not tell them apart.\n\n{table_of(m)}\n\n"
            f"ramie's own figure, then how many times as much others take, on {' / '.join(map(str, workers))} worker"
            f"{'s' if max(workers) > 1 else ''}: medians of pairs that ran one after the other, up to {rounds} of them. Bold: the 95 % interval "
            f"leaves no doubt; ≈: it does not tell them apart. By `{command}`, {results['started'][:10]}, ramie "
            f"{machine.get('ramie_revision', '?')}, {machine.get('cpu', '?')}, {machine.get('cores_allowed', '?')} cores, load average "
            f"{number(analysis.median(loads)) if loads else '?'}.\n")


def write_into(path, text):
    """Puts it between the marks. Throws MarkdownError, OSError."""
    path = Path(path)
    document = path.read_text(encoding="utf-8")
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise MarkdownError(f"{path}: has not one line '{BEGIN}' and after it one '{END}'")
    before, rest = document.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}", encoding="utf-8")


def run(results_path, into):
    """The verdict on standard output, or in a document."""
    text = verdict(store.load(results_path))
    if into is None:
        print(text, end="")
    else:
        write_into(into, text)
        print(into)
