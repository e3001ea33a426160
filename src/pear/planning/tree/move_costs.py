"""What would every move cost in these states, for each person's own weights?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidSetting
from pear.problem import Problem
from pear.problem.features import States

Floats = NDArray[np.float64]


def as_samples(weights: Floats, people: int) -> Floats:
    """Weights of n people as samples, shape ``(n, s, p)``.

    ``weights`` is ``(p,)`` for everybody, ``(n, p)`` one vector each, or ``(n, s, p)``.

    >>> as_samples(np.ones(3), 2).shape
    (2, 1, 3)
    """
    weights = np.asarray(weights, float)
    if weights.ndim == 1:
        return np.broadcast_to(weights, (people, 1, len(weights)))
    if weights.ndim not in (2, 3) or len(weights) != people:
        raise InvalidSetting(
            f"'weights' must be one vector, or one or more for each of {people} people "
            f"(got shape {weights.shape})"
        )
    return weights[:, None, :] if weights.ndim == 2 else weights


def all_move_costs(problem: Problem, states: States, weights: Floats) -> Floats:
    """Mean floored cost of every move, shape ``(n, m)``, for weight samples ``(n, s, p)``."""
    actions, graph = problem.actions, problem.costs
    results = actions.results(states)
    costs = np.empty(results.shape)
    for column in actions.actionable:
        moves = np.flatnonzero(actions.feature_of == column)
        change = graph.change(column, states[:, [column]], results[:, moves])
        fixed = np.zeros(weights.shape[:2])
        for parent, position in graph.parents[column]:
            level = graph.offset + problem.space.scale_column(parent, states[:, parent])
            fixed += weights[:, :, position] * level[:, None]
        linear = weights[:, :, column, None] * change[:, None, :] + fixed[:, :, None]
        costs[:, moves] = graph.floored(linear).mean(axis=1)
    return costs


def chosen_move_costs(
    problem: Problem, states: States, moves: NDArray[np.intp], weights: Floats
) -> Floats:
    """Mean floored cost of one move per state, shape ``(n,)``, for samples ``(n, s, p)``."""
    phi = problem.costs.features(states, problem.actions, moves)
    return np.asarray(problem.costs.floored(np.einsum("np,nsp->ns", phi, weights)).mean(axis=1))


def plans_under(
    problem: Problem, start: Floats, moves: NDArray[np.intp], weights: Floats
) -> Floats:
    """Costs ``(n, s)`` of plans ``(n, L)``, -1 after the end, from one state under ``(s, p)``."""
    states = np.repeat(np.asarray(start, float)[None], len(moves), axis=0)
    costs = np.zeros((len(moves), len(weights)))
    for step in range(moves.shape[1]):
        going = np.flatnonzero(moves[:, step] >= 0)
        if not len(going):
            break
        now = moves[going, step]
        phi = problem.costs.features(states[going], problem.actions, now)
        costs[going] += problem.costs.floored(phi @ weights.T)
        states[going] = problem.actions.apply(states[going], now)
    return costs
