"""Where do many move sequences lead, are they legal, and what do they cost?

Sequences of several people are held in one array of moves ``(n, length)`` in which
:data:`NO_MOVE` stands for "nothing here", so that sequences of different lengths share it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.problem import NO_LIMITS, Limits, Problem
from pear.problem.features import States

NO_MOVE = -1
Moves = NDArray[np.intp]


@dataclass(frozen=True)
class Rollout:
    """n sequences carried out step by step.

    ``states`` ``(n, length + 1, d)`` are the states gone through; ``features``
    ``(n, length, p)`` the cost features of each step, zero where there is none; ``taken``
    ``(n, length)`` the steps carried out; ``illegal`` ``(n,)`` how many were not allowed and
    left out.
    """

    states: NDArray[np.float64]
    features: NDArray[np.float64]
    taken: NDArray[np.bool_]
    illegal: NDArray[np.intp]

    @property
    def final(self) -> States:
        """States after the last step, shape ``(n, d)``."""
        return self.states[:, -1]

    def costs(self, problem: Problem, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cost of each sequence, ``(n,)``.

        ``weights`` is ``(p,)`` or ``(s, p)`` for all, or ``(n, s, p)`` for each its own;
        over the s samples the floored cost is averaged.
        """
        weights = np.asarray(weights, float)
        weights = weights if weights.ndim == 3 else weights.reshape(1, -1, weights.shape[-1])
        linear = np.matmul(self.features, np.swapaxes(weights, 1, 2))
        floored = problem.costs.floored(linear) * self.taken[:, :, None]
        return np.asarray(floored.sum(axis=1).mean(axis=1))


def roll_out(problem: Problem, starts: States, moves: Moves, limits: Limits = NO_LIMITS) -> Rollout:
    """Carry out n sequences of moves from n states, leaving out what is not allowed."""
    moves = np.asarray(moves, np.intp)
    n, length = moves.shape
    current = np.array(np.broadcast_to(starts, (n, len(problem.space))), float)
    states = np.empty((n, length + 1, len(problem.space)))
    features = np.zeros((n, length, problem.costs.n_weights))
    taken = np.zeros((n, length), bool)
    states[:, 0] = current
    for position in range(length):
        wanted = np.flatnonzero(moves[:, position] != NO_MOVE)
        chosen = moves[wanted, position]
        legal = problem.actions.allowed(current[wanted], limits)[np.arange(len(wanted)), chosen]
        rows, chosen = wanted[legal], chosen[legal]
        features[rows, position] = problem.costs.features(current[rows], problem.actions, chosen)
        current[rows] = problem.actions.apply(current[rows], chosen)
        taken[rows, position] = True
        states[:, position + 1] = current
    illegal = (moves != NO_MOVE).sum(axis=1) - taken.sum(axis=1)
    return Rollout(states, features, taken, illegal)


def longest(problem: Problem, limits: Limits = NO_LIMITS) -> int:
    """Steps a plan may have at most, for this problem and this person."""
    if limits.max_steps is None:
        return problem.max_length
    return min(problem.max_length, limits.max_steps)


def as_sequence(moves: Moves) -> tuple[int, ...]:
    """One row of moves without its gaps."""
    return tuple(int(move) for move in moves if move != NO_MOVE)


def padded(sequences: list[tuple[int, ...]], length: int | None = None) -> Moves:
    """Sequences of different lengths as one array, shape ``(n, longest)``."""
    width = max([len(sequence) for sequence in sequences], default=0) if length is None else length
    moves = np.full((len(sequences), max(width, 1)), NO_MOVE, np.intp)
    for row, sequence in enumerate(sequences):
        moves[row, : len(sequence)] = sequence
    return moves


def best_for_samples(costs: NDArray[np.float64], n: int) -> list[int]:
    """Which of q plans are cheapest for some sample, those of most samples first.

    ``costs`` ``(q, s)``. At most n are given; ties go to the earlier plan.

    >>> best_for_samples(np.array([[1.0, 9.0, 9.0], [5.0, 5.0, 5.0]]), 2)
    [1, 0]
    """
    if not costs.size:
        return []
    winners, wins = np.unique(costs.argmin(axis=0), return_counts=True)
    return [int(winner) for winner in winners[np.argsort(-wins, kind="stable")][:n]]
