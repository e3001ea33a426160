"""A first plan for a hard person: a beam that follows the score."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from pear.planning.exact.options import Floats, Indices, Tables

WIDTH = 8

Ask = Callable[[Floats], Generator[Floats, Floats, Floats]]


def beam_moves(
    tables: Tables, lane: int, bar: float, max_rows: int, ask: Ask
) -> Generator[Floats, Floats, list[tuple[Indices, float]]]:
    """Sequences of moves on distinct features that lead to favourable states, with their score.

    Each round extends the best states by every legal move, scores them, and keeps those
    with the highest score. Ends with the first round that finds favourable states.
    """
    actions = tables.problem.actions
    states, paths = tables.starts[[lane]], np.zeros((1, 0), np.intp)
    weights = tables.weights[lane].mean(axis=0)
    spent = 0
    for _ in range(int(tables.max_steps[lane])):
        allowed = actions.allowed(states, tables.limits[lane])
        if paths.shape[1]:
            used = actions.feature_of[paths]
            allowed &= ~(used[:, :, None] == actions.feature_of).any(axis=1)
        origin, moves = np.nonzero(allowed)
        origin, moves = origin[: max_rows - spent], moves[: max_rows - spent]
        if not len(origin):
            break
        following = actions.apply(states[origin], moves)
        spent += len(following)
        scores = yield from ask(following)
        extended = np.hstack([paths[origin], moves[:, None]])
        found = np.flatnonzero(scores > bar)
        if len(found):
            step = tables.problem.costs.costs(states[origin[found]], actions, moves[found], weights)
            cheapest = found[np.argsort(step, kind="stable")[:WIDTH]]
            return [(extended[i], float(scores[i])) for i in cheapest]
        _, distinct = np.unique(np.sort(extended, axis=1), axis=0, return_index=True)
        best = distinct[np.argsort(-scores[distinct], kind="stable")[:WIDTH]]
        states, paths = following[best], extended[best]
    return []
