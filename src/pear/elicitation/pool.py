"""The plans a question can be made of, and what they cost under every sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.preferences import Question
from pear.problem import Plan, Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Distinct successful plans from one state.

    ``features`` are the cost features of each plan's steps, ``(length, p)`` each.
    """

    plans: tuple[Plan, ...]
    features: tuple[Floats, ...]
    floor: float | None

    def __len__(self) -> int:
        return len(self.plans)

    def costs(self, samples: Floats) -> Floats:
        """Costs of all plans under samples ``(n, p)``, shape ``(n, m)``."""
        if not self.plans:
            return np.zeros((len(samples), 0))
        linear = np.concatenate(self.features) @ samples.T
        if self.floor is not None:
            np.maximum(linear, self.floor, out=linear)
        starts = np.cumsum([0, *(len(features) for features in self.features[:-1])])
        return np.add.reduceat(linear, starts, axis=0).T

    def question(self, columns: Iterable[int]) -> Question:
        """The question of choosing between some of the plans."""
        return Question.from_plans([self.features[column] for column in columns], self.floor)


def make_pool(problem: Problem, state: Floats, plans: Iterable[Plan]) -> Pool:
    """A pool of the successful plans with steps; of equal plans the first is kept."""
    distinct: dict[tuple[int, ...], Plan] = {}
    for plan in plans:
        if plan.success and plan.moves:
            distinct.setdefault(plan.moves, plan)
    kept = tuple(distinct.values())
    return Pool(kept, tuple(step_features(problem, state, p) for p in kept), problem.costs.floor)


def step_features(problem: Problem, state: Floats, plan: Plan) -> Floats:
    """Cost features of a plan's steps, ``(length, p)``."""
    return problem.costs.sequence_features(state, problem.actions, plan.moves)
