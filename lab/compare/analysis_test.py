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

    def test_students_t(self):
        for freedom, t in ((1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042)):
            self.assertAlmostEqual(analysis.student_t(0.05, freedom), t, places=3)
            self.assertAlmostEqual(analysis.student_p(t, freedom), 0.05, places=4)
        self.assertEqual(analysis.student_p(0, 5), 1)

    def test_order_statistics(self):
        # With nine pairs the second and the eighth enclose the median with 96.1 %; with eight only the extremes do.
        self.assertEqual(analysis.order_interval([9, 1, 8, 2, 7, 3, 6, 4, 5]), (2, 8))
        self.assertEqual(analysis.order_interval([8, 1, 7, 2, 6, 3, 5, 4]), (1, 8))
        self.assertEqual(analysis.order_interval([3, 1, 2]), (1, 3))

    def test_differences_are_few_among_many_without_any(self):
        self.assertEqual(analysis.limit_of([0.04] + [0.5] * 99), 0)
        self.assertEqual(analysis.limit_of([0.0001] * 50 + [0.02] * 10 + [0.5] * 40), 0.02)
        self.assertEqual(analysis.limit_of([]), 0)
        equal = analysis.paired_ratio({r: 10 for r in range(7)}, {r: 10.1 + r % 2 for r in range(7)})
        self.assertEqual((equal.verdict, equal.among(0).verdict), (analysis.FASTER, analysis.UNDECIDED))

    def test_false_verdicts_are_at_most_one_in_twenty(self):
        generator = random.Random(11)
        noises = (lambda: generator.gauss(0, 0.1), lambda: generator.gauss(0, 0.05) * (10 if generator.random() < 0.1 else 1),
                  lambda: generator.expovariate(10))
        trials = 4000
        for pairs in (2, 3, 5, 6, 7, 9, 12):
            for number, noise in enumerate(noises):
                false = 0
                for _ in range(trials):
                    ours, theirs = ({r: math.exp(noise()) for r in range(pairs)} for _ in range(2))
                    false += analysis.paired_ratio(ours, theirs).verdict != analysis.UNDECIDED
                self.assertLessEqual(false / trials, 0.057, f"{pairs} pairs, noise {number}")  # 0.05 and two standard errors

    def test_of_the_differences_of_a_whole_comparison_at_most_one_in_twenty_is_false(self):
        generator = random.Random(12)
        shares = []
        for _ in range(100):
            ratios = []  # of 100 rows, four fifths of which are equal
            for row in range(100):
                truth = 2 if row % 5 == 0 else 1
                rounds = range(5)
                ratios.append((truth, analysis.paired_ratio({r: math.exp(generator.gauss(0, 0.1)) for r in rounds},
                                                            {r: truth * math.exp(generator.gauss(0, 0.1)) for r in rounds})))
            limit = analysis.limit_of([ratio.p for _, ratio in ratios])
            claimed = [truth for truth, ratio in ratios if ratio.among(limit).verdict != analysis.UNDECIDED]
            self.assertGreater(len(claimed), 15)  # not by saying nothing
            shares.append(claimed.count(1) / len(claimed))
        self.assertLess(sum(shares) / len(shares), 0.05)

    def test_the_interval_holds_the_truth_as_often_as_it_says(self):
        generator = random.Random(7)
        for pairs in (3, 5, 7, 11):
            held = 0
            trials = 1000
            for _ in range(trials):
                ours = {r: 10 * math.exp(generator.gauss(0, 0.15)) for r in range(pairs)}
                theirs = {r: 30 * math.exp(generator.gauss(0, 0.15)) for r in range(pairs)}
                ratio = analysis.paired_ratio(ours, theirs)
                held += ratio.low <= 3 <= ratio.high
            self.assertGreater(held / trials, 0.935, f"{pairs} pairs")

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
