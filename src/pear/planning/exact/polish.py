"""A cheaper plan near a first one: another value, no change, or another feature instead."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from pear.planning.exact.assignments import Rows, bounds_of, in_order
from pear.planning.exact.front import EQUAL, Front, Lane
from pear.planning.exact.ledger import Ledger
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.offers import offer_rows
from pear.planning.exact.tables import Tables
from pear.problem import walk

MOST_ROUNDS = 20
MOST_ROWS = 4_000
"""Rows asked for one plan at most."""
BLOCK = 256
"""Neighbours scored in one call."""


def neighbours(tables: Tables, number: int, here: Indices, below: float) -> Rows:
    """Assignments near ``here`` ``(K,)`` of a lane with a bound ``below`` something, in order.

    They differ from it in one feature, or leave one change out and make another instead.
    """
    lasts = tables.lasts
    bases = [here]
    for changed in np.flatnonzero(here != lasts).tolist():
        bases.append(here.copy())
        bases[-1][changed] = lasts[changed]
    choices = [np.array(bases)]
    for base in bases:
        for column, level in enumerate(tables.levels):
            options = np.flatnonzero(level.valid[number])
            options = options[(options != here[column]) & (options != lasts[column])]
            near = np.repeat(base[None], len(options), axis=0)
            near[:, column] = options
            choices.append(near)
    options = np.unique(np.concatenate(choices), axis=0)
    links = [level.links[number, options[:, i]] for i, level in enumerate(tables.levels)]
    steps = np.sum(links, axis=0).astype(np.int16)
    fits = (options != lasts).any(axis=1) & (steps <= tables.max_steps[number])
    options, steps = options[fits], steps[fits]
    words = tables.codes.encode(list(options.T))
    lanes = np.full(len(options), number)
    bounds = bounds_of(tables, lanes, words)
    less = np.flatnonzero(bounds < below)
    return in_order(Rows(lanes, words, bounds, steps).take(less))


def options_of(tables: Tables, number: int, moves: Sequence[int]) -> Indices:
    """The option of every level that a lane's plan chooses, ``(K,)``."""
    actions = tables.problem.actions
    end = walk(tables.starts[number], actions, moves)[-1]
    columns = actions.feature_of[list(moves)].tolist()
    found = []
    for level in tables.levels:
        same = np.isclose(level.values[number], end[level.column], rtol=0, atol=1e-9)
        same &= level.links[number] == columns.count(level.column)
        same &= level.valid[number]
        found.append(int(np.argmax(same)))
    return np.array(found, np.intp)


def polish(
    tables: Tables,
    front: Front,
    rivals: list[Lane],
    plans: Sequence[Sequence[int]],
    group: int,
    bar: float,
    ledger: Ledger,
    most_rows: int,
) -> Generator[Floats, Floats, None]:
    """Go from each plan of a front's first lane to the cheapest favourable neighbour, and on
    from there, until none is cheaper; whatever is met is offered to all ``rivals``."""
    number = front.lanes[0].number
    for moves in plans:
        here = options_of(tables, number, moves)
        words = tables.codes.encode([np.array([option]) for option in here])
        bound = float(bounds_of(tables, np.array([number]), words)[0])
        most = min(most_rows, MOST_ROWS)
        for _ in range(MOST_ROUNDS):
            rows = neighbours(tables, number, here, bound - EQUAL * front.unit)
            rows = rows.part(0, min(most, ledger.left(group)))
            most -= len(rows)
            better = yield from _first_favourable(tables, rows, group, bar, ledger)
            if better is None:
                break
            row, score = better
            offer_rows(tables, front, rivals, row, np.array([score]))
            here, bound = np.array(tables.codes.options_of(row.key(0)), np.intp), row.bounds[0]


def _first_favourable(
    tables: Tables, rows: Rows, group: int, bar: float, ledger: Ledger
) -> Generator[Floats, Floats, tuple[Rows, float] | None]:
    """The first favourable of some assignments, and its score."""
    for first in range(0, len(rows), BLOCK):
        block = rows.part(first, first + BLOCK)
        states = tables.states(block.lanes, block.words)
        scores = yield from ledger.ask(states, np.full(len(block), group))
        good = np.flatnonzero(scores > bar)
        if len(good):
            return block.take(good[:1]), float(scores[good[0]])
    return None
