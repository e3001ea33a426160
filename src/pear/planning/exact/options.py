"""What can one person choose, what does each choice cost at least, and which are looked at next?

A *query* is one start, one set of weights (one row, or S samples whose mean floored cost counts)
and one set of limits. A search answers Q queries about the same person. Each of K features has up
to V *options*; option 0 leaves it as it is. An assignment gives every feature an option.

The bound of an assignment under one row of weights is the sum over changed features of::

    max(changes * floor, own + changes * sum over parents of the least that the parent adds)

where a changed parent adds the smaller of its start and its new value. It never exceeds the cost
of any order of the changes, and its numbers are lowered by more than rounding can raise them.

A :class:`Band` lists the assignments of one person in order of their bounds, band by band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.planning.exact.chains import Found, chains
from pear.planning.exact.kernel import at_the_root, at_the_top, below, favourable_below
from pear.problem import ActionSpace, Limits, Problem

if TYPE_CHECKING:
    from pear.decision.ceilings import Specialised

ROUNDING = 2.0**-44
"""More than the relative error of the additions that make a bound."""


class Choices(NamedTuple):
    """The options of one person in plain arrays, as compiled code takes them.

    R = Q * S rows of weights, those of query q from ``q * S`` on. ``own`` ``(K, V, R)`` is the
    least an option costs before the floor if no parent changes, infinite where the query does not
    allow it. ``changes`` ``(K, V)`` says how many changes it takes. ``parents`` ``(K, P)`` numbers
    the parents of a feature, -1 for none. ``relief`` ``(K, P, V, R)`` is what each option of a
    parent can take off one change (never positive); ``least_relief`` ``(K, P, R)`` is the best over
    all options. The ``lead`` arrays are one row in place of R that bounds each of them from below:
    the mean over the samples of one query, the least over several queries.

    A single change costs, before the floor, ``alone`` ``(K, V, R)``, infinite where it is not
    allowed, and ``beside`` ``(K, P, V, R)`` for each parent at its option: differences of huge
    numbers, as in the bounds, would blur what is left.

    ``ranked`` ``(K, V)`` lists the allowed options of a feature, ``n_ranked`` ``(K,)`` of them,
    cheapest first. ``rest`` ``(R,)`` and ``lead_rest`` are the least that all further changes
    can add together (0 with a positive floor). ``max_steps`` ``(Q,)``.

    Requirement i: options ``uses[i]`` ``(V,)`` of the feature ``needy[i]`` want the feature
    ``needed[i]`` at an option with ``meets[i]`` ``(V,)``.
    """

    own: Floats
    changes: NDArray[np.int64]
    parents: NDArray[np.int64]
    relief: Floats
    least_relief: Floats
    alone: Floats
    beside: Floats
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

    @cached_property
    def single_moves(self) -> bool:
        """Whether options are moves, not chains of them."""
        return bool((self.moves >= 0).any())

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

    def earlier(self, assignments: Indices, rank: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which of n assignments come before the one with these ranks, shape ``(n,)``."""
        ranks = self.ranks(assignments)
        if not rank:
            return np.zeros(len(ranks), bool)
        first = (ranks != rank).argmax(axis=1)
        return np.asarray(ranks[np.arange(len(ranks)), first] < np.array(rank)[first])

    @cached_property
    def single_costs(self) -> list[Floats]:
        """The sorted bounds of all single changes, for each query."""
        choices = self.choices
        cost = np.maximum(choices.own, choices.floor)
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


@dataclass(frozen=True, eq=False)
class Layout:
    """What the options of all people with one problem have in common.

    ``columns`` ``(K,)`` are the features that can change, parents first, ``moves`` ``(K, V)`` the
    moves of each in order from option 1 on, -1 where there is none, ``widths`` ``(K,)`` how many
    options there are. ``parents`` ``(K, P)`` numbers the parents of a feature that can change too.

    Of the E edges into these features, ``into`` ``(K, E)`` is 1 where an edge leads to a feature,
    ``sources`` ``(E,)`` their parents' columns and ``weights`` ``(E,)`` the places of their
    weights. ``inner`` numbers those whose parent can change; the child and the slot of each in
    ``parents`` are ``slots`` ``(2, E')``.
    """

    problem: Problem
    columns: Indices
    moves: Indices
    widths: Indices
    categorical: NDArray[np.bool_]
    parents: NDArray[np.int64]
    into: Floats
    sources: Indices
    weights: Indices
    inner: Indices
    slots: Indices

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        """The layout of a problem."""
        graph, actions = problem.costs, problem.actions
        columns = [c for c in graph.order if c in actions.actionable]
        moves_of = [np.flatnonzero(actions.feature_of == column) for column in columns]
        widths = np.array([len(moves) + 1 for moves in moves_of], np.intp)
        moves = np.full((len(columns), int(widths.max(initial=1))), -1)
        for mine, row in zip(moves_of, moves, strict=True):
            row[1 : len(mine) + 1] = mine
        edges = [(k, *edge) for k, column in enumerate(columns) for edge in graph.parents[column]]
        inner = [number for number, edge in enumerate(edges) if edge[1] in columns]
        parents_of = [
            [columns.index(edges[e][1]) for e in inner if edges[e][0] == k]
            for k in range(len(columns))
        ]
        parents = np.full((len(columns), max(map(len, parents_of), default=0)), -1, np.int64)
        for theirs, row in zip(parents_of, parents, strict=True):
            row[: len(theirs)] = theirs
        children = np.array([child for child, _, _ in edges], np.intp)
        return cls(
            problem,
            np.array(columns, np.intp),
            moves,
            widths,
            np.array([problem.space.features[column].is_categorical for column in columns], bool),
            parents,
            (children == np.arange(len(columns))[:, None]).astype(float),
            np.array([parent for _, parent, _ in edges], np.intp),
            np.array([weight for _, _, weight in edges], np.intp),
            np.array(inner, np.intp),
            np.argwhere(parents >= 0).T,
        )


def options_of(
    layout: Layout,
    start: Floats,
    weights: Floats,
    limits: Sequence[Limits],
    max_length: int,
    max_changes: int = 1,
) -> Options:
    """The options of one person ``(d,)`` for Q queries with weights ``(Q, S, p)``."""
    if max_changes == 1:
        found = _single_changes(layout, start, weights, limits)
    else:
        found = chains(
            layout.problem, start, layout.columns, weights, limits, min(max_changes, max_length)
        )
    choices = _choices(layout, start, weights, limits, max_length, found)
    return Options(
        layout.problem, start, layout.columns, found.values, found.moves, found.widths, choices
    )


def _legal_moves(
    actions: ActionSpace,
    start: Floats,
    results: Floats,
    possible: NDArray[np.bool_],
    limits: Sequence[Limits],
) -> NDArray[np.bool_]:
    """Which moves each query leaves, shape ``(Q, m)``, of those ``possible`` ``(m,)`` for all."""
    kinds = {limit: possible & actions.within_limits(results, limit) for limit in set(limits)}
    for legal in kinds.values() if actions.requirement_tables else ():
        for action, column, requirement in actions.requirement_tables:
            makers = np.flatnonzero((actions.feature_of == column) & legal)
            reached = np.append(results[makers], start[column])
            if not actions.requirement_met(column, requirement, reached).any():
                legal[actions.action_of == action] = False
    return np.array([kinds[limit] for limit in limits])


def _single_changes(
    layout: Layout, start: Floats, weights: Floats, limits: Sequence[Limits]
) -> Found:
    # Options are the moves of a feature in order, so that an assignment means the same whatever a
    # person's limits are.
    problem, columns, moves = layout.problem, layout.columns, layout.moves
    actions = problem.actions
    results = actions.results(start[None])[0]
    possible = actions.changes_legally(start[None])[0]
    legal = _legal_moves(actions, start, results, possible, limits)
    reached = np.where(possible, results, start[actions.feature_of])
    some = moves >= 0
    values = np.where(some, reached[moves], start[columns][:, None])
    valid = some[:, :, None] & legal.T[moves]
    valid[:, 0] = True
    scaled = np.empty(moves.shape)
    for k, column in enumerate(columns.tolist()):
        scaled[k] = problem.space.scale_column(column, values[k])
    here = scaled[:, :1]
    size = problem.costs.counted(np.abs(scaled - here))
    size[layout.categorical] = 1.0
    # With one change the value itself is all there is on the way; ``high`` then tells the sign.
    own = weights.reshape(-1, weights.shape[2]).T[columns]
    return Found(
        values,
        moves,
        some.astype(np.intp),
        layout.widths,
        valid,
        size[:, :, None] * own[:, None],
        np.minimum(scaled, here),
        np.maximum(scaled, here),
    )


def _choices(
    layout: Layout,
    start: Floats,
    weights: Floats,
    limits: Sequence[Limits],
    max_length: int,
    found: Found,
) -> Choices:
    problem, graph, columns = layout.problem, layout.problem.costs, layout.columns
    queries, samples, _ = weights.shape
    rows = weights.reshape(queries * samples, -1).T
    v, n_rows = found.values.shape[1], rows.shape[1]
    # What parents add as they are at the start.
    scaled = {column: found.low[number, 0] for number, column in enumerate(columns.tolist())}
    for column in set(layout.sources.tolist()) - scaled.keys():
        scaled[column] = problem.space.scale_column(column, start[column])
    sources = np.array([scaled[column] for column in layout.sources.tolist()])
    terms = rows[layout.weights] * (graph.offset + sources)[:, None]
    fixed, magnitude = layout.into @ terms, layout.into @ np.abs(terms)
    times = found.changes[:, :, None]
    own = found.size + times * fixed[:, None]
    own -= ROUNDING * (np.abs(found.size) + times * magnitude[:, None])
    terms[layout.inner] = 0.0
    alone = found.size + (layout.into @ terms)[:, None]
    allowed = np.repeat(found.valid, samples, axis=2)
    own, alone = np.where(allowed, own, np.inf), np.where(allowed, alone, np.inf)
    own[:, 0] = 0.0
    # What parents take off once they have changed, and what they cost at each of their options.
    child, slot = layout.slots
    parent, weight = layout.parents[child, slot], rows[layout.weights[layout.inner]][:, None]
    down = (found.low - found.low[:, :1])[parent][:, :, None] * weight
    up = (found.high - found.low[:, :1])[parent][:, :, None] * weight
    beside, relief = np.zeros((2, *layout.parents.shape, v, n_rows))
    least_relief = np.zeros((*layout.parents.shape, n_rows))
    taken = np.minimum(0.0, np.minimum(down, up)) * (1 + ROUNDING)
    # Of a single change, one of the two ends on the way is where it leads, the other the start.
    reached = np.where(found.low < found.low[:, :1], found.low, found.high)
    beside[child, slot] = (graph.offset + reached)[parent][:, :, None] * weight
    relief[child, slot] = taken
    least_relief[child, slot] = np.where(allowed[parent], taken, 0.0).min(axis=1, initial=0.0)

    def lead(each: Floats) -> Floats:
        """One row of weights that bounds all of them from below."""
        if n_rows == 1:
            return each[..., 0]
        return np.asarray(each.mean(axis=-1) if queries == 1 else each.min(axis=-1))

    lead_own = lead(own)
    order = np.argsort(np.where(np.arange(v) > 0, lead_own, np.inf), axis=1, kind="stable")
    n_ranked = np.isfinite(lead_own[:, 1:]).sum(axis=1).astype(np.int64)
    rest, lead_rest = np.zeros(n_rows), 0.0
    if not graph.least > 0:
        least = own + times * least_relief.sum(axis=1)[:, None]
        if np.isfinite(graph.least):
            least = np.maximum(least, times * graph.least)
        least[:, 0] = 0.0
        rest = np.minimum(least, 0.0).min(axis=1).sum(axis=0) * (1 + ROUNDING)
        lead_rest = float(lead(rest))
    steps = [min(max_length, limit.max_steps or max_length) for limit in limits]
    return Choices(
        own=own,
        changes=found.changes.astype(np.int64),
        parents=layout.parents,
        relief=relief,
        least_relief=least_relief,
        alone=alone,
        beside=beside,
        lead_own=lead_own,
        lead_relief=lead(relief),
        ranked=order.astype(np.int64),
        n_ranked=n_ranked,
        rest=rest,
        lead_rest=lead_rest,
        max_steps=np.array(steps, np.int64),
        n_samples=samples,
        floor=float(graph.least),
        single=bool((found.changes <= 1).all()),
        **_requirements(layout, found)._asdict(),
    )


class Requirements(NamedTuple):
    """What options require of other features that can change; see :class:`Choices`."""

    needy: NDArray[np.int64]
    needed: NDArray[np.int64]
    uses: NDArray[np.bool_]
    meets: NDArray[np.bool_]


def _requirements(layout: Layout, found: Found) -> Requirements:
    problem, actions = layout.problem, layout.problem.actions
    place = {column: number for number, column in enumerate(layout.columns.tolist())}
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


# Which assignments are looked at next? Bands of rising cost, wider as the work allows

BUFFER, FAVOURABLE = 65_536, 16
"""Assignments listed before they are scored; fewer where only what may be favourable is listed."""
FEW_NODES = 1_000
"""Bands with less than this hardly cost anything."""
MOST_NARROWED = 4
"""How often a band is narrowed before it is scored in the order it is listed."""
GROWTH = 1.6
"""A new band aims at this many times the nodes of the last one."""


class Band:
    """A band of costs, and what is listed of it; the next one goes on where this one ends.

    ``high`` ``(Q,)`` is its end: ``level`` steps of each query's own size, or infinity where that
    is beyond everything.
    """

    def __init__(self, options: Options) -> None:
        singles = options.single_costs
        quarters = [float(mine[len(mine) // 4]) if len(mine) else 0.0 for mine in singles]
        spans = [float(mine[-1] - mine[0]) / 8 if len(mine) else 0.0 for mine in singles]
        self._options = options
        self._base = np.array(quarters)
        self._unit = np.maximum(np.maximum(spans, np.abs(quarters) * 0.125), 1e-300)
        self._proven, self._last_nodes = -np.inf, 0
        self.level, self._step = 0.125, 1.0
        self.begun = False
        self._narrowed = 0
        self._assignments = np.empty((BUFFER, len(options.columns)), np.int64)
        self._bounds = np.empty(BUFFER)
        self.special: Specialised | None = None

    def begin(self, special: Specialised | None) -> None:
        """From the root."""
        with np.errstate(over="ignore"):
            high = self._base + self.level * self._unit
        self.high = np.where(high >= self._options.dearest, np.inf, high)
        self.special = special
        self.cursor = at_the_root(self._options)
        if special is not None:
            self.nodes = at_the_top(self._options)
        self.begun = self._whole = True
        self._looked = 0

    def go_on(
        self, low: Floats, high: Floats, most_nodes: int
    ) -> tuple[Indices, Floats, int, bool]:
        """Look at some more nodes.

        Returns the assignments listed, smallest bound first, with their bounds, how many nodes were
        looked at, and whether that was the end.
        """
        if self.special is not None:
            found, looked, finished = favourable_below(
                self._options.choices, self.special, self.nodes, low, high, most_nodes,
                self._assignments[:FAVOURABLE], self._bounds[:FAVOURABLE],
            )  # fmt: skip
        else:
            found, looked, finished = below(
                self._options.choices, self.cursor, low, high, most_nodes,
                self._assignments, self._bounds,
            )  # fmt: skip
        self._looked += looked
        # A node comes before those that change more: of equal bounds the one with fewer steps.
        order = np.argsort(self._bounds[:found], kind="stable")
        return self._assignments[order], self._bounds[order], looked, finished

    def cut(self, query: int) -> bool:
        """Whether anything was left out of a finished band because of its cost."""
        if self.special is not None:
            return bool(np.isfinite(self.high[query]))
        return bool(self.cursor.cut[query])

    def narrow(self) -> bool:
        """Begin again with a quarter of the band, where it holds too much and nothing is scored."""
        if not self._whole or self._narrowed >= MOST_NARROWED or self.special is not None:
            self._whole = False
            return False
        self._narrowed += 1
        proven = self._proven if np.isfinite(self._proven) else self.level - 8 * self._step
        self._step = (self.level - proven) / 4
        self.level = proven + self._step
        self.begun = False
        return True

    def advance(self) -> None:
        """To the next band: wider by what the work of the last ones suggests."""
        nodes, last = max(self._looked, 1), self._last_nodes
        if nodes > FEW_NODES and nodes > last > 0:
            rate = np.log(nodes / last) / (self.level - self._proven)
            self._step = float(np.clip(np.log(GROWTH) / rate, self._step / 4, self._step * 4))
        else:
            self._step *= 2
        self._proven, self._last_nodes = self.level, nodes
        self.level += self._step
        self.begun, self._narrowed = False, 0
