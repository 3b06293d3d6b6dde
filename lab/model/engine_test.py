"""The engine, tested by cases whose answer is known."""

import unittest

from model.costs import Costs
from model.engine import SPREAD, SPREAD_HOME, TOGETHER, VARIANTS, Simulation
from model.machine import OTHER_NODE, SAME_CACHE, SAME_CORE, SAME_NODE, Machine
from model.programs import Actors, Mixed, Overhead, Tree

# All costs are 0.
FREE = {"search": 40_000.0, "touch": 0.0, "lock_pass": 0.0, "notice": 0.0, "steal": 0.0, "access": [[64, 0.0]]}


def simulate(policy, cores, program, **costs):
    return Simulation(Costs(**(FREE | costs)), Machine(cores), policy, program)


def talkers():
    return Actors(24, 1000, 10, 12, 5_000, "random")


class MachineTest(unittest.TestCase):
    def test_levels_and_rings(self):
        m = Machine(16, cores_a_cache=4, cores_a_node=8)
        self.assertEqual([m.level(0, n) for n in (0, 3, 4, 8)], [SAME_CORE, SAME_CACHE, SAME_NODE, OTHER_NODE])
        self.assertEqual([len(ring) for ring in m.rings(5)], [3, 4, 8])
        self.assertEqual(Machine(4).rings(0), [[1, 2, 3]])


class CostsTest(unittest.TestCase):
    def test_an_access_costs_what_lies_between_the_figures_around_it(self):
        c = Costs(access=[[100, 1.0], [200, 3.0]])
        self.assertEqual([c.access_ns(n) for n in (0, 100, 150, 200, 1e9)], [1.0, 1.0, 2.0, 3.0, 3.0])
        self.assertEqual(Costs().access_ns(5), 0.0)


class EngineTest(unittest.TestCase):
    def test_one_worker_takes_the_sum_of_all(self):
        for variants in VARIANTS.values():
            s = simulate(variants[0], 1, Tree(1111, 10, 50.0, 1))
            self.assertAlmostEqual(s.now, 1111 * 50.0)
            self.assertEqual(s.steals, 0)

    def test_a_tree_that_is_free_to_steal_is_shared_out(self):
        s = simulate(SPREAD, 8, Tree(100_000, 10, 50.0, 10))
        self.assertLess(s.now, 100_000 * 50.0 / 7)
        self.assertGreater(s.steals, 6)

    def test_stealing_costs_its_time(self):
        cheap = simulate(SPREAD, 8, Tree(10_000, 10, 50.0, 1)).now
        dear = simulate(SPREAD, 8, Tree(10_000, 10, 50.0, 1), steal=20_000.0).now
        self.assertGreater(dear, cheap + 20_000)

    def test_a_wake_up_comes_late(self):
        s = simulate(SPREAD, 2, Tree(10_000, 2, 50.0, 1), wake=100_000.0)
        self.assertGreater(s.now, 50.0 * 5_000 + 49_000)

    def test_the_lock_of_the_common_queue_bounds_what_it_serves(self):
        shared = VARIANTS["shared_queue"][0]
        p = Actors(64, 64, 0, 64, 10_000, "random")
        s = simulate(shared, 16, p, message=[[1, 10.0]], self_message=10.0, lock_pass=40.0)
        # The worker that returns a message has the lock for the next one: one pass a message.
        self.assertGreater(s.now / 10_000, 0.8 * 40.0)

    def test_dedicated_actors_never_move(self):
        s = simulate(VARIANTS["dedicated"][0], 4, talkers(), message=[[1, 20.0]], self_message=20.0, notice=100.0)
        self.assertEqual(s.moves, 0)
        self.assertEqual(s.steals, 0)

    def test_round_robin_moves_all_the_time(self):
        s = simulate(VARIANTS["round_robin"][0], 4, talkers(), message=[[1, 20.0]], self_message=20.0)
        self.assertGreater(s.moves, 1_500)

    def test_who_is_kept_together_stays_on_one_worker(self):
        s = simulate(TOGETHER, 4, talkers(), message=[[1, 20.0]], self_message=20.0, touch=1000.0)
        self.assertAlmostEqual(s.now, 5_000 * 20.0, delta=200)

    def test_state_is_dear_only_where_it_comes_from_elsewhere(self):
        def time(policy):
            p = Actors(32, 32_000, 100, 16, 8_000, "random")
            return simulate(policy, 4, p, message=[[1, 20.0]], line=50.0, notice=50.0).now

        self.assertGreater(time(SPREAD), 1.5 * time(SPREAD_HOME))

    def test_self_tellers_share_the_cores(self):
        s = simulate(SPREAD, 4, Actors(24, 64, 0, 24, 64 * 400), message=[[1, 20.0]], self_message=20.0, notice=50.0)
        self.assertLess(s.now, 64 * 400 * 20.0 / 3)

    def test_mixed_does_all_that_it_has_to(self):
        costs = Costs(**(FREE | {"ring_message": 20.0, "factorisation": 1e6}))
        for variants in VARIANTS.values():
            p = Mixed(costs, 4, 5, 100, 3, 50)
            s = Simulation(costs, Machine(3), variants[0], p)
            self.assertEqual(p.factors, 0)
            self.assertGreaterEqual(s.now, p.units * 20.0 / 3)

    def test_overhead_is_bounded_by_its_spawner_and_its_channel(self):
        costs = Costs(**(FREE | {"fiber_small": 40.0, "root": 1.0, "channel_pass": 100.0}))
        s = Simulation(costs, Machine(8), SPREAD, Overhead(costs, 2_000, 1))
        self.assertGreater(s.now / 2_000, 20.0)

    def test_the_same_seed_gives_the_same_run(self):
        def once(seed):
            costs = Costs(**(FREE | {"message": [[1, 20.0]], "touch": 60.0, "notice": 300.0}))
            return Simulation(costs, Machine(4), SPREAD, Actors(24, 64, 0, 12, 3_000, "random"), seed).now

        self.assertEqual(once(3), once(3))
        self.assertNotEqual(once(3), once(4))


if __name__ == "__main__":
    unittest.main()
