"""A first plan for hard people: a beam that follows the score."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from pear.planning.exact.ledger import Ledger
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.tables import Tables

WIDTH = 8
"""States the first beam keeps; each further beam keeps this many times more."""
AFTER = 4_000
"""Rows after which a person without a plan gets a first beam; each further attempt after five
times as many."""
MOST = 3
"""Attempts for one person: a narrow beam, then scattered plans, then a wide beam."""
KEPT = 8
"""Favourable states of a beam that are offered as plans."""

Found = list[tuple[Indices, float]]
"""Sequences of moves on distinct features to favourable states, with the score of the state."""


def beam_moves(
    tables: Tables, lane: int, bar: float, max_rows: int, width: int = WIDTH
) -> Generator[Floats, Floats, Found]:
    """Each round extends the best states by every legal move and keeps those that score highest.

    Ends with the first round that finds favourable states.
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
        scores = yield following
        extended = np.hstack([paths[origin], moves[:, None]])
        found = np.flatnonzero(scores > bar)
        if len(found):
            step = tables.problem.costs.costs(states[origin[found]], actions, moves[found], weights)
            cheapest = found[np.argsort(step, kind="stable")[:KEPT]]
            return [(extended[i], float(scores[i])) for i in cheapest]
        _, distinct = np.unique(np.sort(extended, axis=1), axis=0, return_index=True)
        best = distinct[np.argsort(-scores[distinct], kind="stable")[:width]]
        states, paths = following[best], extended[best]
    return []


def beam_is_due(beams: int, asked: int, max_rows: int) -> bool:
    """Whether a person without a plan gets one more beam, after ``beams`` of them."""
    return beams < MOST and asked >= min(AFTER, max_rows // 8) * 5**beams


def beams_together(
    beams: dict[int, Generator[Floats, Floats, Found]], ledger: Ledger
) -> Generator[Floats, Floats, dict[int, Found]]:
    """Run one beam for each group, all of them a round at a time."""
    found: dict[int, Found] = {}
    waiting: dict[int, Floats] = {}

    def advance(group: int, scores: Floats | None) -> None:
        try:
            beam = beams[group]
            waiting[group] = next(beam) if scores is None else beam.send(scores)
        except StopIteration as end:
            found[group] = end.value
            waiting.pop(group, None)

    for group in beams:
        advance(group, None)
    while waiting:
        sizes = [len(states) for states in waiting.values()]
        owners = np.repeat(list(waiting), sizes)
        scores = yield from ledger.ask(np.concatenate(list(waiting.values())), owners)
        parts = np.split(scores, np.cumsum(sizes)[:-1])
        for group, part in zip(list(waiting), parts, strict=True):
            advance(group, part)
    return found
