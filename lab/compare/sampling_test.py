import json
import os
import sys
import tempfile
import unittest

from compare import sampling
from compare.progress import Progress, readable_time


def program(text):
    return [sys.executable, "-c", text]


class Samples(unittest.TestCase):
    def sample(self, text, timeout_s=30):
        with tempfile.TemporaryDirectory() as folder:
            return sampling.take_sample(program(text), {"TEA": "hot"}, folder, timeout_s)

    def test_a_right_result(self):
        printed = {"ok": True, "ns_per_unit": 5.0, "seconds": [1.0], "machine": {"much": "text"}}
        sample = self.sample(f"print('hello'); print({json.dumps(json.dumps(printed))})")
        self.assertTrue(sample["ok"])
        self.assertEqual(sample["ns_per_unit"], 5.0)
        self.assertNotIn("machine", sample)
        self.assertGreater(sample["took_seconds"], 0)

    def test_the_environment_is_passed_on(self):
        sample = self.sample("import os, json; print(json.dumps({'ok': os.environ['TEA'] == 'hot', 'ns_per_unit': 1}))")
        self.assertTrue(sample["ok"])

    def test_a_process_gets_as_many_cores_as_workers(self):
        text = "import os, json; print(json.dumps({'ok': True, 'ns_per_unit': len(os.sched_getaffinity(0))}))"
        self.assertEqual(sampling.take_sample(program(text), {}, "/", 30, {min(os.sched_getaffinity(0))})["ns_per_unit"], 1)
        self.assertIsNone(sampling.cores_for(len(os.sched_getaffinity(0))))
        if len(os.sched_getaffinity(0)) > 1:
            self.assertEqual(len(sampling.cores_for(1)), 1)

    def test_more_busy_cores_than_workers_are_refused(self):
        printed = {"ok": True, "ns_per_unit": 5.0, "workers": 1, "busy_cores": [0.98, 1.86], "seconds": [0.1, 0.1]}
        sample = self.sample(f"print({json.dumps(json.dumps(printed))})")
        self.assertEqual((sample["ok"], sample["error"]), (False, "kept 1.86 cores busy with 1 worker"))
        printed["seconds"] = [0.1, 0.00001]  # of which the reading of the clocks takes half
        self.assertTrue(self.sample(f"print({json.dumps(json.dumps(printed))})")["ok"])
        printed["workers"], printed["seconds"] = 2, [0.1, 0.1]
        self.assertTrue(self.sample(f"print({json.dumps(json.dumps(printed))})")["ok"])

    def test_a_wrong_result(self):
        sample = self.sample("print('{\"ok\": false, \"ns_per_unit\": 1}')")
        self.assertEqual((sample["ok"], sample["error"]), (False, "wrong result"))

    def test_a_crash(self):
        self.assertIn("SIGSEGV", self.sample("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")["error"])

    def test_a_refusal(self):
        sample = self.sample("import sys; sys.exit('no such tea')")
        self.assertEqual(sample["error"], "ended with exit code 1. no such tea")

    def test_an_exit_code_after_a_result(self):
        self.assertFalse(self.sample("print('{\"ok\": true, \"ns_per_unit\": 1}'); raise SystemExit(3)")["ok"])

    def test_what_takes_too_long_is_ended(self):
        sample = self.sample("import time; time.sleep(600)", timeout_s=0.2)
        self.assertIn("took longer than 0.2 s", sample["error"])

    def test_no_such_program(self):
        sample = sampling.take_sample(["/no/such/program"], {}, "/", 1)
        self.assertIn("No such file", sample["error"])

    def test_broken_output(self):
        self.assertIsNone(sampling.parse_output('{"ok": tr'))
        self.assertIsNone(sampling.parse_output(""))


class FakeStream:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


class Progresses(unittest.TestCase):
    def test_times(self):
        self.assertEqual([readable_time(s) for s in (0.2, 61, 600, 7200)], ["1 s", "61 s", "10 min", "2.0 h"])

    def test_unknown_steps_take_as_long_as_known_ones(self):
        progress = Progress(FakeStream())
        self.assertIsNone(progress.time_left(["a"]))
        progress.learn("a", 2)
        progress.learn("b", 4)
        self.assertEqual(progress.time_left(["a", "c"]), 5)

    def test_shows_what_runs(self):
        stream = FakeStream()
        Progress(stream).show(1, 2, "tea", 90)
        self.assertEqual(stream.text, "[##########          ] 1/2 tea, about 2 min left\n")


if __name__ == "__main__":
    unittest.main()
