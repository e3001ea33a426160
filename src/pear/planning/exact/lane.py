"""Where one search stands: its incumbent, what is still to score, what is proven."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.assignments import DECIMALS, Rows
from pear.planning.exact.options import Floats, Tables

HALF_STEP = 0.5 * 10.0**-DECIMALS
EQUAL = 4 * HALF_STEP
"""Costs closer than this are the same cost."""
GROWTH = 4.0
"""A new shell aims at this many times the assignments of the last one."""

MOST_DROPS = 4
"""Shells found too large before the cap is raised once: ever thinner shells prove ever less."""


@dataclass(frozen=True)
class Incumbent:
    """The best plan so far; compared by cost, then steps, then key."""

    cost: float
    steps: int
    key: Any
    moves: tuple[int, ...]
    score: float


@dataclass
class Lane:
    """State of one search. Everything with a bound below ``complete`` is scored or pending."""

    number: int
    hurried: bool = False
    incumbent: Incumbent | None = None
    decided: bool = False
    stopped: bool = False
    beamed: bool = False
    start_score: float = 0.0
    complete: float = -np.inf
    exhausted: bool = False
    rounds: int = 0
    _threshold: float = 0.0
    _step: float = 1.0
    _least: float = 0.0
    _history: list[tuple[float, int]] = field(default_factory=list)
    _drops: int = 0
    _rows: Rows | None = None
    _keys: NDArray[np.generic] | None = None
    _at: int = 0

    def decide(self, incumbent: Incumbent | None = None) -> None:
        """Nothing is left to do."""
        self.incumbent = incumbent or self.incumbent
        self.decided = True

    def stop(self) -> None:
        """The budget ended."""
        self.stopped = self.decided = True

    def take(self, incumbent: Incumbent) -> None:
        """A plan; kept if it is better than the incumbent."""
        if not np.isfinite(incumbent.cost):
            return
        if self.improves(incumbent.cost, incumbent.steps, incumbent.key):
            self.incumbent = incumbent

    def improves(self, cost: float, steps: int, key: Any) -> bool:
        """Whether a plan with this cost, or an assignment with this bound, could be better."""
        best = self.incumbent
        if best is None:
            return True
        if abs(cost - best.cost) > EQUAL:
            return bool(cost < best.cost)
        return bool(steps < best.steps or (steps == best.steps and _key_less(key, best.key)))

    def ceiling(self) -> float:
        """Costs at or above this cannot become the incumbent."""
        if self.incumbent is None:
            return np.inf
        return self.incumbent.cost + EQUAL

    @property
    def moves(self) -> tuple[int, ...]:
        """Moves of the incumbent; none where there is none."""
        return self.incumbent.moves if self.incumbent else ()

    @property
    def pending_left(self) -> bool:
        """Whether enumerated assignments wait to be scored that could still matter."""
        if self._rows is None or self._at >= len(self._rows):
            return False
        return self.improves(
            self._rows.bounds[self._at],
            self._rows.steps[self._at],
            self._keys[self._at],  # type: ignore[index]
        )

    @property
    def lower_bound(self) -> float:
        """No plan of this lane costs less."""
        bound = np.inf if self.exhausted else self.complete
        if self.pending_left:
            bound = min(bound, float(self._rows.bounds[self._at]))  # type: ignore[union-attr]
        return min(bound, self.upper_bound)

    @property
    def upper_bound(self) -> float:
        return np.inf if self.incumbent is None else self.incumbent.cost

    def begin(self, singles: Floats, least: float) -> None:
        """Start with the cheaper quarter of the single changes.

        ``singles`` are their costs, sorted, with infinities last; ``least`` is the least any
        plan can cost.
        """
        count = int(np.searchsorted(singles, np.inf))
        if not count:
            self.exhausted = True
            return
        first = float(singles[count // 4])
        self._step = max(float(singles[count - 1] - singles[0]) / 8, abs(first) / 8, 1e-3)
        self._least = least
        self._threshold = first + self._step / 8 + least

    def next_threshold(self) -> float:
        """Where the next shell ends; never beyond the incumbent."""
        target = self._threshold
        if self.incumbent is not None:
            target = min(target, self.incumbent.cost + 2 * EQUAL)
        return float(np.round(target, DECIMALS) + HALF_STEP)

    def cap(self, max_rows: int) -> int:
        """How many assignments a shell may hold before it is narrowed."""
        least = 0 if self.hurried else 50_000
        return (8 if self._narrow else 1) * max(max_rows, least)

    @property
    def _narrow(self) -> bool:
        width = self._threshold - max(self.complete, self._least)
        return width <= 1e-6 or self._drops >= MOST_DROPS

    def receive(
        self, rows: Rows, keys: NDArray[np.generic], *, threshold: float, cut: bool, dropped: bool
    ) -> None:
        """Take a shell: assignments below ``threshold``, sorted; those scored before are passed."""
        if dropped:
            if self._narrow or (self.hurried and self.incumbent is not None):
                self.stop()
            self._drops += 1
            proven = max(self.complete, self._least)
            self._step = (min(self._threshold, threshold) - proven) / 4
            self._threshold = proven + self._step
            return
        # Bounds are rounded and sorted; thresholds lie between two rounded values.
        first = int(np.searchsorted(rows.bounds, self.complete, side="right"))
        self._rows, self._keys, self._at = rows, keys, first
        self.complete, self.exhausted = threshold, not cut
        self._grow(len(rows))

    def _grow(self, count: int) -> None:
        last = self._history[-1] if self._history else None
        self._history.append((self._threshold, count))
        if last is not None and count > last[1] > 0 and self._threshold > last[0]:
            rate = np.log(count / last[1]) / (self._threshold - last[0])
            self._step = float(np.clip(np.log(GROWTH) / rate, self._step / 4, self._step * 4))
        else:
            self._step *= 2
        self._threshold = max(self._threshold, self.complete) + self._step

    def close_if_done(self) -> bool:
        """Decide the lane when nothing below the incumbent is left."""
        beyond = self.incumbent is not None and self.complete > self.incumbent.cost + EQUAL
        if not self.decided and (self.exhausted or beyond):
            self.decide()
        return self.decided

    def next_batch(self, size: int) -> tuple[Rows, NDArray[np.generic]]:
        """The next assignments to score, smallest bound first."""
        if self._rows is None or self._keys is None:
            return _EMPTY, np.zeros(0, np.int64)
        end = min(len(self._rows), self._at + size)
        if self.incumbent is not None:
            bounds = self._rows.bounds
            end = min(end, int(np.searchsorted(bounds, self.incumbent.cost + EQUAL, side="right")))
        where = np.arange(self._at, max(end, self._at))
        return self._rows.take(where), self._keys[where]

    def scored(self, count: int) -> None:
        """The first ``count`` assignments of the last batch have been looked at."""
        self._at += count
        self.rounds += 1


_EMPTY = Rows(np.zeros(0, np.intp), (), np.zeros(0), np.zeros(0, np.int16))


def _key_less(first: Any, second: Any) -> bool:
    if isinstance(second, (int, np.integer)) and not isinstance(first, (int, np.integer)):
        return True
    if isinstance(first, (int, np.integer)) and not isinstance(second, (int, np.integer)):
        return False
    first = first.item() if isinstance(first, np.generic) else first
    second = second.item() if isinstance(second, np.generic) else second
    return bool(first < second)


def single_changes(tables: Tables) -> Floats:
    """Costs of all single changes of each lane, sorted, infinite where not legal, ``(N, M)``."""
    least = tables.problem.costs.least
    costs = [np.full((len(tables.starts), 1), np.inf)]
    for level in tables.levels:
        cost = np.maximum(level.own + level.base[:, :, None], least).mean(axis=1)
        costs.append(np.where(level.valid & (level.links == 1), cost, np.inf))
    return np.sort(np.concatenate(costs, axis=1), axis=1)
