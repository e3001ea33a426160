"""The next shell of assignments for every front that has nothing left to score."""

from __future__ import annotations

import numpy as np

from pear.planning.exact.assignments import Rows, below, in_order
from pear.planning.exact.clock import Clock
from pear.planning.exact.front import Front
from pear.planning.exact.tables import Tables


def refill(
    tables: Tables, fronts: list[Front], max_rows: int, lefts: list[int], clock: Clock
) -> None:
    """Close the fronts that are done; enumerate the next shell of the others.

    ``lefts`` are the rows that each front's group may still ask.
    """
    left_of = {front.number: left for front, left in zip(fronts, lefts, strict=True)}
    fronts = [front for front in fronts if not front.close_if_done()]
    if not fronts:
        return
    numbers = np.array([front.number for front in fronts], np.intp)
    thresholds = np.full(len(tables.starts), -np.inf)
    caps = np.zeros(len(tables.starts), np.intp)
    for front in fronts:
        thresholds[front.number] = front.next_threshold()
        caps[front.number] = clock.cap(front.cap(max_rows, left_of[front.number]))
    shell = below(tables, numbers, thresholds, caps, clock.check)
    rows = shell.rows
    if len(fronts) > 1:
        rows = rows.take(np.argsort(rows.lanes.astype(np.int32), kind="stable"))
    begins = np.searchsorted(rows.lanes, numbers)
    ends = np.searchsorted(rows.lanes, numbers + 1)
    for front, first, end in zip(fronts, begins.tolist(), ends.tolist(), strict=True):
        threshold = float(thresholds[front.number])
        if shell.dropped[front.number]:
            front.narrow(threshold)
            continue
        mine = rows.part(first, end)
        fresh = mine.take(np.flatnonzero(mine.bounds > front.complete))
        fresh = in_order(without_impossible(tables, fresh))
        front.receive(fresh, end - first, threshold=threshold, cut=bool(shell.cut[front.number]))


def without_impossible(tables: Tables, rows: Rows) -> Rows:
    """Drop assignments in which a change never gets what it requires of another feature."""
    actions = tables.problem.actions
    if not actions.requirement_tables or tables.max_changes > 1 or not len(rows):
        return rows
    states = tables.states(rows.lanes, rows.words)
    fine = np.ones(len(rows), bool)
    level_of = {level.column: i for i, level in enumerate(tables.levels)}
    for action, column, requirement in actions.requirement_tables:
        changed = level_of[actions.space.index(actions.actions[action].feature)]
        chosen = tables.codes.option(rows.words, changed)
        moves = tables.levels[changed].moves[rows.lanes, chosen]
        uses = (moves >= 0) & (actions.action_of[moves] == action)
        before = tables.starts[rows.lanes, column]
        met = actions.requirement_met(column, requirement, before)
        met |= actions.requirement_met(column, requirement, states[:, column])
        fine &= ~uses | met
    return rows.take(np.flatnonzero(fine))
