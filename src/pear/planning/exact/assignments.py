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
    """n assignments: ``lanes`` ``(n,)``, ``options`` ``(n, K)``, ``bounds`` and ``steps`` ``(n,)``."""

    lanes: Indices
    options: NDArray[np.int16]
    bounds: Floats
    steps: Indices

    def take(self, where: NDArray[np.generic]) -> Rows:
        """Some of the rows."""
        return Rows(self.lanes[where], self.options[where], self.bounds[where], self.steps[where])

    def __len__(self) -> int:
        return len(self.lanes)


@dataclass(frozen=True)
class Shell:
    """Assignments below a threshold; per lane whether some were cut off by it, or dropped by the cap."""

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
        options=np.zeros((len(lanes), 0), np.int16),
        bounds=np.zeros(len(lanes)),
        steps=np.zeros(len(lanes), np.intp),
    )
    for number, level in enumerate(tables.levels):
        rows = _extend(tables, number, level, rows, thresholds, cut)
        sizes = np.bincount(rows.lanes, minlength=count)
        over = sizes > caps
        if over.any():
            dropped |= over
            rows = rows.take(~over[rows.lanes])
    changed = rows.steps > 0
    rows = rows.take(changed)
    return Shell(
        Rows(rows.lanes, rows.options, np.round(rows.bounds, DECIMALS), rows.steps), cut, dropped
    )


def _extend(
    tables: Tables,
    number: int,
    level: Level,
    rows: Rows,
    thresholds: Floats,
    cut: NDArray[np.bool_],
) -> Rows:
    floor = tables.problem.costs.least
    room = thresholds[rows.lanes] - tables.rest[number + 1][rows.lanes] - rows.bounds
    parents_add = level.base[rows.lanes]
    for parent, delta in level.parents:
        parents_add = parents_add + delta[rows.lanes, :, rows.options[:, parent]]
    mean_add = parents_add.mean(axis=1)
    keep = room > 0
    _mark(cut, rows.lanes[~keep])
    kept = rows.take(keep)
    unchanged = np.zeros((len(kept), 1), np.int16)
    parts = [Rows(kept.lanes, np.hstack([kept.options, unchanged]), kept.bounds, kept.steps)]
    for group in level.groups:
        able = np.flatnonzero(rows.steps + group.links <= tables.max_steps[rows.lanes])
        if not len(able):
            continue
        parts.append(
            _extend_group(
                level,
                group,
                rows.take(able),
                room[able],
                parents_add[able],
                mean_add[able],
                floor,
                cut,
            )
        )
    return Rows(
        np.concatenate([part.lanes for part in parts]),
        np.concatenate([part.options for part in parts]),
        np.concatenate([part.bounds for part in parts]),
        np.concatenate([part.steps for part in parts]),
    )


def _extend_group(
    level: Level,
    group: Group,
    rows: Rows,
    room: Floats,
    parents_add: Floats,
    mean_add: Floats,
    floor: float,
    cut: NDArray[np.bool_],
) -> Rows:
    limit = room - group.links * mean_add
    if np.isfinite(floor):
        limit = np.where(group.links * floor < room, limit, -np.inf)
    counts = count_below(group.own, rows.lanes, limit)
    total = np.isfinite(group.own).sum(axis=1)[rows.lanes]
    _mark(cut, rows.lanes[counts < total])
    parent = np.repeat(np.arange(len(rows)), counts)
    place = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    lanes = rows.lanes[parent]
    options = group.options[lanes, place]
    if parents_add.shape[1] == 1:
        cost = group.own[lanes, place] + group.links * mean_add[parent]
        cost = np.maximum(cost, group.links * floor)
    else:
        linear = level.own[lanes, :, options] + group.links * parents_add[parent]
        cost = np.maximum(linear, group.links * floor).mean(axis=1)
    bounds = rows.bounds[parent] + cost
    extended = Rows(
        lanes,
        np.hstack([rows.options[parent], options[:, None].astype(np.int16)]),
        bounds,
        rows.steps[parent] + group.links,
    )
    inside = cost < room[parent]
    if inside.all():
        return extended
    _mark(cut, lanes[~inside])
    return extended.take(inside)


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


def _mark(flags: NDArray[np.bool_], lanes: Indices) -> None:
    flags[lanes] = True
