"""The page's parts as HTML: ramie beside others, a chapter for each experiment, the method."""

from compare import analysis
from compare.analysis import number, readable_bytes

from report import charts, matrix, model, opening, page, published
from report.page import Cell, text

KINDS = {analysis.FASTER: "better", analysis.SLOWER: "worse", analysis.UNDECIDED: "even"}
SMALL = "Switches and messages"


def workers_text(n):
    return f"{n} worker" if n == 1 else f"{n} workers"


def workers_of(case):
    return workers_text(case["workers"]) + (" (more than cores)" if case["oversubscribed"] else "")


def ratio_cell(line):
    if line is None or (line.ratio is None and not line.error):
        return Cell("")
    if line.ratio is None:
        return Cell("failed", title=line.error)
    ratio = line.ratio
    if ratio.low is None:
        return Cell(f"{number(ratio.ratio)} x", "one pair", "even", line.contestant)
    return Cell(f"{number(ratio.ratio)} x", f"{number(ratio.low)} to {number(ratio.high)}", KINDS[ratio.verdict],
                f"{line.contestant}: {ratio.verdict}, {ratio.pairs} pairs")


def numbers_alone(m):
    """Rows of ramie's styles beside plain calls."""
    rows = []
    for case in m.cases:
        plain = m.samples(case, "ramie/plain", "ns_per_unit")
        for line in m.lines[case["group"]]:
            if line.contestant == "ramie/plain":
                continue
            each = m.samples(case, line.contestant, "ns_per_unit")
            times = number(analysis.median(each) / analysis.median(plain)) + " x" if plain and each else ""
            rows.append([Cell(case["title"], workers_text(case["workers"]), "name"), model.style_of(line.contestant),
                         Cell(number(line.value), case["metric_title"]), times,
                         readable_bytes(line.peak_rss_bytes) if line.peak_rss_bytes else "-", line.error])
    return rows


def verdict(m):
    if not m.peers():
        return f'<h2 id="verdict">In short</h2>\n{opening.pictures(m)}'
    out = ['<h2 id="verdict">Beside others</h2>\n<p class="soft">How many times better ramie is: time, bytes or lateness of the peer by those of ramie\'s first style, median '
           "of pairs that ran one after the other, and its 95 % interval. "
           '<span class="key" style="background:var(--good-paper);color:var(--good)">better</span> '
           '<span class="key" style="background:var(--bad-paper);color:var(--bad)">worse</span> '
           '<span class="key" style="background:var(--even-paper)">not distinguishable</span></p>\n']
    peers = m.peers()
    rows = []
    for case in m.cases:
        own = m.lines[case["group"]][0]
        mark = " *" if case["oversubscribed"] else ""
        lines = [m.best(case, peer) for peer in peers]
        if not any(lines) or not case["headline"]:
            continue
        rows.append([Cell(case["title"], f"{workers_text(case['workers'])}{mark}", "name"),
                     Cell(number(own.value), case["metric_title"])] + [ratio_cell(line) for line in lines])
    out.append(page.table(["", "ramie"] + [m.names[peer] for peer in peers], rows))
    if any(case["oversubscribed"] for case in m.cases):
        out.append('<p class="soft">* more workers than cores</p>\n')
    return "".join(out)


def numbers_of(m, case):
    """Rows for the table behind a chart."""
    rows = []
    for line in m.lines[case["group"]]:
        rows.append([m.name(line.contestant), case["workers"], number(line.value),
                     f"{line.spread * 100:.0f} %" if line.spread is not None else "-", line.rounds,
                     readable_bytes(line.peak_rss_bytes) if line.peak_rss_bytes else "-",
                     line.ratio.text() if line.ratio else "", line.error])
    return rows


NUMBER_COLUMNS = ("", "workers", "median", "spread", "rounds", "peak memory", "ratio", "")


def dot_chart(m, name, by_workers, metric, label, caption, scale=1):
    """One row a contestant, a dot for each number of workers."""
    is_matrix = next(iter(by_workers.values()))["family"] == "skynet-matrix"
    contestants = []
    for case in by_workers.values():
        contestants += [c for c in case["contestants"] if c not in contestants]
    series = [workers_of(case) for case in by_workers.values()]
    rows = []
    for contestant in contestants:
        values = {workers_of(case): tuple(v / scale for v in found) for case in by_workers.values()
                  if (found := m.range_of(case, contestant, metric)) and found[1] > 0}
        if values:
            called = matrix.name_of(m.names, contestant) if is_matrix else m.name(contestant)
            rows.append((called, m.colour(contestant), values))
    if not rows:
        return ""
    rows.sort(key=lambda row: min(v[0] for v in row[2].values()))
    numbers = [row for case in by_workers.values() for row in numbers_of(m, case)]
    return page.chart(charts.dots(name, rows, series, label), caption, NUMBER_COLUMNS, numbers)


def case_section(m, by_workers):
    """A chart of the case's own metric, and one of memory if several peers report it."""
    first = next(iter(by_workers.values()))
    key = f"{first['family']} {first['label']}".strip()
    better = "more is better" if first["more_is_better"] else "less is better"
    others = model.other_sizes(m.results, first)
    out = [f"<h3>{text(first['title'])}</h3>\n<p class=\"soft\">{text(model.parameters_text(first))}{text(f' (but {others})' if others else '')}</p>\n",
           matrix.table(m, by_workers) if first["family"] == "skynet-matrix" else "",
           dot_chart(m, key, by_workers, first["metric"], first["metric_title"],
                     f"{first['metric_title']}, {better}; dots are medians, lines reach from the least to the most")]
    if first["experiment"] in ("1 skynet", "2 sum"):
        out.append(dot_chart(m, f"{key} memory", by_workers, "peak_rss_bytes", "MiB, peak of the process",
                             "peak memory of the whole process, less is better", 2**20))
    return "".join(out)


def against_workers(m, by_workers):
    """Time and memory against the number of workers, as on libcsp's page."""
    # For ramie alone on two numbers of workers the chart of dots shows as much.
    if len(by_workers) < (2 if m.peers() else 3):
        return ""
    first = next(iter(by_workers.values()))
    panels = []
    for title, metric, scale in ((first["metric_title"], first["metric"], 1), ("peak memory, MiB", "peak_rss_bytes", 2**20)):
        drawn = {}
        for workers, case in by_workers.items():
            for contestant in case["contestants"]:
                found = m.range_of(case, contestant, metric)
                if found and not contestant.endswith("/plain"):
                    drawn.setdefault(contestant, {})[workers] = found[0] / scale
        panels.append((title, [(m.name(c), m.colour(c), values) for c, values in drawn.items() if len(values) > 1]))
    rows = [row for case in by_workers.values() for row in numbers_of(m, case)]
    cores = max((n for n, case in by_workers.items() if not case["oversubscribed"]), default=0)
    over = f"; beyond {cores} there are more workers than cores" if any(c["oversubscribed"] for c in by_workers.values()) else ""
    return page.chart(charts.lines(f"{first['family']} against workers", panels, "workers", "", xlog=False, ylog=True,
                                   same_y=False),
                      f"against the number of workers{over}", NUMBER_COLUMNS, rows)


def mixed_parts(m, cases):
    """Messages and factorisation stacked, if both were measured in the same size."""
    found = m.families(cases)
    messages, whole = found.get(("mixed", "messages")), found.get(("mixed", "whole"))
    if not messages or not whole:
        return ""
    first = next(iter(whole.values()))
    out = f"<h3>{text(first['title'])}</h3>\n<p class=\"soft\">{text(model.parameters_text(first))}</p>\n"
    for workers, case in whole.items():
        if workers not in messages:
            continue
        alike = model.same_size(messages[workers], case)
        rows = []
        for contestant in case["contestants"]:
            total = m.range_of(case, contestant, "seconds")
            part = m.range_of(messages[workers], contestant, "seconds") if alike else None
            if total:
                values = [part[0], max(0.0, total[0] - part[0])] if part else [total[0]]
                rows.append((m.name(contestant), m.colour(contestant), values))
        if rows:
            rows.sort(key=lambda row: sum(row[2]))
            parts = ("messages alone", "more with the factorisation") if alike else ("all together",)
            out += page.chart(charts.stacked(f"mixed parts {workers}", rows, parts, f"seconds, {workers_text(workers)}"),
                              f"the mixed case on {workers_text(workers)}", NUMBER_COLUMNS, numbers_of(m, case))
    return out


def roots_text(n):
    return "one square root" if n == 1 else f"{n:,} square roots"


def overhead_panels(m, cases):
    """([(title, lines)], rows of numbers): a line for each n, a panel for each contestant."""
    panels, numbers = {}, []
    for case in cases:
        n, x = case["parameters"]["n"], case["parameters"]["x"]
        numbers += [[row[0], workers_text(case["workers"]), roots_text(n), f"{x:,}", *row[2:5]] for row in numbers_of(m, case)]
        for contestant in case["contestants"]:
            found = m.range_of(case, contestant, case["metric"])
            if found:
                title = m.name(contestant) if m.peers() else workers_text(case["workers"])
                panels.setdefault(title, {}).setdefault(n, {})[x] = found[0]
    drawn = [(title, [(f"{roots_text(n)} each", index + 1, values) for index, (n, values) in enumerate(sorted(by_n.items()))])
             for title, by_n in panels.items()]
    return drawn, numbers


def overhead_chapter(m, cases):
    """The share of the direct speed against X: a chart for each number of workers, or one for all if ramie is alone."""
    out = ""
    workers = sorted({case["workers"] for case in cases})
    groups = [(workers_text(n), [case for case in cases if case["workers"] == n]) for n in workers]
    if not m.peers():
        groups = [("", cases)]
    for where, group in groups:
        panels, numbers = overhead_panels(m, group)
        if panels:
            out += page.chart(charts.lines(f"overhead {where}", panels, "how many, one goroutine (here: fiber) each", "share of direct speed",
                                           percent=True),
                              f"how much of the speed of direct calls is left{f' on {where}' if where else ''}, by how much each fiber does",
                              ("", "workers", "work", "how many", "share kept", "spread", "rounds"), numbers)
    return out


def affinity_chart(m, cases, name, caption):
    """Small multiples against the state's size."""
    panels, numbers = {}, []
    for case in cases:
        p = case["parameters"]
        numbers += [[row[0], p["actors"], f"{p['state']:,}", p["accesses"], *row[2:5], row[6]] for row in numbers_of(m, case)]
        for contestant in case["contestants"]:
            found = m.range_of(case, contestant, case["metric"])
            if found:
                title = f"{p['actors']:,} actors, {p['accesses']} accesses"
                panels.setdefault(title, {}).setdefault(contestant, {})[p["state"]] = found[0]
    # The same colour for a contestant in all panels.
    colours = {c: index for index, c in enumerate(dict.fromkeys(c for by in panels.values() for c in by))}
    drawn = [(title, [(m.name(c), colours[c] % 20, values) for c, values in by.items()]) for title, by in panels.items()]
    if not drawn:
        return ""
    return page.chart(charts.lines(name, drawn, "bytes of state", "ns a message", ylog=True), caption,
                      ("", "actors", "state", "accesses", "ns", "spread", "rounds", "ratio"), numbers)


def affinity_chapter(m, cases):
    """Actors that wake themselves, as in the original, and actors woken by others."""
    out = ""
    for talking, title in ((0, "Each actor sends its next message to itself"), (1, "Messages go from actor to actor")):
        for workers in sorted({case["workers"] for case in cases}):
            chosen = [c for c in cases if c["workers"] == workers and c["parameters"].get("talking", 0) == talking]
            chart = affinity_chart(m, chosen, f"affinity {talking} {workers}", f"time a message on {workers_text(workers)}")
            if chart and title:
                out += f"<h3>{text(title)}</h3>\n"
                title = ""
            out += chart
    return out


def claims(experiment):
    found = published.PUBLISHED.get(experiment)
    if not found:
        return ""
    return (f"<h3>As published</h3>\n<p class=\"soft\">{text(found['source'])}. What was claimed then; it cannot be compared in "
            f"absolute terms.</p>\n{page.table(found['columns'], found['rows'])}")


def chapter(m, experiment, cases):
    out = [f'<h2 id="{page.anchor(experiment)}">{text(experiment[0].upper() + experiment[1:])}</h2>\n']
    if experiment.startswith("4"):
        out.append(overhead_chapter(m, cases))
    elif experiment.startswith("5"):
        out.append(affinity_chapter(m, cases))
    else:
        for (_, label), by_workers in m.families(cases).items():
            if label == "whole" and len(m.families(cases)) > 1:
                continue  # mixed_parts() shows it
            out.append(case_section(m, by_workers))
            if experiment.startswith(("2", "3")):
                out.append(against_workers(m, by_workers))
        if experiment.startswith("3"):
            out.append(mixed_parts(m, cases))
    out.append(claims(experiment))
    return "".join(out)


def how_measured(m):
    results, machine = m.results, m.results["machine"]
    choice = results["choice"]
    samples = results["samples"]
    loads = [sample["load"] for sample in samples if sample.get("load") is not None]
    if results.get("alone"):
        return ('<h2 id="how">How it was measured</h2>\n<p>By ramie-lab bench: each style in a process of its own, in turns with the same work in '
                "plain function calls; lab/README.md says more.</p>\n" + page.table(("", ""), [
                    (name.replace("_", " "), Cell(value, kind="text")) for name, value in machine.items() if value not in ("", 0, None)]))
    out = ['<h2 id="how">How it was measured</h2>\n<p>Interleaved: in every round each contestant of a case ran once, in a process of its own, '
           "one right after the other, each round beginning with another one. A ratio is the median of the ratios of samples from the "
           "same round; its interval at 95 % encloses Student's and that between order statistics. A difference is claimed where 1 lies "
           "outside, and where its p-value passes among all those of the page (Benjamini and Hochberg, at most 5 % of the claims false). The best "
           "of several styles is chosen by the first round, which then counts for nothing else.</p>\n"]
    facts = [("started", results["started"]), ("finished", results["finished"] or "interrupted"),
             ("size", choice["size"]), ("turns taken", f"{len(samples):,}"),
             ("load average before a turn", f"{number(min(loads))} to {number(max(loads))}" if loads else "-")]
    if results.get("plan"):
        facts.append(("after the first round, for lack of time", results["plan"]))
    facts += [(name.replace("_", " "), value) for name, value in machine.items() if value not in ("", 0, None)]
    out.append(page.table(("", ""), [(name, Cell(value, kind="text")) for name, value in facts]))
    out.append("<h3>Peers</h3>\n")
    out.append(page.table(("", "version", "flags", "notes"), [
        (peer["name"], Cell(peer["version"], kind="text"), Cell(peer["flags"], kind="text"), Cell(peer["notes"], kind="text"))
        for peer in results["peers"].values()]))
    missing = list(results.get("missing_peers", {}).items())
    missing += [(case, "not in this build of ramie-lab") for case in results.get("missing_cases", [])]
    missing += [(what, "too large") for what in results.get("too_large", [])]
    missing += [(group, "no time was left for it") for group in results.get("left_out", [])]
    missing += [("libcsp", "has no package; its published figures are shown")]
    out.append("<h3>Not here</h3>\n" + page.table(("", "why"), [(name, Cell(why, kind="text")) for name, why in missing]))
    failures = m.failures()
    if failures:
        out.append("<h3>Failed</h3>\n" + page.table(("case", "who", "why"), [
            (group, Cell(who, kind="text"), Cell(why, kind="text")) for group, who, why in failures]))
    out.append("<h3>What is unfair about it</h3>\n<ul>" + "".join(f"<li>{text(line)}</li>\n" for line in published.UNFAIR) + "</ul>\n")
    return "".join(out)


def whole_page(results):
    m = model.Model(results)
    chapters = m.experiments()
    alone = not m.peers()
    links = [("verdict", "In short" if alone else "Beside others")] + [(page.anchor(title), title) for title in chapters] + (
        [("numbers", "All numbers")] if alone else []) + [("how", "How it was measured")]
    title = "ramie, measured" if alone else "ramie beside others"
    body = [f"<h1>{title}</h1>", '\n<p class="soft">', text(f"{results['machine'].get('cpu', '')}, "
            f"{results['machine'].get('cores_allowed', '?')} cores, {results['started'][:10]}"
            + (f", ramie {revision}" if (revision := results["machine"].get("ramie_revision")) else "")), "</p>\n<nav>",
            "".join(f'<a href="#{target}">{text(title)}</a>' for target, title in links), "</nav>\n", verdict(m)]
    body += [chapter(m, title, cases) for title, cases in chapters.items()]
    if alone:
        body.append(opening.all_numbers(m, numbers_alone))
    body.append(how_measured(m))
    return page.document(title, "".join(body))
