"""Is a difference between groups more than chance?

Intervals are bootstrap percentiles. Tests compare a group with everybody else: Fisher's exact
test for shares, a permutation test of the means for amounts; and the same people twice: the
signed-rank test of Wilcoxon for amounts, McNemar's for who has a plan. All tests of a report form
one family; Holm's correction keeps the probability of a single false alarm among all of them at
the stated level.

References: Holm (1979), A simple sequentially rejective multiple test procedure. Besag and Clifford
(1991), Sequential Monte Carlo p-values.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

RESAMPLES = 1_000
AT_ONCE = 2_000_000
"""Numbers resampled at a time."""

PERMUTATIONS, ENOUGH = 20_000, 20
"""Random groups that are drawn at most, and how many as extreme end the drawing."""

PROMISING, MOST_PERMUTED = 0.1, 1_000
"""Probability below which groups are permuted, if the smaller has so many people at most: the
means of more are as good as normal."""

FEW, ALL_SIGNS = 25, 14
"""Differences up to which no normal distribution is assumed, and all signs are tried."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% bootstrap interval over n people."""

    n: int
    mean: float
    low: float
    high: float


def estimate(values: Floats, rng: np.random.Generator, level: float = 0.05) -> Estimate | None:
    """Mean of values ``(n,)`` with its bootstrap interval; None for nobody.

    >>> found = estimate(np.array([0.0, 1.0] * 50), np.random.default_rng(0))
    >>> found.n, found.mean, round(found.low, 2), round(found.high, 2)
    (100, 0.5, 0.4, 0.6)
    """
    if not len(values):
        return None
    means = _resampled_means(values, rng)
    low, high = np.quantile(means, [level / 2, 1 - level / 2])
    return Estimate(len(values), float(values.mean()), float(low), float(high))


def _resampled_means(values: Floats, rng: np.random.Generator) -> Floats:
    n = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 2:
        # The mean of a resample of two values is a binomial count: exact, and at once.
        high = rng.binomial(n, counts[-1] / n if len(distinct) == 2 else 1.0, RESAMPLES)
        return np.asarray(distinct[0] + (distinct[-1] - distinct[0]) * high / n)
    batch = max(1, AT_ONCE // n)
    parts = [
        values[rng.integers(0, n, (min(batch, RESAMPLES - first), n))].mean(axis=1)
        for first in range(0, RESAMPLES, batch)
    ]
    return np.concatenate(parts)


def share_test(inside: NDArray[np.bool_], outside: NDArray[np.bool_]) -> float:
    """Probability of a difference of shares this large by chance (Fisher, exact, two-sided)."""
    table = [
        [int(inside.sum()), int((~inside).sum())],
        [int(outside.sum()), int((~outside).sum())],
    ]
    return float(stats.fisher_exact(table).pvalue)


def amount_test(inside: Floats, outside: Floats) -> float:
    """Probability of a difference of means this large by chance (permutations, two-sided).

    Where Welch's test already sees nothing, its probability stands: it could not be flagged.
    """
    everybody = np.concatenate([inside, outside])
    if np.ptp(everybody) == 0:
        return 1.0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        welch = float(stats.ttest_ind(inside, outside, equal_var=False).pvalue)
    members = min(len(inside), len(outside))
    if welch >= PROMISING or members > MOST_PERMUTED:
        return welch
    smaller = inside if len(inside) == members else outside
    found = _permutation_test(everybody, members, float(smaller.sum()))
    # Beyond what permutations can resolve, Welch's test tells how far.
    return min(found, welch) if found <= 1 / (PERMUTATIONS + 1) else found


def _permutation_test(everybody: Floats, members: int, total: float) -> float:
    """Share of random groups of ``members`` people as far from the mean; ends after enough.

    With 20 of them seen, their share is known well enough: Besag and Clifford (1991).
    """
    rng = np.random.default_rng(0)
    centred = everybody - everybody.mean()
    bar = abs(total - members * everybody.mean()) * (1 - 1e-12)
    batch = max(1, min(PERMUTATIONS // 10, AT_ONCE // len(centred)))
    seen = drawn = 0
    while drawn < PERMUTATIONS:
        chosen = _random_groups(rng, batch, len(centred), members)
        far = np.flatnonzero(np.abs(centred[chosen].sum(axis=1)) >= bar)
        if seen + len(far) >= ENOUGH:
            return ENOUGH / (drawn + int(far[ENOUGH - seen - 1]) + 1)
        seen, drawn = seen + len(far), drawn + batch
    return (1 + seen) / (1 + drawn)


def _random_groups(rng: np.random.Generator, batch: int, n: int, members: int) -> NDArray[np.intp]:
    """Groups ``(batch, members)`` of distinct people of n, each as likely as any other."""
    if n < 8 * members:
        keys = rng.random((batch, n), np.float32)
        return np.argpartition(keys, members - 1, axis=1)[:, :members]
    return np.stack([rng.choice(n, members, replace=False, shuffle=False) for _ in range(batch)])


def paired_test(differences: Floats) -> float:
    """Probability of differences this lopsided by chance (Wilcoxon, two-sided); zeros say no."""
    moved = differences[np.abs(differences) > 1e-9]
    if not len(moved):
        return 1.0
    if len(moved) > FEW:
        return float(stats.wilcoxon(moved, method="asymptotic").pvalue)
    return _signed_rank(moved)


def _signed_rank(moved: Floats) -> float:
    """The same over all signs, or many random ones: tables of the exact distribution know no
    ties, and plans often cost the same."""
    n = len(moved)
    ranks = stats.rankdata(np.abs(moved))
    if n <= ALL_SIGNS:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (2**ALL_SIGNS, n))
        signs[0] = np.sign(moved)
    return float((np.abs(signs @ ranks) >= abs(np.sign(moved) @ ranks) - 1e-9).mean())


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
