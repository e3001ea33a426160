"""How does the margin of a model become its score, and which margin does a score require?

A margin is what trees, layers or coefficients add up to. The score is a rising function of it, so
a ceiling of the margin is one of the score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pear.arrays import Floats


@dataclass(frozen=True)
class Identity:
    """The margin is the score: shares of votes, mean probabilities.

    >>> Identity().required(0.5) < 0.5
    True
    """

    error: float = 2.0**-48

    def score(self, margins: Floats) -> Floats:
        return margins

    def required(self, score: float) -> float:
        """A margin that every score above ``score`` exceeds, whatever rounding did to it."""
        return score - self.error * (1 + abs(score))


@dataclass(frozen=True)
class Sigmoid:
    """The score is ``1 / (1 + exp(-steepness * margin))``; ``error`` bounds its rounding.

    >>> Sigmoid().required(0.5) < 0.0 < Sigmoid().required(0.5001)
    True
    """

    steepness: float = 1.0
    error: float = 2.0**-48

    def score(self, margins: Floats) -> Floats:
        return np.asarray(expit(self.steepness * margins))

    def required(self, score: float) -> float:
        lowered = score - self.error
        if lowered <= 0.0:
            return -np.inf
        if lowered >= 1.0:
            return 700.0 / self.steepness
        margin = float(np.log(lowered) - np.log1p(-lowered)) / self.steepness
        return margin - 1e-12 * (1 + abs(margin))


@dataclass(frozen=True)
class Calibrated:
    """A rising calibration of another score, such as Platt's or an isotonic one."""

    inner: Identity | Sigmoid
    calibrate: Callable[[Floats], Floats]
    error: float = 2.0**-40

    def score(self, margins: Floats) -> Floats:
        return np.asarray(self.calibrate(self.inner.score(margins)), float)

    def required(self, score: float) -> float:
        """Found by halving among the inner scores: the largest that surely is not enough."""
        low, high = -1e6, 1e6
        for _ in range(200):
            middle = (low + high) / 2
            enough = float(self.calibrate(np.array([middle]))[0]) > score - self.error
            low, high = (low, middle) if enough else (middle, high)
        return self.inner.required(low) if low > -1e6 else -np.inf


Link = Identity | Sigmoid | Calibrated

SINGLE = 2.0**-20
"""More than a score computed in single precision is off by."""
