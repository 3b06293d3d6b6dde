import tempfile
import unittest
from pathlib import Path

from report import markdown


def case(family, workers, contestants, label="", oversubscribed=False):
    return {"group": f"{family} {label}, {workers}w", "family": family, "label": label, "experiment": "1 skynet", "title": f"The {family}",
            "workload": family, "unit": "x", "workers": workers, "parameters": {}, "metric": "ns_per_unit", "metric_title": "ns a fiber",
            "more_is_better": False, "memory": "", "headline": True, "contestants": contestants, "reference": contestants[0],
            "oversubscribed": oversubscribed}


def made_up():
    values = {"ramie/channel": 50, "ramie/actor": 40, "go/channel": 1000, "go/slow": 5000, "rayon/join": 51, "may/x": 20, "chili/x": 100}
    cases = [case("skynet", n, list(values), oversubscribed=n > 2) for n in (1, 2, 4)] + [case("unknown", 1, list(values))]
    samples = [{"group": c["group"], "contestant": key, "round": r, "ok": True, "load": 0.5,
                "ns_per_unit": value * (1 + (-0.1 if r % 2 else 0.1) * key.startswith("rayon") + r % 5 * 0.001)}
               for c in cases for key, value in values.items() for r in range(7)]
    peers = {key: {"name": name} for key, name in (("go", "Go"), ("rayon", "rayon"), ("may", "may"), ("chili", "a | b"))}
    return {"program": "ramie compare", "format": 1, "started": "2026-11-22T01:02:03", "choice": {"size": "quick"},
            "machine": {"cpu": "made up", "cores_allowed": 2, "ramie_revision": "abc"}, "peers": peers, "cases": cases, "samples": samples}


class Verdict(unittest.TestCase):
    def setUp(self):
        self.text = markdown.verdict(made_up())
        self.rows = [line for line in self.text.splitlines() if line.startswith("|")]

    def test_a_row_for_each_case_that_belongs_on_a_front_page(self):
        self.assertEqual(len(self.rows), 3)
        self.assertIn("The skynet, ns a fiber", self.rows[2])
        self.assertEqual({row.replace("\\|", "").count("|") for row in self.rows}, {5})

    def test_the_best_style_of_a_peer_and_who_is_closest(self):
        cells = [cell.strip() for cell in self.rows[2].replace("\\|", "/").split("|")]
        self.assertEqual(cells[2], "50.0 / 50.0")  # the reference; without the oversubscribed one
        self.assertEqual(cells[3], "**20.0** / **20.0**")
        self.assertTrue(cells[4].startswith("may 0.400 (worse) / 0.400 (worse), rayon"), cells[4])
        self.assertIn("a / b **2.00**", cells[4])

    def test_what_cannot_be_told_apart_is_not_claimed(self):
        self.assertIn("≈ ", self.rows[2])

    def test_says_what_it_was_measured_on(self):
        for part in ("made up", "2 cores", "abc", "2026-11-22", "./run compare`", "up to 7 of them", "on 1 / 2 workers"):
            self.assertIn(part, self.text)

    def test_ramie_alone_has_no_verdict(self):
        results = made_up()
        for c in results["cases"]:
            c["contestants"] = c["contestants"][:1]
        with self.assertRaises(markdown.MarkdownError):
            markdown.verdict(results)


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


if __name__ == "__main__":
    unittest.main()
