"""What does the automaton look at? Columns that decision trees split on, with their meaning.

Numbers in the person's own units, one column per category and, in W-EFARE, for each
function (our actions) what it costs this person on average over its arguments, and how
many functions are cheaper for them.

Reference: paper, appendix "Weighted-FARE", equation for s'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pear.problem import Problem
from pear.problem.features import States

Floats = NDArray[np.float64]
Kind = Literal["number", "category", "cost", "rank"]


@dataclass(frozen=True)
class Column:
    """One input: ``place`` is a feature's column, or an action's number for cost and rank.

    ``code`` is the category a column of kind ``category`` stands for.
    """

    kind: Kind
    place: int
    code: int = -1


@dataclass(frozen=True)
class Inputs:
    """Columns of the trees' input for a problem; ``aware`` adds what changes cost this person.

    Protected features are never looked at: no reason rests on them.
    """

    problem: Problem
    aware: bool

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The features looked at, by column."""
        features = enumerate(self.problem.space.features)
        return tuple(place for place, feature in features if not feature.protected)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for place in self.places:
            feature = self.problem.space.features[place]
            if feature.is_categorical:
                columns += [
                    Column("category", place, code) for code in range(len(feature.categories))
                ]
            else:
                columns.append(Column("number", place))
        if self.aware:
            functions = range(len(self.problem.actions.actions))
            columns += [Column("cost", number) for number in functions]
            columns += [Column("rank", number) for number in functions]
        return tuple(columns)

    def __len__(self) -> int:
        return len(self.columns)

    def matrix(self, states: States, weights: Floats) -> Floats:
        """Inputs ``(n, len(self))`` of states ``(n, d)`` with weight samples ``(n, s, p)``."""
        parts = []
        for place in self.places:
            feature, codes = self.problem.space.features[place], states[:, [place]]
            if feature.is_categorical:
                parts.append((codes == np.arange(len(feature.categories))).astype(float))
            else:
                parts.append(codes)
        if self.aware:
            costs = self.function_costs(states, weights)
            parts += [costs, ranks(costs)]
        return np.concatenate(parts, axis=1)

    def function_costs(self, states: States, weights: Floats) -> Floats:
        """Mean cost of each function over its arguments, shape ``(n, functions)``."""
        counts = np.bincount(self.problem.actions.action_of)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        costs = self.problem.costs.all_costs(states, self.problem.actions, weights)
        return np.asarray(np.add.reduceat(costs, starts, axis=1) / counts)


def ranks(costs: Floats) -> Floats:
    """How many of a row are strictly cheaper, shape as given.

    >>> ranks(np.array([[5.0, 1.0, 1.0]]))
    array([[2., 0., 0.]])
    """
    return np.asarray((costs[:, None, :] < costs[:, :, None]).sum(axis=2).astype(float))
