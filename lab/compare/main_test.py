"""./run compare from end to end, with programs that only pretend to measure."""

import contextlib
import io
import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from compare import __main__ as compare_main
from compare import install, manifest, store, verdict

# Prints what its name and options say, and counts how often it was run.
PROGRAM = """#!/bin/sh
echo run >> {count}
if [ "$1" = list ]; then
  echo '{{"workload": "skynet", "styles": ["plain", "channel"]}}'
elif [ "$1" = machine ]; then
  echo '{{"cpu": "test"}}'
else
  echo '{{"workload": "skynet", "seconds": [0.1], "ns_per_unit": {ns}, "peak_rss_bytes": 1000, "ok": {ok}}}'
fi
"""

MANIFEST = """
[peer]
name = Tea
build = cp tea.sh {build}/tea
run = {build}/tea
version = echo tea 1.0
[skynet-channel]
styles = cup
"""


class Pretending(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.lab = self.program("ramie-lab", 50)
        self.program("peers/tea/tea.sh", 500)
        (self.root / "peers/tea/peer.ini").write_text(MANIFEST, encoding="utf-8")
        for patch in (mock.patch.object(compare_main, "LAB", self.lab),
                      mock.patch.object(compare_main, "RESULTS", self.root / "results"),
                      mock.patch.object(install, "ROOT", self.root),
                      mock.patch.object(install, "PEERS", self.root / "peers"),
                      mock.patch.object(install, "BUILD", self.root / "build")):
            patch.start()
            self.addCleanup(patch.stop)
        install.make_ready(manifest.read_all(self.root / "peers")["tea"])

    def program(self, name, ns, ok="true"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROGRAM.format(count=self.root / "count", ns=ns, ok=ok), encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path


class Comparisons(Pretending):
    def compare(self, *options):
        out, err = io.StringIO(), io.StringIO()
        words = ["compare", "--workload=skynet-channel", "--workers=1", "--rounds=3", "--mallocs=glibc", *options]
        with mock.patch("sys.argv", words), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = compare_main.main()
        return code, out.getvalue(), err.getvalue()

    def results(self):
        return store.load(store.newest(self.root / "results"))

    def test_takes_turns_and_decides(self):
        code, out, _ = self.compare()
        self.assertEqual(code, 0)
        samples = self.results()["samples"]
        order = [(s["round"], s["contestant"]) for s in samples if s["group"] == "skynet-channel, 1w"]
        self.assertEqual(order, [(0, "ramie/channel"), (0, "tea/cup"), (1, "tea/cup"), (1, "ramie/channel"),
                                 (2, "ramie/channel"), (2, "tea/cup")])
        self.assertIn("10.0 x", out)
        self.assertEqual(self.results()["peers"]["tea"]["version"], "tea 1.0")

    def test_goes_on_after_an_interruption(self):
        turns = []

        def three_turns(*arguments):
            if len(turns) == 3:
                raise KeyboardInterrupt
            turns.append(arguments)
            return compare_main_take_sample(*arguments)

        compare_main_take_sample = compare_main.take_sample
        with mock.patch.object(compare_main, "take_sample", three_turns):
            self.assertEqual(self.compare()[0], 130)
        self.assertIsNone(self.results()["finished"])
        code, _, err = self.compare()
        self.assertEqual(code, 0)
        self.assertIn("going on with", err)
        self.assertEqual(len(list((self.root / "results").glob("*.json"))), 1)
        done = [(s["group"], s["round"], s["contestant"]) for s in self.results()["samples"]]
        self.assertEqual(len(done), len(set(done)))
        self.assertEqual(len(done), 6)

    def test_a_finished_plan_is_measured_anew(self):
        self.compare("--output", str(self.root / "results/a.json"))
        code, _, err = self.compare("--output", str(self.root / "results/b.json"))
        self.assertEqual(code, 0)
        self.assertNotIn("going on", err)

    def test_who_fails_is_named_and_gets_no_more_turns(self):
        (self.root / "build/tea/tea").write_text("#!/bin/sh\necho no water >&2; exit 3\n", encoding="utf-8")
        code, out, _ = self.compare()
        self.assertEqual(code, 0)  # ramie itself was right
        self.assertIn("FAILED: ended with exit code 3. no water", out)
        self.assertEqual(sum(s["contestant"] == "tea/cup" for s in self.results()["samples"]), 1)

    def test_a_wrong_result_of_ramie_is_a_failure(self):
        self.program("ramie-lab", 50, ok="false")
        self.assertEqual(self.compare()[0], 1)

    def test_an_unknown_peer_is_refused(self):
        code, _, err = self.compare("--peers=coffee")
        self.assertEqual(code, 2)
        self.assertIn("there is no peer 'coffee'; there are tea", err)

    def test_without_peers(self):
        self.assertEqual(self.compare("--peers=none")[0], 0)
        self.assertEqual({s["contestant"] for s in self.results()["samples"]}, {"ramie/channel"})

    def test_the_matrix_measures_all_its_cells_again_and_again(self):
        with mock.patch.object(compare_main, "matrix_cases", lambda size: [
                c for c in compare_main.all_cases(size) if c.family == "skynet-channel"]), \
                mock.patch.object(compare_main, "mallocs_here", lambda: ("glibc",)):
            self.compare("--matrix", "--peers=none", "--minutes=5", "--placements=shared_queue")
        turns = [s["contestant"] for s in self.results()["samples"]]
        self.assertEqual({key: turns.count(key) for key in turns}, {"ramie/channel": 3, "ramie/channel@shared_queue": 3})

    def test_the_time_limit_leaves_whole_rounds(self):
        self.compare("--minutes=0.00001")
        results = self.results()
        self.assertEqual({s["round"] for s in results["samples"]}, {0})
        lines = verdict.lines_of(results, results["cases"][0])
        self.assertEqual(lines[1].ratio.verdict, "not distinguishable")  # of one pair

    def test_the_rest_of_the_first_round_is_left_out_when_time_is_up(self):
        out, err = io.StringIO(), io.StringIO()
        words = ["compare", "--mallocs=glibc", "--workers=1,2,3", "--workload=skynet-channel", "--minutes=0.00001"]
        with mock.patch("sys.argv", words), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(compare_main.main(), 0)
        results = self.results()
        self.assertEqual({s["group"] for s in results["samples"]}, {"skynet-channel, 1w"})
        self.assertEqual(results["left_out"], ["skynet-channel, 2w", "skynet-channel, 3w"])
        self.assertIn("no time for 2 groups", err.getvalue())
        self.assertIsNotNone(results["finished"])

    def test_what_was_built_from_other_sources_does_not_run(self):
        with open(self.root / "peers/tea/tea.sh", "a", encoding="utf-8") as file:
            file.write("# changed\n")
        _, _, err = self.compare()
        self.assertIn("without tea", err)


class Installing(Pretending):
    def state(self, text):
        (self.root / "peers/tea/peer.ini").write_text(text, encoding="utf-8")
        return install.make_ready(manifest.read_all(self.root / "peers")["tea"])

    def test_a_build_that_fails_says_where_to_look(self):
        state = self.state(MANIFEST.replace("build = cp", "build = false; cp").replace("cp tea.sh", "false"))
        self.assertFalse(state["ok"])
        self.assertIn("build.log", state["reason"])

    def test_a_missing_program_is_named(self):
        state = self.state(MANIFEST.replace("[skynet-channel]", "programs = no-such-program-here\n[skynet-channel]"))
        self.assertEqual(state["reason"], "not here: no-such-program-here")

    def test_builds_once(self):
        state = self.state(MANIFEST)
        os.remove(self.root / "build/tea/tea")
        self.assertEqual(self.state(MANIFEST), state)
        self.assertFalse((self.root / "build/tea/tea").exists())


if __name__ == "__main__":
    unittest.main()
