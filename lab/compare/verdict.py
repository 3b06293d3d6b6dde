"""The outcome of a comparison: each contestant beside ramie's reference, by group."""

from dataclasses import dataclass

from compare import analysis, store


@dataclass(frozen=True)
class Line:
    group: str
    contestant: str
    is_reference: bool
    value: float | None  # median of the case's metric
    spread: float | None
    rounds: int
    peak_rss_bytes: float | None
    ratio: analysis.Ratio | None  # of the reference's pairs; None for the reference itself, or without pairs
    error: str
    first: float | None = None  # the metric in the first round, by which the best style of a system is chosen


def has_a_choice(case):
    """Whether a system takes part with several styles."""
    systems = [key.split("/")[0] for key in case["contestants"]]
    return len(systems) > len(set(systems))


def later(values, case):
    """Without the first round, where that chose among styles: the best of several is best by luck, too. With the first round alone,
    there is nothing else."""
    rest = {number: value for number, value in values.items() if number > 0}
    return rest if rest and has_a_choice(case) else values


def limit_of(results):
    """The p-value up to which a ratio of these results is a difference; see analysis.limit_of()."""
    lines = [line for case in results["cases"] for line in lines_of(results, case)]
    return analysis.limit_of([line.ratio.p for line in lines if line.ratio and line.ratio.low is not None])


def lines_of(results, case, limit=1 - analysis.CONFIDENCE):
    """One for each contestant of the case, the reference first. `limit`: see limit_of()."""
    by_contestant = store.samples_of(results, case["group"])
    reference = analysis.values_by_round(by_contestant.get(case["reference"], []), case["metric"])
    lines = []
    for key in case["contestants"]:
        samples = by_contestant.get(key, [])
        all_values = analysis.values_by_round(samples, case["metric"])
        values = later(all_values, case)
        ratio = None if key == case["reference"] else analysis.paired_ratio(reference, values, case["more_is_better"])
        memory = analysis.values_by_round(samples, "peak_rss_bytes")
        is_reference = key == case["reference"]
        errors = [sample.get("error") or "wrong result" for sample in samples if not sample["ok"]]
        lines.append(Line(
            group=case["group"],
            contestant=key,
            is_reference=is_reference,
            value=analysis.median(values.values()) if values else None,
            spread=analysis.spread(values.values()) if values else None,
            rounds=len(values),
            peak_rss_bytes=analysis.median(memory.values()) if memory else None,
            ratio=ratio and ratio.among(limit),
            error=errors[0] if errors else "",
            first=all_values.get(0),
        ))
    return lines


def best_of(lines, more_is_better=False):
    """The line of the best style, by the first round where all of them have one; None if there is none."""
    lines = [line for line in lines if line.value is not None]
    by_first = all(line.first is not None for line in lines)
    return min(lines, key=lambda line: (line.first if by_first else line.value) * (-1 if more_is_better else 1), default=None)


def says(line):
    if line.error:
        return f"FAILED: {line.error}"
    if line.is_reference:
        return "the reference"
    if line.ratio is None:
        return "no pair"
    own = line.contestant.startswith("ramie/")
    word = {analysis.FASTER: "worse than the reference" if own else "ramie is better",
            analysis.SLOWER: "better than the reference" if own else "ramie is worse",
            analysis.UNDECIDED: analysis.UNDECIDED}[line.ratio.verdict]
    return f"{line.ratio.text()}  {word}"


def summary_table(results):
    """For a terminal."""
    out = []
    limit = limit_of(results)
    for case in results["cases"]:
        marks = ", more workers than cores" if case["oversubscribed"] else ""
        out.append(f"\n{case['experiment']}: {case['title']} ({case['group']}{marks}), {case['metric_title']}")
        for line in lines_of(results, case, limit):
            value = analysis.number(line.value)
            noise = f"+-{line.spread * 50:.0f}%" if line.spread is not None else ""
            memory = analysis.readable_bytes(line.peak_rss_bytes) if line.peak_rss_bytes else ""
            out.append(f"  {line.contestant:<34} {value:>10} {noise:>7} {memory:>10}  {says(line)}")
    return "\n".join(out)
