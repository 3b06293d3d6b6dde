import dataclasses
import unittest
from pathlib import Path

from compare import cases, plan
from compare.manifest import Ability, Peer


def peer(key="tea", styles=("cup",), workers=(), malloc=False, **more):
    return Peer(key=key, folder=Path("."), name=key, system=key, summary="", packages=(), programs=(), files=(), build=(),
                run="{build}/tea --hot", version="", flags="", shared=(), warmup=2, environment={"A": "1"}, malloc=malloc, notes="",
                abilities={"skynet-channel": Ability(styles=styles, workers=workers, **more)})


RAMIE = {"skynet": ["plain", "fork_join", "channel"], "overhead": ["channel"]}


class Plans(unittest.TestCase):
    def setUp(self):
        self.cases = cases.all_cases("quick")
        self.peers = {"tea": peer()}

    def groups(self, **choice):
        return plan.make_plan(self.cases, plan.Choice(**choice), RAMIE, self.peers)[0]

    def test_ramie_comes_first_and_only_in_styles_that_it_has(self):
        group = self.groups(workloads=("skynet-channel",), workers=(1,))[0]
        self.assertEqual([c.key for c in group.contestants], ["ramie/channel", "tea/cup"])

    def test_what_ramie_lacks_is_named(self):
        _, missing = plan.make_plan(self.cases, plan.Choice(), RAMIE, self.peers)
        self.assertIn("pingpong", missing)
        self.assertNotIn("skynet-channel", missing)

    def test_workloads_choose_by_workload_family_or_case(self):
        self.assertEqual({g.case.family for g in self.groups(workloads=("skynet",))},
                         {"skynet-channel", "skynet-fork-join", "skynet-bursts"})
        self.assertEqual({g.case.family for g in self.groups(workloads=("skynet-fork-join",))}, {"skynet-fork-join"})
        self.assertEqual(len(self.groups(workloads=("overhead n=1 x=1000",), workers=(1,))), 1)
        families = {case.family for case in self.cases}
        chosen = {case.key for case in self.cases if plan.wanted(case, ("stream", "memory"), families)}
        self.assertEqual(chosen, {"stream", "memory"})  # not stream-unbuffered, which is of the same workload
        self.assertRaises(plan.PlanError, self.groups, workloads=("tee",))

    def test_a_peer_that_knows_one_worker_only(self):
        self.peers = {"tea": peer(workers=(1,))}
        one, two = (self.groups(workloads=("skynet-channel",), workers=(n,))[0] for n in (1, 2))
        self.assertEqual(len(one.contestants), 2)
        self.assertEqual(len(two.contestants), 1)

    def test_a_style_that_knows_one_number_of_workers_only(self):
        self.peers = {"tea": peer(styles=("cup", "mug"), only={"mug": 1})}
        one, two = (self.groups(workloads=("skynet-channel",), workers=(n,))[0] for n in (1, 2))
        self.assertEqual([c.key for c in one.contestants[1:]], ["tea/cup", "tea/mug"])
        self.assertEqual([c.key for c in two.contestants[1:]], ["tea/cup"])

    def test_mallocs_for_those_that_use_malloc(self):
        self.peers = {"tea": peer(), "pot": peer("pot", malloc=True)}
        group = self.groups(workloads=("skynet-channel",), workers=(1,), mallocs=("glibc", "mimalloc"))[0]
        self.assertEqual([c.key for c in group.contestants],
                         ["ramie/channel", "ramie/channel+mimalloc", "tea/cup", "pot/cup", "pot/cup+mimalloc"])

    def test_placements(self):
        group = self.groups(workloads=("skynet-channel",), workers=(1,), placements=("shared_queue",))[0]
        self.assertEqual(group.contestants[1].key, "ramie/channel@shared_queue")

    def test_a_case_may_ask_for_placements_that_ramie_has(self):
        groups, _ = plan.make_plan(self.cases, plan.Choice(workloads=("affinity",), workers=(2,)), {"affinity": ["actor"]},
                                   {}, ("work_stealing", "dedicated"))
        self.assertEqual([c.key for c in groups[0].contestants], ["ramie/actor", "ramie/actor@dedicated"])

    def test_more_workers_for_what_is_shown_against_them(self):
        choice = plan.Choice(workers=(1, 2), spread=(1, 4, 8), workloads=("skynet",))
        groups, _ = plan.make_plan(cases.all_cases("full"), choice, RAMIE, self.peers)
        self.assertEqual([g.workers for g in groups if g.case.family == "skynet-channel"], [1, 2, 4, 8])
        self.assertEqual([g.workers for g in groups if g.case.family == "skynet-fork-join"], [1, 2])

    def test_a_case_for_which_one_worker_says_nothing(self):
        known = {"affinity": ["actor"]}
        groups = plan.make_plan(self.cases, plan.Choice(workloads=("affinity",)), known, {})[0]
        self.assertEqual({g.workers for g in groups}, {2})
        groups = plan.make_plan(self.cases, plan.Choice(workloads=("affinity",), workers=(1,)), known, {})[0]
        self.assertEqual({g.workers for g in groups}, {1})  # better than none

    def test_what_is_too_large_is_named(self):
        self.assertEqual(len(cases.too_large("full")), 1)
        self.assertIn("8,000 actors of 3,200,000 bytes: 23.8 GiB", cases.too_large("full")[0])
        talking = {c.parameters["actors"]: c.parameters["messages"] for c in cases.affinity_cases("full") if c.parameters["talking"]}
        self.assertEqual(talking, {8: 6, 24: 12, 240: 60, 8000: 1000})
        self.assertFalse([c for c in cases.affinity_cases("full") if c.parameters["actors"] * c.parameters["state"] > 8 * 2**30])

    def test_the_matrix_is_of_placements_stacks_and_mallocs(self):
        peers = {"pot": dataclasses.replace(peer("pot", malloc=True), abilities={"skynet-matrix": Ability(styles=("a", "b-mapped"))})}
        choice = plan.Choice(workers=(1,), mallocs=("glibc", "mimalloc"))
        placements = ("work_stealing", "shared_queue", "round_robin")
        groups, _ = plan.make_plan(cases.matrix_cases("quick"), choice, RAMIE, peers, placements)
        keys = [c.key for c in groups[0].contestants]
        self.assertEqual(len(keys), 3 * 2 * 2 + 2 * 2)
        self.assertEqual(len(set(keys)), len(keys))
        self.assertLessEqual({"ramie/channel", "ramie/channel~pooled", "ramie/channel@shared_queue~pooled+mimalloc", "pot/b-mapped+mimalloc"},
                             set(keys))
        one = next(c for c in groups[0].contestants if c.key == "ramie/channel@round_robin~pooled")
        words, _ = plan.command_of(one, groups[0].case, 1, choice, "ramie-lab", peers)
        self.assertLessEqual({"--placement=round_robin", "--stacks=pooled"}, set(words))

    def test_commands(self):
        group = self.groups(workloads=("skynet-channel",), workers=(2,))[0]
        choice = plan.Choice(runs=3)
        words, environment = plan.command_of(group.contestants[0], group.case, 2, choice, "ramie-lab", self.peers)
        self.assertEqual(words[:3], ["ramie-lab", "skynet", "--json"])
        self.assertLessEqual({"--style=channel", "--workers=2", "--runs=3", "--leaves=100000"}, set(words))
        self.assertEqual(environment, {})
        words, environment = plan.command_of(group.contestants[1], group.case, 2, choice, "ramie-lab", self.peers)
        self.assertEqual(words[:3], ["{build}/tea", "--hot", "skynet"])
        self.assertIn("--warmup=2", words)
        self.assertEqual(environment, {"A": "1"})

    def test_a_peer_may_overrule_parameters_and_warmup(self):
        self.peers = {"tea": peer(warmup=9, parameters={"leaves": "10"})}
        group = self.groups(workloads=("skynet-channel",), workers=(1,))[0]
        words, _ = plan.command_of(group.contestants[1], group.case, 1, plan.Choice(), "ramie-lab", self.peers)
        self.assertLessEqual({"--leaves=10", "--warmup=9"}, set(words))

    def test_malloc_is_preloaded(self):
        group = self.groups(workloads=("skynet-channel",), workers=(1,), mallocs=("tcmalloc",))[0]
        _, environment = plan.command_of(group.contestants[0], group.case, 1, plan.Choice(), "ramie-lab", self.peers)
        self.assertIn("tcmalloc", environment["LD_PRELOAD"])

    def test_a_malloc_that_is_not_here_is_refused(self):
        def missing(name):
            raise OSError(name)

        plan.check_mallocs(("glibc",), missing)
        with self.assertRaisesRegex(plan.PlanError, "libmimalloc2.0"):
            plan.check_mallocs(("mimalloc",), missing)
        with self.assertRaisesRegex(plan.PlanError, "there are glibc"):
            plan.check_mallocs(("tea",))

    def test_a_measured_run_lasts(self):
        def words_of(case, **choice):
            return plan.command_of(plan.Contestant("ramie", "x"), case, 1, plan.Choice(**choice), "ramie-lab", {})[0]

        for case in self.cases:
            once = case.experiment in ("Memory", "Fairness", "6 echo", "7 http") or case.metric == "seconds"
            self.assertEqual("--least-ms=50" in words_of(case), not once, case.key)
            self.assertEqual("--pause-ms=2" in words_of(case), case.family == "skynet-bursts", case.key)
        self.assertFalse([w for case in cases.all_cases("tiny") for w in words_of(case, size="tiny") if "-ms=" in w and "skynet" in case.family])

    def test_fingerprints_tell_plans_apart(self):
        choice = plan.Choice()
        one, two = self.groups(workers=(1,)), self.groups(workers=(2,))
        self.assertEqual(plan.fingerprint(one, choice), plan.fingerprint(self.groups(workers=(1,)), choice))
        self.assertNotEqual(plan.fingerprint(one, choice), plan.fingerprint(two, choice))

    def test_turns_begin_with_another_one_each_round(self):
        self.assertEqual(plan.turns(("a", "b", "c"), 0), ("a", "b", "c"))
        self.assertEqual(plan.turns(("a", "b", "c"), 4), ("b", "c", "a"))


class Cases(unittest.TestCase):
    def test_keys_are_unique(self):
        for size in cases.SIZES:
            keys = [case.key for case in cases.all_cases(size)]
            self.assertEqual(len(keys), len(set(keys)), size)

    def test_every_size_has_every_family(self):
        families = [{case.family for case in cases.all_cases(size)} for size in cases.SIZES]
        self.assertEqual(families[0], families[1])
        self.assertEqual(families[1], families[2])

    def test_a_server_is_driven_by_the_lab(self):
        case = next(case for case in cases.all_cases("quick") if case.family == "echo")
        tea = peer()
        tea.abilities["echo"] = Ability(styles=("cup",), server="{build}/tea pour")
        words, _ = plan.command_of(plan.Contestant("tea", "cup"), case, 2, plan.Choice(), Path("lab"), {"tea": tea})
        self.assertEqual(words[:3], ["lab", "load", "--system=tea"])
        self.assertEqual(words[-3:], ["--", "{build}/tea", "pour"])
        self.assertIn("--style=cup", words)
        self.assertIn("--workers=2", words)
        self.assertIn("--connections=1", words)
        words, _ = plan.command_of(plan.Contestant("ramie", "fiber"), case, 2, plan.Choice(), Path("lab"), {})
        self.assertEqual(words[:2], ["lab", "echo"])


if __name__ == "__main__":
    unittest.main()
