"""What each feature of each person can become, and what that costs at least.

A *lane* is one search: a start state, weights and limits. Lanes are worked on together in
arrays. A *level* is one actionable feature; levels are in an order in which parents of the
cost graph come before their children. Option 0 of a level leaves the feature as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.chains import chain_options
from pear.problem import Limits, Problem

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Level:
    """Options of one feature for N lanes under S weight samples each; V options and option 0.

    ``values`` ``(N, V + 1)`` in the person's units, ``value_ids`` ``(N, V + 1)`` equal for equal
    values, ``links`` ``(N, V + 1)`` changes used (0, 1, or more for chains), ``moves``
    ``(N, V + 1)`` (-1 where no single move), ``own`` ``(N, S, V + 1)`` the sum of w_k |Δ|,
    ``low`` and ``high`` ``(N, V + 1)`` the least and largest scaled value on the way,
    ``base`` ``(N, S)`` what the parents at the start add to one change.
    """

    column: int
    values: Floats
    value_ids: Indices
    links: Indices
    moves: Indices
    valid: NDArray[np.bool_]
    own: Floats
    low: Floats
    high: Floats
    base: Floats
    parents: tuple[tuple[int, Floats], ...]
    """(level of a parent, what each of its options takes off the base ``(N, S, V' + 1)``)."""
    groups: tuple[Group, ...] = ()
    """The options in order of their own cost, by number of changes."""

    @cached_property
    def mean_base(self) -> Floats:
        """``base`` averaged over samples, shape ``(N,)``."""
        return np.asarray(self.base.mean(axis=1))

    @cached_property
    def mean_parents(self) -> tuple[tuple[int, Floats], ...]:
        """``parents`` averaged over samples, ``(N, V' + 1)`` each."""
        return tuple((number, delta.mean(axis=1)) for number, delta in self.parents)


@dataclass(frozen=True)
class Group:
    """The options of a level that use the same number of changes, cheapest first.

    ``options`` ``(N, G)``, ``own`` ``(N, G)`` mean own cost over samples, infinite where not valid.
    """

    links: int
    options: Indices
    own: Floats
    sizes: Indices
    """How many options each lane has here, shape ``(N,)``."""


@dataclass(frozen=True)
class Tables:
    """All levels for N lanes.

    ``starts`` ``(N, d)``, ``weights`` ``(N, S, p)``, ``max_steps`` ``(N,)``.
    """

    problem: Problem
    starts: Floats
    weights: Floats
    limits: tuple[Limits, ...]
    max_steps: Indices
    levels: tuple[Level, ...]
    rest: Floats
    """The least that levels from i on can add, shape ``(K + 1, N)``; 0 with a positive floor."""
    max_changes: int = 1

    def states(self, lanes: Indices, options: Sequence[NDArray[np.int16]]) -> Floats:
        """States that n rows of options, ``(n,)`` for each level, lead to, shape ``(n, d)``."""
        states = self.starts[lanes].copy()
        for level, chosen in zip(self.levels, options, strict=True):
            states[:, level.column] = level.values[lanes, chosen]
        return states


def build_tables(
    problem: Problem,
    starts: Floats,
    weights: Floats,
    limits: Sequence[Limits],
    max_length: int,
    max_changes: int = 1,
) -> Tables:
    """Options of every level for every lane; ``weights`` is ``(N, S, p)``."""
    graph, actions = problem.costs, problem.actions
    columns = [column for column in graph.order if column in actions.actionable]
    results = actions.results(starts)
    possible = actions.changes_legally(starts)
    legal = possible.copy()
    for limit in set(limits):
        mine = np.array([one == limit for one in limits])
        legal[mine] &= actions.within_limits(results[mine], limit)
    legal &= _reachable_requirements(problem, starts, results, legal)
    levels: list[Level] = []
    for column in columns:
        if max_changes == 1:
            moves = np.flatnonzero(actions.feature_of == column)
            raw = _single(problem, column, starts, weights, moves, results, possible, legal)
        else:
            longest = min(max_changes, max_length)
            raw = chain_options(problem, column, starts, weights, limits, longest)
        levels.append(_level(problem, columns, levels, column, starts, weights, raw))
    steps = np.array([min(max_length, lim.max_steps or max_length) for lim in limits])
    rest = _rest(problem, levels, len(starts))
    return Tables(problem, starts, weights, tuple(limits), steps, tuple(levels), rest, max_changes)


def _single(
    problem: Problem,
    column: int,
    starts: Floats,
    weights: Floats,
    moves: Indices,
    results: Floats,
    possible: NDArray[np.bool_],
    legal: NDArray[np.bool_],
) -> dict[str, NDArray[np.generic]]:
    # Values do not depend on a person's limits, so that states keep their keys.
    results, possible, legal = results[:, moves], possible[:, moves], legal[:, moves]
    current = starts[:, [column]]
    values = np.concatenate([current, np.where(possible, results, current)], axis=1)
    change = problem.costs.change(column, np.broadcast_to(current, results.shape), values[:, 1:])
    own = np.zeros((*weights.shape[:2], values.shape[1]))
    own[:, :, 1:] = weights[:, :, [column]] * change[:, None, :]
    scaled = problem.space.scale_column(column, values)
    count = len(starts)
    return {
        "values": values,
        "links": np.broadcast_to(np.r_[0, np.ones(len(moves), int)], values.shape),
        "moves": np.broadcast_to(np.r_[-1, moves], values.shape),
        "valid": np.concatenate([np.ones((count, 1), bool), legal], axis=1),
        "own": own,
        "low": np.minimum(scaled, scaled[:, :1]),
        "high": np.maximum(scaled, scaled[:, :1]),
    }


def _level(
    problem: Problem,
    columns: list[int],
    before: list[Level],
    column: int,
    starts: Floats,
    weights: Floats,
    raw: dict[str, NDArray[np.generic]],
) -> Level:
    graph = problem.costs
    base = np.zeros(weights.shape[:2])
    parents = []
    for parent, position in graph.parents[column]:
        scaled = problem.space.scale_column(parent, starts[:, parent])[:, None]
        weight = weights[:, :, position]
        base += weight * (graph.offset + scaled)
        if parent in columns:
            number = columns.index(parent)
            level = before[number]
            # A changed parent may come before or after: the smaller of both, whatever the sign.
            down = weight[:, :, None] * (level.low - scaled)[:, None, :]
            up = weight[:, :, None] * (level.high - scaled)[:, None, :]
            parents.append((number, np.minimum(0.0, np.minimum(down, up))))
    values = raw["values"].astype(float)
    level = Level(
        column=column,
        values=values,
        value_ids=_value_ids(values),
        links=raw["links"].astype(np.intp),
        moves=raw["moves"].astype(np.intp),
        valid=raw["valid"].astype(bool),
        own=raw["own"].astype(float),
        low=raw["low"].astype(float),
        high=raw["high"].astype(float),
        base=base,
        parents=tuple(parents),
    )
    object.__setattr__(level, "groups", _groups(level))
    return level


def _value_ids(values: Floats) -> Indices:
    """Numbers that are equal for equal values of a lane, in order of the value; 0 is the start."""
    rounded = np.round(values, 9)
    order = np.argsort(rounded, axis=1, kind="stable")
    ordered = np.take_along_axis(rounded, order, axis=1)
    fresh = np.concatenate([np.ones((len(values), 1)), np.diff(ordered, axis=1) > 0], axis=1)
    ids = np.empty(values.shape, np.intp)
    np.put_along_axis(ids, order, np.cumsum(fresh, axis=1).astype(np.intp), axis=1)
    return np.where(ids == ids[:, :1], 0, ids)


def _groups(level: Level) -> tuple[Group, ...]:
    mean_own = np.where(level.valid, level.own.mean(axis=1), np.inf)
    groups = []
    for links in range(1, int(level.links.max(initial=0)) + 1):
        own = np.where(level.links == links, mean_own, np.inf)
        width = int(np.isfinite(own).sum(axis=1).max(initial=0))
        if width:
            order = np.argsort(own, axis=1, kind="stable")[:, :width]
            ordered = np.take_along_axis(own, order, axis=1)
            groups.append(Group(links, order, ordered, np.isfinite(ordered).sum(axis=1)))
    return tuple(groups)


def _rest(problem: Problem, levels: list[Level], count: int) -> Floats:
    rest = np.zeros((len(levels) + 1, count))
    floor = problem.costs.least
    if floor > 0:
        return rest
    for number in range(len(levels) - 1, -1, -1):
        level = levels[number]
        cheapest = level.base.copy()
        for _, delta in level.parents:
            cheapest += delta.min(axis=2)
        cost = np.maximum(
            level.links[:, None, :] * floor if np.isfinite(floor) else -np.inf,
            level.own + level.links[:, None, :] * cheapest[:, :, None],
        ).mean(axis=1)
        cost = np.where(level.valid & (level.links > 0), cost, 0.0)
        rest[number] = rest[number + 1] + np.minimum(0.0, cost.min(axis=1))
    return rest


def _reachable_requirements(
    problem: Problem, starts: Floats, results: Floats, legal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """False for moves whose requirement neither the start nor any legal result can meet."""
    actions = problem.actions
    open_ = np.ones((len(starts), len(actions.actions)), bool)
    for action, column, requirement in actions.requirement_tables:
        met = actions.requirement_met(column, requirement, starts[:, column])
        makers = np.flatnonzero(actions.feature_of == column)
        made = actions.requirement_met(column, requirement, results[:, makers]) & legal[:, makers]
        open_[:, action] &= met | made.any(axis=1) | bool(actions.adds[makers].any())
    return open_[:, actions.action_of]
