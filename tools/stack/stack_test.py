"""The analysis, on made-up graphs and on a program that prints what it really used."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from stack import analysis, callgraph, known, needs

ROOT = Path(__file__).resolve().parent.parent.parent
LIBRARY = os.environ.get("RAMIE_LIBRARY", "")  # set by ctest
COMPILER = os.environ.get("RAMIE_COMPILER", "g++")


def node(title, size, kind="static", name=None):
    return f'node: {{ title: "{title}" label: "{name or title}()\\na.cpp:1:1\\n{size} bytes ({kind})" }}\n'


def elsewhere(title):
    return f'node: {{ title: "{title}" label: "{title}()\\nb.hpp:1:1" shape : ellipse }}\n'


def edge(source, target):
    return f'edge: {{ sourcename: "{source}" targetname: "{target}" label: "a.cpp:2:2" }}\n'


class Graphs(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)

    def file(self, name, *lines):
        path = self.folder / f"{name}.ci"
        path.write_text(f'graph: {{ title: "{name}.cpp"\n' + "".join(lines) + "}\n", encoding="utf-8")

    def work(self, options=None, table=()):
        lines = known.Known([list(table)], unknown_bytes=500, indirect_bytes=70, binding_bytes=0)
        return analysis.Analysis(callgraph.read([self.folder]), lines, options)

    def worst(self, entry, *arguments, **more):
        work = self.work(*arguments, **more)
        found = work.find(f"^{entry}")
        self.assertEqual(len(found), 1)
        return work.worst(found[0])

    def test_takes_the_deepest_of_several_paths(self):
        self.file("a", node("main", 10), node("f", 20), node("g", 30), node("h", 100), edge("main", "f"), edge("main", "g"),
                  edge("f", "h"))
        found = self.worst("main")
        self.assertEqual(found.size, 130)
        self.assertEqual([step.title for step in found.path], ["main", "f", "h"])
        self.assertEqual((found.recursions, found.indirect, found.unknown, found.unbounded), ([], [], [], []))

    def test_follows_calls_from_file_to_file(self):
        self.file("a", node("main", 10), elsewhere("f"), edge("main", "f"))
        self.file("b", node("f", 20))
        self.assertEqual(self.worst("main").size, 30)

    def test_takes_the_larger_frame_of_a_function_in_two_files(self):
        self.file("a", node("main", 10), node("f", 20), edge("main", "f"))
        self.file("b", node("f", 25))
        self.assertEqual(self.worst("main").size, 35)

    def test_counts_a_circle_once_or_as_often_as_is_said(self):
        self.file("a", node("main", 10), node("f", 20), node("g", 30), node("h", 5), edge("main", "f"), edge("f", "g"),
                  edge("g", "f"), edge("g", "h"))
        found = self.worst("main")
        self.assertEqual(found.size, 65)
        self.assertEqual(found.recursions, [(["f()", "g()"], 50, 1)])
        self.assertEqual(self.worst("main", analysis.Options(turns=[("^f", 7)])).size, 10 + 7 * 50 + 5)

    def test_counts_self_recursion(self):
        self.file("a", node("main", 10), edge("main", "main"))
        found = self.worst("main", analysis.Options(turns=[("main", 3)]))
        self.assertEqual((found.size, len(found.recursions)), (30, 1))

    def test_names_unknown_functions_and_knows_others_by_a_table(self):
        self.file("a", node("main", 10), elsewhere("who"), elsewhere("memcpy"), edge("main", "who"), edge("main", "memcpy"))
        found = self.worst("main")
        self.assertEqual((found.size, found.unknown), (510, ["memcpy", "who"]))
        table = self.folder / "table.txt"
        table.write_text("# ours\n64 mem.*\n900 wh\n40 who\n", encoding="utf-8")
        found = self.worst("main", table=known.read_table(table))
        self.assertEqual((found.size, found.unknown), (74, []))

    def test_a_first_call_looks_for_its_function(self):
        self.assertEqual(known.Known([known.read_table(known.OWN)]).bytes_of("memcpy"), (known.BINDING_BYTES, True))
        self.assertEqual(known.Known([known.read_table(known.OWN)], binding_bytes=0).bytes_of("memcpy"), (128, True))

    def test_calls_through_pointers_go_where_one_says(self):
        self.file("a", node("main", 10), node("f", 200), edge("main", "__indirect_call"))
        found = self.worst("main")
        self.assertEqual((found.size, found.indirect), (80, ["main()"]))
        found = self.worst("main", analysis.Options(calls=[("^main", "^f")]))
        self.assertEqual((found.size, found.indirect), (210, []))

    def test_leaves_out_what_is_never_called(self):
        self.file("a", node("main", 10), node("fail", 200), edge("main", "fail"))
        self.assertEqual(self.worst("main", analysis.Options(without=["^fail"])).size, 10)

    def test_names_frames_that_grow(self):
        self.file("a", node("main", 10), node("f", 20, "dynamic"), node("g", 20, "dynamic,bounded"), edge("main", "f"),
                  edge("main", "g"))
        self.assertEqual(self.worst("main").unbounded, ["f()"])

    def test_takes_one_constructor_for_the_other(self):
        self.file("a", node("main", 10), elsewhere("_ZN1aC1Ev"), edge("main", "_ZN1aC1Ev"))
        self.file("b", node("_ZN1aC2Ev", 44))
        self.assertEqual(self.worst("main").size, 54)

    def test_names_what_gcc_names_badly(self):
        self.file("a", node("_ZL4deepi", 10, name=", 3]"))
        graph = callgraph.read([self.folder])
        self.assertIn(graph.functions["_ZL4deepi"].name, ("deep(int)", "_ZL4deepi"))

    def test_goes_deep_without_recursion_of_its_own(self):
        many = 20_000
        self.file("a", *(node(f"f{i}x", 1) for i in range(many)), *(edge(f"f{i}x", f"f{i + 1}x") for i in range(many - 1)))
        self.assertEqual(self.worst("f0x").size, many)

    def test_refuses_what_is_no_graph(self):
        (self.folder / "x.ci").write_text("hello", encoding="utf-8")
        with self.assertRaises(callgraph.CallgraphError):
            callgraph.read([self.folder])
        with self.assertRaises(callgraph.CallgraphError):
            callgraph.read([])

    def test_refuses_tables_with_nonsense(self):
        for line in ("many f.*", "12", "12 (", "x"):
            path = self.folder / "table.txt"
            path.write_text(line + "\n", encoding="utf-8")
            with self.assertRaises(known.KnownError):
                known.read_table(path)


class Needs(unittest.TestCase):
    def test_the_least_size_that_has_room(self):
        self.assertEqual(needs.slot_for(1), 16 * 1024)
        self.assertEqual(needs.slot_for(16 * 1024 - 4096 - 960), 16 * 1024)
        self.assertEqual(needs.slot_for(16 * 1024 - 4096 - 959), 32 * 1024)
        self.assertEqual(needs.slot_for(200 * 1024), 256 * 1024)
        self.assertEqual(needs.slot_for(250 * 1024), 512 * 1024)

    def test_the_numbers_are_those_of_the_library(self):
        pool = (ROOT / "ramie/stack/pool.hpp").read_text(encoding="utf-8")
        slab = (ROOT / "ramie/stack/slab.hpp").read_text(encoding="utf-8")
        guard = (ROOT / "ramie/stack/guard.cpp").read_text(encoding="utf-8")
        self.assertIn("stack_size_min = 16 * 1024", pool)
        self.assertIn("stack_size_default = 256 * 1024", pool)
        self.assertIn("colours = 16;", slab)
        self.assertIn("colour_step = 64;", slab)
        self.assertIn("generous = 16 * 1024", guard)
        self.assertEqual(needs.COLOURS, 15 * 64)


def makes_graphs():
    if not shutil.which(COMPILER) or not LIBRARY:
        return False
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([COMPILER, "-fcallgraph-info=su", "-x", "c++", "-c", "-o", f"{folder}/x.o", "-"], input="int x() { return 1; }",
                              text=True, capture_output=True, check=False)
        return done.returncode == 0


@unittest.skipUnless(makes_graphs(), "no gcc that writes call graphs, or no library")
class Program(unittest.TestCase):
    """tests/stack/subject.cpp prints how much each fiber used."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        words = [COMPILER, "-std=c++20", "-O2", "-fcallgraph-info=su", f"-I{ROOT}"]
        subprocess.run([*words, "-c", str(ROOT / "tests/stack/subject.cpp"), "-o", str(cls.folder / "subject.o")], check=True)
        subprocess.run([COMPILER, str(cls.folder / "subject.o"), LIBRARY, "-pthread", f"-Wl,-rpath,{Path(LIBRARY).parent}", "-o",
                        str(cls.folder / "subject")], check=True)
        done = subprocess.run([str(cls.folder / "subject")], capture_output=True, text=True, check=True)
        cls.used = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def ask(self, *words):
        done = subprocess.run([sys.executable, "-m", "stack", "--in", str(self.folder), "--json", *words], capture_output=True, text=True,
                              check=False, cwd=ROOT / "tools", env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def expect(self, name, *words):
        """The computed size is what was used: no less, and more by less than the measurement itself and an unused call."""
        entry = f"{{anonymous}}::{name}"
        code, found = self.ask(rf"fiber_task.*::run\(.*Fn = {entry}\]|fiber_task.*{name}.*3run|act_on_tell.* A = {entry};|actor_class.*{name}.*serve", *words)
        self.assertEqual((code, len(found)), (0, 1), found)
        computed = found[0]["frames_bytes"] + found[0]["loop_bytes"]
        self.assertGreaterEqual(computed + needs.RED_ZONE, self.used[name])
        self.assertLess(computed - self.used[name], 8 * 1024)
        return found[0]

    def test_a_path_of_calls(self):
        found = self.expect("by_call")
        self.assertGreater(found["frames_bytes"], 26_800)
        # Whatever the kernel pushes for a signal: 1 to 3 KiB, by the processor.
        self.assertEqual(found["stack_size"], 64 * 1024)

    def test_recursion_with_its_depth(self):
        found = self.expect("by_recursion", "--turns", "down=20")
        self.assertGreater(found["frames_bytes"], 22_800)
        self.assertIn("down", str(found["recursion"]))

    def test_a_call_through_a_pointer(self):
        found = self.expect("by_pointer", "--calls", "by_pointer=middle")
        self.assertGreater(found["frames_bytes"], 26_800)

    def test_a_handler_of_an_actor(self):
        found = self.expect("by_message")
        self.assertGreater(found["frames_bytes"], 26_800)
        self.assertGreater(found["loop_bytes"], needs.LOOP)

    def test_a_fiber_actor(self):
        self.assertGreater(self.expect("by_mailbox")["frames_bytes"], 26_800)

    def test_all_there_are(self):
        code, found = self.ask()
        self.assertEqual(code, 0)
        for entry in ("Fn = {anonymous}::by_call", "act_on_tell", "serve()"):
            self.assertTrue(any(entry in one["entry"] for one in found), entry)

    def test_a_limit(self):
        self.assertEqual(self.ask("by_call", "--limit", "16384")[0], 1)
        self.assertEqual(self.ask("by_call", "--limit", "65536")[0], 0)

    def test_no_such_function(self):
        self.assertEqual(self.ask("nobody_has_this")[0], 2)


if __name__ == "__main__":
    unittest.main()
