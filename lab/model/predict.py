"""The model's prediction of an experiment, for a placement and a number of cores."""

from .engine import VARIANTS, Simulation
from .machine import Machine
from .programs import Actors, Mixed, Overhead, Tree

POLICIES = tuple(VARIANTS)
STEALING = ("work_stealing", "stealing_no_affinity")


def machine(cores, cache=8, node=64):
    """Cores as in large servers: eight a last-level cache, 64 a socket. Up to eight they share one cache."""
    return Machine(cores, cache if cores > cache else 0, node if cores > node else 0)


def skynet(costs, policy, cores):
    # Dealt or queued one by one: each node is an event, so fewer are simulated.
    if policy in STEALING:
        return Tree(1_111_111, 10, costs.node_channel, 100)
    if cores == 1:
        return Tree(20_000, 10, costs.node_channel, 1)
    return Tree(20_000, 10, costs.node_shared if policy == "shared_queue" else costs.node_dealt, 1)


def sum_of(costs, policy, cores):
    # Fork jobs are only ever stolen: placements that do not steal run all of it on one worker.
    parts = 2_000_000 if cores <= 2 else 20_000_000  # as measured, and as the experiment has it
    return Tree(parts, 2, costs.node_fork, parts // 10_000)


def mixed(costs, policy, cores):
    return Mixed(costs, 20, 50, 10_000, 5, 300)


def messages_only(costs, policy, cores):
    return Mixed(costs, 20, 50, 10_000, 5, 300, factorise=False)


def overhead(n):
    return lambda costs, policy, cores: Overhead(costs, 20_000 if cores <= 2 else 40_000, n)


def affinity(actors, state, accesses):
    return lambda costs, policy, cores: Actors(actors, state, accesses, actors, 1_000_000)


def talking(actors, messages, state, accesses):
    return lambda costs, policy, cores: Actors(actors, state, accesses, messages, 20_000 + 100 * cores, "random")


EXPERIMENTS = {
    "1 skynet": (skynet, "fiber"),
    "2 sum": (sum_of, "part"),
    "3 mixed": (mixed, "message"),
    "3 mixed, messages only": (messages_only, "message"),
    "4 overhead, n=10": (overhead(10), "fiber"),
    "4 overhead, n=1000": (overhead(1000), "fiber"),
    "5 N=24 S=64 M=20": (affinity(24, 64, 20), "message"),
    "5 N=24 S=32000 M=100": (affinity(24, 32_000, 100), "message"),
    "5 N=240 S=4000 M=20": (affinity(240, 4_000, 20), "message"),
    "5 N=8000 S=2000 M=100": (affinity(8_000, 2_000, 100), "message"),
    "5b N=8 K=6 S=64 M=100": (talking(8, 6, 64, 100), "message"),
    "5b N=8 K=6 S=32000 M=100": (talking(8, 6, 32_000, 100), "message"),
    "5b N=24 K=12 S=32000 M=20": (talking(24, 12, 32_000, 20), "message"),
    "5b N=240 K=60 S=4000 M=20": (talking(240, 60, 4_000, 20), "message"),
    "5b N=240 K=60 S=32000 M=100": (talking(240, 60, 32_000, 100), "message"),
    "5b N=8000 K=1000 S=2000 M=100": (talking(8_000, 1_000, 2_000, 100), "message"),
}


class Prediction:
    def __init__(self, ns, variant, simulation):
        self.ns = ns  # a unit, of real time
        self.variant = variant
        self.simulation = simulation


def predict(costs, experiment, policy, cores, on=None):
    """The time a unit takes; with the best of the policy's variants, which the runtime finds by trying."""
    make, _ = EXPERIMENTS[experiment]
    where = on or machine(cores)
    best = None
    for variant in VARIANTS[policy]:
        if cores == 1 and best is not None:
            break
        program = make(costs, policy, cores)
        if experiment.startswith("2 ") and not variant.steals:
            s = Simulation(costs, Machine(1), variant, program)
        else:
            s = Simulation(costs, where, variant, program)
        ns = s.now / program.units
        if hasattr(program, "scale"):
            ns *= program.scale * program.units / program.real_units
        if best is None or ns < best.ns:
            best = Prediction(ns, variant.name, s)
    return best
