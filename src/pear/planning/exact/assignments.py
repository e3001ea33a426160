"""All assignments of values to features whose bound is below a threshold.

The bound of an assignment is the sum over changed features of
``max(floor, own cost + what the parents add)`` where a changed parent adds the smaller of
its start and its new value. It never exceeds the cost of any order of the changes.

Partial assignments are extended level by level. Options are sorted by their cost, so the
work is proportional to what survives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.levels import Floats, Group, Indices, Level
from pear.planning.exact.tables import Tables

DECIMALS = 7
"""Bounds are rounded to this many decimals (of a lane's unit), so that equal ones are equal."""


@dataclass(frozen=True)
class Rows:
    """n assignments: ``lanes``, ``bounds`` and ``steps`` ``(n,)``; ``words``, their codes."""

    lanes: Indices
    words: tuple[NDArray[np.int64], ...]
    bounds: Floats
    steps: NDArray[np.int16]

    def take(self, where: Indices) -> Rows:
        """Some of the rows, by position."""
        return Rows(
            self.lanes.take(where),
            tuple(word.take(where) for word in self.words),
            self.bounds.take(where),
            self.steps.take(where),
        )

    def part(self, first: int, end: int) -> Rows:
        """Rows ``first`` to ``end``, not copied."""
        words = tuple(word[first:end] for word in self.words)
        return Rows(self.lanes[first:end], words, self.bounds[first:end], self.steps[first:end])

    def key(self, row: int) -> tuple[int, ...]:
        """The code of one row, to compare and to remember."""
        return tuple(int(word[row]) for word in self.words)

    def __len__(self) -> int:
        return len(self.lanes)


@dataclass(frozen=True)
class Shell:
    """Assignments below a threshold; per lane whether it cut some off, or the cap dropped it."""

    rows: Rows
    cut: NDArray[np.bool_]
    dropped: NDArray[np.bool_]


def below(
    tables: Tables,
    lanes: Indices,
    thresholds: Floats,
    caps: Indices,
    check: Callable[[], None] = lambda: None,
) -> Shell:
    """Assignments of ``lanes`` with a rounded bound below their threshold.

    A lane with more partial assignments than its cap at some level is given up (``dropped``).
    ``thresholds`` and ``caps`` are over all lanes of the tables. ``check`` is called between
    levels, and may raise to end it.
    """
    count = len(tables.starts)
    cut, dropped = np.zeros(count, bool), np.zeros(count, bool)
    rows = Rows(
        lanes=np.asarray(lanes, np.intp),
        words=tuple(np.full(len(lanes), word, np.int64) for word in tables.codes.nothing),
        bounds=np.zeros(len(lanes)),
        steps=np.zeros(len(lanes), np.int16),
    )
    wide = thresholds + tables.slack
    for number in range(len(tables.levels)):
        check()
        rows = _extend(tables, number, rows, wide, caps, cut, dropped)
    # What belongs to a shell is decided by the rounded bound alone, whatever the rounding
    # errors above, so that no assignment falls between two shells.
    unit = tables.units[rows.lanes]
    bounds = np.round(rows.bounds / unit, DECIMALS) * unit
    inside = bounds < thresholds[rows.lanes]
    cut[rows.lanes[~inside]] = True
    rows = Rows(rows.lanes, rows.words, bounds, rows.steps)
    return Shell(rows.take(np.flatnonzero(inside & (rows.steps > 0))), cut, dropped)


def _extend(
    tables: Tables,
    number: int,
    rows: Rows,
    thresholds: Floats,
    caps: Indices,
    cut: NDArray[np.bool_],
    dropped: NDArray[np.bool_],
) -> Rows:
    """The rows with every option of one level that keeps them below the threshold."""
    level, floor = tables.levels[number], tables.problem.costs.least
    room = (thresholds - tables.rest[number + 1])[rows.lanes] - rows.bounds
    add = _mean_added(tables, level, rows)
    full = tables.max_steps[rows.lanes]
    counts: list[Indices] = []
    for group in level.groups:
        limit = room - group.links * add
        impossible = rows.steps + group.links > full
        limit[impossible | (group.links * floor >= room)] = -np.inf
        counts.append(group.count_below(rows.lanes, limit))
        if not cut[rows.lanes].all():
            less = (counts[-1] < group.sizes[rows.lanes]) & ~impossible
            cut[rows.lanes[less]] = True
    total = len(rows) + sum(int(count.sum()) for count in counts)
    if total > caps[rows.lanes].min(initial=total):
        size = np.bincount(rows.lanes, minlength=len(caps)).astype(float)
        for count in counts:
            size += np.bincount(rows.lanes, weights=count, minlength=len(caps))
        over = size > caps
        dropped |= over
        left = np.flatnonzero(~over[rows.lanes])
        rows, room, add = rows.take(left), room[left], add[left]
        counts = [count[left] for count in counts]
    parts = [_unchanged(rows, room, floor, cut)]
    for group, count in zip(level.groups, counts, strict=True):
        parts.append(_children(tables, number, group, rows, count, room, add, cut))
    return joined(parts)


def _mean_added(tables: Tables, level: Level, rows: Rows) -> Floats:
    """What changed parents add to one change at the mean over samples, shape ``(n,)``."""
    add = np.zeros(len(rows))
    for parent, delta in level.mean_parents:
        chosen = tables.codes.option(rows.words, parent)
        add += delta.ravel().take(rows.lanes * delta.shape[1] + chosen)
    return add


def _unchanged(rows: Rows, room: Floats, floor: float, cut: NDArray[np.bool_]) -> Rows:
    """The rows that leave this level as it is and are still below the threshold."""
    if floor > 0 or not (room <= 0).any():
        return rows
    cut[rows.lanes[room <= 0]] = True
    return rows.take(np.flatnonzero(room > 0))


def _children(
    tables: Tables,
    number: int,
    group: Group,
    rows: Rows,
    counts: Indices,
    room: Floats,
    add: Floats,
    cut: NDArray[np.bool_],
) -> Rows:
    """The rows extended by their cheapest ``counts`` options of a group."""
    level, codes, floor = tables.levels[number], tables.codes, tables.problem.costs.least
    parent = np.repeat(np.arange(len(rows)), counts)
    place = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    extended = rows.take(parent)
    place += extended.lanes * group.alone.shape[1]
    options = group.options.ravel().take(place)
    if level.alone.shape[1] == 1:
        cost = group.alone.ravel().take(place)
        cost += group.links * add.take(parent)
        np.maximum(cost, group.links * floor, out=cost)
        inside = None
    else:
        linear = level.alone[extended.lanes, :, options]
        linear += group.links * _added(tables, level, extended)
        cost = np.maximum(linear, group.links * floor).mean(axis=1)
        inside = cost < room.take(parent)
    words = list(extended.words)
    words[codes.word[number]] += (options - level.last) << codes.shift[number]
    steps = extended.steps + np.int16(group.links)
    children = Rows(extended.lanes, tuple(words), extended.bounds + cost, steps)
    if inside is None or inside.all():
        return children
    cut[children.lanes[~inside]] = True
    return children.take(np.flatnonzero(inside))


def _added(tables: Tables, level: Level, rows: Rows) -> Floats:
    """What changed parents add to one change under each sample, shape ``(n, S)``."""
    add = np.zeros((len(rows), level.alone.shape[1]))
    for parent, delta in level.parents:
        add += delta[rows.lanes, :, tables.codes.option(rows.words, parent)]
    return add


def joined(parts: list[Rows]) -> Rows:
    """The rows of several parts, one after the other."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.lanes for part in parts]),
        tuple(np.concatenate(words) for words in zip(*(p.words for p in parts), strict=True)),
        np.concatenate([part.bounds for part in parts]),
        np.concatenate([part.steps for part in parts]),
    )


def bounds_of(tables: Tables, lanes: Indices, words: tuple[NDArray[np.int64], ...]) -> Floats:
    """Bounds of given assignments of given lanes, shape ``(n,)``."""
    floor = tables.problem.costs.least
    rows = Rows(lanes, words, np.zeros(len(lanes)), np.zeros(len(lanes), np.int16))
    total = np.zeros(len(lanes))
    for number, level in enumerate(tables.levels):
        chosen = tables.codes.option(words, number)
        links = level.links[lanes, chosen]
        linear = level.alone[lanes, :, chosen] + links[:, None] * _added(tables, level, rows)
        if np.isfinite(floor):
            linear = np.maximum(linear, links[:, None] * floor)
        total += np.where(links > 0, linear.mean(axis=1), 0.0)
    unit = tables.units[lanes]
    return np.asarray(np.round(total / unit, DECIMALS) * unit)


def in_order(rows: Rows) -> Rows:
    """The rows by bound, then steps, then code."""
    order = np.argsort(rows.bounds)
    bounds = rows.bounds.take(order)
    same = bounds[1:] == bounds[:-1]
    if same.any():
        tied = np.zeros(len(order), bool)
        tied[1:] |= same
        tied[:-1] |= same
        where = np.flatnonzero(tied)
        here = order[where]
        sort_by: list[NDArray[Any]] = [word.take(here) for word in rows.words[::-1]]
        sort_by += [rows.steps.take(here), bounds[where]]
        order[where] = here[np.lexsort(sort_by)]
    return rows.take(order)
