"""Which options does every feature of every person have?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.chains import chain_options
from pear.planning.exact.levels import Floats, Indices, Level
from pear.planning.exact.tables import Tables
from pear.problem import Limits, Problem


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
    scaled = problem.space.scaled(starts)
    levels: list[Level] = []
    for column in columns:
        if max_changes == 1:
            moves = np.flatnonzero(actions.feature_of == column)
            here = (results[:, moves], possible[:, moves], legal[:, moves])
            raw = _single(problem, column, starts, weights, moves, *here)
        else:
            longest = min(max_changes, max_length)
            raw = chain_options(problem, column, starts, weights, limits, longest)
        levels.append(_level(problem, columns, levels, column, scaled, weights, raw))
    steps = np.array([min(max_length, lim.max_steps or max_length) for lim in limits])
    return Tables(problem, starts, weights, tuple(limits), steps, tuple(levels), max_changes)


def _single(
    problem: Problem,
    column: int,
    starts: Floats,
    weights: Floats,
    moves: Indices,
    results: Floats,
    possible: NDArray[np.bool_],
    legal: NDArray[np.bool_],
) -> dict[str, Any]:
    # Values do not depend on a person's limits, so that states keep their codes.
    current = starts[:, [column]]
    values = np.concatenate([np.where(possible, results, current), current], axis=1)
    change = problem.costs.change(column, np.broadcast_to(current, results.shape), values[:, :-1])
    alone = np.zeros((*weights.shape[:2], values.shape[1]))
    alone[:, :, :-1] = weights[:, :, [column]] * change[:, None, :]
    scaled = problem.space.scale_column(column, values)
    links, numbers = np.ones(len(moves) + 1, np.intp), np.full(len(moves) + 1, -1)
    links[-1], numbers[:-1] = 0, moves
    return {
        "values": values,
        "links": np.broadcast_to(links, values.shape),
        "moves": np.broadcast_to(numbers, values.shape),
        "valid": np.concatenate([legal, np.ones((len(starts), 1), bool)], axis=1),
        "alone": alone,
        "low": np.minimum(scaled, scaled[:, -1:]),
        "high": np.maximum(scaled, scaled[:, -1:]),
    }


def _level(
    problem: Problem,
    columns: list[int],
    before: list[Level],
    column: int,
    scaled: Floats,
    weights: Floats,
    raw: dict[str, Any],
) -> Level:
    graph = problem.costs
    at_start = np.zeros(weights.shape[:2])
    parents = []
    for parent, position in graph.parents[column]:
        start = scaled[:, [parent]]
        weight = weights[:, :, position]
        at_start += weight * (graph.offset + start)
        if parent in columns:
            number = columns.index(parent)
            level = before[number]
            # A changed parent may come before or after: the smaller of both, whatever the sign.
            down = weight[:, :, None] * (level.low - start)[:, None, :]
            up = weight[:, :, None] * (level.high - start)[:, None, :]
            parents.append((number, np.minimum(0.0, np.minimum(down, up))))
    raw["alone"] += raw["links"][:, None, :] * at_start[:, :, None]
    return Level(column=column, parents=tuple(parents), **raw)


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
        open_[:, action] &= met | made.any(axis=1)
    return open_[:, actions.action_of]
