"""In which order is a set of changes cheapest?

Doing one change first can make another dearer, or possible at all. The state after a
subset of the changes is the same in whatever order they were made, so dynamic programming
over subsets finds the best order without trying all of them.

References: Held and Karp, "A dynamic programming approach to sequencing problems", 1962.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidSetting
from pear.problem.actions import ActionSpace
from pear.problem.features import States
from pear.problem.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from pear.problem.costs import CostGraph

MOST_CHANGES = 14
"""More changes than this would need a table of over 16,384 subsets."""


def best_order(
    costs: CostGraph,
    start: NDArray[np.float64],
    actions: ActionSpace,
    moves: Sequence[int],
    weights: NDArray[np.float64],
    limits: Limits = NO_LIMITS,
) -> tuple[tuple[int, ...], float]:
    """The moves in their cheapest order from ``start`` ``(d,)``, and what that costs.

    ``weights`` is ``(p,)``, or samples ``(s, p)``: then the mean floored cost counts. Moves
    of one feature stay in the order given. Among equally cheap orders, the one with the
    smaller move numbers first. Where no order is allowed: no moves, and infinity.

    >>> from pear.problem import Action, CostGraph, Feature, FeatureSpace
    >>> space = FeatureSpace((Feature("a"), Feature("b"), Feature("c")))
    >>> set_to_5 = tuple(Action(f"set {n}", n, "set", (5.0,)) for n in space.names)
    >>> actions = ActionSpace(space, set_to_5)
    >>> chain = CostGraph(space, (("a", "b"), ("b", "c")), floor=None, offset=0.0)
    >>> best_order(chain, np.ones(3), actions, [0, 1, 2], np.ones(5))
    ((2, 1, 0), 14.0)
    """
    chosen = np.asarray(moves, np.intp)
    if chosen.ndim != 1 or len(chosen) > MOST_CHANGES:
        raise InvalidSetting(
            f"'moves' must be a list of at most {MOST_CHANGES} moves (got shape {chosen.shape})"
        )
    weights = costs.check_weights(weights)
    n = len(chosen)
    states = subset_states(start, actions, chosen)
    step = (
        np.stack(
            [
                costs.costs(states, actions, np.full(len(states), move), weights)
                .reshape(len(states), -1)
                .mean(axis=1)
                for move in chosen
            ],
            axis=1,
        )
        if n
        else np.zeros((1, 0))
    )
    step[~actions.allowed(states, limits)[:, chosen]] = np.inf
    step[~_next_in_line(actions, chosen)] = np.inf
    # rest[s] is the least cost of the changes that are not in subset s.
    rest = np.full(2**n, np.inf)
    rest[-1] = 0.0
    for subset in range(2**n - 2, -1, -1):
        rest[subset] = min(
            step[subset, i] + rest[subset | 1 << i] for i in range(n) if not subset >> i & 1
        )
    if not np.isfinite(rest[0]):
        return (), np.inf
    subset, order = 0, []
    while subset != 2**n - 1:
        ways = [
            (int(chosen[i]), i)
            for i in range(n)
            if not subset >> i & 1 and step[subset, i] + rest[subset | 1 << i] == rest[subset]
        ]
        move, i = min(ways)
        order.append(move)
        subset |= 1 << i
    return tuple(order), float(rest[0])


def subset_states(
    start: NDArray[np.float64], actions: ActionSpace, moves: NDArray[np.intp]
) -> States:
    """The state after each subset of n moves, shape ``(2**n, d)``; bit i stands for move i.

    Of several moves of one feature, a subset is taken to hold the first ones.
    """
    subsets = np.arange(2 ** len(moves))
    states = np.repeat(np.asarray(start, float)[None], len(subsets), axis=0)
    for column in np.unique(actions.feature_of[moves]):
        chain = np.flatnonzero(actions.feature_of[moves] == column)
        values = [states[0, column]]
        for move in moves[chain]:
            amount = actions.argument_of[move]
            values.append(values[-1] + amount if actions.adds[move] else amount)
        made = np.sum([subsets >> i & 1 for i in chain], axis=0)
        states[:, column] = np.array(values)[made]
    return states


def _next_in_line(actions: ActionSpace, moves: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Where all earlier moves of the same feature are made, and no later one: ``(2**n, n)``."""
    subsets = np.arange(2 ** len(moves))
    ready = np.ones((len(subsets), len(moves)), bool)
    columns = actions.feature_of[moves]
    for i in range(len(moves)):
        for j in np.flatnonzero(columns == columns[i]):
            made = (subsets >> j & 1).astype(bool)
            if j < i:
                ready[:, i] &= made
            elif j > i:
                ready[:, i] &= ~made
    return ready
