"""Runs scripts/mutants.py: it lists the mutants of lines of a small tree, and runs those of orders in a test program of its own."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MUTANTS = Path(__file__).resolve().parents[2] / "scripts" / "mutants.py"

SOURCE = """\
#include <ramie/base/atomic.hpp>
void f(atomic<int>& a, int n) {
  std::lock_guard guard{lock};
  if (a.load() == 0) return;
  if (n < 3) --count;
  --count;
  a.store(1, std::memory_order_relaxed);
  b.store(2, std::memory_order_release);
  // if (n < 3) return;
}
"""

# Stands in for a program of the simulator: it comes by two accesses, and a test fails without the order of the first.
PROGRAM = """\
#include <cstdio>
#include <cstdlib>
#include <cstring>
[[gnu::noinline]] void first() { std::puts(""); }
[[gnu::noinline]] void second() { std::puts("."); }
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--gtest_list_tests") == 0) return std::puts("suite.\\n  test"), 0;
  extern char __executable_start;
  const auto offset = [](void (*f)()) { return (char*)f + 1 - &__executable_start; };
  if (const char* name = std::getenv("RAMIE_SITES")) {
    FILE* to = std::fopen(name, "a");
    std::fprintf(to, "0x%llx load acquire\\n0x%llx full fence\\n", (long long)offset(first), (long long)offset(second));
    std::fclose(to);
  }
  const char* weakened = std::getenv("RAMIE_WEAKEN");
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", (long long)offset(first));
  first(), second();
  return weakened != nullptr && std::strstr(weakened, text) != nullptr ? 1 : 0;
}
"""


class Mutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        (self.top / "ramie" / "queue").mkdir(parents=True)
        (self.top / "bin").mkdir()

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, MUTANTS, "--root", self.top, "--binaries", self.top / "bin", *arguments],
                              capture_output=True, text=True, check=False)

    def test_help_tells_of_both_kinds(self):
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("orders", "lines", "--sample", "--day"):
            self.assertIn(word, done.stdout)

    def test_lines_are_listed(self):
        (self.top / "ramie/queue/one.hpp").write_text(SOURCE, encoding="utf-8")
        (self.top / "ramie/queue/one.test.cpp").write_text(SOURCE, encoding="utf-8")
        done = self.run_it("--kind", "lines", "--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), [
            "ramie/queue/one.hpp:3: lock not taken",
            "ramie/queue/one.hpp:4: look left out",
            "ramie/queue/one.hpp:5: < made <=",
            "ramie/queue/one.hpp:6: count not taken back",
            "ramie/queue/one.hpp:7: two stores exchanged",
            "5 mutants",
        ])

    def test_a_sample_depends_on_the_day(self):
        (self.top / "ramie/queue/one.hpp").write_text(SOURCE * 20, encoding="utf-8")
        sample = ["--kind", "lines", "--list", "--sample", "5"]
        first = self.run_it(*sample, "--day", "2026-01-01").stdout
        self.assertEqual(first, self.run_it(*sample, "--day", "2026-01-01").stdout)
        self.assertNotEqual(first, self.run_it(*sample, "--day", "2026-01-02").stdout)
        self.assertEqual(len(first.splitlines()), 7)  # the day, and their number

    def test_without_programs_it_says_so(self):
        done = self.run_it("--kind", "orders")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("./run build release", done.stderr)

    @unittest.skipUnless(shutil.which("c++") and shutil.which("addr2line"), "needs a compiler and addr2line")
    def test_orders_are_tried(self):
        source = self.top / "ramie/queue/two.cpp"
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run(["c++", "-std=c++20", "-g", source, "-o", self.top / "bin/test_interleave_runtime"], check=True)
        done = self.run_it("--kind", "orders")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"killed by runtime suite.test +[0-9.]+ s  ramie/queue/two.cpp:4: load, acquire made relaxed")
        self.assertRegex(done.stdout, r"SURVIVES +[0-9.]+ s  ramie/queue/two.cpp:5: no full fence")
        self.assertIn("2 of 2 mutants tried: 1 killed, 1 survive", done.stdout)


if __name__ == "__main__":
    unittest.main()
