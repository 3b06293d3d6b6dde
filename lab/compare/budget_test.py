import unittest

from compare import budget
from compare.cases import Case
from compare.plan import Contestant, Group


def group(family, *contestants, headline=True, rounds_max=1000):
    case = Case(family, "1", "", family, "x", (), headline=headline, rounds_max=rounds_max)
    return Group(case, 1, tuple(Contestant(*key.split("/")) for key in contestants))


def samples(of, **values):
    """Samples of a round: {"tea_cup": (ns, seconds)}"""
    return [{"group": of.key, "contestant": key.replace("_", "/"), "round": 0, "ok": ns is not None, "ns_per_unit": ns, "took_seconds": took}
            for key, (ns, took) in values.items()]


class Rounds(unittest.TestCase):
    def planned(self, costs, seconds, first=(), most=9):
        tiers = set(first), set(costs) - set(first)
        return budget.planned_rounds(costs, tiers, seconds, {g: most for g in costs}, {g: 1 for g in costs})

    def test_all_have_as_many(self):
        self.assertEqual(self.planned({"a": 1, "b": 1}, 6), {"a": 4, "b": 4})

    def test_no_more_than_wanted(self):
        self.assertEqual(self.planned({"a": 1, "b": 1}, 1000, most=5), {"a": 5, "b": 5})

    def test_better_four_rounds_of_some_than_three_of_all(self):
        self.assertEqual(self.planned({"a": 1, "b": 1.5, "c": 1.6}, 8.3), {"a": 4, "b": 4, "c": 1})

    def test_cheap_ones_go_on_where_dear_ones_cannot(self):
        self.assertEqual(self.planned({"a": 1, "b": 100}, 5), {"a": 6, "b": 1})
        self.assertEqual(self.planned({"a": 1, "b": 100}, 303), {"a": 4, "b": 4})

    def test_those_of_the_verdict_go_first(self):
        self.assertEqual(self.planned({"a": 1, "b": 2}, 6, first=("b",)), {"a": 1, "b": 4})
        self.assertEqual(self.planned({"a": 1, "b": 2}, 9, first=("b",)), {"a": 4, "b": 4})

    def test_fewer_than_four_where_no_more_are_wanted(self):
        self.assertEqual(self.planned({"a": 1}, 100, most=2), {"a": 2})

    def test_without_time_there_are_no_more(self):
        self.assertEqual(self.planned({"a": 1}, -5), {"a": 1})


class Plans(unittest.TestCase):
    def plan(self, groups, found, seconds=100, done=1, rounds=7):
        return budget.Plan(groups, {"samples": found}, seconds, {g.key: done for g in groups}, rounds)

    def test_the_best_style_of_each_system_goes_on(self):
        g = group("skynet", "ramie/channel", "ramie/actor", "tea/cup", "tea/mug")
        p = self.plan([g], samples(g, ramie_channel=(50, 1), ramie_actor=(20, 1), tea_cup=(500, 1), tea_mug=(400, 1)))
        goes_on = [c.key for c in g.contestants if p.has_turn(g, c, 1)]
        self.assertEqual(goes_on, ["ramie/channel", "tea/mug"])  # the reference, although another style was better

    def test_later_rounds_do_not_change_the_choice(self):
        g = group("skynet", "ramie/channel", "tea/cup", "tea/mug")
        first = samples(g, ramie_channel=(50, 1), tea_cup=(500, 1), tea_mug=(400, 1))
        unlucky = [{**sample, "round": 1, "ns_per_unit": 900} for sample in first if sample["contestant"] == "tea/mug"]
        p = self.plan([g], first + unlucky, done=2)
        self.assertEqual([c.key for c in g.contestants if p.has_turn(g, c, 2)], ["ramie/channel", "tea/mug"])

    def test_who_has_failed_does_not(self):
        g = group("skynet", "ramie/channel", "tea/cup")
        p = self.plan([g], samples(g, ramie_channel=(50, 1), tea_cup=(None, 1)))
        self.assertEqual([c.key for c in g.contestants if p.has_turn(g, c, 1)], ["ramie/channel"])

    def test_the_slow_have_three_turns_that_count(self):
        g = group("skynet", "ramie/channel", "tea/cup")
        p = self.plan([g], samples(g, ramie_channel=(50, 0.1), tea_cup=(500, 4)))
        self.assertEqual([p.has_turn(g, g.contestants[1], n) for n in (1, 2, 3, 4)], [True, True, True, False])
        self.assertTrue(p.has_turn(g, g.contestants[0], 6))

    def test_there_are_as_many_rounds_as_fit(self):
        g, h = group("skynet", "ramie/channel"), group("sum", "ramie/spawn", rounds_max=2)
        found = samples(g, ramie_channel=(50, 10)) + samples(h, ramie_spawn=(50, 10))
        p = self.plan([g, h], found, seconds=45)
        self.assertEqual(p.rounds, {g.key: 4, h.key: 2})
        self.assertIn("2 to 4 rounds", p.text())


if __name__ == "__main__":
    unittest.main()
