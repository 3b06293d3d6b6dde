import math
import random
import unittest

from compare import analysis


class Numbers(unittest.TestCase):
    def test_median(self):
        self.assertEqual(analysis.median([3, 1, 2]), 2)
        self.assertEqual(analysis.median([4, 1, 2, 3]), 2.5)
        self.assertRaises(ValueError, analysis.median, [])

    def test_spread(self):
        self.assertEqual(analysis.spread([1, 2, 3]), 1)
        self.assertEqual(analysis.spread([0, 0]), 0)

    def test_quantile(self):
        self.assertEqual(analysis.quantile([0, 10], 0.25), 2.5)
        self.assertEqual(analysis.quantile([7], 0.975), 7)

    def test_number(self):
        cases = {0: "0", 0.1234: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345.6: "12,346", None: "-"}
        for value, text in cases.items():
            self.assertEqual(analysis.number(value), text)

    def test_readable_bytes(self):
        self.assertEqual(analysis.readable_bytes(512), "512 B")
        self.assertEqual(analysis.readable_bytes(3 * 1024**3), "3.00 GiB")


class Ratios(unittest.TestCase):
    def test_only_pairs_of_the_same_round_count(self):
        ratio = analysis.paired_ratio({1: 10, 2: 10, 4: 1}, {1: 20, 2: 20, 3: 999})
        self.assertEqual((ratio.ratio, ratio.pairs), (2, 2))

    def test_no_pair(self):
        self.assertIsNone(analysis.paired_ratio({1: 10}, {2: 10}))
        self.assertIsNone(analysis.paired_ratio({1: 0}, {1: 10}))

    def test_one_pair_decides_nothing(self):
        ratio = analysis.paired_ratio({1: 1}, {1: 1000})
        self.assertEqual(ratio.verdict, analysis.UNDECIDED)

    def test_more_may_be_better(self):
        rounds = range(7)
        ratio = analysis.paired_ratio({r: 0.9 for r in rounds}, {r: 0.3 for r in rounds}, more_is_better=True)
        self.assertAlmostEqual(ratio.ratio, 3)
        self.assertEqual(ratio.verdict, analysis.FASTER)

    def test_a_machine_that_changes_its_speed_does_not_blur_the_ratio(self):
        speeds = {r: 1 + r % 2 for r in range(8)}
        ratio = analysis.paired_ratio({r: 10 * s for r, s in speeds.items()}, {r: 20 * s for r, s in speeds.items()})
        self.assertEqual((ratio.low, ratio.ratio, ratio.high), (2, 2, 2))

    def test_noise_is_not_called_a_difference(self):
        ours = {0: 10, 1: 12, 2: 9, 3: 11, 4: 10}
        theirs = {0: 11, 1: 10, 2: 10, 3: 10, 4: 11}
        self.assertEqual(analysis.paired_ratio(ours, theirs).verdict, analysis.UNDECIDED)

    def test_slower_is_said_too(self):
        rounds = range(7)
        self.assertEqual(analysis.paired_ratio({r: 30 + r for r in rounds}, {r: 10 for r in rounds}).verdict,
                         analysis.SLOWER)

    def test_few_pairs_widen_the_interval(self):
        ours = {0: 10, 1: 10, 2: 10}
        theirs = {0: 11, 1: 12, 2: 14}
        ratio = analysis.paired_ratio(ours, theirs)
        self.assertLess(ratio.low, 1)  # although every pair is above

    def test_the_interval_holds_the_truth_as_often_as_it_says(self):
        generator = random.Random(7)
        for pairs in (3, 5, 7, 11):
            held = 0
            trials = 150
            for trial in range(trials):
                ours = {r: 10 * math.exp(generator.gauss(0, 0.15)) for r in range(pairs)}
                theirs = {r: 30 * math.exp(generator.gauss(0, 0.15)) for r in range(pairs)}
                ratio = analysis.paired_ratio(ours, theirs, seed=trial)
                held += ratio.low <= 3 <= ratio.high
            self.assertGreater(held / trials, 0.88, f"{pairs} pairs")

    def test_same_samples_same_interval(self):
        ours, theirs = {r: 10 + r for r in range(9)}, {r: 20 - r for r in range(9)}
        self.assertEqual(analysis.paired_ratio(ours, theirs), analysis.paired_ratio(ours, theirs))


class Samples(unittest.TestCase):
    def test_metric(self):
        sample = {"ns_per_unit": 5, "figures": {"lateness_us": [1, 9, 2]}}
        self.assertEqual(analysis.metric_of(sample, "ns_per_unit"), 5)
        self.assertEqual(analysis.metric_of(sample, "figures.lateness_us"), 2)
        self.assertIsNone(analysis.metric_of(sample, "figures.other"))
        self.assertIsNone(analysis.metric_of({}, "figures.other"))

    def test_wrong_results_do_not_count(self):
        samples = [{"round": 1, "ok": True, "ns_per_unit": 5}, {"round": 2, "ok": False, "ns_per_unit": 1}]
        self.assertEqual(analysis.values_by_round(samples, "ns_per_unit"), {1: 5})


if __name__ == "__main__":
    unittest.main()
