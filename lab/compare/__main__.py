"""./run compare: measures ramie and its peers alternately."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from compare import budget, install, manifest, store
from compare.cases import all_cases, matrix_cases, too_large
from compare.plan import MALLOCS, PACKAGES, USUAL_MALLOCS, Choice, PlanError, check_mallocs, command_of, fingerprint, make_plan, mallocs_here, turns
from compare.progress import Progress, readable_time
from compare.sampling import cores_for, take_sample
from compare.verdict import summary_table

RESULTS = install.ROOT / "build" / "compare"
LAB = install.ROOT / "build" / "release" / "bin" / "ramie-lab"
SPREAD = (1, 2, 3, 4, 6, 8)  # even with fewer cores; then it is marked
QUICK = {"rounds": 7, "minutes": 9.0, "timeout_s": 60}
FULL = {"rounds": 11, "minutes": None, "timeout_s": 1200}


def words(text):
    return tuple(part.strip() for part in text.split(",") if part.strip())


def arguments():
    parser = argparse.ArgumentParser(prog="./run compare", description=__doc__)
    parser.add_argument("--workload", type=words, default=(), help="a list of workloads or cases (default: all)")
    parser.add_argument("--peers", type=words, default=None,
                        help="a list of folders of lab/peers, or none (default: all that ./run peers has built)")
    parser.add_argument("--workers", type=words, default=None,
                        help="a list of numbers of workers (1,2; with --full up to 8 for what is shown against it)")
    parser.add_argument("--styles", type=words, default=(), help="only these styles of ramie")
    parser.add_argument("--placements", type=words, default=(), help="ramie also with these placements")
    parser.add_argument("--mallocs", type=words, default=None,
                        help=f"a list of {', '.join(MALLOCS)}: for what allocates much (glibc and, if it is here, mimalloc)")
    parser.add_argument("--matrix", action="store_true",
                        help="skynet by policy, stacks and malloc (those that are here), beside Boost.Fiber's; every combination, even if time runs out")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", const="quick", dest="size", help="within ten minutes (default)")
    size.add_argument("--full", action="store_const", const="full", dest="size", help="the experiments' sizes; hours")
    size.add_argument("--tiny", action="store_const", const="tiny", dest="size", help="tiny sizes, for tests only")
    parser.set_defaults(size="quick")
    parser.add_argument("--rounds", type=int, help="how often each takes its turn (quick: 7, full: 11)")
    parser.add_argument("--runs", type=int, default=1, help="measured runs a turn, of which the median counts (1)")
    parser.add_argument("--minutes", type=float, help="how long it may take (quick: 9); what does not fit is left out, and named")
    parser.add_argument("--all-styles", action="store_true",
                        help="measure every style, even if time runs out; else the best of each system after the first round")
    parser.add_argument("--timeout", type=float, help="timeout of a run, in seconds")
    parser.add_argument("--fresh", action="store_true", help="start over instead of resuming")
    parser.add_argument("--output", type=Path, help="the results file (default: a new one in build/compare)")
    return parser.parse_args()


def ask_lab(*question):
    done = subprocess.run([str(LAB), *question], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def revision():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=install.ROOT, capture_output=True, text=True,
                          check=False)
    return done.stdout.strip()


def chosen_peers(names):
    """The peers that can run, and why the others cannot."""
    known = manifest.read_all(install.PEERS)
    if names == ("none",):
        return {}, {}
    ready, missing = {}, {}
    for peer in install.choose(known, names or ()):
        if install.is_ready(peer):
            ready[peer.key] = peer
        else:
            missing[peer.key] = install.read_state(peer).get("reason") or "not built, see ./run peers"
    if missing and names:
        raise manifest.ManifestError("; ".join(f"{key}: {why}" for key, why in missing.items()))
    return ready, missing


def notes_of(peer):
    return {"name": peer.name, "system": peer.system, "summary": peer.summary, "flags": peer.flags, "notes": peer.notes,
            "version": install.read_state(peer).get("version", ""),
            "parameters": {family: ability.parameters for family, ability in peer.abilities.items() if ability.parameters}}


class Comparison:
    """Runs the rounds; keeps the results file up to date after every group."""

    def __init__(self, groups, choice, options, results, path, peers):
        limits = FULL if choice.size == "full" else QUICK
        self.groups, self.choice, self.results, self.path, self.peers = groups, choice, results, path, peers
        self.rounds = options.rounds or limits["rounds"]
        self.timeout_s = options.timeout or limits["timeout_s"]
        minutes = options.minutes or limits["minutes"]
        self.seconds = minutes * 60 if minutes else None
        self.begun = time.monotonic()
        # A table needs all its cells, and measuring ramie's best more often than the rest gains nothing.
        self.drops_styles = not (options.all_styles or options.matrix)
        self.plan = None  # where time is limited, after the first round
        self.left_out = set()  # groups for which the first round had no time
        self.progress = Progress()
        self.done = {(s["group"], s["contestant"], s["round"]) for s in results["samples"]}
        # A contestant that failed does not run again: it would only cost the others time.
        self.failed = {(s["group"], s["contestant"]) for s in results["samples"] if not s["ok"]}

    def seconds_left(self):
        return self.seconds - (time.monotonic() - self.begun)

    def has_turn(self, round_number, group, contestant):
        if (group.key, contestant.key, round_number) in self.done or (group.key, contestant.key) in self.failed \
                or group.key in self.left_out or round_number >= group.case.rounds_max:
            return False
        return round_number == 0 or not self.plan or self.plan.has_turn(group, contestant, round_number)

    def steps(self):
        """(round, group, contestant) still to do."""
        # If time is limited, the groups of the verdict come first in the first round: the others may be left out.
        first = sorted(self.groups, key=lambda group: not group.case.headline) if self.seconds else self.groups
        for round_number in range(self.rounds):
            for group in first if round_number == 0 else self.groups:
                for contestant in turns(group.contestants, round_number):
                    if self.has_turn(round_number, group, contestant):
                        yield round_number, group, contestant

    def fit(self, round_number):
        """Before each round after the first: selects what there is time for."""
        if not self.seconds or round_number == 0 or not self.drops_styles:
            return
        before = sum(self.plan.rounds.values()) if self.plan else 0
        done = {}
        for sample in self.results["samples"]:
            done[sample["group"]] = max(done.get(sample["group"], 0), sample["round"] + 1)
        self.plan = budget.Plan(self.groups, self.results, self.seconds_left(), done, self.rounds)
        if not before:
            self.progress.say(f"time for {self.plan.text()}")
        self.results["plan"] = self.plan.text()

    def leave_out_the_rest(self, group):
        """Leaves out the groups that have not begun when the first round has taken too long."""
        begun = {sample["group"] for sample in self.results["samples"]}
        if not begun or group.key in begun or self.seconds_left() > self.seconds * (1 - budget.FIRST_SHARE):
            return False
        self.left_out |= {group.key for group in self.groups} - begun
        self.progress.say(f"no time for {len(self.left_out)} groups: {', '.join(sorted(self.left_out))}")
        return True

    def time_left(self, todo):
        left = self.progress.time_left([(group.key, contestant.key) for _, group, contestant in todo])
        if left is not None and self.seconds:
            left = min(left, max(0.0, self.seconds_left()))
        return left

    def take_turn(self, round_number, group, contestant):
        command, environment = command_of(contestant, group.case, group.workers, self.choice, LAB, self.peers)
        peer = self.peers.get(contestant.system)
        if peer:
            command = [install.expanded(word, peer) for word in command]
            environment = {name: install.expanded(value, peer) for name, value in environment.items()}
        start = time.monotonic()
        sample = {"group": group.key, "contestant": contestant.key, "round": round_number}
        cores = None if group.case.binds_itself else cores_for(group.workers)
        sample.update(take_sample(command, environment, install.ROOT, self.timeout_s, cores))
        self.progress.learn((group.key, contestant.key), time.monotonic() - start)
        if not sample["ok"]:
            self.failed.add((group.key, contestant.key))
            self.progress.say(f"{group.key}: {contestant.key}: {sample.get('error')}")
        self.results["samples"].append(sample)
        self.done.add((group.key, contestant.key, round_number))

    def run(self):
        """True if all of it was measured, false if time was up."""
        last, fitted = None, 0
        while todo := list(self.steps()):
            round_number, group, contestant = todo[0]
            if last != (round_number, group.key):
                if last:
                    store.save(self.path, self.results)
                # Only whole groups: half of one would have nothing to compare with.
                if self.seconds and round_number > 0 and self.seconds_left() < 0:
                    return False
                if self.seconds and round_number == 0 and self.leave_out_the_rest(group):
                    continue
                if round_number > fitted:
                    self.fit(round_number)
                    fitted = round_number
                    continue
            # One line a group is enough if lines are not overwritten.
            if self.progress.is_terminal or last != (round_number, group.key):
                last = round_number, group.key
                self.progress.show(len(self.done), len(self.done) + len(todo),
                                   f"{group.key}: {contestant.key}, round {round_number + 1}", self.time_left(todo))
            self.take_turn(round_number, group, contestant)
        return True


def describe_case(group):
    case = group.case
    return {"group": group.key, "family": case.family, "experiment": case.experiment, "title": case.title,
            "workload": case.workload, "unit": case.unit, "workers": group.workers, "parameters": case.parameters,
            "metric": case.metric, "metric_title": case.metric_title or f"ns a {case.unit}",
            "more_is_better": case.more_is_better, "memory": case.memory, "label": case.label,
            "headline": case.headline,
            "contestants": [c.key for c in group.contestants], "reference": group.contestants[0].key,
            "oversubscribed": group.workers > len(os.sched_getaffinity(0))}


def prepare(options):
    """(groups, choice, peers, results, path)"""
    choice = Choice(size=options.size, workloads=options.workload, peers=options.peers or (),
                    workers=tuple(int(w) for w in options.workers or ("1", "2")),
                    spread=() if options.workers else SPREAD, styles=options.styles, mallocs=options.mallocs or ("glibc",),
                    placements=options.placements, runs=options.runs)
    if options.matrix:
        choice.workloads = choice.workloads or ("skynet",)
    if not options.mallocs:
        usual = tuple(MALLOCS) if options.matrix else USUAL_MALLOCS
        choice.mallocs = tuple(name for name in usual if name in mallocs_here())
        for name in sorted(set(usual) - set(choice.mallocs)):
            print(f"without {name}; Debian's package is {PACKAGES[name]}", file=sys.stderr)
    check_mallocs(choice.mallocs)
    peers, missing_peers = chosen_peers(options.peers)
    known = ask_lab("list", "--json")
    abilities = {entry["workload"]: entry["styles"] for entry in known}
    placements = known[0].get("placements", ())
    groups, missing_cases = make_plan((matrix_cases if options.matrix else all_cases)(choice.size), choice, abilities, peers, placements)
    if not groups:
        raise PlanError("nothing to measure: ramie-lab has none of " + ", ".join(missing_cases))
    for key, why in missing_peers.items():
        print(f"without {key}: {why}", file=sys.stderr)
    if missing_cases:
        print(f"not in ramie-lab: {', '.join(missing_cases)}", file=sys.stderr)
    mark = fingerprint(groups, choice)
    path = options.output or RESULTS / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
    old = None if options.fresh else store.unfinished(path.parent, mark) if not options.output else path
    if old and old.exists():
        results = store.load(old)
        if results["fingerprint"] != mark:
            raise PlanError(f"{old}: was made by another plan; choose another file, or delete it")
        results["finished"] = None
        print(f"going on with {old}: {len(results['samples'])} turns are done", file=sys.stderr)
        return groups, choice, peers, results, old
    machine = ask_lab("machine", "--json")[0]
    machine["ramie_revision"] = revision()
    results = store.new_results(mark, {**vars(choice)}, [describe_case(group) for group in groups], machine,
                                {key: notes_of(peer) for key, peer in peers.items()})
    results["missing_peers"] = missing_peers
    results["too_large"] = too_large(choice.size) if any(group.case.family == "affinity" for group in groups) else []
    for what in results["too_large"]:
        print(f"left out: {what}", file=sys.stderr)
    results["missing_cases"] = missing_cases
    return groups, choice, peers, results, path


def main():
    options = arguments()
    try:
        groups, choice, peers, results, path = prepare(options)
        comparison = Comparison(groups, choice, options, results, path, peers)
        start = time.monotonic()
        store.save(path, results)
        try:
            complete = comparison.run()
        except KeyboardInterrupt:
            store.save(path, results)
            print(f"\ninterrupted; the same command goes on with {path}", file=sys.stderr)
            return 130
        results["left_out"] = sorted(comparison.left_out)
        results["finished"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        results["took_seconds"] = round(results.get("took_seconds", 0) + time.monotonic() - start, 1)
        store.save(path, results)
        if not complete:
            comparison.progress.say("time is up: fewer rounds than wanted")
        comparison.progress.say(f"took {readable_time(time.monotonic() - start)}")
    except (PlanError, manifest.ManifestError, store.StoreError, ValueError) as error:
        print(f"./run compare: {error}", file=sys.stderr)
        return 2
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"./run compare: {error}; is ramie-lab built?", file=sys.stderr)
        return 2
    print(summary_table(results))
    print(f"results: {path}")
    return 0 if all(sample["ok"] for sample in results["samples"] if sample["contestant"].startswith("ramie/")) else 1


if __name__ == "__main__":
    sys.exit(main())
