"""What does a new node look like before anything below it is tried: prior and value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pear.problem.features import States

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """Of n nodes: ``prior`` ``(n, actions)``, ``value`` ``(n,)``, ``memory`` ``(n, h)``."""

    prior: Floats
    value: Floats
    memory: NDArray[np.float32]


class Evaluator(Protocol):
    """Looks at new nodes. ``playouts``: their values come from random playouts instead."""

    @property
    def memory_width(self) -> int: ...

    @property
    def playouts(self) -> bool: ...

    def __call__(
        self,
        states: States,
        move_costs: Floats,
        legal: NDArray[np.bool_],
        memory: NDArray[np.float32],
    ) -> Evaluation:
        """Evaluate n states ``(n, d)`` with move costs ``(n, m)`` and their parents' memory."""
        ...


@dataclass(frozen=True)
class UniformPrior:
    """Every legal action is as likely: plain MCTS."""

    memory_width: int = 0
    playouts: bool = True

    def __call__(
        self,
        states: States,
        move_costs: Floats,
        legal: NDArray[np.bool_],
        memory: NDArray[np.float32],
    ) -> Evaluation:
        prior = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
        return Evaluation(prior, np.zeros(len(states)), memory)
