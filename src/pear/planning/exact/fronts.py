"""Which lanes are alike enough to be enumerated together?

Posterior samples of one person's weights often lie close together. Lanes of one group with
the same limits and similar costs share a *front*: a lane of its own whose costs are the least
of its members', so that its bounds hold for each of them. What it finds favourable is priced
for every member exactly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pear.planning.exact.levels import Floats, Indices, Level
from pear.planning.exact.tables import Tables

ALIKE = 0.1
"""Lanes whose costs of single changes differ by less than this share, on average, are alike."""


def find_fronts(tables: Tables, groups: Indices) -> Indices:
    """The front of each lane, shape ``(N,)``; fronts are numbered from 0 in order of lanes."""
    count, samples = tables.weights.shape[:2]
    if samples > 1 or len(np.unique(groups)) == count:
        return np.arange(count)
    costs = _profile(tables)
    size = np.abs(costs).mean(axis=1) + 1e-12
    front = np.full(count, -1)
    leaders: list[int] = []
    for lane in range(count):
        if front[lane] >= 0:
            continue
        apart = np.abs(costs - costs[lane]).mean(axis=1) / size[lane]
        joins = (front < 0) & (groups == groups[lane]) & (apart < ALIKE)
        joins &= np.array([limits == tables.limits[lane] for limits in tables.limits])
        front[joins] = len(leaders)
        leaders.append(lane)
    return front


def front_tables(tables: Tables, front: Indices) -> Tables:
    """Tables with one lane for each front."""
    count = int(front.max()) + 1
    if count == len(front):
        return tables
    order = np.argsort(front, kind="stable")
    begins = np.searchsorted(front[order], np.arange(count))
    firsts = order[begins]
    return replace(
        tables,
        starts=tables.starts[firsts],
        weights=tables.weights[firsts],
        limits=tuple(tables.limits[i] for i in firsts),
        max_steps=tables.max_steps[firsts],
        levels=tuple(_least(level, order, begins) for level in tables.levels),
    )


def _profile(tables: Tables) -> Floats:
    """Costs of the single changes and what parents can take off them, shape ``(N, M)``."""
    floor = tables.problem.costs.least
    parts = []
    for level in tables.levels:
        cost = np.where(level.valid, np.maximum(level.alone[:, 0], floor), 0.0)
        parts.append(cost[:, :-1])
        parts.extend(delta[:, 0] for _, delta in level.parents)
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(tables.starts), 1))


def _least(level: Level, order: Indices, begins: Indices) -> Level:
    firsts = order[begins]

    def least(costs: Floats) -> Floats:
        return np.asarray(np.minimum.reduceat(costs[order], begins, axis=0))

    return Level(
        column=level.column,
        values=level.values[firsts],
        links=level.links[firsts],
        moves=level.moves[firsts],
        valid=level.valid[firsts],
        alone=least(level.alone),
        low=level.low[firsts],
        high=level.high[firsts],
        parents=tuple((number, least(delta)) for number, delta in level.parents),
    )
