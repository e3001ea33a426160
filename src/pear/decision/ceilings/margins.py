"""What a model becomes when it is read: a margin, its link to the score, a form for one person.

A margin is what trees, layers or coefficients add up to. The score is a rising function of it, so
a ceiling of the margin is one of the score. :class:`Specialised` is one type for every kind of
model, which compiled code takes as it is: a search that uses ceilings is compiled once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pear.arrays import Floats

LINEAR, TREES, NETWORK = 0, 1, 2

Matrix = NDArray[np.float64]
Bits = NDArray[np.uint64]


class Readable(Protocol):
    """A model in plain arrays: an ensemble of trees, a linear model, a network.

    ``worth_after``: rows that a search asks before a look inside is the faster way.
    """

    @property
    def worth_after(self) -> float: ...

    def inputs(self, matrix: Matrix) -> Matrix:
        """The encoded matrix in the precision the model works in."""

    def margins(self, matrix: Matrix) -> Matrix:
        """The margin of encoded rows ``(n, D)``, shape ``(n,)``."""

    def used_columns(self) -> NDArray[np.intp]:
        """The inputs that can change the margin, as columns."""

    def specialise(
        self, options: EncodedOptions, required: float, max_changes: int
    ) -> Specialised | None:
        """The model reduced to one person's options."""


@dataclass(frozen=True)
class ReadModel:
    """What was found inside a model."""

    model: Any
    link: Link
    what: str


def favoured(columns: Sequence[int], n_classes: int) -> int:
    """1 if the favourable class is the second of two, -1 if the first, 0 if neither is clear."""
    if n_classes != 2 or len(columns) != 1:
        return 0
    return 1 if columns[0] == 1 else -1


# How does a margin become a score?


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


Link = Identity | Sigmoid

SINGLE = 2.0**-20
"""More than a score computed in single precision is off by."""


# What is left of a model for one person?


@dataclass(frozen=True)
class EncodedOptions:
    """What each option of F features makes of the inputs.

    ``rows`` ``(R, D)`` holds the encoded start with each single option; those of feature f are
    the ``counts[f]`` rows from ``first[f]`` on, option 0, the start, first. ``owner`` ``(D,)`` is
    the feature an input belongs to, -1 for a constant.
    """

    rows: Matrix
    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    owner: NDArray[np.int64]

    def composed(self, assignments: NDArray[np.intp]) -> Matrix:
        """Encoded rows of assignments ``(n, F)`` of options."""
        made = np.repeat(self.rows[:1], len(assignments), axis=0)
        for feature, first in enumerate(self.first):
            mine = self.owner == feature
            made[:, mine] = self.rows[first + assignments[:, feature]][:, mine]
        return made


class Specialised(NamedTuple):
    """A model reduced to what F features with up to V options each can still change.

    ``required`` is the margin that a favourable state exceeds, already lowered by more than
    rounding can do: what has a smaller ceiling is never favourable. The rows of ``free``, ``base``,
    ``alive``, ``ends``, ``n_trees``, ``potential``, ``here``, ``level``, ``hidden``, ``low``,
    ``high``, ``seen`` and ``seen_remaining`` belong to a depth of the search, 0 to F; two more of
    some are a scratch row and the model as it was at the start.

    What ``narrow`` found at a depth: ``here``, the margin if nothing else changes, and
    ``potential`` ``(F, V)``, what each option adds at most to ``level`` (at least ``here``).

    Linear: ``gains`` ``(F, V)``. Trees: leaves as in :func:`~.trees.reachable_leaves`, the numbers
    of those still ``alive`` ``(rows, L)``, the ``ends`` ``(rows, T)`` of each tree's; the features
    that leaf l does not allow all options of are ``part_feature`` from ``first_part[l]`` on, with
    the options it allows as ``part_bits``. Networks: ``steps`` ``(F, V, H)`` is what each option
    adds to the first layer's sums ``hidden`` ``(F + 1, H)``; ``weights``, ``biases`` of the later
    layers one after the other, ``sizes`` of all layers, their ``activations``; ``low`` and ``high``
    ``(F + 2, neurons)`` bound the sums of all hidden layers for the options ``seen``
    ``(F + 1, F, V)`` and ``seen_remaining`` changes, their last row for all of them; ``widen``
    ``(neurons,)`` is more than their rounding; ``lines`` ``(4, neurons)`` is a work area.
    """

    kind: int
    required: float
    counts: NDArray[np.int64]
    free: Bits
    base: Floats
    gains: Floats
    best: Floats
    values: Floats
    allowed: Bits
    need: Bits
    alive: NDArray[np.int32]
    ends: NDArray[np.int32]
    n_trees: NDArray[np.int64]
    first_part: NDArray[np.int64]
    part_feature: NDArray[np.int32]
    part_bits: Bits
    potential: NDArray[np.float64]
    here: Floats
    level: Floats
    steps: Floats
    hidden: Floats
    weights: Floats
    biases: Floats
    sizes: NDArray[np.int64]
    activations: Floats
    low: Floats
    high: Floats
    widen: Floats
    seen: NDArray[np.bool_]
    seen_remaining: NDArray[np.int64]
    lines: Floats


def empty_fields(n_features: int, counts: NDArray[np.int64]) -> dict[str, Any]:
    """Arrays of every field, empty where a kind of model has no use for them."""
    most = int(counts.max(initial=1))
    everything = np.uint64(2**n_features - 1) if n_features < 64 else np.uint64(2**64 - 1)
    return {
        "counts": counts,
        "free": np.full(n_features + 1, everything, np.uint64),
        "base": np.zeros(n_features + 3),
        "gains": np.zeros((n_features, most)),
        "best": np.zeros(n_features),
        "values": np.zeros(0),
        "allowed": np.zeros((n_features, 1, 0), np.uint64),
        "need": np.zeros(0, np.uint64),
        "alive": np.zeros((1, 0), np.int32),
        "ends": np.zeros((1, 0), np.int32),
        "n_trees": np.zeros(n_features + 3, np.int64),
        "first_part": np.zeros(1, np.int64),
        "part_feature": np.zeros(0, np.int32),
        "part_bits": np.zeros((0, 1), np.uint64),
        "potential": np.zeros((n_features + 3, n_features, most)),
        "here": np.zeros(n_features + 3),
        "level": np.zeros(n_features + 3),
        "steps": np.zeros((0, 0, 0)),
        "hidden": np.zeros((1, 0)),
        "weights": np.zeros(0),
        "biases": np.zeros(0),
        "sizes": np.zeros(0, np.int64),
        "activations": np.zeros(0),
        "low": np.zeros((1, 0)),
        "high": np.zeros((1, 0)),
        "widen": np.zeros(0),
        "seen": np.zeros((1, 0, 0), np.bool_),
        "seen_remaining": np.zeros(n_features + 1, np.int64),
        "lines": np.zeros((4, 0)),
    }


@numba.njit(cache=True)
def largest(best: Floats, free: Any, remaining: int) -> float:
    """The sum of the ``remaining`` largest positive entries of free features; spends ``best``."""
    total = 0.0
    for _ in range(remaining):
        place, most = -1, 0.0
        for feature in range(len(best)):
            if free >> np.uint64(feature) & np.uint64(1) and best[feature] > most:
                place, most = feature, best[feature]
        if place < 0:
            break
        total += most
        best[place] = 0.0
    return total
