"""What a comparison with a time limit leaves out.

In the first round every contestant runs. Its times tell how long a further round of each group takes, so the rest is then planned:
 1. Of a system with several styles only the best one stays; ramie's reference always does.
 2. A slow contestant runs in at most TURNS_OF_THE_SLOW rounds: its ratios are far from 1 anyway.
 3. Each group gets ROUNDS_LEAST rounds if there is time for all of them, since two pairs beside the first, which chooses the style,
    prove nothing: first the experiments, then others of the verdict, then the rest, each time cheap ones first. Then all of these
    get one more, as often as time allows.
If even the first round takes too long, the part of it that is left when FIRST_SHARE of the time is used is left out, and named.
"""

from compare import analysis, store

FIRST_SHARE = 0.7  # of the time, for the first round; picked out of thin air
SLOW_TURN_S = 2.5
ROUNDS_LEAST = 4  # three pairs give a useful interval, and the first round only chooses styles
TURNS_OF_THE_SLOW = ROUNDS_LEAST


def system_of(contestant):
    return contestant.partition("/")[0]


def best_of_each_system(samples_by_contestant, reference, metric, more_is_better):
    """The contestants that stay, by the first round alone: its samples do not count in the figures (verdict.later)."""
    best = {}
    for key, samples in samples_by_contestant.items():
        values = analysis.values_by_round(samples, metric)
        if not values:
            continue
        value = values[min(values)] * (-1 if more_is_better else 1)
        system = system_of(key)
        if key == reference or system not in best or (value < best[system][0] and best[system][1] != reference):
            best[system] = (value, key)
    return {key for _, key in best.values()}


def planned_rounds(costs, tiers, seconds, most, done):
    """{group: rounds in all}. `costs`: {group: seconds of one more}; `tiers`: sets of groups, the most important ones first; `most`:
    {group: rounds at most}; `done`: {group: rounds done}."""
    rounds = {group: done[group] for group in costs}

    def give(group, wanted):
        nonlocal seconds
        more = min(wanted, most[group]) - rounds[group]
        if more <= 0 or costs[group] * more > seconds:
            return False
        seconds -= costs[group] * more
        rounds[group] += more
        return True

    in_order = [group for tier in tiers for group in sorted(set(tier) & set(costs), key=lambda g: (costs[g], g))]
    for group in in_order:
        give(group, ROUNDS_LEAST)
    # A group without time for that many has none for one more either, or one pair too few.
    open_groups = [group for group in in_order if rounds[group] >= min(ROUNDS_LEAST, most[group])]
    while open_groups:
        open_groups = [group for group in open_groups if give(group, rounds[group] + 1)]
    return rounds


def tiers_of(groups):
    """The experiments, the rest of the verdict, all others."""
    tiers = [], [], []
    for group in groups:
        tiers[2 if not group.case.headline else 0 if group.case.experiment[:1].isdigit() else 1].append(group.key)
    return tiers


class Plan:
    """A plan of the rounds after the first, made from the results so far."""

    def __init__(self, groups, results, seconds, done, rounds):
        self.keeps, self.slow = {}, set()
        costs, most = {}, {}
        for group in groups:
            samples = store.samples_of(results, group.key)
            took = {key: analysis.median(s["took_seconds"] for s in each) for key, each in samples.items()}
            self.keeps[group.key] = best_of_each_system(samples, group.contestants[0].key, group.case.metric,
                                                        group.case.more_is_better)
            self.slow |= {(group.key, key) for key, each in took.items() if each > SLOW_TURN_S}
            if samples:
                costs[group.key] = sum(took[key] for key in self.keeps[group.key]) or 0.001
                most[group.key] = min(rounds, group.case.rounds_max)
        self.rounds = planned_rounds(costs, tiers_of(groups), seconds, most, done)

    def has_turn(self, group, contestant, round_number):
        """After the first round."""
        if round_number >= self.rounds.get(group.key, 0) or contestant.key not in self.keeps[group.key]:
            return False
        reference = contestant == group.contestants[0]
        return reference or (group.key, contestant.key) not in self.slow or round_number < TURNS_OF_THE_SLOW

    def text(self):
        counts = sorted(self.rounds.values())
        if not counts:
            return "nothing was measured"
        return f"{counts[0]} to {counts[-1]} rounds, {counts[len(counts) // 2]} for most; the best style of each system goes on"
