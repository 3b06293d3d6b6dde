"""The table of costs, from made-up results; and whether the lab has what it asks for."""

import re
import tempfile
import unittest
from pathlib import Path

from costs import __main__ as costs
from costs import table

ROOT = Path(__file__).resolve().parent.parent.parent
MACHINE = {"cpu": "Any", "cores_allowed": 2, "kernel": "Linux 6.18.1-x", "compiler": "gcc 12", "flags": "-O3", "load_average": 0.51}


def result(row, workers, ns):
    figures = {row.figure: [1.0, 4000.4, 9000.0]} if row.figure else {}
    return {"workload": row.workload, "style": row.style, "options": {"workers": workers}, "ns_per_unit": ns, "ratio_to_plain": 2.0,
            "figures": figures, "ok": True}


def made_up():
    rows = [table.Row("", *table.CALL), *table.all_rows()]
    return [result(row, workers, 10.0 * workers) for row in rows for workers in (1, 2)]


def document(results):
    return {"machine": MACHINE, "runs": 5, "command": "./run costs", "started": "2026-11-22T10", "revision": "abc", "results": results}


class Table(unittest.TestCase):
    def test_numbers(self):
        for value, text in ((0, "0"), (0.6143, "0.61"), (1.04, "1.0"), (9.96, "10"), (20.5, "20"), (4273.2, "4,273"), (0.0081, "0.0081")):
            self.assertEqual(table.number(value), text, value)

    def test_durations(self):
        for ns, text in ((0.614, "0.61 ns"), (9_999, "9,999 ns"), (16_500, "16 us"), (5_260_000, "5,260 us"), (3e7, "30 ms"), (None, "-")):
            self.assertEqual(table.duration(ns), text, ns)

    def test_costs_are_of_one_worker(self):
        text = table.costs_text(made_up())
        self.assertIn("| `mutex`: lock and unlock | 10 ns | 2.0 |", text)
        self.assertIn("| a fiber that waits: resident memory | 4,000 B |", text)
        self.assertEqual(text.count("\n| "), sum(len(s.rows) + 2 for s in table.SECTIONS) + len(table.MEMORY) + 2)

    def test_experiments_are_of_both(self):
        text = table.experiments_text(made_up())
        self.assertTrue(text.startswith("| ns | one worker | two workers |\n"))
        self.assertIn("| the same: `scope` | 10 | 20 |", text)
        self.assertIn("an idle actor 4,000 B; a runtime", text)

    def test_what_failed_has_no_figure(self):
        results = made_up()
        for one in results:
            if one["style"] == "semaphore":
                one.update(ok=False, ns_per_unit=None)
        self.assertIn("| `counting_semaphore`: acquire and release | - | - |", table.costs_text(results))

    def test_says_where_it_is_from(self):
        said = table.source_text(document(made_up()))
        self.assertEqual(said, "`./run costs`, 2026-11-22, ramie abc: Any, 2 cores, Linux 6.18.1, gcc 12 -O3; medians of 5 runs; load average before it 0.51.")


class Cores(unittest.TestCase):
    def test_what_kept_more_cores_busy_has_no_figure(self):
        one = {"ok": True, "busy_cores": [1.0, 1.86], "seconds": [0.1, 0.1]}
        self.assertEqual(costs.refused(one, 1)["error"], "kept 1.86 cores busy instead of 1")
        self.assertTrue(costs.refused(one, 2)["ok"])

    def test_nothing_is_written_if_others_had_the_core(self):
        results = made_up()
        for one in results:
            one.update(workers=one["options"]["workers"], busy_cores=[0.65, 0.7, 0.2])
        with self.assertRaisesRegex(costs.CostsError, "35 % of the core"):
            costs.write_documents(document(results), Path("/nowhere"))

    def test_only_what_talks_to_another_thread_has_a_second_core(self):
        for workload, style in table.NEED_A_SECOND_CORE:
            self.assertIn(style, table.styles()[workload])


class Lab(unittest.TestCase):
    def test_has_each_workload_and_style(self):
        sources = {}
        for path in (ROOT / "lab" / "workloads").glob("*.cpp"):
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r'\.name = "(\w+)",\n *\.summary', text):
                sources[name] = text
        for row in table.all_rows():
            self.assertIn(row.workload, sources)
            self.assertIn(f'{{"{row.style}", ', sources[row.workload], row)
            self.assertIn(row.workload, table.SIZES)
            if row.figure:
                self.assertIn(f'"{row.figure}"', sources[row.workload] + (ROOT / "lab/workloads/chain.cpp").read_text(encoding="utf-8"))


class Documents(unittest.TestCase):
    def test_have_the_marks(self):
        for name, mark, _ in costs.PLACES:
            text = (ROOT / name).read_text(encoding="utf-8")
            self.assertIn("\nnew\n<!-- end", costs.marked(text, mark, "new\n", name))

    def test_are_written_between_them(self):
        with tempfile.TemporaryDirectory() as work:
            root = Path(work)
            (root / "docs").mkdir()
            names = {name for name, _, _ in costs.PLACES}
            for name in names:
                marks = [mark for place, mark, _ in costs.PLACES if place == name]
                text = "".join(f"<!-- {mark}: by ./run costs -->\nold\n<!-- end of {mark} -->\n" for mark in marks)
                (root / name).write_text(f"a\n{text}b\n", encoding="utf-8")
            for _ in range(2):
                costs.write_documents(document(made_up()), root)
            for name in names:
                text = (root / name).read_text(encoding="utf-8")
                self.assertNotIn("old", text)
                self.assertEqual(text.count("`./run costs`, 2026-11-22"), sum(place == name for place, _, _ in costs.PLACES))
                self.assertTrue(text.startswith("a\n<!--") and text.endswith("-->\nb\n"))

    def test_without_marks_are_left_alone(self):
        with self.assertRaises(costs.CostsError):
            costs.marked("no marks", "costs", "new\n", "x.md")


if __name__ == "__main__":
    unittest.main()
