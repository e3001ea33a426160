"""What can features that are changed again and again reach, and in which order is that cheapest?

A feature's own changes form a chain. An option is then a value and the number of changes that lead
there; which chain it takes is decided layer by layer, together with the order of all changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.problem import Limits, Problem

EQUAL = 1e-12
"""Costs that differ by less than this share of the larger one are the same cost."""


class Found(NamedTuple):
    """The options of K features before they are priced.

    ``values``, ``moves``, ``changes`` ``(K, V)``; ``valid`` ``(K, V, Q)``. ``size`` ``(K, V, R)``
    is how far an option goes, times the weight of that; ``low`` and ``high`` ``(K, V)`` are the
    least and the largest scaled value on the way.
    """

    values: Floats
    moves: Indices
    changes: Indices
    widths: Indices
    valid: NDArray[np.bool_]
    size: Floats
    low: Floats
    high: Floats


def chains(
    problem: Problem,
    start: Floats,
    columns: Indices,
    weights: Floats,
    limits: Sequence[Limits],
    longest: int,
) -> Found:
    """Options of features that may be changed again and again.

    An option is a pair (value reached, number of changes). It costs at least the cheapest chain
    of changes that reaches it; values are told apart exactly.
    """
    queries, samples, _ = weights.shape
    features = []
    for column in columns.tolist():
        options: dict[tuple[int, float], int] = {(0, float(start[column])): 0}
        per_limit = {}
        for limit in dict.fromkeys(limits):
            mine = np.flatnonzero([limit == other for other in limits])
            rows = weights[mine, :, column].ravel()
            layers = list(_layers(problem, column, start, rows, limit, longest))
            per_limit[limit] = (mine, layers)
            for count, layer in enumerate(layers, 1):
                for value in layer[0].tolist():
                    options.setdefault((count, value), len(options))
        features.append((options, per_limit))
    shape = (len(columns), max([len(options) for options, _ in features], default=1))
    values = np.repeat(start[columns][:, None], shape[1], axis=1)
    changes = np.zeros(shape, np.intp)
    valid = np.zeros((*shape, queries), bool)
    valid[:, 0] = True
    size = np.zeros((*shape, queries, samples))
    here = problem.space.scaled(start[None])[0, columns][:, None]
    low, high = np.repeat(here, shape[1], axis=1), np.repeat(here, shape[1], axis=1)
    for k, (options, per_limit) in enumerate(features):
        for (count, value), option in options.items():
            values[k, option], changes[k, option] = value, count
        for mine, layers in per_limit.values():
            for count, (reached, own, lows, highs) in enumerate(layers, 1):
                at = np.array([options[count, value] for value in reached.tolist()], np.intp)
                valid[k, at[:, None], mine] = True
                size[k, at[:, None], mine] = own.reshape(len(mine), samples, -1).transpose(2, 0, 1)
                low[k, at] = np.minimum(low[k, at], lows)
                high[k, at] = np.maximum(high[k, at], highs)
    return Found(
        values,
        np.full(shape, -1),
        changes,
        np.array([len(options) for options, _ in features], np.intp),
        valid,
        size.reshape(*shape, -1),
        low,
        high,
    )


def _layers(
    problem: Problem, column: int, start: Floats, weights: Floats, limits: Limits, longest: int
) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """After 1, 2, … changes: values ``(n,)``, costs ``(R, n)``, least and largest on the way."""
    actions, graph = problem.actions, problem.costs
    moves = np.flatnonzero(actions.feature_of == column)
    values, own = start[[column]], np.zeros((len(weights), 1))
    low = high = problem.space.scale_column(column, values)
    for _ in range(longest):
        states = np.repeat(start[None], len(values), axis=0)
        states[:, column] = values
        results = actions.results(states)
        legal = actions.changes_legally(states) & actions.within_limits(results, limits)
        origin, which = np.nonzero(legal[:, moves])
        if not len(origin):
            return
        after = results[origin, moves[which]]
        cost = own[:, origin] + weights[:, None] * graph.change(column, values[origin], after)
        scaled = problem.space.scale_column(column, after)
        lows, highs = np.minimum(low[origin], scaled), np.maximum(high[origin], scaled)
        values, inverse = np.unique(after, return_inverse=True)
        own = np.full((len(weights), len(values)), np.inf)
        low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
        np.minimum.at(own.T, inverse, cost.T)
        np.minimum.at(low, inverse, lows)
        np.maximum.at(high, inverse, highs)
        yield values, own, low, high


@dataclass(frozen=True)
class Target:
    """Value a feature must end at, after exactly so many ``changes``."""

    column: int
    value: float
    changes: int


@dataclass
class Reach:
    """From which values can a target still be reached, for one start and one set of limits?"""

    problem: Problem
    start: Floats
    limits: Limits
    _known: dict[Target, list[Floats]] = field(default_factory=dict)

    def of(self, target: Target) -> list[Floats]:
        """The values from which it can be reached in 0, 1, 2… further changes."""
        if target not in self._known:
            forward = [self.start[[target.column]]]
            for _ in range(target.changes):
                forward.append(np.unique(self._after(target.column, forward[-1])[1]))
            able = [np.array([target.value])]
            for remaining in range(1, target.changes + 1):
                values = forward[target.changes - remaining]
                origin, results = self._after(target.column, values)
                able.append(np.unique(values[origin[np.isin(results, able[-1])]]))
            self._known[target] = able
        return self._known[target]

    def _after(self, column: int, values: Floats) -> tuple[Indices, Floats]:
        """Origin and result of each legal change of some values of a feature."""
        actions = self.problem.actions
        moves = np.flatnonzero(actions.feature_of == column)
        states = np.repeat(self.start[None], len(values), axis=0)
        states[:, column] = values
        results = actions.results(states)
        legal = actions.changes_legally(states) & actions.within_limits(results, self.limits)
        origin, which = np.nonzero(legal[:, moves])
        return origin, results[origin, moves[which]]


def best_sequence(
    reach: Reach, targets: list[Target], weights: Floats, ceiling: float = np.inf
) -> tuple[float, tuple[int, ...]]:
    """Cheapest legal sequence to the targets below ``ceiling``, or infinity and no moves.

    ``weights`` is ``(S, p)``; the mean floored cost over S samples is minimised. Layer by layer
    over the number of changes made: equal states with equal numbers of changes per feature are
    merged, the cheaper way kept. Branches from which a feature can no longer reach its target in
    the changes it has left are dropped. States are compared exactly.
    """
    problem, start, limits = reach.problem, reach.start, reach.limits
    actions = problem.actions
    can_reach = [reach.of(target) for target in targets]
    columns = np.array([target.column for target in targets])
    target_of = {int(column): i for i, column in enumerate(columns)}
    usable = np.array([target_of.get(int(c), -1) for c in actions.feature_of])
    states, costs = start[None].copy(), np.zeros(1)
    used = np.zeros((1, len(targets)), np.intp)
    paths = np.zeros((1, 0), np.intp)
    changes = np.array([target.changes for target in targets])
    for to_come in range(int(changes.sum()) - 1, -1, -1):
        allowed = actions.allowed(states, limits) & (usable >= 0)
        allowed &= used[:, np.maximum(usable, 0)] < changes[np.maximum(usable, 0)]
        origin, moves = np.nonzero(allowed)
        if not len(origin):
            return np.inf, ()
        step = problem.costs.costs(states[origin], actions, moves, weights).mean(axis=1)
        after = actions.apply(states[origin], moves)
        which = usable[moves]
        count = used[origin].copy()
        count[np.arange(len(origin)), which] += 1
        total = costs[origin] + step
        fine = np.ones(len(total), bool)
        if problem.costs.least >= 0 and np.isfinite(ceiling):
            fine = total + to_come * problem.costs.least <= ceiling + EQUAL * abs(ceiling)
        for i, column in enumerate(columns):
            mine = np.flatnonzero(which == i)
            left = changes[i] - count[mine, i]
            for remaining in np.unique(left):
                here = mine[left == remaining]
                fine[here] &= np.isin(after[here, column], can_reach[i][remaining])
        # A missing value equals itself here, which NaN does not.
        keys = np.hstack([np.nan_to_num(after[:, columns], nan=-np.inf), count])
        keep = _cheapest_of_equal(keys, total, paths[origin], moves, np.flatnonzero(fine))
        states, used, costs = after[keep], count[keep], total[keep]
        paths = np.hstack([paths[origin[keep]], moves[keep][:, None]])
        if not len(states):
            return np.inf, ()
    best = _first_cheapest(costs, paths)
    return float(costs[best]), tuple(paths[best].tolist())


def _cheapest_of_equal(
    keys: Floats, costs: Floats, paths: Indices, moves: Indices, rows: Indices
) -> Indices:
    """Of rows with equal keys, the cheapest; ties by the sequence of moves."""
    if not len(rows):
        return rows
    _, same = np.unique(keys[rows], axis=0, return_inverse=True)
    same = same.ravel()
    least = np.full(same.max() + 1, np.inf)
    np.minimum.at(least, same, costs[rows])
    near = costs[rows] <= least[same] + EQUAL * np.abs(least[same])
    rows, same = rows[near], same[near]
    order = np.lexsort((moves[rows], *paths[rows].T[::-1], same))
    groups = same[order]
    first = np.r_[True, groups[1:] != groups[:-1]]
    return rows[order[first]]


def _first_cheapest(costs: Floats, paths: Indices) -> int:
    near = np.flatnonzero(costs <= costs.min() + EQUAL * abs(costs.min()))
    return int(near[np.lexsort(paths[near].T[::-1])[0]])
