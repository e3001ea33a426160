"""What does a set of changes cost in its best order?

With one change per feature the state after a subset of the changes is determined by the subset:
dynamic programming over subsets, in compiled code. With repeated changes a feature's own changes
form a chain, found layer by layer together with the order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.planning.exact.options import Choices, Options
from pear.problem import Limits, Problem

EQUAL = 1e-12
"""Costs that differ by less than this share of the larger one are the same cost."""


def equal(one: float, other: float) -> bool:
    """Whether two costs are the same but for rounding.

    >>> equal(4.0, 4.0 + 1e-12), equal(1e-9, 2e-9), equal(np.inf, 4.0)
    (True, False, False)
    """
    return bool(one == other or abs(one - other) <= EQUAL * min(abs(one), abs(other)))


@dataclass(frozen=True)
class Incumbent:
    """The best plan so far; compared by cost, then steps, then ``rank``: earlier moves first."""

    cost: float
    steps: int
    rank: tuple[int, ...]
    moves: tuple[int, ...]
    score: float


@dataclass
class Pricing:
    """Prices assignments of one person: the cheapest legal order of their changes.

    ``limits`` and ``weights`` ``(Q, S, p)`` are those of the queries.
    """

    options: Options
    weights: Floats
    limits: tuple[Limits, ...]
    _memory: dict[Limits, Reach] = field(default_factory=dict)

    def cheapest(
        self, assignment: Indices, queries: Indices, ceilings: Floats
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Cost and moves in their cheapest order, for each of some queries.

        Infinite where no order is legal. Costs that are surely above ``ceilings``, one for each of
        these queries, may come back infinite.
        """
        options = self.options
        features = np.flatnonzero(assignment)
        moves = options.moves[features, assignment[features]]
        if (moves >= 0).all():
            # By the numbers of the moves, which decide between equal orders.
            order = np.argsort(moves)
            features, moves = features[order], moves[order]
            # Filled by compiled code: numba is slow to hand out new arrays.
            costs = np.empty(len(queries))
            orders = np.empty((len(queries), len(features)), np.int64)
            best_orders(
                options.choices,
                features.astype(np.int64),
                assignment.astype(np.int64),
                queries.astype(np.int64),
                costs,
                orders,
            )
            sequences = moves[orders].tolist()
            return [(cost, tuple(s)) for cost, s in zip(costs.tolist(), sequences, strict=True)]
        targets = [
            Target(
                int(options.columns[feature]),
                float(options.values[feature, assignment[feature]]),
                int(options.choices.changes[feature, assignment[feature]]),
            )
            for feature in features
        ]
        found = []
        for query, ceiling in zip(queries.tolist(), ceilings.tolist(), strict=True):
            limits = self.limits[query]
            reach = self._memory.setdefault(limits, Reach(options.problem, options.start, limits))
            found.append(best_sequence(reach, targets, self.weights[query], ceiling))
        return found


@numba.njit(cache=True)
def best_orders(
    choices: Choices,
    features: NDArray[np.int64],
    chosen: NDArray[np.int64],
    queries: NDArray[np.int64],
    costs: Floats,
    orders: NDArray[np.int64],
) -> None:
    """Fill in least mean floored costs ``(m,)`` and orders ``(m, L)`` of changing L ``features``.

    ``chosen`` ``(K,)`` is the option of every feature. Of equally cheap orders the one that comes
    first by place in ``features`` is taken. Costs are infinite where no order is legal.
    """
    length, subsets = len(features), 1 << len(features)
    to_go, choice = np.empty(subsets), np.empty(subsets, np.int64)
    for number in range(len(queries)):
        to_go[subsets - 1] = 0.0
        for done in range(subsets - 2, -1, -1):
            least, first = np.inf, 0
            for place in range(length):
                if done >> place & 1 or not _may_follow(choices, features, chosen, done, place):
                    continue
                cost = _step_cost(choices, features, chosen, done, place, queries[number])
                cost += to_go[done | 1 << place]
                if cost < least - EQUAL * min(abs(cost), abs(least)) or (
                    least == np.inf and cost < np.inf
                ):
                    least, first = cost, place
            to_go[done], choice[done] = least, first
        costs[number] = to_go[0]
        done = 0
        for step in range(length):
            orders[number, step] = choice[done]
            done |= 1 << choice[done]


@numba.njit(cache=True)
def _step_cost(
    choices: Choices,
    features: NDArray[np.int64],
    chosen: NDArray[np.int64],
    done: int,
    place: int,
    query: int,
) -> float:
    """Mean floored cost of one change after the subset ``done`` of the others."""
    feature = features[place]
    total = 0.0
    for row in range(query * choices.n_samples, (query + 1) * choices.n_samples):
        linear = choices.exact[feature, chosen[feature], row]
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            for other in range(len(features)):
                if done >> other & 1 and features[other] == parent:
                    linear += choices.shift[feature, slot, chosen[parent], row]
        total += max(choices.floor, linear)
    return total / choices.n_samples


@numba.njit(cache=True)
def _may_follow(
    choices: Choices,
    features: NDArray[np.int64],
    chosen: NDArray[np.int64],
    done: int,
    place: int,
) -> bool:
    """Whether a change has what it requires after the subset ``done`` of the others."""
    for number in range(len(choices.needy)):
        if choices.needy[number] != features[place]:
            continue
        if not choices.uses[number, chosen[features[place]]]:
            continue
        option = 0
        for other in range(len(features)):
            if done >> other & 1 and features[other] == choices.needed[number]:
                option = chosen[features[other]]
        if not choices.meets[number, option]:
            return False
    return True


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
