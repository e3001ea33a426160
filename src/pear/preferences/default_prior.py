"""What do we believe about the weights when nobody gave us a prior?

What the problem says: for each weight, the range an expert would expect of nine people in ten;
or a few archetypes, kinds of people with typical weights. Wide and honest: a weight whose range
is broad stays uncertain until answers say more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidProblem
from pear.preferences.prior import BACKGROUND_WEIGHT, GaussianMixturePrior

CENTRAL_90 = 1.6448536269514722
"""A normal variable lies within this many standard deviations nine times in ten."""


class Archetype(Protocol):
    """A kind of person: mean weights ``(p,)``, their spread ``(p,)`` and share of people."""

    @property
    def name(self) -> str: ...
    @property
    def mean(self) -> NDArray[np.float64]: ...
    @property
    def spread(self) -> NDArray[np.float64]: ...
    @property
    def share(self) -> float: ...


class WeightedProblem(Protocol):
    """What of a problem the prior needs."""

    @property
    def weight_names(self) -> tuple[str, ...]: ...
    @property
    def weight_ranges(self) -> NDArray[np.float64]: ...
    @property
    def archetypes(self) -> Sequence[Archetype]: ...


def default_prior(
    problem: WeightedProblem, *, background_weight: float = BACKGROUND_WEIGHT
) -> GaussianMixturePrior:
    """The prior a problem implies.

    With archetypes: one component each, and the ranges as the background for everybody else.
    Without: a single component, each weight independent, nine tenths of it within its
    range ``weight_ranges`` of shape ``(p, 2)``.
    """
    ranges = np.asarray(problem.weight_ranges, dtype=float)
    low, high = ranges[:, 0], ranges[:, 1]
    wrong = np.flatnonzero(~(np.isfinite(ranges).all(axis=1) & (high > low)))
    if len(wrong):
        name = problem.weight_names[wrong[0]]
        raise InvalidProblem(
            f"the range of weight '{name}' must be two numbers, the first below the second (got "
            f"{ranges[wrong[0]].tolist()}); widen it, however little"
        )
    middle, variance = (low + high) / 2, ((high - low) / (2 * CENTRAL_90)) ** 2
    archetypes = tuple(problem.archetypes)
    if not archetypes:
        return GaussianMixturePrior(
            middle[None], variance[None], background_weight=background_weight
        )
    means = [np.asarray(archetype.mean, dtype=float) for archetype in archetypes]
    variances = [np.asarray(archetype.spread, dtype=float) ** 2 for archetype in archetypes]
    shares = np.array([archetype.share for archetype in archetypes], dtype=float)
    return GaussianMixturePrior(
        np.array(means),
        np.array(variances),
        shares,
        background_weight=background_weight,
        background_mean=middle,
        background_deviation=np.sqrt(variance),
    )
