"""Statistics of samples: medians, ratios of pairs, and whether a difference is more than noise.

The ratio of two contestants is the median of the ratios of their samples from the same round. Rounds are short, so
both of a pair see the same machine. Its interval encloses two others at 95 %: Student's for the mean of the logarithms, and that
between two order statistics, which assumes nothing about the noise (with fewer than six pairs, the extremes). A difference is called one if 1 is
outside, and if Student's p-value is small enough among those of all ratios of the comparison (Benjamini and Hochberg, "Controlling the false
discovery rate", 1995): of 267 comparisons without any difference 13 would pass at 95 % each.
"""

import math
from dataclasses import dataclass, replace
from functools import cache

CONFIDENCE = 0.95

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


def incomplete_beta(a, b, x):
    """Regularised, by the continued fraction of https://dlmf.nist.gov/8.17 (Lentz's way)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d, value = 1.0, 0.0, 1.0
    for i in range(500):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d)
        c = 1 + term / c
        value *= c * d
        if i and abs(c * d - 1) < 1e-12:
            break
    return front * (value - 1)


def student_p(t, freedom):
    """The probability that Student's t is at least as far from 0."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@cache
def student_t(p, freedom):
    """The t of that probability."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > p else (low, middle)
    return high


def mean_and_error(ratios):
    """Of the logarithms: their mean and its standard error."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / len(logs)
    variance = sum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    return mean, math.sqrt(variance / len(logs))


def student_interval(ratios):
    mean, error = mean_and_error(ratios)
    half = student_t(1 - CONFIDENCE, len(ratios) - 1) * error
    return math.exp(mean - half), math.exp(mean + half)


def order_interval(ratios):
    """Between the order statistics that enclose the median with the probability wanted, or the extremes."""
    n, left_out, below = len(ratios), 0, 0.0
    while True:
        below += math.comb(n, left_out) / 2**n
        if 2 * below > 1 - CONFIDENCE:
            break
        left_out += 1
    ordered = sorted(ratios)
    left_out = max(left_out - 1, 0)
    return ordered[left_out], ordered[-1 - left_out]


def p_value(ratios):
    """Of the hypothesis that the mean of the logarithms is 0."""
    mean, error = mean_and_error(ratios)
    # Equal to the last digit but for rounding: no noise at all.
    if error <= 1e-12:
        return 1.0 if abs(mean) <= 1e-12 else 0.0
    return student_p(mean / error, len(ratios) - 1)


def limit_of(p_values, rate=1 - CONFIDENCE):
    """The greatest p-value that counts as a difference, so that at most a share `rate` of those that count are false."""
    ordered = sorted(p_values)
    return max((p for rank, p in enumerate(ordered, 1) if p <= rate * rank / len(ordered)), default=0.0)


@dataclass(frozen=True)
class Ratio:
    ratio: float  # more than 1: ramie is better
    low: float | None  # None: there is only one pair
    high: float | None
    pairs: int
    p: float = 1.0
    limit: float = 1 - CONFIDENCE  # of p

    def among(self, limit):
        """The same, judged by the limit that limit_of() gives for all ratios of a comparison."""
        return replace(self, limit=limit)

    @property
    def verdict(self):
        if self.low is None or self.p > self.limit:
            return UNDECIDED
        if self.low > 1:
            return FASTER
        return SLOWER if self.high < 1 else UNDECIDED

    def text(self):
        if self.low is None:
            return f"{number(self.ratio)} x (one pair: no interval)"
        return f"{number(self.ratio)} x [{number(self.low)}, {number(self.high)}]"


def paired_ratio(ours, theirs, more_is_better=False):
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
    intervals = student_interval(ratios), order_interval(ratios)
    return Ratio(median(ratios), min(low for low, _ in intervals), max(high for _, high in intervals), len(ratios), p_value(ratios))


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
