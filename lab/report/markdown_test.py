"""The table of the front page, from made-up results; and whether its rows and styles exist in the lab."""

import tempfile
import unittest
from pathlib import Path

from compare import install, manifest
from compare.cases import all_cases

from report import markdown


def case(family, workers, contestants, oversubscribed=False):
    return {"group": f"{family}, {workers}w", "family": family, "label": "", "experiment": "1 skynet", "title": f"The {family}",
            "workload": family, "unit": "x", "workers": workers, "parameters": {}, "metric": "ns_per_unit", "metric_title": "ns a fiber",
            "more_is_better": False, "memory": "", "headline": True, "contestants": contestants, "reference": contestants[0],
            "oversubscribed": oversubscribed}


def made_up():
    trees = {"ramie/channel": 50, "go/channel": 1000, "go/buffered": 900, "tokio/mpsc+mimalloc": 200}
    forks = {"ramie/fork_join": 50, "rayon/join": 51, "chili/join": 20}
    hops = {"ramie/channel": 50, "go/channel": 100}
    groups = [("skynet-channel", trees, n) for n in (1, 2, 4)] + [("skynet-fork-join", forks, n) for n in (1, 2)] + [
        ("pingpong", hops, 1), ("unknown", trees, 1)]
    cases = [case(family, n, list(values), oversubscribed=n > 2) for family, values, n in groups]
    samples = [{"group": c["group"], "contestant": key, "round": r, "ok": True, "load": 0.5,
                "ns_per_unit": value * (1 + (-0.1 if r % 2 else 0.1) * key.startswith("rayon") + r % 5 * 0.001)}
               for c, (_, values, _) in zip(cases, groups) for key, value in values.items() for r in range(7)]
    peers = {key: {"name": name, "version": version} for key, name, version in
             (("go", "Go", "go1.24"), ("rayon", "rayon", ""), ("tokio", "tokio", ""), ("chili", "a | b", ""))}
    return {"program": "ramie compare", "format": 1, "started": "2026-11-22T01:02:03+0000", "choice": {"size": "quick", "workloads": ["skynet-channel"]},
            "machine": {"cpu": "made up", "cores_allowed": 2, "kernel": "Linux 6.18.1-x", "ramie_revision": "abc"}, "peers": peers,
            "cases": cases, "samples": samples}


def at(started):
    return {**made_up(), "started": started}


class Verdict(unittest.TestCase):
    def setUp(self):
        self.text = markdown.verdict(made_up(), [at("2026-11-22T02:02:03+0000")])
        self.rows = [line for line in self.text.splitlines() if line.startswith("|")][2:]

    def test_a_row_for_each_case_that_belongs_on_a_front_page(self):
        self.assertEqual(len(self.rows), 3)
        self.assertEqual({row.replace("\\|", "").count("|") for row in self.rows}, {4})

    def test_what_is_not_won_comes_first(self):
        self.assertIn("fork/join", self.rows[0])
        self.assertIn("(ramie is worse)", self.rows[0])
        self.assertNotIn("(ramie is worse)", self.rows[1])

    def test_the_best_style_of_the_same_construct(self):
        self.assertIn("| fiber and `channel` 50.1 / 50.1 |", self.rows[1])  # the reference; without the oversubscribed one
        self.assertIn("Go goroutine and `chan` (buffered) **18.0x** / **18.0x**", self.rows[1])
        self.assertIn("tokio task and channel **4.00x** / **4.00x**", self.rows[1])  # of one style, so it is not named
        self.assertIn("a \\| b `join` 0.400x (ramie is worse) / 0.400x (ramie is worse)<br>rayon", self.rows[0])

    def test_what_differs_for_a_peer_is_said(self):
        results = made_up()
        results["peers"]["go"]["parameters"] = {"skynet-channel": {"leaves": "10000"}}
        for sample in results["samples"]:
            if sample["group"] == "skynet-channel, 2w" and sample["contestant"] == "go/channel":
                sample["ns_per_unit"] = 850
        self.assertIn("Go goroutine and `chan` (buffered / channel; 10,000 leaves) ", markdown.verdict(results))

    def test_only_peers_of_the_table_are_named_with_their_versions(self):
        results = made_up()
        results["peers"]["nginx"] = {"name": "nginx", "version": "1.22"}
        text = markdown.verdict(results)
        self.assertIn(" Go: go1.24.", text)
        self.assertNotIn("nginx", text)

    def test_the_command_can_be_given_again(self):
        results = made_up()
        self.assertIn("by `./run compare --workload skynet-channel`,", markdown.verdict(results))
        results["choice"] |= {"peers": ["go", "tokio"], "runs": 3}
        self.assertIn("by `./run compare --workload skynet-channel --peers go,tokio --runs 3`,", markdown.verdict(results))

    def test_one_session_has_nothing_in_bold(self):
        text = markdown.verdict(made_up())
        self.assertIn("Go goroutine and `chan` (buffered) 18.0x / 18.0x", text)
        self.assertNotIn("**", text)
        self.assertIn("one session", text)

    def test_what_the_other_session_does_not_confirm_is_not_bold(self):
        other = at("2026-11-22T09:00:00+0000")
        for sample in other["samples"]:
            if sample["contestant"] == "go/buffered" and sample["group"] == "skynet-channel, 2w":
                sample["ns_per_unit"] = 50 + sample["round"] % 2
        self.assertIn("Go goroutine and `chan` (buffered) **18.0x** / 18.0x", markdown.verdict(made_up(), [other]))

    def test_two_comparisons_of_the_same_hour_are_one_session(self):
        with self.assertRaises(markdown.MarkdownError):
            markdown.verdict(made_up(), [at("2026-11-22T01:30:00+0000")])

    def test_the_second_session_may_be_in_parts(self):
        parts = [at("2026-11-22T02:02:03+0000"), at("2026-11-22T02:10:03+0000")]
        for part, wanted in zip(parts, (True, False)):
            part["cases"] = [c for c in part["cases"] if (c["family"] == "pingpong") == wanted]
        text = markdown.verdict(made_up(), parts)
        self.assertIn("Go `chan` **2.00x** |", text)
        self.assertIn("Go goroutine and `chan` (buffered) **18.0x** / **18.0x**", text)
        self.assertIn("which began 60 minutes", text)

    def test_what_cannot_be_told_apart_is_not_claimed(self):
        self.assertIn("rayon fork/join ≈ ", self.rows[0])

    def test_says_what_it_was_measured_on(self):
        for part in ("made up", "2 cores", "Linux 6.18.1,", "abc", "2026-11-22", "`./run compare --workload skynet-channel`", "up to 7 paired runs",
                     "1 / 2 workers", "Go: go1.24"):
            self.assertIn(part, self.text)

    def test_says_so_if_the_machine_was_busy(self):
        self.assertNotIn("was busy", self.text)
        results = made_up()
        for sample in results["samples"]:
            sample["load"] = 9
        self.assertIn("was busy", markdown.verdict(results))

    def test_counts_no_victories(self):
        self.assertNotRegex(self.text, r"better in \d+|\d+ comparisons")

    def test_ramie_alone_has_no_verdict(self):
        results = made_up()
        for c in results["cases"]:
            c["contestants"] = c["contestants"][:1]
        with self.assertRaises(markdown.MarkdownError):
            markdown.verdict(results)

    def test_other_results_have_no_verdict(self):
        results = made_up()
        results["cases"] = results["cases"][-1:]
        with self.assertRaises(markdown.MarkdownError):
            markdown.verdict(results)


class Rows(unittest.TestCase):
    def test_are_of_cases_and_styles_that_there_are(self):
        cases = {one.key: one for one in all_cases("quick")}
        peers = manifest.read_all(install.PEERS)
        self.assertEqual(len({front.case for front in markdown.ROWS}), len(markdown.ROWS))
        for front in markdown.ROWS:
            self.assertIn(front.case, cases)
            self.assertFalse(cases[front.case].more_is_better)
            for system in front.peers:
                self.assertIn(cases[front.case].family, peers[system].abilities, (front.case, system))


class Documents(unittest.TestCase):
    def write(self, document):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "README.md"
            path.write_text(document, encoding="utf-8")
            markdown.write_into(path, "new\n")
            return path.read_text(encoding="utf-8")

    def test_what_is_between_the_marks_is_replaced(self):
        self.assertEqual(self.write(f"a\n{markdown.BEGIN}\nold\n{markdown.END}\nb\n"), f"a\n{markdown.BEGIN}\nnew\n{markdown.END}\nb\n")

    def test_documents_without_marks_are_refused(self):
        for document in ("", markdown.BEGIN, markdown.END, f"{markdown.END}{markdown.BEGIN}", f"{markdown.BEGIN * 2}{markdown.END}"):
            with self.assertRaises(markdown.MarkdownError):
                self.write(document)

    def test_the_front_page_has_the_marks(self):
        text = (install.ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual((text.count(markdown.BEGIN), text.count(markdown.END)), (1, 1))


if __name__ == "__main__":
    unittest.main()
