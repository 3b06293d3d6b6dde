"""The page, from made-up results, viewed in a browser if there is one."""

import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

from compare import store
from compare.cases import all_cases

from report import model

LAB = Path(__file__).resolve().parent.parent
REQUIRED = os.environ.get("RAMIE_REQUIRE_BROWSER") == "1"


def plotting_python():
    """A Python that has matplotlib, or None."""
    for candidate in (os.environ.get("RAMIE_PYTHON"), sys.executable, "/usr/bin/python3"):
        if candidate and shutil.which(candidate) and subprocess.run(
                [candidate, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


PYTHON = plotting_python()
BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


def made_up_results(rounds=4):
    """Every case with a contestant of ramie and three peers, one of which fails once."""
    generator = random.Random(3)
    cases, samples = [], []
    for case in all_cases("quick"):
        for workers in (1, 2):
            group = f"{case.key}, {workers}w"
            contestants = [f"ramie/{case.styles[0]}", "go/channel", "tea/<cup>", "pot/broken"]
            cases.append({"group": group, "family": case.family, "experiment": case.experiment, "title": case.title,
                          "workload": case.workload, "unit": case.unit, "workers": workers, "parameters": case.parameters,
                          "metric": case.metric, "metric_title": case.metric_title or f"ns a {case.unit}",
                          "more_is_better": case.more_is_better, "memory": case.memory, "label": case.label, "headline": case.headline,
                          "contestants": contestants, "reference": contestants[0], "oversubscribed": workers > 1})
            for number in range(rounds):
                for place, contestant in enumerate(contestants[:3]):
                    value = 50 * 10**place * math.exp(generator.gauss(0, 0.1))
                    sample = {"group": group, "contestant": contestant, "round": number, "ok": True, "load": 0.5,
                              "ns_per_unit": value, "seconds": [value / 100], "peak_rss_bytes": 5_000_000 * (1 + place),
                              "figures": {}}
                    if case.metric.startswith("figures."):
                        share = 0.9 / 10**place if case.more_is_better else value
                        sample["figures"][case.metric.partition(".")[2]] = [share]
                    samples.append(sample)
            samples.append({"group": group, "contestant": "pot/broken", "round": 0, "ok": False, "error": "no <water>"})
    peers = {key: {"name": name, "system": key, "summary": "", "flags": "-O3", "notes": "", "version": "1.0", "parameters": {}}
             for key, name in (("go", "Go"), ("tea", "Tea & Co"), ("pot", "Pot"))}
    results = store.new_results("0", {"size": "quick"}, cases, {"cpu": "made up", "cores_allowed": 2}, peers)
    results["samples"] = samples
    results["finished"] = "now"
    return results


def pixels(path):
    """(width, height, number of different rows of pixels) of a PNG with 8 bits a channel, not interlaced."""
    data = Path(path).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "is no PNG"
    place, packed, width, height, channels = 8, b"", 0, 0, 0
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place:place + 8])
        body = data[place + 8:place + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
            channels = {2: 3, 6: 4}[colour]
        elif kind == b"IDAT":
            packed += body
        place += length + 12
    raw = zlib.decompress(packed)
    row = width * channels + 1
    return width, height, len({raw[i * row:(i + 1) * row] for i in range(height)})


@unittest.skipUnless(PYTHON or REQUIRED, "no Python with matplotlib here")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        store.save(cls.folder / "results.json", made_up_results())
        cls.done = subprocess.run([PYTHON, "-m", "report", str(cls.folder / "results.json")], cwd=LAB, capture_output=True,
                                  text=True, check=False)
        cls.html = (cls.folder / "results.html").read_text(encoding="utf-8") if cls.done.returncode == 0 else ""

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_is_made(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertEqual(self.done.stdout.strip(), str(self.folder / "results.html"))

    def test_opens_with_the_verdict(self):
        verdict = self.html.index('id="verdict"')
        self.assertLess(verdict, self.html.index("<figure>"))
        self.assertIn("not distinguishable", self.html)

    def test_has_a_chapter_for_each_experiment_and_what_was_published(self):
        for title in ("1 skynet", "2 sum", "3 mixed case", "4 goroutine overhead", "5 cache affinity", "Switches and messages",
                      "Memory", "Fairness", "How it was measured", "What is unfair about it"):
            self.assertIn(title, self.html)
        for claim in ("0.64 to 1.21 us", "152 ns a process", "Go r60", "1341"):
            self.assertIn(claim, self.html)

    def test_talking_actors_have_charts_of_their_own(self):
        self.assertIn("Each actor sends its next message to itself", self.html)
        self.assertIn("Messages go from actor to actor", self.html)

    def test_needs_no_network(self):
        self.assertEqual(re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)[^)]*\)|@import|<script|<link', self.html), [])

    def test_every_chart_has_its_numbers(self):
        charts = self.html.count("<figure>")
        self.assertGreater(charts, 20)
        self.assertEqual(charts, self.html.count("<summary>the numbers</summary>"))
        self.assertEqual(charts, self.html.count("<svg "))

    def test_colours_are_the_pages(self):
        self.assertNotRegex(self.html, r"#0a0b[0-9a-f]{2}|#010203|#040506")
        self.assertIn("prefers-color-scheme: dark", self.html)

    def test_ids_are_there_once(self):
        found = re.findall(r'\bid="([^"]+)"', self.html)
        twice = {name for name in found if found.count(name) > 1}
        self.assertEqual(twice, set())

    def test_the_first_colour_is_ramies_alone(self):
        peers = {f"peer{i}": {"name": str(i)} for i in range(30)}
        colours = model.Model({"cases": [], "peers": peers, "samples": []}).colours
        self.assertEqual([name for name, colour in colours.items() if colour == 0], ["ramie"])
        self.assertLess(max(colours.values()), 20)

    def test_names_are_escaped_and_failures_named(self):
        self.assertIn("Tea &amp; Co", self.html)
        self.assertNotIn("<cup>", self.html)
        self.assertIn("no &lt;water&gt;", self.html)

    def browser(self, *options):
        return subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                               f"--user-data-dir={self.folder}/profile", *options, f"file://{self.folder}/results.html"],
                              capture_output=True, text=True, errors="replace", timeout=600, check=False)

    @unittest.skipUnless(BROWSER or REQUIRED, "no browser here")
    def test_loads_in_a_browser(self):
        done = self.browser("--dump-dom")
        self.assertEqual(done.stdout.count("<svg "), self.html.count("<svg "))
        self.assertNotRegex(done.stderr, r"CONSOLE")

    @unittest.skipUnless(BROWSER or REQUIRED, "no browser here")
    def test_is_not_blank_in_light_and_dark(self):
        looks = []
        for scheme in ("light", "dark"):
            picture = self.folder / f"{scheme}.png"
            dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
            self.browser("--hide-scrollbars", "--window-size=1200,2400", f"--screenshot={picture}", *dark)
            width, height, different = pixels(picture)
            self.assertEqual((width, height), (1200, 2400))
            self.assertGreater(different, 500)
            looks.append(picture.read_bytes())
        self.assertNotEqual(*looks)


def measured(workload, style, workers=1, parameters=None, seconds=(1e-6, 2e-6, 3e-6), **more):
    return {"system": "ramie", "workload": workload, "style": style, "workers": workers, "unit": "fiber", "units": 100, "seconds": list(seconds),
            "peak_rss_bytes": 5_000_000, "ok": True, "options": {"parameters": parameters or {}}, **more}


def bench_results():
    results = [measured("skynet", style, workers, {"leaves": 100}) for style, workers in (("plain", 1), ("scope", 1), ("scope", 2))]
    results += [measured("yield", "plain", seconds=(1e-7,) * 3), measured("yield", "fibers", plain_busy_cores=[0.5, 0.5, 1.0]),
                measured("spawn", "thread", seconds=(1e-3,) * 3), measured("stream", "buffered"), measured("actors", "tell")]
    results += [measured("overhead", "channel", workers, {"n": n, "x": x}, figures={"share_of_direct": [0.5] * 3, "direct_ns_per_call": [1.0] * 3})
                for n in (1, 100) for x in (100, 1000, 10_000, 100_000) for workers in (1, 2)]
    return {"program": "ramie-lab bench", "started": "2026-01-01", "took_seconds": 1, "machine": {"cpu": "made up"}, "results": results}


class Matrix(unittest.TestCase):
    def test_contestants_are_taken_apart(self):
        from report import matrix
        self.assertEqual(matrix.parts_of("ramie/channel"), ("ramie", "work_stealing, channel", "pooled, guarded", "glibc"))
        self.assertEqual(matrix.parts_of("ramie/channel@round_robin~fresh+mimalloc"),
                         ("ramie", "round_robin, channel", "mapped anew, guarded", "mimalloc"))
        self.assertEqual(matrix.parts_of("boost_fiber/shared_work-join-mapped+tcmalloc"),
                         ("boost_fiber", "shared_work, join", "mapped anew, guarded", "tcmalloc"))

    def test_is_a_table_of_all_that_was_measured(self):
        from report import matrix
        group = {"group": "g", "workers": 2, "contestants": ["ramie/channel", "ramie/channel+mimalloc", "boost_fiber/shared_work-join"],
                 "reference": "ramie/channel", "metric": "ns_per_unit", "more_is_better": False}
        samples = [{"group": "g", "contestant": c, "round": 0, "ok": True, "ns_per_unit": v}
                   for c, v in zip(group["contestants"], (50.0, 40.0, 1000.0))]
        html = matrix.table(model.Model({"cases": [group], "peers": {}, "samples": samples}), {2: group})
        for part in ("<th>2 workers</th><th>stacks</th><th>glibc</th><th>mimalloc</th>", "1,000", "20.0 x", "shared_work, join"):
            self.assertIn(part, html)
        self.assertEqual(matrix.name_of({"boost_fiber": "Boost"}, "boost_fiber/shared_work-join-mapped+tcmalloc"),
                         "Boost shared_work, join; mapped anew, guarded; tcmalloc")


@unittest.skipUnless(PYTHON or REQUIRED, "no Python with matplotlib here")
class Alone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.json"
            path.write_text(json.dumps(bench_results()), encoding="utf-8")
            done = subprocess.run([PYTHON, "-m", "report", str(path)], cwd=LAB, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            cls.html = path.with_suffix(".html").read_text(encoding="utf-8")

    def test_results_of_the_bench_become_a_page(self):
        self.assertIn("ramie, measured", self.html)
        self.assertIn("<td>scope</td>", self.html)
        self.assertIn("20.0", self.html)

    def test_begins_with_four_pictures_and_ends_with_the_table(self):
        pictures = [self.html.index(f"<h3>{title} <small>") for title in ("Fibers", "Channels", "Actors", "Fork and join")]
        self.assertEqual(pictures, sorted(pictures))
        self.assertLess(pictures[-1], self.html.index("<table>"))
        self.assertLess(self.html.rindex("<figure>"), self.html.index('id="numbers"'))

    def test_marks_a_call_and_a_thread(self):
        self.assertIn("a function call, 1.0 ns", self.html)
        self.assertIn("start and join a thread of the system, 10 us", self.html)
        places = [float(place) for place in re.findall(r'<i class="(?:call|thread)" style="left:([\d.]+)%', self.html)]
        self.assertEqual(len(set(places)), 2)
        self.assertTrue(all(0 <= place <= 100 for place in places))

    def test_bars_are_as_long_as_what_they_show(self):
        width = {text: float(share) for share, text in re.findall(r'width:([\d.]+)%"><b>([^<]+)<', self.html)}
        call, thread = [float(place) for place in re.findall(r'class="(?:call|thread)" style="left:([\d.]+)%', self.html)[:2]]
        # On a logarithmic scale: 20 ns lie between a call of 1 ns and a thread of 10,000 ns as log 20 between 0 and 4.
        self.assertAlmostEqual(width["20 ns"], call + (thread - call) * math.log10(20) / 4, delta=0.2)

    def test_says_that_other_programs_ran(self):
        self.assertIn("ran only 50 % of the time", self.html)

    def test_labels_say_what_a_row_is(self):
        self.assertIn("One square root per goroutine, 1,000 of them", self.html)
        self.assertIn("100 square roots per goroutine, 100,000 of them", self.html)

    def test_the_chart_of_experiment_4_has_its_values(self):
        chapter = self.html[self.html.index('id="4-goroutine-overhead"'):]
        self.assertEqual(chapter[:chapter.index("</figure>")].count("<svg "), 1)
        shares = re.findall(r"<td>0\.500</td>", chapter[:chapter.index("</details>")])
        self.assertEqual(len(shares), 16)


class Plan(unittest.TestCase):
    def test_experiment_4_has_four_sizes_in_each_plan(self):
        plan = (LAB / "commands" / "bench_plan.cpp").read_text(encoding="utf-8")
        entry = plan[plan.index('"4 overhead"'):]
        sizes = re.findall(r'\{"x", "([\d,]+)"\}', entry[:entry.index('"fib"')])
        self.assertEqual(len(sizes), 2)
        for size in sizes:
            self.assertGreaterEqual(len(size.split(",")), 4)

    def test_the_pictures_show_what_is_measured(self):
        from report import opening
        plan = (LAB / "commands" / "bench_plan.cpp").read_text(encoding="utf-8")
        sources = [path.read_text(encoding="utf-8") for path in (LAB / "workloads").glob("*.cpp")]
        for picture in opening.PICTURES:
            for row in picture.rows:
                self.assertRegex(plan, rf'"{row.workload}",\s+"(all|[^"]*\b{row.style}\b[^"]*)",')
                source = next(text for text in sources if re.search(rf'\.name = "{row.workload}",\s+\.summary', text))
                self.assertIn(f'{{"{row.style}", ', source)


class Refusals(unittest.TestCase):
    def refuse(self, *arguments):
        done = subprocess.run([sys.executable, "-m", "report", *arguments], cwd=LAB, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_no_such_file(self):
        self.assertIn("/no/such/file", self.refuse("/no/such/file"))

    def test_another_programs_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.json"
            path.write_text("{}", encoding="utf-8")
            self.assertIn("is no results file", self.refuse(str(path)))


if __name__ == "__main__":
    unittest.main()
