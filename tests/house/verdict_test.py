"""Runs scripts/verdict.py over toy suites: what a failure is, what is tried again, and what is counted."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERDICT = HERE.parents[1] / "scripts" / "verdict.py"


def case(name, word="OK", printed=""):
    """What GoogleTest prints of one case."""
    end = {"OK": "[       OK ]", "FAILED": "[  FAILED  ]"}[word]
    return f"[ RUN      ] {name}\n{printed}{end} {name} (0 ms)\n"


class Suite:
    """A folder with tests of ctest that are shell scripts, and one run over them, judged."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = []
        (folder / "build").mkdir()

    def add(self, name, script, timeout=60, more=""):
        file = self.folder / f"{name}.sh"
        file.write_text(script, encoding="utf-8")
        self.lines += [f'add_test({name} "/bin/bash" "{file}" {more})',
                       f"set_tests_properties({name} PROPERTIES TIMEOUT {timeout} SKIP_RETURN_CODE 77)"]

    def add_program(self, name, output, counts="", status=1, first_times=None, timeout=60):
        """A GoogleTest program that prints this; with first_times, only in its first runs, and then passes."""
        script = ""
        if first_times is not None:
            script += f'echo run >>"{self.folder}/{name}.runs"\n'
            script += f'if (($(wc -l <"{self.folder}/{name}.runs") > {first_times})); then\n'
            script += f'  echo "{name} 1 0 0" >>"$RAMIE_TEST_COUNTS"; exit 0\nfi\n'
        script += f"cat <<'END'\n[==========] Running 9 tests\n{output}END\n"
        script += "".join(f'echo "{line}" >>"$RAMIE_TEST_COUNTS"\n' for line in counts.splitlines())
        self.add(name, script + f"exit {status}\n" if isinstance(status, int) else script + status, timeout, f"--name={name}")

    def run(self, *more):
        """The lines printed, the sums and the exit status."""
        (self.folder / "CTestTestfile.cmake").write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        build = self.folder / "build"
        for name in ("counts", "junit.xml"):
            (build / name).unlink(missing_ok=True)
        ctest = ["ctest", "--test-dir", str(self.folder)]
        log = subprocess.run([*ctest, "--output-on-failure", "--output-junit", str(build / "junit.xml"), "--test-output-size-failed",
                              "50000000"], text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=os.environ | {"RAMIE_TEST_COUNTS": str(build / "counts")})
        (build / "log").write_text(log.stdout, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(VERDICT), "--preset", "toy", "--status", str(log.returncode), "--log", build / "log",
             "--junit", build / "junit.xml", "--counts", build / "counts", "--sums", build / "sums", "--flaky", build / "flaky.txt",
             "--listed", self.folder / "flaky.md", "--memory", self.folder / "memory.txt", *more, "--", *ctest],
            cwd=self.folder, capture_output=True, text=True, check=False)
        assert not done.stderr, done.stderr
        return done.stdout.splitlines(), (build / "sums").read_text(encoding="utf-8").split(), done.returncode

    def runs_of(self, name):
        return (self.folder / f"{name}.runs").read_text(encoding="utf-8").count("run")


@unittest.skipUnless(shutil.which("ctest"), "there is no ctest")
class Verdicts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.suite = Suite(Path(folder.name))

    def expect(self, begins, sums, status):
        lines, counted, returned = self.suite.run()
        self.assertEqual([line[:len(begin)] for line, begin in zip(lines, begins)], begins, lines)
        self.assertEqual(len(lines), len(begins), lines)
        self.assertEqual(counted, sums.split())
        self.assertEqual(returned, status)
        return lines

    def test_what_passes_is_counted_by_cases(self):
        self.suite.add_program("pool", "", "pool 9 0 1", status=0)
        self.suite.add_program("empty", "", "empty 0 0 0", status=0)
        self.suite.add("example", "exit 0")
        self.suite.add("vcpkg", "exit 77")
        self.expect([], "10 0 2", 0)

    def test_an_expectation_that_holds_alone_is_flaky(self):
        self.suite.add_program("mutex", case("mutex.fair", "FAILED", "seed 77\n"), "mutex failed mutex.fair beside\nmutex 3 1 0",
                               first_times=1)
        lines = self.expect(["flaky: mutex (toy): an expectation in mutex.fair; passed twice alone; seed 77"], "4 0 0", 0)
        self.assertEqual(self.suite.runs_of("mutex"), 3)
        written = (self.suite.folder / "build/flaky.txt").read_text(encoding="utf-8")
        self.assertIn("flaky: mutex (toy)", written)
        self.assertIn("[ RUN      ] mutex.fair", written)
        self.assertEqual(len(lines), 1)

    def test_an_expectation_that_fails_alone_has_failed(self):
        for name, times in (("once", 2), ("twice", 3)):
            self.suite.add_program(name, case("a.b", "FAILED"), f"{name} failed a.b beside\n{name} 0 1 0", first_times=times)
        self.expect(["failed: once (toy): an expectation in a.b; alone, an expectation",
                     "failed: twice (toy): an expectation in a.b; alone, an expectation"], "0 2 0", 1)

    def test_a_race_beside_a_second_run_is_a_report(self):
        script = ('echo run >>"$0.runs"\nif (($(wc -l <"$0.runs") > 1)); then echo "WARNING: ThreadSanitizer: data race"; fi\nexit 1\n')
        self.suite.add("late", script)
        self.expect(["report: late (toy): an expectation; alone, WARNING: ThreadSanitizer: data race"], "0 1 0", 1)

    def test_flaky_twice_needs_an_entry(self):
        self.suite.add_program("mutex", case("a.b", "FAILED"), "mutex failed a.b beside\nmutex 3 1 0", first_times=1)
        self.expect(["flaky: mutex"], "4 0 0", 0)
        (self.suite.folder / "mutex.runs").unlink()
        # Again, on the same commit, whose list could not have it.
        self.expect(["flaky: mutex"], "4 0 0", 0)
        (self.suite.folder / "mutex.runs").unlink()
        memory = self.suite.folder / "memory.txt"
        memory.write_text(memory.read_text(encoding="utf-8").replace("unknown", "abcdef1"), encoding="utf-8")
        self.expect(["failed: mutex (toy): an expectation in a.b; passed twice alone, but was flaky in abcdef1, too"], "3 1 0", 1)
        self.assertIn("failed: mutex (toy)", (self.suite.folder / "build/flaky.txt").read_text(encoding="utf-8"))
        memory.write_text("mutex 2020-01-01 abcdef1\n", encoding="utf-8")
        (self.suite.folder / "mutex.runs").unlink()
        self.expect(["flaky: mutex"], "4 0 0", 0)
        (self.suite.folder / "mutex.runs").unlink()
        (self.suite.folder / "flaky.md").write_text("| name |\n| --- |\n| `mutex` | ... |\n", encoding="utf-8")
        self.expect(["flaky: mutex"], "4 0 0", 0)

    def test_reports_are_never_tried_again(self):
        leak = case("a.b") + "==1==ERROR: LeakSanitizer: detected memory leaks\n"
        planted = {
            "race": (case("a.b", "FAILED", "WARNING: ThreadSanitizer: data race (pid=1)\n"), "race failed a.b beside\nrace 0 1 0"),
            "leak": (leak, "leak 1 0 0"),
            "silent": (case("a.b"), "silent 1 0 0"),
            "undefined": ("[ RUN      ] a.b\nx.cpp:1:2: runtime error: shift exponent 40\n", ""),
            "ended": ("[ RUN      ] a.b\n", ""),
            "asserted": (case("a.b", "FAILED", "ramie: the lock is not held (ramie/sync/mutex.cpp:12)\n"),
                         "asserted failed a.b beside\nasserted 0 1 0"),
            "wrong": (case("a.b", "FAILED"), "wrong failed a.b alone\nwrong 0 1 0"),
            "interleave.events": (case("a.b", "FAILED"), "interleave.events failed a.b beside\ninterleave.events 0 1 0"),
        }
        for name, (output, counts) in planted.items():
            self.suite.add_program(name, output, counts, first_times=1)
        signals = ("SEGV", "ABRT", "BUS", "FPE", "ILL", "KILL", "TERM")
        for signal in signals:
            self.suite.add(signal, f'echo run >>"{self.suite.folder}/{signal}.runs"; kill -{signal} $$')
        self.suite.add_program("chance", case("a.b", "FAILED"), "chance failed a.b beside\nchance 3 1 0", first_times=1)
        lines = self.expect([f"report: {name} (toy)" for name in [*planted, *signals]] + ["flaky: chance (toy)"], "6 15 0", 1)
        for name in [*planted, *signals]:
            self.assertEqual(self.suite.runs_of(name), 1, name)
        self.assertIn("a wrong value in a.b, which has no threads", lines[6])
        self.assertIn("SegFault", lines[8])
        self.assertIn("aborted", lines[9])

    def test_children_that_die_on_purpose_in_cases_that_pass_are_no_report(self):
        output = case("a.dies", printed="==1==ERROR: AddressSanitizer: stack-overflow\n") + case("a.b", "FAILED")
        self.suite.add_program("stack", output, "stack failed a.b beside\nstack 1 1 0", first_times=1)
        self.expect(["flaky: stack"], "2 0 0", 0)

    def test_reports_of_children_are_seen(self):
        inner = "[ RUN      ] fences.light\nWARNING: ThreadSanitizer: data race\n[       OK ] fences.light (0 ms)\n"
        self.suite.add_program("fence", case("fence.without", "FAILED", inner), "fence failed fence.without beside\nfence 0 1 0", first_times=1)
        partial = "[ RUN      ] a.c\n....[       OK ] a.c (0 ms)\n" + case("a.b", "FAILED") + "==1==ERROR: LeakSanitizer: leaks\n"
        self.suite.add_program("partial", partial, "partial failed a.b beside\npartial 1 1 0", first_times=1)
        for name, text in (("server", "AssertionError: ended with -11"), ("docs", "x.md:3: ended with -6: ramie: no (mutex.cpp:12)")):
            self.suite.add(name, f'echo run >>"{self.suite.folder}/{name}.runs"; echo "{text}"; exit 1')
        self.expect([f"report: {name} (toy)" for name in ("fence", "partial", "server", "docs")], "1 4 0", 1)

    def test_a_report_at_the_end_of_much_output_is_seen(self):
        filled = case("a.b", "FAILED", ("x" * 99 + "\n") * 5000) + "==1==ERROR: LeakSanitizer: detected memory leaks\n"
        self.suite.add_program("long", filled, "long failed a.b beside\nlong 0 1 0", first_times=1)
        self.expect(["report: long (toy): ==1==ERROR: LeakSanitizer"], "0 1 0", 1)

    def test_a_program_that_ends_with_0_amid_its_cases_has_failed(self):
        self.suite.add_program("amid", "[ RUN      ] a.b\n", status=0)
        self.expect(["report: amid (toy): it ended with 0 amid its cases"], "0 1 0", 1)

    def test_skipping_is_not_passing(self):
        folder = self.suite.folder
        self.suite.add_program("case", case("a.b", "FAILED"), "case failed a.b beside\ncase 3 1 0",
                               status="exit 1")
        script = f'if [[ -e "{folder}/was" ]]; then exit 77; fi; touch "{folder}/was"; exit 1'
        self.suite.add("client", script)
        self.expect(["failed: case (toy): an expectation in a.b; alone, an expectation",
                     "failed: client (toy): an expectation; alone it did not run"], "3 2 0", 1)

    def test_logs_of_other_runs_are_not_its_own(self):
        self.suite.add("victim", "exit 1")
        self.suite.add("nested", 'echo "1/1 Test #9: victim ........   Passed    0.10 sec"; exit 1')
        self.expect(["failed: victim (toy)", "failed: nested (toy)"], "0 2 0", 1)

    def test_a_run_that_dies_is_not_forgiven(self):
        self.suite.add_program("chance", case("a.b", "FAILED"), "chance failed a.b beside\nchance 3 1 0", first_times=1)
        self.suite.add("killer", "kill -KILL $PPID; sleep 1")
        self.suite.add("never", "exit 1")
        lines, _, status = self.suite.run()
        self.assertEqual(status, 1)
        self.assertIn("failed: ctest (toy): it ended with status -9", lines)
        self.assertIn("report: chance (toy): what it printed is not known", lines)

    def test_a_race_before_a_time_limit_is_a_report(self):
        self.suite.add_program("race", "[ RUN      ] a.b\nWARNING: ThreadSanitizer: data race\n", status="exec sleep 30", timeout=1)
        self.suite.add_program("interleave.a", "[ RUN      ] a.b\n", status="exec sleep 30", timeout=1)
        self.expect(["report: race (toy): WARNING: ThreadSanitizer", "report: interleave.a (toy): Timeout"], "0 2 0", 1)

    def test_a_time_limit_is_tried_again(self):
        self.suite.add("slow", 'echo run >>"$0.runs"; (($(wc -l <"$0.runs") > 1)) || sleep 30', timeout=1)
        self.expect(["flaky: slow (toy): its time limit"], "1 0 0", 0)

    def test_many_failures_are_no_chance(self):
        for number in range(11):
            self.suite.add_program(f"t{number}", case("a.b", "FAILED"), f"t{number} failed a.b beside\nt{number} 0 1 0", first_times=1)
        self.expect([f"failed: t{number} (toy): an expectation in a.b; not tried again" for number in range(11)], "0 11 0", 1)

    def test_a_program_that_is_missing_has_failed(self):
        self.suite.lines.append('add_test(missing "/nonexistent/program")')
        self.expect(["report: missing (toy): Not Run"], "0 1 0", 1)

    def test_a_failure_of_ctest_itself(self):
        lines, sums, status = self.suite.run()
        self.assertEqual((lines, sums), ([], ["0", "0", "0"]))
        self.suite.lines = ["no_such_command()"]
        lines, sums, status = self.suite.run()
        self.assertEqual([line.split(":")[0] for line in lines], ["failed"])
        self.assertEqual((sums, status), (["0", "1", "0"], 1))


@unittest.skipUnless(shutil.which("ctest") and shutil.which("c++"), "there is no ctest or no compiler")
class PlantedPrograms(unittest.TestCase):
    """The same with real programs: planted/planted.cpp, with the main function of all tests."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.suite = Suite(Path(folder.name))

    def build(self, sanitizer):
        program = self.suite.folder / sanitizer
        sources = [HERE / "planted" / "planted.cpp", HERE.parent / "support" / "main.cpp"]
        subprocess.run(["c++", "-std=c++20", "-g1", f"-fsanitize={sanitizer}", *sources, "-lgtest", "-pthread", "-o", program], check=True)
        # Older sanitizers cannot place their shadow where newer kernels scatter mappings widely.
        return f"setarch {os.uname().machine} --addr-no-randomize {program}" if sanitizer == "thread" else str(program)

    def add_case(self, program, case):
        # As CMakePresets.json has it.
        self.suite.add(case, f'export TSAN_OPTIONS=halt_on_error=1 PLANTED_RUNS="{self.suite.folder}/counted"\necho run >>"{self.suite.folder}/{case}.runs"\n'
                             f"exec {program} --name={case} --gtest_filter=planted.{case}\n", more=f"--name={case}")

    def test_each_is_told_apart(self):
        for sanitizer, cases in (("thread", ("race", "chance")), ("address", ("leak", "wrong_value", "nothing"))):
            program = self.build(sanitizer)
            for case in cases:
                self.add_case(program, case)
        lines, sums, status = self.suite.run()
        said = {line.split(": ")[1].split()[0]: line for line in lines}
        self.assertEqual(sorted(said), ["chance", "leak", "race", "wrong_value"], lines)
        self.assertRegex(said["race"], "^report: .*WARNING: ThreadSanitizer: data race")
        self.assertRegex(said["leak"], "^report: .*ERROR: LeakSanitizer")
        self.assertRegex(said["wrong_value"], "^report: .*a wrong value in planted.wrong_value, which has no threads")
        self.assertRegex(said["chance"], "^flaky: .*an expectation in planted.chance; passed twice alone")
        self.assertEqual((sums, status), (["3", "3", "0"], 1))
        self.assertEqual([self.suite.runs_of(case) for case in ("race", "leak", "wrong_value", "nothing", "chance")], [1, 1, 1, 1, 3])


if __name__ == "__main__":
    unittest.main()
