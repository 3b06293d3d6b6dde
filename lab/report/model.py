"""The contents of the page, from a results file: no HTML and no drawing here."""

from collections import OrderedDict

from compare import analysis, store, verdict

NAMES = {"ramie": "ramie"}


def system_of(contestant):
    return contestant.split("/")[0]


def style_of(contestant):
    return contestant.partition("/")[2]


class Model:
    def __init__(self, results):
        self.results = results
        self.cases = results["cases"]
        self.names = {key: peer["name"] for key, peer in results["peers"].items()} | NAMES
        # The first colour is ramie's alone.
        self.colours = {"ramie": 0} | {system: 1 + index % 19 for index, system in enumerate(sorted(results["peers"]))}
        limit = verdict.limit_of(results)
        self.lines = {case["group"]: verdict.lines_of(results, case, limit) for case in self.cases}

    def name(self, contestant):
        """Its name on the page: "Go channel"; ramie alone needs no name."""
        if not self.results["peers"]:
            return style_of(contestant)
        return f"{self.names.get(system_of(contestant), system_of(contestant))} {style_of(contestant)}"

    def colour(self, contestant):
        return self.colours.get(system_of(contestant), 8)

    def experiments(self):
        """{title: its cases}, in the order of the results."""
        chapters = OrderedDict()
        for case in self.cases:
            chapters.setdefault(case["experiment"], []).append(case)
        return chapters

    def families(self, cases):
        """{(family, label): {workers: case}}"""
        found = OrderedDict()
        for case in cases:
            found.setdefault((case["family"], case["label"]), OrderedDict())[case["workers"]] = case
        return found

    def samples(self, case, contestant, metric):
        """[value of each correct round]"""
        samples = store.samples_of(self.results, case["group"]).get(contestant, [])
        return list(analysis.values_by_round(samples, metric).values())

    def range_of(self, case, contestant, metric):
        """(median, least, most), or None."""
        values = self.samples(case, contestant, metric)
        return (analysis.median(values), min(values), max(values)) if values else None

    def peers(self):
        return sorted({system_of(c) for case in self.cases for c in case["contestants"]} - {"ramie"})

    def best(self, case, system):
        lines = [line for line in self.lines[case["group"]] if system_of(line.contestant) == system]
        return verdict.best_of(lines, case["more_is_better"])

    def tally(self):
        """{verdict: count}, over every peer's best style of every headline case."""
        counts = {analysis.FASTER: 0, analysis.SLOWER: 0, analysis.UNDECIDED: 0}
        for case in self.cases:
            for peer in self.peers() if case["headline"] else ():
                line = self.best(case, peer)
                if line and line.ratio:
                    counts[line.ratio.verdict] += 1
        return counts

    def failures(self):
        """[(group, contestant, error)]"""
        return [(line.group, line.contestant, line.error) for lines in self.lines.values() for line in lines if line.error]


def other_sizes(results, case):
    """What is smaller for some peers, in words; empty if nothing is."""
    found = ((peer["name"], peer.get("parameters", {}).get(case["family"], {})) for peer in results["peers"].values())
    return "; ".join(f"{name}: {', '.join(f'{key} {int(value):,}' for key, value in sizes.items())}" for name, sizes in found if sizes)


def parameters_text(case):
    return ", ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
                     for name, value in case["parameters"].items())


def same_size(one, other):
    """Do two cases differ in nothing but the factorisation?"""
    def without(case):
        return {name: value for name, value in case["parameters"].items() if name != "messages-only"}
    return without(one) == without(other)
