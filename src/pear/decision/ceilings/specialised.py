"""One person's model in plain arrays: one type for every kind of model.

Compiled code takes it as it is, so a search that uses ceilings is compiled once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

LINEAR, TREES, NETWORK = 0, 1, 2

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]


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
    layers one after the other, ``sizes`` of all layers, ``bends`` their activations; ``low`` and
    ``high`` ``(F + 2, neurons)`` bound the sums of all hidden layers for the options ``seen``
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
    bends: Floats
    low: Floats
    high: Floats
    widen: Floats
    seen: NDArray[np.bool_]
    seen_remaining: NDArray[np.int64]
    lines: Floats


def blank(n_features: int, counts: NDArray[np.int64]) -> dict[str, Any]:
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
        "bends": np.zeros(0),
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
