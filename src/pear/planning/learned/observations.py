"""What does the agent see of a person?

Reference: paper, appendix "Weighted-FARE": the state, and for W-FARE the mean cost of each
function over all its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.problem import Problem
from pear.problem.features import States

Floats = NDArray[np.float64]

COST_UNIT = 100.0
"""Costs are seen in hundreds, to lie where the other inputs lie."""


@dataclass(frozen=True)
class Observer:
    """Turns states into the agent's input; ``with_costs`` adds what W-FARE sees."""

    problem: Problem
    with_costs: bool

    @property
    def width(self) -> int:
        """Columns of an observation."""
        functions = len(self.problem.actions.actions) if self.with_costs else 0
        return self.problem.space.one_hot_width + functions

    def __call__(self, states: States, move_costs: Floats) -> NDArray[np.float32]:
        """Observations ``(n, width)`` of states ``(n, d)`` whose moves cost ``(n, m)``."""
        seen = self.problem.space.one_hot(states)
        if self.with_costs:
            seen = np.concatenate([seen, self.function_costs(move_costs) / COST_UNIT], axis=1)
        return seen.astype(np.float32)

    def function_costs(self, move_costs: Floats) -> Floats:
        """Mean cost of each function over its arguments, shape ``(n, functions)``."""
        counts = np.bincount(self.problem.actions.action_of)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return np.asarray(np.add.reduceat(move_costs, starts, axis=1) / counts)
