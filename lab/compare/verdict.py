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


def lines_of(results, case):
    """One for each contestant of the case, the reference first."""
    by_contestant = store.samples_of(results, case["group"])
    reference = analysis.values_by_round(by_contestant.get(case["reference"], []), case["metric"])
    lines = []
    for key in case["contestants"]:
        samples = by_contestant.get(key, [])
        values = analysis.values_by_round(samples, case["metric"])
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
            ratio=None if is_reference else analysis.paired_ratio(reference, values, case["more_is_better"]),
            error=errors[0] if errors else "",
        ))
    return lines


def best_of_system(results, case, system):
    """The line of a system's best contestant; None if none is correct."""
    lines = [line for line in lines_of(results, case)
             if line.contestant.split("/")[0] == system and line.value is not None]
    if not lines:
        return None
    sign = -1 if case["more_is_better"] else 1
    return min(lines, key=lambda line: sign * line.value)


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
    for case in results["cases"]:
        marks = ", more workers than cores" if case["oversubscribed"] else ""
        out.append(f"\n{case['experiment']}: {case['title']} ({case['group']}{marks}), {case['metric_title']}")
        for line in lines_of(results, case):
            value = analysis.number(line.value)
            noise = f"+-{line.spread * 50:.0f}%" if line.spread is not None else ""
            memory = analysis.readable_bytes(line.peak_rss_bytes) if line.peak_rss_bytes else ""
            out.append(f"  {line.contestant:<34} {value:>10} {noise:>7} {memory:>10}  {says(line)}")
    return "\n".join(out)
