"""What does a favourable state cost each lane in its best order, and is that an improvement?"""

from __future__ import annotations

import numpy as np

from pear.planning.exact.assignments import Rows, bounds_of
from pear.planning.exact.front import EQUAL, LAST_KEY, Front, Incumbent, Key, Lane
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.order import best_orders
from pear.planning.exact.sequences import Target, best_sequence
from pear.planning.exact.tables import Tables

TOGETHER = 16
"""Favourable states whose bounds are worked out for all lanes at once."""


def offer_rows(
    tables: Tables, front: Front, rivals: list[Lane], rows: Rows, scores: Floats
) -> None:
    """Offer favourable assignments of a front, smallest bound first, to all ``rivals``.

    ``rivals`` are the undecided lanes of the same person with the same limits.
    """
    numbers = np.array([lane.number for lane in rivals], np.intp)
    ceilings = np.array([lane.cost + EQUAL * lane.unit for lane in rivals])
    for first in range(0, len(rows), TOGETHER):
        here = rows.part(first, first + TOGETHER)
        bounds = here.bounds[:, None]
        if len(rivals) > 1:
            words = tuple(np.repeat(word, len(rivals)) for word in here.words)
            bounds = bounds_of(tables, np.tile(numbers, len(here)), words).reshape(len(here), -1)
        for i in range(len(here)):
            key, steps = here.key(i), int(here.steps[i])
            if not front.improves(float(here.bounds[i]), steps, key):
                return
            able = [
                rivals[rival]
                for rival in np.flatnonzero(bounds[i] <= ceilings)
                if rivals[rival].improves(float(bounds[i, rival]), steps, key)
            ]
            if able:
                _offer(tables, able, key, steps, float(scores[first + i]))
                ceilings = np.array([lane.cost + EQUAL * lane.unit for lane in rivals])
                front.refresh()


def _offer(tables: Tables, lanes: list[Lane], key: Key, steps: int, score: float) -> None:
    """One favourable assignment: its cheapest order for each lane."""
    number = lanes[0].number
    start, options = tables.starts[number], tables.codes.options_of(key)
    if tables.max_changes > 1:
        targets = [
            Target(level.column, float(level.values[number, o]), int(level.links[number, o]))
            for level, o in zip(tables.levels, options, strict=True)
            if o < level.last
        ]
        for lane in lanes:
            weights, limits = tables.weights[lane.number], tables.limits[lane.number]
            ceiling = lane.cost + EQUAL * lane.unit
            memory = tables.memories.setdefault((tuple(start), limits), {})
            cost, moves = best_sequence(
                tables.problem, start, targets, weights, limits, ceiling, memory
            )
            lane.take(Incumbent(cost, steps, key, tuple(moves.tolist()), score))
        return
    chosen = np.array(
        [
            level.moves[number, o]
            for level, o in zip(tables.levels, options, strict=True)
            if o < level.last
        ]
    )
    weights = tables.weights[[lane.number for lane in lanes]]
    costs, orders = best_orders(tables.problem, start, chosen, weights)
    for lane, cost, order in zip(lanes, costs.tolist(), orders.tolist(), strict=True):
        lane.take(Incumbent(cost, steps, key, tuple(order), score))


def offer_moves(tables: Tables, lanes: list[Lane], moves: Indices, score: float) -> None:
    """Offer changes of distinct features that are known to lead to a favourable state."""
    fits = [lane for lane in lanes if len(moves) <= tables.max_steps[lane.number]]
    if not fits:
        return
    weights = tables.weights[[lane.number for lane in fits]]
    start = tables.starts[fits[0].number]
    costs, orders = best_orders(tables.problem, start, moves, weights)
    for lane, cost, order in zip(fits, costs.tolist(), orders.tolist(), strict=True):
        lane.take(Incumbent(cost, len(moves), LAST_KEY, tuple(order), score))
