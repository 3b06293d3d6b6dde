"""Skynet by policy, stacks and malloc, as in the table of Boost.Fiber's performance page."""

from compare.analysis import number

from report import page
from report.page import Cell

# "fresh" is in results of before 0.1 only.
OWN_STACKS = {"": "pooled, guarded", "pooled": "pooled", "fresh": "mapped anew, guarded"}
PEER_STACKS = {"mapped": "mapped anew, guarded", "pooled": "pooled"}


def parts_of(contestant):
    """(system, policy, stacks, malloc): "ramie/channel@round_robin~fresh+mimalloc" as in the table."""
    rest, _, malloc = contestant.partition("+")
    system, _, style = rest.partition("/")
    if system == "ramie":
        style, _, stacks = style.partition("~")
        style, _, placement = style.partition("@")
        return system, f"{placement or 'work_stealing'}, {style}", OWN_STACKS.get(stacks, stacks), malloc or "glibc"
    policy, *more = style.split("-")
    stacks = next((PEER_STACKS[word] for word in more if word in PEER_STACKS), "malloc")
    form = [word for word in more if word not in PEER_STACKS]
    return system, ", ".join([policy, *form]), stacks, malloc or "glibc"


def name_of(names, contestant):
    """In the words of the table: "ramie round_robin, channel; mapped anew, guarded; mimalloc"."""
    who, policy, stacks, malloc = parts_of(contestant)
    return f"{names.get(who, who)} {policy}; {stacks}; {malloc}"


def table_of(m, case):
    """A row for each system, policy and kind of stacks, a column for each malloc."""
    mallocs, rows = [], {}
    for line in m.lines[case["group"]]:
        who, policy, stacks, malloc = parts_of(line.contestant)
        if malloc not in mallocs:
            mallocs.append(malloc)
        rows.setdefault((who, policy, stacks), {})[malloc] = line
    best = {malloc: min((cells[malloc].value for (who, _, _), cells in rows.items()
                         if who == "ramie" and malloc in cells and cells[malloc].value is not None), default=None)
            for malloc in mallocs}
    out = []
    for (who, policy, stacks), cells in rows.items():
        row = [Cell(m.names.get(who, who), policy, "name"), Cell(stacks, kind="text")]
        for malloc in mallocs:
            line = cells.get(malloc)
            if line is None:
                row.append("")
            elif line.value is None:
                row.append(Cell("failed", title=line.error))
            else:
                beside = f"{number(line.value / best[malloc])} x" if who != "ramie" and best[malloc] else ""
                row.append(Cell(number(line.value), beside, title=line.contestant))
        out.append(row)
    workers = f"{case['workers']} worker{'s' if case['workers'] > 1 else ''}"
    return page.table([workers, "stacks", *mallocs], out)


def table(m, by_workers):
    """One for each number of workers."""
    return ('<p class="soft">ns a fiber, medians, by malloc; below those of others: how many times the best of ramie\'s with that malloc '
            "and number of workers it is.</p>\n" + "".join(table_of(m, case) for case in by_workers.values()))
