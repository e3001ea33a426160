"""Is a difference between groups more than chance?

Intervals of means are bootstrap percentiles, those of shares Wilson's. Tests compare a group with
everybody else: Fisher's exact test for shares, and for amounts a permutation test of the means,
studentised, so that groups of equal mean and other spread are not taken as different; and the same
people twice: random signs for the mean difference, McNemar's test for who has a plan. All tests of
a report form one family; Holm's correction keeps the probability of a single false alarm among all
of them at the stated level.

References: Holm (1979), A simple sequentially rejective multiple test procedure. Besag and
Clifford (1991), Sequential Monte Carlo p-values. Janssen (1997), Studentized permutation tests for
non-i.i.d. hypotheses and the generalized Behrens-Fisher problem. Wilson (1927), Probable inference,
the law of succession, and statistical inference.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from pear.arrays import Flags, Floats, Indices

RESAMPLES = 1_000
AT_ONCE = 2_000_000
"""Numbers resampled at a time."""

PERMUTATIONS, ENOUGH = 20_000, 20
"""Random groups that are drawn at most, and how many as extreme end the drawing."""

PROMISING, MOST_PERMUTED = 0.1, 1_000
"""Probability below which groups are permuted, if the smaller has so many people at most: the
means of more are as good as normal."""

ALL_SIGNS = 14
"""Differences up to which all signs are tried; of more, as many random ones as these have."""


LEVEL = 0.95
"""The probability with which intervals hold what is estimated."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% interval over n people."""

    n: int
    mean: float
    low: float
    high: float


def estimate(values: Floats, rng: np.random.Generator) -> Estimate | None:
    """Mean of values ``(n,)`` with its bootstrap interval; None for nobody.

    >>> found = estimate(np.array([0.0, 1.0] * 50), np.random.default_rng(0))
    >>> found.n, found.mean, round(found.low, 2), round(found.high, 2)
    (100, 0.5, 0.4, 0.6)
    """
    n = len(values)
    if not n:
        return None
    low = high = mean = float(values.mean())
    if np.ptp(values) > 0:
        low, high = _resampled((values,), np.mean, rng)
    return Estimate(n, mean, low, high)


def ratio_estimate(values: Floats, others: Floats, rng: np.random.Generator) -> Estimate | None:
    """Mean of values ``(n,)`` over that of the same people's ``others`` ``(n,)``, with its
    interval; None for nobody.

    >>> found = ratio_estimate(np.array([1.0, 3.0]), np.array([2.0, 6.0]), np.random.default_rng(0))
    >>> found.mean, found.low, found.high
    (0.5, 0.5, 0.5)
    """
    if not len(values):
        return None

    def ratio(mine: Floats, theirs: Floats, axis: int) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.mean(mine, axis=axis) / np.mean(theirs, axis=axis))

    low = high = mean = float(ratio(values, others, 0))
    if len(values) > 1:
        low, high = _resampled((values, others), ratio, rng)
    return Estimate(len(values), mean, low, high)


def relative_difference(values: Floats, others: Floats, rng: np.random.Generator) -> Estimate:
    """By what share the mean of values ``(n,)`` is above that of others ``(m,)``, with its
    interval.

    >>> found = relative_difference(np.full(9, 3.0), np.full(8, 2.0), np.random.default_rng(0))
    >>> found.mean, found.low, found.high
    (0.5, 0.5, 0.5)
    """

    def above(mine: Floats, theirs: Floats, axis: int) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.mean(mine, axis=axis) / np.mean(theirs, axis=axis) - 1)

    low = high = mean = float(above(values, others, 0))
    if np.ptp(values) > 0 or np.ptp(others) > 0:
        low, high = _resampled((values, others), above, rng, paired=False)
    return Estimate(len(values), mean, low, high)


def _resampled(
    data: tuple[Floats, ...], statistic: Any, rng: np.random.Generator, *, paired: bool = True
) -> tuple[float, float]:
    """The percentile interval of a statistic of people, each drawn with all that is theirs, or of
    two groups that are drawn by themselves."""
    low, high = stats.bootstrap(
        data,
        statistic,
        n_resamples=RESAMPLES,
        batch=max(1, AT_ONCE // max(map(len, data))),
        confidence_level=LEVEL,
        method="percentile",
        paired=paired and len(data) > 1,
        rng=rng,
    ).confidence_interval
    return float(low), float(high)


def share_estimate(members: Flags) -> Estimate | None:
    """Share of ``members`` ``(n,)`` with Wilson's interval, which is never of no width.

    >>> found = share_estimate(np.zeros(30, bool))
    >>> found.mean, found.low, round(found.high, 3)
    (0.0, 0.0, 0.114)
    """
    n = len(members)
    if not n:
        return None
    share = float(members.mean())
    found = stats.binomtest(int(members.sum()), n).proportion_ci(LEVEL, method="wilson")
    return Estimate(n, share, min(float(found.low), share), max(float(found.high), share))


def share_test(inside: Flags, outside: Flags) -> float:
    """Probability of a difference of shares this large by chance (Fisher, exact, two-sided)."""
    table = [
        [int(inside.sum()), int((~inside).sum())],
        [int(outside.sum()), int((~outside).sum())],
    ]
    return float(stats.fisher_exact(table).pvalue)


def amount_test(inside: Floats, outside: Floats) -> float:
    """Probability of a difference of means this large by chance (two-sided).

    The larger one of Welch's test and of permutations: the first holds when spreads differ, the
    second when amounts are skewed. Where Welch's already sees nothing, it stands.
    """
    everybody = np.concatenate([inside, outside])
    if np.ptp(everybody) == 0:
        return 1.0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        welch = float(stats.ttest_ind(inside, outside, equal_var=False).pvalue)
    smaller, larger = sorted((inside, outside), key=len)
    if welch >= PROMISING or len(smaller) > MOST_PERMUTED:
        return welch
    found = _permutation_test(smaller, larger)
    # Beyond what permutations can resolve, Welch's test tells how far.
    return welch if found <= 1 / (PERMUTATIONS + 1) else max(found, welch)


def _permutation_test(smaller: Floats, larger: Floats) -> float:
    """Share of random groups of as many people whose t is as large; ends after enough.

    With 20 of them seen, their share is known well enough: Besag and Clifford (1991).
    """
    rng = np.random.default_rng(0)
    everybody = np.concatenate([smaller, larger])
    centred = everybody - everybody.mean()
    members = len(smaller)
    bar = _studentised(centred[None, :members], centred)[0] * (1 - 1e-9)
    batch = max(1, min(PERMUTATIONS // 10, AT_ONCE // len(centred)))
    seen = drawn = 0
    while drawn < PERMUTATIONS:
        chosen = _random_groups(rng, batch, len(centred), members)
        far = np.flatnonzero(_studentised(centred[chosen], centred) >= bar)
        if seen + len(far) >= ENOUGH:
            return ENOUGH / (drawn + int(far[ENOUGH - seen - 1]) + 1)
        seen, drawn = seen + len(far), drawn + batch
    return (1 + seen) / (1 + drawn)


def _studentised(groups: Floats, everybody: Floats) -> Floats:
    """Welch's t without its sign, of ``groups`` ``(b, m)`` against the rest of everybody."""
    m = groups.shape[1]
    k = len(everybody) - m
    sums, squares = groups.sum(axis=1), (groups**2).sum(axis=1)
    other_sums = everybody.sum() - sums
    own = np.maximum(0.0, squares - sums**2 / m) / (m - 1) / m
    rest = np.maximum(0.0, (everybody**2).sum() - squares - other_sums**2 / k) / (k - 1) / k
    # A spread of zero proves nothing: rounding must not make t infinite.
    least = 1e-12 * (everybody**2).mean()
    return np.asarray(np.abs(sums / m - other_sums / k) / np.sqrt(np.maximum(own + rest, least)))


def _random_groups(rng: np.random.Generator, batch: int, n: int, members: int) -> Indices:
    """Groups ``(batch, members)`` of distinct people of n, each as likely as any other."""
    if n < 8 * members:
        keys = rng.random((batch, n), np.float32)
        return np.argpartition(keys, members - 1, axis=1)[:, :members]
    return np.stack([rng.choice(n, members, replace=False, shuffle=False) for _ in range(batch)])


def paired_test(differences: Floats) -> float:
    """Probability of a mean this far from zero by chance (two-sided); zeros say no.

    The larger one of random signs and of the t-test: it is the mean that is told, so it is the
    mean that is tested, and not ranks, which may point the other way.
    """
    moved = differences[np.abs(differences) > 1e-9]
    if len(moved) < 2:
        return 1.0
    found, finest = sign_test(moved, np.random.default_rng(0))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        student = float(np.nan_to_num(stats.ttest_1samp(differences, 0.0).pvalue))
    if len(moved) <= ALL_SIGNS or found > finest * (1 + 1e-9):
        return max(found, student)
    # Beyond what random signs can resolve, the t-test tells how far, down to all of one sign.
    return min(found, max(student, 2.0 ** (1 - len(moved))))


def sign_test(
    differences: Floats, rng: np.random.Generator, alternative: str = "two-sided"
) -> tuple[float, float]:
    """Probability of a mean this far from zero if each difference could as well have the other
    sign, and the smallest one that can be found. Of few differences all signs are tried.

    >>> found, _ = sign_test(np.ones(20), np.random.default_rng(0), "greater")
    >>> found < 0.001
    True
    """
    signs = 2**ALL_SIGNS
    found = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=signs,
        batch=max(1, AT_ONCE // len(differences)),
        alternative=alternative,
        rng=rng,
    ).pvalue
    return float(found), (2 if alternative == "two-sided" else 1) / (signs + 1)


def gained_or_lost_test(gained: int, lost: int) -> float:
    """Probability of so many more gains than losses, or the reverse, by chance (McNemar, exact).

    >>> gained_or_lost_test(6, 0), gained_or_lost_test(0, 0)
    (0.03125, 1.0)
    """
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def holm(values: Sequence[float]) -> list[float]:
    """Holm's adjusted probabilities, in the order given.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    adjusted = np.zeros(len(values))
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = largest
    return [float(value) for value in adjusted]
