"""What is the model asked, when, and what did it say before?

Searches yield states and receive scores; :func:`drive` is the only one that asks the model. What is
yielded in a round goes to it in one call, for one person or for many side by side. With a deadline
the rows of a call are held to what the model surely answers in time, and what it cannot answer any
more comes back as NaN: how a slow endpoint is asked.

Whether a state is favourable does not depend on weights or limits. A :class:`ScoreMemory` keeps
every score of one person, so that a later question about them starts with good plans and asks
about new states only.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.decision import BlackBox
from pear.planning.planner import Memory

if TYPE_CHECKING:
    from pear.planning.exact.search import Search

TOGETHER = 256
"""People whose searches go on at the same time."""
SHARE = 20
"""Nothing is asked that takes more than one part in this many of the time left."""


@dataclass
class Clock:
    """A guard by the clock; without one (``deadline`` infinite) it never interferes.

    ``kept_rows`` are asked after the search, for the scores along the plans.
    """

    began: float
    deadline: float = np.inf
    kept_rows: int = 0
    _pace: float = field(default=0.0, init=False)

    @classmethod
    def started(cls, seconds: float | None, kept_rows: int = 0) -> Clock:
        """A clock that starts now."""
        now = time.monotonic()
        return cls(now, np.inf if seconds is None else now + seconds, kept_rows)

    def half(self) -> Clock:
        """A clock that stops when half of the time that is left is over."""
        now = time.monotonic()
        return Clock(now, now + (self.deadline - now) / 2)

    @property
    def left(self) -> float:
        """Seconds left for the search."""
        if self.deadline == np.inf:
            return np.inf
        return self.deadline - time.monotonic() - self.kept_rows * self._pace

    def over(self) -> bool:
        """Whether time is up."""
        return self.left <= 0

    def score(self, black_box: BlackBox, states: Floats, at_once: int) -> Floats:
        """Scores of states ``(n, d)``; NaN for those there is no time for, after ``at_once``."""
        if self.deadline == np.inf:
            return black_box.score(states)
        scores = np.full(len(states), np.nan)
        at = 0
        while at < len(states) and (at < at_once or not self.over()):
            # One row before the model's pace is known.
            fits = max(self.left, 0.0) / SHARE / self._pace if self._pace else 1.0
            end = min(len(states), at + max(1, int(min(fits, len(states)))))
            began = time.monotonic()
            scores[at:end] = black_box.score(states[at:end])
            # The pace is the slower of this and half of the last.
            self._pace = max((time.monotonic() - began) / (end - at), self._pace / 2)
            at = end
        return scores


@dataclass(frozen=True)
class Progress:
    """How far a search is: ``open_queries`` of ``queries`` are not decided yet.

    ``lower_bound`` and ``upper_bound`` are means over the queries; the upper one is infinite
    while a query has no plan.
    """

    rows: int
    queries: int
    open_queries: int
    lower_bound: float
    upper_bound: float
    seconds: float


def drive(searches: Iterable[Search], black_box: BlackBox, clock: Clock) -> None:
    """Run searches to their ends, up to :data:`TOGETHER` of them side by side."""
    waiting = iter(searches)
    running: list[tuple[Search, Generator[Floats, Floats, None], Floats]] = []
    while True:
        while len(running) < TOGETHER and (search := next(waiting, None)) is not None:
            steps = search.steps()
            running.append((search, steps, next(steps)))
        if not running:
            return
        # The scores of starts come first: they are asked whatever the time.
        running.sort(key=lambda one: one[0].started)
        starts = sum(not one[0].started for one in running)
        scores = clock.score(black_box, np.concatenate([one[2] for one in running]), starts)
        going = []
        at = 0
        for search, steps, states in running:
            mine, at = scores[at : at + len(states)], at + len(states)
            try:
                going.append((search, steps, steps.send(mine)))
            except StopIteration:
                continue
        running = going


class ScoreMemory(Memory):
    """Scores by state, found by the exact values of the features that can change.

    ``owner`` says whose it is: the problem's fingerprint, the black box and the start; a memory
    that one search makes for itself has none.
    A hash table with open addressing: ``_table`` holds row numbers of ``_keys`` ``(n, K)``, or -1.
    """

    def __init__(self, owner: tuple[str, BlackBox, bytes] | None = None) -> None:
        self.owner = owner
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
    firsts = np.zeros(len(bits), np.bool_)
    _mark_firsts(bits, np.empty_like(bits), table, firsts)
    return np.flatnonzero(firsts)


def _bits(values: Floats) -> NDArray[np.int64]:
    """Values as integers that are equal where the values are; missing ones equal each other."""
    return np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0)).view(np.int64)


@numba.njit(cache=True)
def _place(
    rows: NDArray[np.int64], number: int, keys: NDArray[np.int64], table: NDArray[np.int64]
) -> int:
    """Where a row stands in the table, or the free place where it belongs."""
    code = np.uint64(14695981039346656037)
    for column in range(rows.shape[1]):
        code = (code ^ np.uint64(rows[number, column])) * np.uint64(1099511628211)
        code ^= code >> np.uint64(29)
    place = np.int64(code & np.uint64(len(table) - 1))
    while table[place] >= 0:
        same = True
        for column in range(rows.shape[1]):
            if keys[table[place], column] != rows[number, column]:
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
        entry = table[_place(rows, number, keys, table)]
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
        place = _place(rows, number, keys, table)
        if table[place] < 0:
            keys[size], scores[size] = rows[number], new_scores[number]
            table[place] = size
            size += 1
    return size


@numba.njit(cache=True)
def _rebuild(keys: NDArray[np.int64], size: int, table: NDArray[np.int64]) -> None:
    for number in range(size):
        table[_place(keys, number, keys, table)] = number


@numba.njit(cache=True)
def _mark_firsts(
    rows: NDArray[np.int64],
    keys: NDArray[np.int64],
    table: NDArray[np.int64],
    firsts: NDArray[np.bool_],
) -> None:
    size = 0
    for number in range(len(rows)):
        place = _place(rows, number, keys, table)
        if table[place] < 0:
            firsts[number] = True
            keys[size] = rows[number]
            table[place] = size
            size += 1
