"""The plan of a comparison: contestants of each case, and the command line of each."""

import ctypes
import hashlib
import json
import shlex
from dataclasses import dataclass

MALLOCS = {"glibc": "", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2"}
USUAL_MALLOCS = ("glibc", "mimalloc")  # of which the better one counts
PACKAGES = {"tcmalloc": "libtcmalloc-minimal4", "mimalloc": "libmimalloc2.0"}


class PlanError(Exception):
    """The request cannot be measured; the message says why."""


@dataclass(frozen=True)
class Contestant:
    system: str  # "ramie", or the peer's key
    style: str
    placement: str = ""  # ramie's, if it is not the default
    malloc: str = "glibc"
    stacks: str = ""  # ramie's, if they are not guarded ones from a pool

    @property
    def key(self):
        key = f"{self.system}/{self.style}"
        if self.placement:
            key += f"@{self.placement}"
        if self.stacks:
            key += f"~{self.stacks}"
        return key if self.malloc == "glibc" else f"{key}+{self.malloc}"


@dataclass(frozen=True)
class Group:
    """Contestants that take turns: one case on one number of workers."""

    case: object
    workers: int
    contestants: tuple

    @property
    def key(self):
        return f"{self.case.key}, {self.workers}w"


@dataclass
class Choice:
    """What was asked for; empty lists mean all."""

    size: str = "quick"
    workloads: tuple = ()
    peers: tuple = ()
    workers: tuple = (1, 2)
    spread: tuple = ()  # numbers of workers for cases that are shown against it
    styles: tuple = ()
    mallocs: tuple = ("glibc",)
    placements: tuple = ()
    runs: int = 1

    def least_ms(self, case):
        """Tiny sizes mean nothing, however long they last."""
        return 0 if self.size == "tiny" else case.least_ms


def check_mallocs(names, load=ctypes.CDLL):
    """Throws PlanError for a missing one: the loader would only complain, and another malloc be measured."""
    for name in names:
        if name not in MALLOCS:
            raise PlanError(f"--mallocs {name}: there are {', '.join(MALLOCS)}")
        try:
            if MALLOCS[name]:
                load(MALLOCS[name])
        except OSError:
            raise PlanError(f"--mallocs {name}: {MALLOCS[name]} is not here; Debian's package is {PACKAGES[name]}") from None


def mallocs_here():
    """Those that can be loaded into a program."""
    found = []
    for name in MALLOCS:
        try:
            check_mallocs((name,))
            found.append(name)
        except PlanError:
            pass
    return tuple(found)


def wanted(case, names, families):
    """A name that is a family's means that alone; a workload's means all of its cases."""
    return not names or case.key in names or case.family in names or (case.workload in names and case.workload not in families)


def contestants_of(case, workers, choice, ramie_styles, peers, placements):
    """`ramie_styles` is {workload: styles}; ramie's first, each peer's in the order of its manifest."""
    mallocs = choice.mallocs if case.mallocs else ("glibc",)
    found = []
    for style in case.styles:
        if style in ramie_styles.get(case.workload, ()) and (not choice.styles or style in choice.styles):
            wanted_too = choice.placements or tuple(p for p in case.placements if p in placements)
            found += [Contestant("ramie", style, placement, malloc, stacks)
                      for placement in (("", *wanted_too) if style != "plain" else ("",))
                      for stacks in ("", *case.stacks) for malloc in (mallocs if style == case.styles[0] else ("glibc",))]
    for peer in peers.values():
        ability = peer.abilities.get(case.family)
        if ability is None or (ability.workers and workers not in ability.workers):
            continue
        # Another malloc can only replace malloc, not the heap of a virtual machine.
        own = mallocs if peer.malloc else ("glibc",)
        found += [Contestant(peer.key, style, "", malloc) for style in ability.styles
                  if ability.only.get(style, workers) == workers for malloc in own]
    return tuple(found)


def workers_of(case, choice):
    wanted_too = choice.spread if case.spread else ()
    numbers = sorted({*choice.workers, *wanted_too})
    return [n for n in numbers if n >= case.workers_least or n == numbers[-1]]


def make_plan(cases, choice, ramie_styles, peers, placements=()):
    """The groups in the order of a round, and the requests that ramie cannot meet yet. `placements`: those that it has."""
    known = {name for case in cases for name in (case.workload, case.family, case.key)}
    for name in choice.workloads:
        if name not in known:
            raise PlanError(f"--workload {name}: there are {', '.join(sorted({case.family for case in cases}))}")
    groups, missing = [], []
    families = {case.family for case in cases}
    for case in cases:
        if not wanted(case, choice.workloads, families):
            continue
        for workers in workers_of(case, choice):
            contestants = contestants_of(case, workers, choice, ramie_styles, peers, placements)
            if not any(c.system == "ramie" and c.style != "plain" for c in contestants):
                missing.append(case.key)
            elif contestants:
                groups.append(Group(case, workers, contestants))
    return groups, sorted(set(missing))


def command_of(contestant, case, workers, choice, lab, peers):
    """The words of the command, and what it adds to the environment."""
    parameters = dict(case.parameters)
    environment = {}
    if contestant.system == "ramie":
        words = [str(lab), case.workload, "--json"]
        if not case.yardstick:
            words.append("--no-yardstick")
        if contestant.placement:
            words.append(f"--placement={contestant.placement}")
        if contestant.stacks:
            words.append(f"--stacks={contestant.stacks}")
        warmup = 1
    else:
        peer = peers[contestant.system]
        ability = peer.abilities[case.family]
        words = [str(lab), "load", f"--system={peer.system}"] if ability.server else [*shlex.split(peer.run), case.workload]
        warmup = peer.warmup if ability.warmup is None else ability.warmup
        parameters.update(ability.parameters)
        environment.update(peer.environment)
    if case.warmup is not None:
        warmup = case.warmup
    # A cold measurement would be warm in a second run of the same process.
    runs = 1 if case.experiment == "Memory" else choice.runs
    words += [f"--style={contestant.style}", f"--workers={workers}", f"--runs={runs}", f"--warmup={warmup}"]
    least_ms = choice.least_ms(case)
    if least_ms:
        words += [f"--least-ms={least_ms}", *([f"--pause-ms={case.pause_ms}"] if case.pause_ms else [])]
    words += [f"--{name}={value}" for name, value in parameters.items()]
    if contestant.system != "ramie" and ability.server:
        words += ["--", *shlex.split(ability.server)]
    if MALLOCS[contestant.malloc]:
        environment["LD_PRELOAD"] = MALLOCS[contestant.malloc]
    return words, environment


def fingerprint(groups, choice):
    """The same for two plans that measure the same, so that one can continue where the other was interrupted."""
    text = json.dumps([[g.key, sorted(g.case.parameters.items()), [c.key for c in g.contestants]] for g in groups]
                      + [choice.runs, choice.size])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def turns(contestants, round_number):
    """The order of a round: a different one begins each time, so that none always runs after the same neighbour."""
    shift = round_number % len(contestants)
    return contestants[shift:] + contestants[:shift]
