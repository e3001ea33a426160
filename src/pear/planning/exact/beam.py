"""A first plan for hard people: a beam that follows the score, and where the score is flat,
many walks at random."""

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
WALKS = 4_096
"""Walks of the second attempt: where a model's score is the same over a whole region, a beam
sees no direction, and plans of several changes are found by trying many of them."""
MOST = 3
"""Attempts for one person: a narrow beam, walks at random, a wide beam."""
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


def walk_moves(
    tables: Tables, lane: int, bar: float, max_rows: int, walks: int = WALKS
) -> Generator[Floats, Floats, Found]:
    """Walks of legal moves on distinct features, drawn at random; the same ones every time.

    After each step the half with the lower scores goes on from the others' states, unless all
    scores are equal. All favourable states met are found.
    """
    actions, longest = tables.problem.actions, int(tables.max_steps[lane])
    walks = min(walks, max_rows // max(longest, 1))
    rng = np.random.default_rng(0)
    states, paths = np.repeat(tables.starts[[lane]], walks, axis=0), np.zeros((walks, 0), np.intp)
    found: dict[tuple[int, ...], float] = {}
    for _ in range(longest):
        allowed = actions.allowed(states, tables.limits[lane])
        if paths.shape[1]:
            used = actions.feature_of[paths]
            allowed &= ~(used[:, :, None] == actions.feature_of).any(axis=1)
        going = allowed.any(axis=1)
        if not going.any():
            break
        states, paths, allowed = states[going], paths[going], allowed[going]
        moves = np.argmax(rng.random(allowed.shape) * allowed, axis=1)
        states = actions.apply(states, moves)
        paths = np.hstack([paths, moves[:, None]])
        scores = yield states
        for i in np.flatnonzero(scores > bar).tolist():
            found.setdefault(tuple(np.sort(paths[i]).tolist()), float(scores[i]))
        half = len(scores) // 2
        order = np.argsort(-scores, kind="stable")
        if half and scores[order[0]] > scores[order[-1]]:
            again = np.concatenate([order[:half], order[:half], order[half : len(scores) - half]])
            states, paths = states[again], paths[again]
    return _cheapest(tables, lane, found)


def _cheapest(tables: Tables, lane: int, found: dict[tuple[int, ...], float]) -> Found:
    """The favourable sets of changes that cost least, each change alone from the start."""
    if not found:
        return []
    alone = tables.problem.costs.costs(
        np.repeat(tables.starts[[lane]], len(tables.problem.actions), axis=0),
        tables.problem.actions,
        np.arange(len(tables.problem.actions)),
        tables.weights[lane].mean(axis=0),
    )
    sets = sorted(found, key=lambda moves: float(alone[list(moves)].sum()))
    return [(np.array(moves, np.intp), found[moves]) for moves in sets[:KEPT]]


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
