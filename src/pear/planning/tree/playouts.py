"""Where do random moves lead from here? The simulation step of plain MCTS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.problem import Limits, Problem
from pear.problem.features import States

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Playouts:
    """Random continuations of n states, at most L moves each.

    ``moves`` ``(n, L)`` with -1 after the end, ``states`` ``(n, L, d)`` after each move,
    ``costs`` ``(n, L)`` of each move, ``lengths`` ``(n,)``.
    """

    moves: NDArray[np.intp]
    states: States
    costs: Floats
    lengths: NDArray[np.intp]


def random_move(legal: NDArray[np.bool_], uniforms: Floats) -> NDArray[np.intp]:
    """One legal move per row, all as likely; -1 where none is legal, shape ``(n,)``.

    >>> random_move(np.array([[False, True, True], [False, False, False]]), np.array([0.9, 0.5]))
    array([ 2, -1])
    """
    count = legal.sum(axis=1)
    wanted = np.minimum((uniforms * count).astype(np.intp), count - 1)
    place = np.argmax(np.cumsum(legal, axis=1) > wanted[:, None], axis=1)
    return np.where(count > 0, place, -1)


def random_playouts(
    problem: Problem,
    states: States,
    weights: Floats,
    longest: NDArray[np.intp],
    limits: Limits,
    uniforms: Floats,
) -> Playouts:
    """Walk at most ``longest`` ``(n,)`` random legal moves from each state; nothing is scored."""
    n, steps = uniforms.shape
    walked = np.zeros((n, steps, states.shape[1]))
    moves = np.full((n, steps), -1, np.intp)
    costs = np.zeros((n, steps))
    here = np.array(states)
    going = np.arange(n)
    for step in range(steps):
        going = going[step < longest[going]]
        if not len(going):
            break
        chosen = random_move(problem.actions.allowed(here[going], limits), uniforms[going, step])
        going, chosen = going[chosen >= 0], chosen[chosen >= 0]
        paid = problem.costs.costs(here[going], problem.actions, chosen, weights[going])
        costs[going, step] = paid.mean(axis=1)
        here[going] = problem.actions.apply(here[going], chosen)
        moves[going, step] = chosen
        walked[going, step] = here[going]
    return Playouts(moves, walked, costs, (moves >= 0).sum(axis=1))
