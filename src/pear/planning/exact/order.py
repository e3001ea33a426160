"""The exact cheapest order of a set of changes, for many weights at once.

Dynamic programming over subsets of the changes: the state after a subset is determined by
the subset. A transition that a requirement forbids costs infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pear.problem import Problem, walk

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def best_orders(
    problem: Problem, start: Floats, moves: Indices, weights: Floats
) -> tuple[Floats, Indices]:
    """Cheapest orders of ``moves`` ``(L,)``, each on another feature, from ``start`` ``(d,)``.

    ``weights`` is ``(N, S, p)``: for each of N lanes, the mean floored cost over S samples is
    minimised. Returns costs ``(N,)``, infinite where no order is legal, and the moves in
    order ``(N, L)``; ties by move number.
    """
    moves = np.sort(np.asarray(moves, np.intp))
    transition = _transitions(problem, start, moves, weights)
    lanes, masks, length = transition.shape
    to_go = np.full((lanes, masks), np.inf)
    to_go[:, -1] = 0.0
    choice = np.zeros((lanes, masks), np.intp)
    members = np.arange(masks)[:, None] >> np.arange(length) & 1
    sizes = members.sum(axis=1)
    following = np.minimum(np.arange(masks)[:, None] | (1 << np.arange(length)), masks - 1)
    for size in range(length - 1, -1, -1):
        here = np.flatnonzero(sizes == size)
        total = transition[:, here] + to_go[:, following[here]]
        total = np.where(members[here] == 1, np.inf, total)
        choice[:, here] = np.round(total, 9).argmin(axis=2)
        to_go[:, here] = np.take_along_axis(total, choice[:, here][:, :, None], axis=2)[:, :, 0]
    order = np.zeros((lanes, length), np.intp)
    at = np.zeros(lanes, np.intp)
    for step in range(length):
        order[:, step] = choice[np.arange(lanes), at]
        at |= 1 << order[:, step]
    return to_go[:, 0], moves[order]


def _transitions(problem: Problem, start: Floats, moves: Indices, weights: Floats) -> Floats:
    """Cost of each change after each subset of the others, shape ``(N, 2**L, L)``."""
    graph, actions, space = problem.costs, problem.actions, problem.space
    columns = actions.feature_of[moves]
    length = len(moves)
    after = walk(start, actions, moves)[-1]
    place = {int(column): i for i, column in enumerate(columns)}
    members = (np.arange(2**length)[:, None] >> np.arange(length) & 1).astype(float)
    phi = graph.features(np.repeat(start[None], length, axis=0), actions, moves)
    linear = np.einsum("kp,nsp->nks", phi, weights)[:, None]
    shift = np.zeros((len(weights), length, length, weights.shape[1]))
    moved = np.zeros(length)
    for i, column in enumerate(columns):
        both = space.scale_column(int(column), np.array([start[column], after[column]]))
        moved[i] = both[1] - both[0]
    for k, column in enumerate(columns):
        for parent, position in graph.parents[column]:
            if parent in place:
                i = place[parent]
                shift[:, i, k] = weights[:, :, position] * moved[i]
    linear = linear + np.einsum("mi,niks->nmks", members, shift)
    cost = graph.floored(linear).mean(axis=3)
    blocked = _blocked(problem, start, after, moves, place, members.astype(bool))
    cost[:, blocked] = np.inf
    return np.asarray(cost)


def _blocked(
    problem: Problem,
    start: Floats,
    after: Floats,
    moves: Indices,
    place: dict[int, int],
    members: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which changes a requirement forbids after which subset, shape ``(2**L, L)``."""
    actions = problem.actions
    blocked = np.zeros(members.shape, bool)
    for action, column, requirement in actions.requirement_tables:
        which = np.flatnonzero(actions.action_of[moves] == action)
        if not len(which):
            continue
        values = np.full(len(members), start[column])
        if column in place:
            values = np.where(members[:, place[column]], after[column], values)
        met = actions.requirement_met(column, requirement, values)
        blocked[:, which] |= ~met[:, None]
    return blocked
