"""All levels of all lanes in arrays, and what follows from them.

Levels are in an order in which parents of the cost graph come before their children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.codes import Codes
from pear.planning.exact.levels import Floats, Indices, Level
from pear.problem import Limits, Problem


@dataclass(frozen=True)
class Tables:
    """All levels for N lanes.

    ``starts`` ``(N, d)``, ``weights`` ``(N, S, p)``, ``max_steps`` ``(N,)``.
    """

    problem: Problem
    starts: Floats
    weights: Floats
    limits: tuple[Limits, ...]
    max_steps: Indices
    levels: tuple[Level, ...]
    max_changes: int = 1

    @cached_property
    def memories(self) -> dict[Any, Any]:
        """What pricing repeated changes has worked out, by start and limits."""
        return {}

    @cached_property
    def codes(self) -> Codes:
        """How an assignment of options to levels is written as whole numbers.

        The feature whose action comes first in the action space stands first.
        """
        columns = self.problem.actions.feature_of.tolist()
        ranks = [columns.index(level.column) for level in self.levels]
        return Codes.of(self.lasts.tolist(), ranks)

    @cached_property
    def lasts(self) -> Indices:
        """The option of each level that leaves its feature as it is, ``(K,)``."""
        return np.array([level.last for level in self.levels], np.intp)

    @cached_property
    def rest(self) -> Floats:
        """The least that levels from i on can add, ``(K + 1, N)``; 0 with a positive floor."""
        rest = np.zeros((len(self.levels) + 1, len(self.starts)))
        floor = self.problem.costs.least
        if floor > 0:
            return rest
        for number in range(len(self.levels) - 1, -1, -1):
            level = self.levels[number]
            add = np.zeros(level.alone.shape[:2])
            for _, delta in level.parents:
                add += delta.min(axis=2)
            cost = np.maximum(
                level.links[:, None, :] * floor if np.isfinite(floor) else -np.inf,
                level.alone + level.links[:, None, :] * add[:, :, None],
            ).mean(axis=1)
            cost = np.where(level.valid & (level.links > 0), cost, 0.0)
            rest[number] = rest[number + 1] + np.minimum(0.0, cost.min(axis=1))
        return rest

    @cached_property
    def largest(self) -> Floats:
        """The largest number a bound of each lane is made of, shape ``(N,)``."""
        largest = np.full(len(self.starts), 1.0)
        for level in self.levels:
            used = np.where(level.valid[:, None, :], np.abs(level.alone), 0.0)
            largest = np.maximum(largest, used.max(axis=(1, 2)))
            for _, delta in level.parents:
                largest = np.maximum(largest, np.abs(delta).max(axis=(1, 2)))
        return largest

    @cached_property
    def units(self) -> Floats:
        """What tolerances are multiples of, ``(N,)``: 1, or more where costs are very large.

        Powers of two, so that scaling by them is exact.
        """
        return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(self.largest / 2**16, 1.0))))

    @cached_property
    def slack(self) -> float:
        """How far rounding errors can move a bound while it is being added up."""
        size = len(self.starts) + len(self.levels)
        return float(2.0**-46 * size * self.largest.max())

    @cached_property
    def single_costs(self) -> Floats:
        """Sorted costs of all single changes of each lane, infinite where not legal: ``(N, M)``."""
        least = self.problem.costs.least
        costs = [np.full((len(self.starts), 1), np.inf)]
        for level in self.levels:
            cost = np.maximum(level.alone, least).mean(axis=1)
            costs.append(np.where(level.valid & (level.links == 1), cost, np.inf))
        return np.sort(np.concatenate(costs, axis=1), axis=1)

    def states(self, lanes: Indices, words: Sequence[NDArray[np.int64]]) -> Floats:
        """States that n coded assignments lead to, shape ``(n, d)``."""
        states = self.starts[lanes]
        for number, level in enumerate(self.levels):
            chosen = self.codes.option(words, number)
            states[:, level.column] = level.values.ravel().take(lanes * (level.last + 1) + chosen)
        return states
