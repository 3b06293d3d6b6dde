"""Statistics of samples: medians, ratios of pairs, and whether a difference is more than noise.

The ratio of two contestants is the median of the ratios of their samples from the same round. Rounds are short, so
both of a pair see the same machine. Its interval is a bootstrap over the pairs; with fewer than six pairs
a bootstrap is too narrow, so Student's interval for the mean of the logarithms is added to it.
"""

import math
import random
from dataclasses import dataclass

CONFIDENCE = 0.95
RESAMPLES = 4000
PAIRS_ENOUGH = 6  # the least number whose extremes enclose the median with 95 % probability: 1 - 2 / 2**6

# Student's t at 97.5 %, by degrees of freedom; beyond the table it is within 15 % of the normal's 1.96.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}

FASTER, SLOWER, UNDECIDED = "better", "worse", "not distinguishable"


def median(values):
    """Throws ValueError if there is none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("the median of nothing")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values):
    """(most - least) / median; 0 where the median is 0."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def quantile(ordered, share):
    """Of sorted values, interpolated."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def bootstrap_interval(ratios, generator):
    medians = sorted(median(generator.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    tail = (1 - CONFIDENCE) / 2
    return quantile(medians, tail), quantile(medians, 1 - tail)


def student_interval(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / len(logs)
    variance = sum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    half = STUDENT.get(len(logs) - 1, 2.228) * math.sqrt(variance / len(logs))
    return math.exp(mean - half), math.exp(mean + half)


@dataclass(frozen=True)
class Ratio:
    ratio: float  # more than 1: ramie is better
    low: float | None  # None: there is only one pair
    high: float | None
    pairs: int

    @property
    def verdict(self):
        if self.low is None:
            return UNDECIDED
        if self.low > 1:
            return FASTER
        return SLOWER if self.high < 1 else UNDECIDED

    def text(self):
        if self.low is None:
            return f"{number(self.ratio)} x (one pair: no interval)"
        return f"{number(self.ratio)} x [{number(self.low)}, {number(self.high)}]"


def paired_ratio(ours, theirs, more_is_better=False, seed=1):
    """`ours` and `theirs` are {round: value}; only rounds of both count. None if there is none."""
    rounds = sorted(set(ours) & set(theirs))
    ratios = []
    for r in rounds:
        above, below = (ours[r], theirs[r]) if more_is_better else (theirs[r], ours[r])
        if above > 0 and below > 0:
            ratios.append(above / below)
    if not ratios:
        return None
    if len(ratios) == 1:
        return Ratio(ratios[0], None, None, 1)
    low, high = bootstrap_interval(ratios, random.Random(seed))
    if len(ratios) < PAIRS_ENOUGH:
        student_low, student_high = student_interval(ratios)
        low, high = min(low, student_low), max(high, student_high)
    return Ratio(median(ratios), low, high, len(ratios))


def number(value):
    """Three significant digits: 0.123, 1.23, 12.3, 123, 12300 as 12,300."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def readable_bytes(value):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{number(value)} {unit}"
        value /= 1024


def values_by_round(samples, metric):
    """{round: value} of one contestant's correct samples. `metric` is a member, or figures.NAME."""
    values = {}
    for sample in samples:
        value = metric_of(sample, metric)
        if sample.get("ok") and value is not None:
            values[sample["round"]] = value
    return values


def metric_of(sample, metric):
    group, dot, name = metric.partition(".")
    value = sample.get(group)
    if dot:
        value = (value or {}).get(name)
    if isinstance(value, list):
        return median(value) if value else None
    return value
