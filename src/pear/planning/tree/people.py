"""Whom is searched for, with how much effort, and what comes out?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.planning.tree.arrays import Trees
from pear.planning.tree.found import FoundPlans
from pear.problem import NO_LIMITS, Limits
from pear.problem.features import States

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Ask = Callable[[States], Floats]
"""Scores of n states; how a search reaches the black box."""
Noise = Callable[[Floats, NDArray[np.bool_]], Floats]
"""Priors ``(n, actions)`` and legal actions to noisy priors, for exploration in training."""


@dataclass(frozen=True)
class People:
    """B people: ``states`` ``(B, d)``, weight samples ``(B, s, p)``, ``reference`` ``(B,)``.

    ``reference`` is what the plan for the mean weights costs each (NaN: no such plan).
    ``streams`` are everybody's own random numbers, needed for playouts only. ``scores``
    ``(B,)`` of the starts, when they are known already: then no rows are asked for them.
    """

    states: States
    weights: Floats
    reference: Floats
    limits: Limits = NO_LIMITS
    streams: tuple[np.random.Generator, ...] = ()
    scores: Floats | None = None


@dataclass(frozen=True)
class Effort:
    """How much one search may do: simulations per step, and rows per person in all.

    ``max_rows`` is one number or one per person ``(B,)``; None: no cap.
    """

    simulations: int
    max_rows: int | NDArray[np.int64] | None = None


@dataclass(frozen=True)
class SearchOutcome:
    """``executed`` ``(B, L)``: the most visited moves, -1 after the end; ``path``: those of
    them that succeed; all plans ``found``; ``rows`` ``(B,)`` asked; start ``scores`` ``(B,)``."""

    executed: Integers
    path: FoundPlans
    found: FoundPlans
    rows: NDArray[np.int64]
    scores: Floats
    trees: Trees
