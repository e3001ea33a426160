"""What do we believe about the weights when nobody gave us a prior?

What the problem says: for each weight, the range an expert would expect of nine people in ten;
or a few archetypes, kinds of people with typical weights. Wide and honest: a weight whose range
is broad stays uncertain until answers say more.
"""

from __future__ import annotations

import numpy as np

from pear.preferences.prior import BACKGROUND_WEIGHT, GaussianMixturePrior
from pear.problem import Problem

CENTRAL_90 = 1.6448536269514722
"""A normal variable lies within this many standard deviations nine times in ten."""


def default_prior(
    problem: Problem, *, background_weight: float = BACKGROUND_WEIGHT
) -> GaussianMixturePrior:
    """The prior a problem implies.

    With archetypes: one component each, and the ranges as the background for everybody else.
    Without: a single component, each weight independent, nine tenths of it within its range.
    """
    low, high = problem.weight_ranges.T
    middle, deviation = (low + high) / 2, (high - low) / (2 * CENTRAL_90)
    if not problem.archetypes:
        return GaussianMixturePrior(
            middle[None], deviation[None] ** 2, background_weight=background_weight
        )
    return GaussianMixturePrior(
        np.array([archetype.mean for archetype in problem.archetypes]),
        np.array([archetype.spread for archetype in problem.archetypes]) ** 2,
        np.array([archetype.share for archetype in problem.archetypes]),
        background_weight=background_weight,
        background_mean=middle,
        background_deviation=deviation,
    )
