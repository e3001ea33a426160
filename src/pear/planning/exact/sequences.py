"""The exact cheapest sequence to a state when features may change more than once.

Layer by layer over the number of changes made: equal states with equal numbers of changes
per feature are merged, the cheaper way kept. Branches from which a feature can no longer
reach its target in the changes it has left are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.problem import Limits, Problem

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Target:
    """Value a feature must end at, after exactly ``links`` changes."""

    column: int
    value: float
    links: int


Memory = dict[Target, list[Floats]]
"""For each target, the values from which it can be reached in 0, 1, 2… further changes."""


def best_sequence(
    problem: Problem,
    start: Floats,
    targets: list[Target],
    weights: Floats,
    limits: Limits,
    ceiling: float = np.inf,
    memory: Memory | None = None,
) -> tuple[float, Indices]:
    """Cheapest legal sequence below ``ceiling``, or infinity and no moves.

    ``weights`` is ``(S, p)``; the mean floored cost over S samples is minimised. ``memory``
    is kept between calls for the same start and limits.
    """
    actions = problem.actions
    memory = {} if memory is None else memory
    for target in targets:
        if target not in memory:
            memory[target] = _backwards(problem, start, target, limits)
    can_reach = [memory[target] for target in targets]
    columns = np.array([target.column for target in targets])
    level_of = {int(column): i for i, column in enumerate(columns)}
    usable = np.array([level_of.get(int(c), -1) for c in actions.feature_of])
    states, costs = start[None].copy(), np.zeros(1)
    used = np.zeros((1, len(targets)), np.intp)
    paths = np.zeros((1, 0), np.intp)
    links = np.array([target.links for target in targets])
    for to_come in range(int(links.sum()) - 1, -1, -1):
        allowed = actions.allowed(states, limits) & (usable >= 0)
        allowed &= used[:, np.maximum(usable, 0)] < links[np.maximum(usable, 0)]
        origin, moves = np.nonzero(allowed)
        if not len(origin):
            return np.inf, np.zeros(0, np.intp)
        step = problem.costs.costs(states[origin], actions, moves, weights).mean(axis=1)
        after = actions.apply(states[origin], moves)
        level = usable[moves]
        count = used[origin].copy()
        count[np.arange(len(origin)), level] += 1
        total = costs[origin] + step
        fine = np.ones(len(total), bool)
        if problem.costs.least >= 0:
            fine = total + to_come * problem.costs.least < ceiling
        for i, column in enumerate(columns):
            mine = np.flatnonzero(level == i)
            left = links[i] - count[mine, i]
            for remaining in np.unique(left):
                here = mine[left == remaining]
                values = np.round(after[here, column], 9)
                fine[here] &= np.isin(values, can_reach[i][remaining])
        keep = _cheapest_of_equal(after, count, total, paths[origin], moves, np.flatnonzero(fine))
        states, used, costs = after[keep], count[keep], total[keep]
        paths = np.hstack([paths[origin[keep]], moves[keep][:, None]])
        if not len(states):
            return np.inf, np.zeros(0, np.intp)
    best = int(np.lexsort((*paths.T[::-1], np.round(costs, 9)))[0])
    if costs[best] >= ceiling:
        return np.inf, np.zeros(0, np.intp)
    return float(costs[best]), paths[best]


def _backwards(problem: Problem, start: Floats, target: Target, limits: Limits) -> list[Floats]:
    """Values from which the target can be reached in 0, 1, 2… further changes."""
    actions = problem.actions
    moves = np.flatnonzero(actions.feature_of == target.column)
    forward = [start[[target.column]]]
    for _ in range(target.links):
        forward.append(_after(problem, start, target.column, forward[-1], moves, limits)[1])
    able = [np.round(np.array([target.value]), 9)]
    for remaining in range(1, target.links + 1):
        values = forward[target.links - remaining]
        origin, _, results = _after(problem, start, target.column, values, moves, limits)
        able.append(np.unique(np.round(values[origin[np.isin(np.round(results, 9), able[-1])]], 9)))
    return able


def _after(
    problem: Problem,
    start: Floats,
    column: int,
    values: Floats,
    moves: Indices,
    limits: Limits,
) -> tuple[Indices, Floats, Floats]:
    """Origin of each legal change, the distinct values reached, and the value of each change."""
    actions = problem.actions
    states = np.repeat(start[None], len(values), axis=0)
    states[:, column] = values
    results = actions.results(states)
    legal = actions.changes_legally(states) & actions.within_limits(results, limits)
    origin, which = np.nonzero(legal[:, moves])
    reached = results[origin, moves[which]]
    _, first = np.unique(np.round(reached, 9), return_index=True)
    return origin, reached[first], reached


def _cheapest_of_equal(
    states: Floats, used: Indices, costs: Floats, paths: Indices, moves: Indices, rows: Indices
) -> Indices:
    """Of rows with equal state and use of changes, the cheapest; ties by the sequence of moves."""
    if not len(rows):
        return rows
    keys = np.hstack([np.round(states[rows], 9), used[rows]])
    _, same = np.unique(keys, axis=0, return_inverse=True)
    order = np.lexsort((moves[rows], *paths[rows].T[::-1], np.round(costs[rows], 9), same.ravel()))
    groups = same.ravel()[order]
    first = np.r_[True, groups[1:] != groups[:-1]]
    return rows[order[first]]
