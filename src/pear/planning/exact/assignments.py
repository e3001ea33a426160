"""All assignments of values to features whose bound is below a threshold.

The bound of an assignment is the sum over changed features of
``max(floor, own cost + what the parents add)`` where a changed parent adds the smaller of
its start and its new value. It never exceeds the cost of any order of the changes.

Partial assignments are extended level by level. Options are sorted by own cost, so the
work is proportional to what survives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.options import Floats, Group, Indices, Level, Tables

DECIMALS = 7
"""Bounds are rounded to this many decimals for sorting, so that equal costs stand together."""


@dataclass(frozen=True)
class Rows:
    """n assignments: ``lanes``, ``bounds`` and ``steps`` ``(n,)``; ``options`` one ``(n,)`` a level."""

    lanes: Indices
    options: tuple[NDArray[np.int16], ...]
    bounds: Floats
    steps: NDArray[np.int16]

    def take(self, where: Indices) -> Rows:
        """Some of the rows, by position."""
        return Rows(
            self.lanes.take(where),
            tuple(column.take(where) for column in self.options),
            self.bounds.take(where),
            self.steps.take(where),
        )

    def __len__(self) -> int:
        return len(self.lanes)


@dataclass(frozen=True)
class Shell:
    """Assignments below a threshold; per lane whether it cut some off, or the cap dropped it."""

    rows: Rows
    cut: NDArray[np.bool_]
    dropped: NDArray[np.bool_]


def below(tables: Tables, lanes: Indices, thresholds: Floats, caps: Indices) -> Shell:
    """Assignments of ``lanes`` with a bound below their threshold.

    A lane with more partial assignments than its cap at some level is given up (``dropped``).
    ``thresholds`` and ``caps`` are over all lanes of the tables.
    """
    count = len(tables.starts)
    cut = np.zeros(count, bool)
    dropped = np.zeros(count, bool)
    rows = Rows(
        lanes=np.asarray(lanes, np.intp),
        options=(),
        bounds=np.zeros(len(lanes)),
        steps=np.zeros(len(lanes), np.int16),
    )
    for number, level in enumerate(tables.levels):
        rows = _extend(tables, number, level, rows, thresholds, cut)
        over = np.bincount(rows.lanes, minlength=count) > caps
        if over.any():
            dropped |= over
            rows = rows.take(np.flatnonzero(~over[rows.lanes]))
    rows = rows.take(np.flatnonzero(rows.steps))
    rounded = Rows(rows.lanes, rows.options, np.round(rows.bounds, DECIMALS), rows.steps)
    return Shell(rounded, cut, dropped)


def _extend(
    tables: Tables,
    number: int,
    level: Level,
    rows: Rows,
    thresholds: Floats,
    cut: NDArray[np.bool_],
) -> Rows:
    floor = tables.problem.costs.least
    room = (thresholds - tables.rest[number + 1])[rows.lanes] - rows.bounds
    mean_add = level.mean_base[rows.lanes]
    for parent, mean_delta in level.mean_parents:
        mean_add = mean_add + mean_delta[rows.lanes, rows.options[parent]]
    kept = rows
    if floor <= 0 and (room <= 0).any():
        cut[rows.lanes[room <= 0]] = True
        kept = rows.take(np.flatnonzero(room > 0))
    parts = [
        Rows(kept.lanes, (*kept.options, np.zeros(len(kept), np.int16)), kept.bounds, kept.steps)
    ]
    full = tables.max_steps[rows.lanes]
    for group in level.groups:
        limit = room - group.links * mean_add
        impossible = rows.steps + group.links > full
        limit[impossible] = -np.inf
        if np.isfinite(floor):
            limit[group.links * floor >= room] = -np.inf
        counts = count_below(group.own, rows.lanes, limit)
        cut[rows.lanes[(counts < group.sizes[rows.lanes]) & ~impossible]] = True
        parts.append(_children(level, group, rows, counts, room, mean_add, floor, cut))
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.lanes for part in parts]),
        tuple(np.concatenate(column) for column in zip(*(p.options for p in parts), strict=True)),
        np.concatenate([part.bounds for part in parts]),
        np.concatenate([part.steps for part in parts]),
    )


def _children(
    level: Level,
    group: Group,
    rows: Rows,
    counts: Indices,
    room: Floats,
    mean_add: Floats,
    floor: float,
    cut: NDArray[np.bool_],
) -> Rows:
    """The rows extended by their cheapest ``counts`` options of a group."""
    parent = np.repeat(np.arange(len(rows)), counts)
    place = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    extended = rows.take(parent)
    lanes = extended.lanes
    options = group.options[lanes, place]
    if level.own.shape[1] == 1:
        cost = group.own[lanes, place] + group.links * mean_add[parent]
        inside = None
    else:
        linear = level.own[lanes, :, options] + group.links * _parents_add(level, extended)
        if np.isfinite(floor):
            np.maximum(linear, group.links * floor, out=linear)
        cost = linear.mean(axis=1)
        inside = cost < room[parent]
    cost = np.maximum(cost, group.links * floor)
    children = Rows(
        lanes,
        (*extended.options, options.astype(np.int16)),
        extended.bounds + cost,
        (extended.steps + group.links).astype(np.int16),
    )
    if inside is None or inside.all():
        return children
    cut[lanes[~inside]] = True
    return children.take(np.flatnonzero(inside))


def _parents_add(level: Level, rows: Rows) -> Floats:
    """What parents add to one change under each sample, shape ``(n, S)``."""
    add = level.base[rows.lanes]
    for parent, delta in level.parents:
        add = add + delta[rows.lanes, :, rows.options[parent]]
    return add


def bounds_of(tables: Tables, rows: Rows) -> Floats:
    """Bounds of given assignments, whatever ``rows.bounds`` holds, shape ``(n,)``."""
    floor = tables.problem.costs.least
    total = np.zeros(len(rows))
    for level, chosen in zip(tables.levels, rows.options, strict=True):
        links = level.links[rows.lanes, chosen]
        linear = level.own[rows.lanes, :, chosen] + links[:, None] * _parents_add(level, rows)
        if np.isfinite(floor):
            linear = np.maximum(linear, links[:, None] * floor)
        total += np.where(links > 0, linear.mean(axis=1), 0.0)
    return np.round(total, DECIMALS)


def count_below(ordered: Floats, lanes: Indices, limits: Floats) -> Indices:
    """How many entries of row ``lanes[i]`` of ``ordered`` ``(N, G)`` are below ``limits[i]``."""
    if len(ordered) == 1:
        return np.searchsorted(ordered[0], limits, side="left")
    low = np.zeros(len(lanes), np.intp)
    high = np.full(len(lanes), ordered.shape[1], np.intp)
    for _ in range(int(ordered.shape[1]).bit_length()):
        middle = (low + high) // 2
        inside = np.minimum(middle, ordered.shape[1] - 1)
        less = (ordered[lanes, inside] < limits) & (low < high)
        low = np.where(less, middle + 1, low)
        high = np.where(less | (low >= high), high, middle)
    return low
