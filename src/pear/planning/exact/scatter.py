"""Plans for hard people from many sets of changes drawn at random.

Where a model's score is the same over a whole region, a beam sees no direction; plans of
several changes are then found by trying many. Those that score higher breed the next ones.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.assignments import Rows, bounds_of, joined
from pear.planning.exact.beam import KEPT, Found
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.survey import changed_moves
from pear.planning.exact.tables import Tables

ROUNDS = 5
DRAWN = 4_096
"""Sets of changes of one round."""
PARENTS = 8
"""One of so many, those that score highest, is changed a little for the next round."""


def scattered_plans(
    tables: Tables, lane: int, bar: float, max_rows: int
) -> Generator[Floats, Floats, Found]:
    """Yields the states of sets of changes, and returns the cheapest favourable ones.

    The draws are the same every time, so that a plan depends on nothing but the person.
    """
    rng = np.random.default_rng(0)
    count = min(DRAWN, max_rows // ROUNDS)
    choices = [
        np.flatnonzero(v.valid[lane, :-1] & (v.moves[lane, :-1] >= 0)) for v in tables.levels
    ]
    if count < PARENTS or not any(len(choice) for choice in choices):
        return []
    options = _drawn(tables, lane, choices, count, rng)
    good: list[Rows] = []
    good_scores: list[Floats] = []
    for _ in range(ROUNDS):
        rows = _rows(tables, lane, options)
        scores = yield tables.states(rows.lanes, rows.words)
        favourable = np.flatnonzero(scores > bar)
        good.append(rows.take(favourable))
        good_scores.append(scores[favourable])
        order = np.argsort(-scores, kind="stable")
        if scores[order[0]] > scores[order[-1]]:
            parents = options[order[: max(1, len(order) // PARENTS)]]
            options = _changed(tables, lane, choices, parents, count, rng)
        else:
            options = _drawn(tables, lane, choices, count, rng)
    return _cheapest(tables, joined(good), np.concatenate(good_scores))


def _drawn(
    tables: Tables, lane: int, choices: list[Indices], count: int, rng: np.random.Generator
) -> Indices:
    """As many changes as are allowed, on features drawn at random: options ``(count, K)``."""
    lasts = tables.lasts
    options = np.repeat(lasts[None], count, axis=0)
    possible = np.array([len(choice) > 0 for choice in choices])
    rank = (rng.random(options.shape) + ~possible).argsort(axis=1).argsort(axis=1)
    chosen = (rank < tables.max_steps[lane]) & possible
    for number, choice in enumerate(choices):
        if len(choice):
            drawn = choice[rng.integers(len(choice), size=count)]
            options[:, number] = np.where(chosen[:, number], drawn, lasts[number])
    return options


def _changed(
    tables: Tables,
    lane: int,
    choices: list[Indices],
    parents: Indices,
    count: int,
    rng: np.random.Generator,
) -> Indices:
    """Each parent several times, with another option for one feature; one change too many is
    undone elsewhere."""
    lasts = tables.lasts
    options = parents[np.arange(count) % len(parents)]
    where = np.flatnonzero([len(choice) > 0 for choice in choices])
    turned = where[rng.integers(len(where), size=count)]
    for number in where.tolist():
        mine = np.flatnonzero(turned == number)
        options[mine, number] = choices[number][rng.integers(len(choices[number]), size=len(mine))]
    changed: NDArray[np.bool_] = options != lasts
    excess = changed.sum(axis=1) > tables.max_steps[lane]
    lots = rng.random(options.shape) * changed
    lots[np.arange(count), turned] = 0.0
    dropped = np.where(excess, lots.argmax(axis=1), -1)
    for number in where.tolist():
        options[dropped == number, number] = lasts[number]
    return options


def _rows(tables: Tables, lane: int, options: Indices) -> Rows:
    words = tables.codes.encode(list(options.T))
    lanes = np.full(len(options), lane)
    steps = (options != tables.lasts).sum(axis=1)
    return Rows(lanes, words, np.zeros(len(options)), steps.astype(np.int16))


def _cheapest(tables: Tables, rows: Rows, scores: Floats) -> Found:
    if not len(rows):
        return []
    bounds = bounds_of(tables, rows.lanes, rows.words)
    moves = changed_moves(tables, rows)
    _, first = np.unique(moves, axis=0, return_index=True)
    least = first[np.argsort(bounds[first], kind="stable")][:KEPT]
    return [(moves[i][moves[i] >= 0], float(scores[i])) for i in least]
