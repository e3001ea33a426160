"""A cheaper plan near a first one: one feature at a time, another value or no change."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from pear.planning.exact.assignments import Rows, bounds_of, in_order
from pear.planning.exact.front import EQUAL, Front, Lane
from pear.planning.exact.ledger import Ledger
from pear.planning.exact.levels import Floats
from pear.planning.exact.offers import offer_rows
from pear.planning.exact.tables import Tables
from pear.problem import walk

MOST_ROUNDS = 20


def neighbours(tables: Tables, lane: Lane) -> Rows:
    """Assignments that differ from the lane's plan in one feature and may cost less, in order."""
    here = _options_of(tables, lane)
    choices = []
    for number, level in enumerate(tables.levels):
        for option in np.flatnonzero(level.valid[lane.number]).tolist():
            if option != here[number]:
                choices.append([*here[:number], option, *here[number + 1 :]])
    lasts = np.array([level.last for level in tables.levels])
    options = np.array(choices, np.intp).reshape(-1, len(here))
    links = [level.links[lane.number, options[:, i]] for i, level in enumerate(tables.levels)]
    steps = np.sum(links, axis=0).astype(np.int16)
    fits = (options != lasts).any(axis=1) & (steps <= tables.max_steps[lane.number])
    options, steps = options[fits], steps[fits]
    words = tables.codes.encode(list(options.T))
    lanes = np.full(len(options), lane.number)
    bounds = bounds_of(tables, lanes, words)
    less = np.flatnonzero(bounds < lane.cost - EQUAL * lane.unit)
    return in_order(Rows(lanes, words, bounds, steps).take(less))


def _options_of(tables: Tables, lane: Lane) -> list[int]:
    """The option of every level that the lane's plan chooses."""
    actions = tables.problem.actions
    end = walk(tables.starts[lane.number], actions, lane.moves)[-1]
    columns = actions.feature_of[list(lane.moves)].tolist()
    found = []
    for level in tables.levels:
        same = np.isclose(level.values[lane.number], end[level.column], rtol=0, atol=1e-9)
        same &= level.links[lane.number] == columns.count(level.column)
        same &= level.valid[lane.number]
        found.append(int(np.argmax(same)))
    return found


def polish(
    tables: Tables, front: Front, rivals: list[Lane], group: int, bar: float, ledger: Ledger
) -> Generator[Floats, Floats, None]:
    """Improve the plan of a front's first lane until no neighbour is cheaper."""
    lane = front.lanes[0]
    for _ in range(MOST_ROUNDS):
        before = lane.incumbent
        if before is None:
            return
        rows = neighbours(tables, lane)
        rows = rows.part(0, ledger.left(group))
        states = tables.states(rows.lanes, rows.words)
        scores = yield from ledger.ask(states, np.full(len(rows), group))
        good = np.flatnonzero(scores > bar)
        offer_rows(tables, front, rivals, rows.take(good), scores[good])
        if lane.incumbent is before:
            return
