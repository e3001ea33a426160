"""What can one person choose, and what does each choice cost at least?

A *query* is one start, one set of weights (one row, or S samples whose mean floored cost counts)
and one set of limits. A search answers Q queries about the same person. Each of K features has up
to V *options*; option 0 leaves it as it is. An assignment gives every feature an option.

The bound of an assignment under one row of weights is the sum over changed features of::

    max(changes * floor, own + changes * sum over parents of the least that the parent adds)

where a changed parent adds the smaller of its start and its new value. It never exceeds the cost
of any order of the changes, and its numbers are lowered by more than rounding can raise them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.problem import Limits, Problem

ROUNDING = 2.0**-44
"""More than the relative error of the additions that make a bound."""


class Choices(NamedTuple):
    """The options of one person in plain arrays, as compiled code takes them.

    R = Q * S rows of weights, those of query q from ``q * S`` on. ``own`` ``(K, V, R)`` is the
    least an option costs before the floor if no parent changes, infinite where the query does not
    allow it; ``exact`` the same without the allowance for rounding. ``changes`` ``(K, V)`` says how
    many changes it takes. ``parents`` ``(K, P)`` numbers the parents of a feature, -1 for none.
    ``relief`` ``(K, P, V, R)`` is what each option of a parent can take off one change (never
    positive) and ``shift`` what it adds once it is made; ``least_relief`` ``(K, P, R)`` is the best
    over all options. The ``lead`` arrays are one row in place of R that bounds each of them from
    below: the mean over the samples of one query, the least over several queries.

    ``ranked`` ``(K, V)`` lists the allowed options of a feature, ``n_ranked`` ``(K,)`` of them,
    cheapest first. ``rest`` ``(R,)`` and ``lead_rest`` are the least that all further changes
    can add together (0 with a positive floor). ``max_steps`` ``(Q,)``.

    Requirement i: options ``uses[i]`` ``(V,)`` of the feature ``needy[i]`` want the feature
    ``needed[i]`` at an option with ``meets[i]`` ``(V,)``.
    """

    own: Floats
    exact: Floats
    changes: NDArray[np.int64]
    parents: NDArray[np.int64]
    relief: Floats
    shift: Floats
    least_relief: Floats
    lead_own: Floats
    lead_relief: Floats
    ranked: NDArray[np.int64]
    n_ranked: NDArray[np.int64]
    rest: Floats
    lead_rest: float
    max_steps: NDArray[np.int64]
    n_samples: int
    floor: float
    single: bool
    needy: NDArray[np.int64]
    needed: NDArray[np.int64]
    uses: NDArray[np.bool_]
    meets: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Options:
    """One person's options: ``values`` and ``moves`` ``(K, V)``, and the arrays for the search.

    ``columns`` ``(K,)`` are the features' columns in the state ``start`` ``(d,)``. A move is -1
    where an option is not a single move. ``widths`` ``(K,)`` counts the options of each feature.
    """

    problem: Problem
    start: Floats
    columns: Indices
    values: Floats
    moves: Indices
    widths: Indices
    choices: Choices

    @property
    def n_queries(self) -> int:
        return len(self.choices.max_steps)

    def states(self, assignments: Indices) -> Floats:
        """The states that assignments ``(n, K)`` lead to, shape ``(n, d)``."""
        states = np.repeat(self.start[None], len(assignments), axis=0)
        if len(self.columns):
            states[:, self.columns] = self.values[np.arange(len(self.columns)), assignments]
        return states

    def steps(self, assignments: Indices) -> Indices:
        """How many changes assignments ``(n, K)`` take, shape ``(n,)``."""
        if self.choices.single:
            return np.asarray((assignments != 0).sum(axis=1), np.intp)
        changes = self.choices.changes[np.arange(len(self.columns)), assignments]
        return np.asarray(changes.sum(axis=1), np.intp)

    @cached_property
    def by_action(self) -> Indices:
        """The features by the place of their first action: ties are decided in this order."""
        columns = self.problem.actions.feature_of.tolist()
        return np.argsort([columns.index(column) for column in self.columns.tolist()])

    def ranks(self, assignments: Indices) -> Indices:
        """Rows ``(n, K)`` that compare as the assignments do: earlier moves first."""
        ordered = np.asarray(assignments)[:, self.by_action].astype(np.intp)
        return np.where(ordered == 0, self.values.shape[1], ordered)

    @cached_property
    def single_costs(self) -> list[Floats]:
        """The sorted costs of all single changes, for each query."""
        choices = self.choices
        cost = np.maximum(choices.exact, choices.floor)
        cost = cost.reshape(*cost.shape[:2], self.n_queries, -1).mean(axis=3)
        cost = np.where((choices.changes == 1)[:, :, None], cost, np.inf)
        return [np.sort(mine[np.isfinite(mine)]) for mine in np.moveaxis(cost, 2, 0)]

    @cached_property
    def dearest(self) -> Floats:
        """No bound of any assignment is above this, ``(Q,)``."""
        choices = self.choices
        cost = np.maximum(choices.own, choices.changes[:, :, None] * max(choices.floor, -1e300))
        worst = np.where(np.isfinite(cost), cost, 0.0).max(axis=1)
        worst = worst.reshape(len(self.columns), self.n_queries, -1).max(axis=2)
        return np.asarray(np.maximum(worst, 0.0).sum(axis=0))


def options_of(
    problem: Problem,
    start: Floats,
    weights: Floats,
    limits: Sequence[Limits],
    max_length: int,
    max_changes: int = 1,
) -> Options:
    """The options of one person ``(d,)`` for Q queries with weights ``(Q, S, p)``."""
    graph, actions = problem.costs, problem.actions
    columns = np.array([c for c in graph.order if c in actions.actionable], np.intp)
    legal = _legal_moves(problem, start, limits)
    if max_changes == 1:
        found = _single_changes(problem, start, columns, weights, legal)
    else:
        found = _chains(problem, start, columns, weights, limits, min(max_changes, max_length))
    return Options(
        problem,
        start,
        columns,
        found.values,
        found.moves,
        found.widths,
        _choices(problem, start, columns, weights, limits, max_length, found),
    )


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


def _legal_moves(problem: Problem, start: Floats, limits: Sequence[Limits]) -> NDArray[np.bool_]:
    """Which moves each query leaves, shape ``(Q, m)``."""
    actions = problem.actions
    results = actions.results(start[None])
    possible = actions.changes_legally(start[None])[0]
    kinds = {limit: possible & actions.within_limits(results, limit)[0] for limit in set(limits)}
    for legal in kinds.values() if actions.requirement_tables else ():
        for action, column, requirement in actions.requirement_tables:
            makers = np.flatnonzero((actions.feature_of == column) & legal)
            reached = np.append(results[0, makers], start[column])
            if not actions.requirement_met(column, requirement, reached).any():
                legal[actions.action_of == action] = False
    return np.array([kinds[limit] for limit in limits])


def _single_changes(
    problem: Problem,
    start: Floats,
    columns: Indices,
    weights: Floats,
    legal: NDArray[np.bool_],
) -> Found:
    # Options are the moves of a feature in order, so that an assignment means the same whatever a
    # person's limits are.
    actions, graph, space = problem.actions, problem.costs, problem.space
    moves_of = [np.flatnonzero(actions.feature_of == column) for column in columns]
    widths = np.array([len(moves) + 1 for moves in moves_of], np.intp)
    shape = (len(columns), int(widths.max(initial=1)))
    values, moves = np.repeat(start[columns][:, None], shape[1], axis=1), np.full(shape, -1)
    size, scaled = np.zeros((*shape, 1)), np.zeros(shape)
    valid = np.zeros((*shape, len(legal)), bool)
    valid[:, 0] = True
    results = actions.results(start[None])[0]
    possible = actions.changes_legally(start[None])[0]
    for k, (column, mine) in enumerate(zip(columns.tolist(), moves_of, strict=True)):
        end = len(mine) + 1
        reached = np.where(possible[mine], results[mine], start[column])
        values[k, 1:end], moves[k, 1:end] = reached, mine
        size[k, 1:end, 0] = graph.change(column, start[column], reached)
        scaled[k] = space.scale_column(column, values[k])
        valid[k, 1:end] = legal[:, mine].T
    here = scaled[:, :1]
    changes = np.minimum(np.arange(shape[1]), 1) * np.ones(shape, np.intp)
    low, high = np.minimum(scaled, here), np.maximum(scaled, here)
    # With one change the value itself is all there is on the way; ``high`` then tells the sign.
    size = size * weights.reshape(-1, weights.shape[2]).T[columns][:, None]
    return Found(values, moves, changes.astype(np.intp), widths, valid, size, low, high)


def _chains(
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


def _choices(
    problem: Problem,
    start: Floats,
    columns: Indices,
    weights: Floats,
    limits: Sequence[Limits],
    max_length: int,
    found: Found,
) -> Choices:
    graph, space = problem.costs, problem.space
    queries, samples, _ = weights.shape
    rows = weights.reshape(queries * samples, -1).T
    k, v = found.values.shape
    place = {column: number for number, column in enumerate(columns.tolist())}
    scaled = space.scaled(start[None])[0]
    fixed, magnitude = np.zeros((k, len(rows.T))), np.zeros((k, len(rows.T)))
    parents_of: list[list[tuple[int, int]]] = []
    for number, column in enumerate(columns.tolist()):
        parents_of.append([])
        for parent, position in graph.parents[column]:
            term = rows[position] * (graph.offset + scaled[parent])
            fixed[number] += term
            magnitude[number] += np.abs(term)
            if parent in place:
                parents_of[-1].append((place[parent], position))
    width = max([len(parents) for parents in parents_of], default=0)
    parents = np.full((k, width), -1, np.int64)
    shift, relief = np.zeros((2, k, width, v, len(rows.T)))
    for number, theirs in enumerate(parents_of):
        for slot, (parent, position) in enumerate(theirs):
            at, weight = found.low[parent, 0], rows[position]
            down = (found.low[parent] - at)[:, None] * weight
            up = (found.high[parent] - at)[:, None] * weight
            parents[number, slot] = parent
            # Of a single change one of the two is 0.
            shift[number, slot] = down + up
            relief[number, slot] = np.minimum(0.0, np.minimum(down, up)) * (1 + ROUNDING)
    times = found.changes[:, :, None]
    exact = found.size + times * fixed[:, None]
    own = exact - ROUNDING * (np.abs(found.size) + times * magnitude[:, None])
    allowed = np.repeat(found.valid, samples, axis=2)
    own, exact = np.where(allowed, own, np.inf), np.where(allowed, exact, np.inf)
    own[:, 0] = exact[:, 0] = 0.0
    reachable = np.repeat(found.valid[:, None], samples, axis=3)
    open_relief = np.zeros_like(relief)
    for number, theirs in enumerate(parents_of):
        for slot, (parent, _) in enumerate(theirs):
            open_relief[number, slot] = np.where(reachable[parent, 0], relief[number, slot], 0.0)
    least_relief = open_relief.min(axis=2, initial=0.0)
    over = np.mean if queries == 1 else np.min
    lead_own = over(own, axis=2)
    lead_relief = over(relief, axis=3)
    order = np.argsort(np.where(np.arange(v) > 0, lead_own, np.inf), axis=1, kind="stable")
    n_ranked = np.isfinite(lead_own[:, 1:]).sum(axis=1).astype(np.int64)
    rest, lead_rest = np.zeros(len(rows.T)), 0.0
    if not graph.least > 0:
        least = own + times * least_relief.sum(axis=1)[:, None]
        if np.isfinite(graph.least):
            least = np.maximum(least, times * graph.least)
        least[:, 0] = 0.0
        rest = np.minimum(least, 0.0).min(axis=1).sum(axis=0) * (1 + ROUNDING)
        lead_rest = float(over(rest))
    steps = [min(max_length, limit.max_steps or max_length) for limit in limits]
    return Choices(
        own=own,
        exact=exact,
        changes=found.changes.astype(np.int64),
        parents=parents,
        relief=relief,
        shift=shift,
        least_relief=least_relief,
        lead_own=lead_own,
        lead_relief=lead_relief,
        ranked=order.astype(np.int64),
        n_ranked=n_ranked,
        rest=rest,
        lead_rest=lead_rest,
        max_steps=np.array(steps, np.int64),
        n_samples=samples,
        floor=float(graph.least),
        single=bool((found.changes <= 1).all()),
        **_requirements(problem, place, found)._asdict(),
    )


class Requirements(NamedTuple):
    """What options require of other features that can change; see :class:`Choices`."""

    needy: NDArray[np.int64]
    needed: NDArray[np.int64]
    uses: NDArray[np.bool_]
    meets: NDArray[np.bool_]


def _requirements(problem: Problem, place: dict[int, int], found: Found) -> Requirements:
    actions = problem.actions
    needy, needed, uses, meets = [], [], [], []
    for action, column, requirement in actions.requirement_tables:
        child = place[problem.space.index(actions.actions[action].feature)]
        using = (found.moves[child] >= 0) & (actions.action_of[found.moves[child]] == action)
        if column in place and using.any():
            needy.append(child)
            needed.append(place[column])
            uses.append(using)
            meets.append(actions.requirement_met(column, requirement, found.values[place[column]]))
    width = found.values.shape[1]
    return Requirements(
        np.array(needy, np.int64),
        np.array(needed, np.int64),
        np.array(uses, bool).reshape(len(needy), width),
        np.array(meets, bool).reshape(len(needy), width),
    )
