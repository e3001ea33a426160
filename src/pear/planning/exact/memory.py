"""Which states of one person are scored already, and which of them are favourable?

Whether a state is favourable does not depend on weights or limits. A memory keeps every score, so
that a later question about the same person starts with good plans and asks the model about new
states only.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.planning.planner import Memory


class ScoreMemory(Memory):
    """Scores by state, found by the exact values of the features that can change.

    A hash table with open addressing: ``_table`` holds row numbers of ``_keys`` ``(n, K)``, or -1.
    """

    def __init__(self) -> None:
        self._keys = np.empty((0, 0), np.int64)
        self._scores = np.empty(0)
        self._table = np.full(64, -1, np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def scores(self, values: Floats) -> Floats:
        """Scores of states by their changeable values ``(n, K)``, NaN where not known."""
        found = np.full(len(values), np.nan)
        if self._size:
            _look_up(_bits(values), self._keys, self._scores, self._table, found)
        return found

    def add(self, values: Floats, scores: Floats) -> None:
        """Remember the scores ``(n,)`` of states; what is known already stays as it is."""
        if not len(values):
            return
        room = self._size + len(values)
        if room > len(self._keys):
            keys = np.empty((2 * room, values.shape[1]), np.int64)
            if self._size:
                keys[: self._size] = self._keys[: self._size]
            self._keys = keys
            self._scores = np.resize(self._scores, 2 * room) if self._size else np.empty(2 * room)
        if 2 * room > len(self._table):
            self._table = np.full(1 << (4 * room).bit_length(), -1, np.int64)
            _rebuild(self._keys, self._size, self._table)
        self._size = _insert(
            _bits(values), scores, self._keys, self._scores, self._table, self._size
        )

    def favourable(self, required: float) -> tuple[Floats, Floats]:
        """Changeable values ``(n, K)`` and scores of the states above ``required``."""
        scores = self._scores[: self._size]
        good = np.flatnonzero(scores > required)
        return self._keys[good].view(float), scores[good]


def first_of_each(values: Floats) -> Indices:
    """The first row of each distinct state ``(n, K)``, in order."""
    bits = _bits(values)
    table = np.full(1 << (4 * len(bits) + 64).bit_length(), -1, np.int64)
    keys, scores = np.empty_like(bits), np.empty(len(bits))
    firsts = np.zeros(len(bits), np.bool_)
    _mark_firsts(bits, keys, scores, table, firsts)
    return np.flatnonzero(firsts)


def _bits(values: Floats) -> NDArray[np.int64]:
    """Values as integers that are equal where the values are; missing ones equal each other."""
    return np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0)).view(np.int64)


@numba.njit(cache=True)
def _place(row: NDArray[np.int64], keys: NDArray[np.int64], table: NDArray[np.int64]) -> int:
    """Where a row stands in the table, or the free place where it belongs."""
    code = np.uint64(14695981039346656037)
    for value in row:
        code = (code ^ np.uint64(value)) * np.uint64(1099511628211)
        code ^= code >> np.uint64(29)
    place = np.int64(code & np.uint64(len(table) - 1))
    while table[place] >= 0:
        same = True
        for column in range(len(row)):
            if keys[table[place], column] != row[column]:
                same = False
                break
        if same:
            break
        place = (place + 1) & (len(table) - 1)
    return int(place)


@numba.njit(cache=True)
def _look_up(
    rows: NDArray[np.int64],
    keys: NDArray[np.int64],
    scores: Floats,
    table: NDArray[np.int64],
    found: Floats,
) -> None:
    for number in range(len(rows)):
        entry = table[_place(rows[number], keys, table)]
        if entry >= 0:
            found[number] = scores[entry]


@numba.njit(cache=True)
def _insert(
    rows: NDArray[np.int64],
    new_scores: Floats,
    keys: NDArray[np.int64],
    scores: Floats,
    table: NDArray[np.int64],
    size: int,
) -> int:
    for number in range(len(rows)):
        place = _place(rows[number], keys, table)
        if table[place] < 0:
            keys[size], scores[size] = rows[number], new_scores[number]
            table[place] = size
            size += 1
    return size


@numba.njit(cache=True)
def _rebuild(keys: NDArray[np.int64], size: int, table: NDArray[np.int64]) -> None:
    for number in range(size):
        table[_place(keys[number], keys, table)] = number


@numba.njit(cache=True)
def _mark_firsts(
    rows: NDArray[np.int64],
    keys: NDArray[np.int64],
    scores: Floats,
    table: NDArray[np.int64],
    firsts: NDArray[np.bool_],
) -> None:
    size = 0
    for number in range(len(rows)):
        if table[_place(rows[number], keys, table)] < 0:
            firsts[number] = True
            size = _insert(rows[number : number + 1], scores[:1], keys, scores, table, size)
