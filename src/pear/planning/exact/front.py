"""Where one search stands: the best plans so far, what is still to score, what is proven."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pear.planning.exact.assignments import DECIMALS, Rows
from pear.planning.exact.levels import Floats

HALF_STEP = 0.5 * 10.0**-DECIMALS
EQUAL = 4 * HALF_STEP
"""Costs closer than this (times a lane's unit) are the same cost."""
GROWTH = 4.0
"""A new shell aims at this many times the assignments of the last one."""
NARROW = 1e-6
"""A shell that reaches no further than this beyond what is proven is not narrowed again."""
LEAST_CAP, LARGEST_CAP = 50_000, 2_000_000
MOST_BARREN = 24
"""Shells that may be narrowed in a row with next to nothing gained before the proof is given up."""

Key = tuple[int, ...]
LAST_KEY: Key = (2**63 - 1,)


@dataclass(frozen=True)
class Incumbent:
    """The best plan so far; compared by cost, then steps, then key."""

    cost: float
    steps: int
    key: Key
    moves: tuple[int, ...]
    score: float


@dataclass
class Lane:
    """One start, one set of weights, one set of limits, and the best plan for them."""

    number: int
    unit: float = 1.0
    incumbent: Incumbent | None = None
    start_score: float = 0.0

    def take(self, incumbent: Incumbent) -> None:
        """A plan; kept if it is better than the incumbent."""
        if np.isfinite(incumbent.cost) and self.improves(
            incumbent.cost, incumbent.steps, incumbent.key
        ):
            self.incumbent = incumbent

    def improves(self, cost: float, steps: int, key: Key) -> bool:
        """Whether a plan with this cost, or an assignment with this bound, could be better."""
        best = self.incumbent
        if best is None:
            return True
        if abs(cost - best.cost) > EQUAL * self.unit:
            return bool(cost < best.cost)
        return (steps, key) < (best.steps, best.key)

    @property
    def moves(self) -> tuple[int, ...]:
        """Moves of the incumbent; none where there is none."""
        return self.incumbent.moves if self.incumbent else ()

    @property
    def cost(self) -> float:
        """Cost of the incumbent; infinite where there is none."""
        return np.inf if self.incumbent is None else self.incumbent.cost


@dataclass
class Front:
    """What is proven for some lanes. All with a bound below ``complete`` is scored or pending."""

    number: int
    lanes: list[Lane]
    unit: float = 1.0
    hurried: bool = False
    decided: bool = False
    stopped: bool = False
    beams: int = 0
    complete: float = -np.inf
    exhausted: bool = False
    rounds: int = 0
    worst: float = np.inf
    """Cost of the dearest of the lanes' incumbents."""
    _threshold: float = 0.0
    _step: float = 1.0
    _least: float = 0.0
    _history: list[tuple[float, int]] = field(default_factory=list)
    _rows: Rows | None = None
    _at: int = 0
    _barren: int = 0
    """Shells narrowed since one brought more than a few new assignments."""

    def stop(self) -> None:
        """The budget ended."""
        self.stopped = self.decided = True

    def refresh(self) -> None:
        """Some lane has a new incumbent."""
        self.worst = max(lane.cost for lane in self.lanes)

    def improves(self, bound: float, steps: int, key: Key) -> bool:
        """Whether an assignment with this bound could be better for some lane."""
        if abs(bound - self.worst) > EQUAL * self.unit:
            return bool(bound < self.worst)
        return any(lane.improves(bound, steps, key) for lane in self.lanes)

    @property
    def pending_left(self) -> bool:
        """Whether enumerated assignments wait to be scored that could still matter."""
        rows, at = self._rows, self._at
        if rows is None or at >= len(rows):
            return False
        return self.improves(float(rows.bounds[at]), int(rows.steps[at]), rows.key(at))

    def lower_bound(self, lane: Lane) -> float:
        """No plan of this lane costs less."""
        bound = np.inf if self.exhausted else max(self.complete, self._least)
        if self.pending_left and self._rows is not None:
            bound = min(bound, float(self._rows.bounds[self._at]))
        return min(bound - EQUAL * self.unit, lane.cost)

    def begin(self, singles: Floats, least: float) -> None:
        """Start with the cheaper quarter of the single changes.

        ``singles`` are their costs, sorted, with infinities last; ``least`` is the least any
        plan can cost.
        """
        count = int(np.searchsorted(singles, np.inf))
        self._least = least
        if not count:
            self.exhausted = True
            return
        first = float(singles[count // 4])
        self._step = max(float(singles[count - 1] - singles[0]) / 8, abs(first) / 8, 1e-3)
        self._threshold = max(first, least) + self._step / 8 + min(least, 0.0)

    def next_threshold(self) -> float:
        """Where the next shell ends; never beyond the dearest incumbent."""
        target = min(self._threshold, self.worst + 2 * EQUAL * self.unit)
        return float((np.round(target / self.unit, DECIMALS) + HALF_STEP) * self.unit)

    def cap(self, max_rows: int, left: int) -> int:
        """How many assignments a shell may hold before it is narrowed.

        ``left`` of ``max_rows`` may still be asked. What the last shell held comes on top,
        since it is held again.
        """
        cap = max_rows
        if not self.hurried:
            held = self._history[-1][1] if self._history else 0
            cap = max(max_rows, min(held + max(left, LEAST_CAP), LARGEST_CAP))
        return max(cap, min(8 * cap, LARGEST_CAP)) if self._narrow else cap

    @property
    def _narrow(self) -> bool:
        return self._threshold - max(self.complete, self._least) <= NARROW * self.unit

    def narrow(self, threshold: float) -> None:
        """The shell below ``threshold`` held too much: aim at a quarter of it, or give up."""
        self._barren += 1
        hopeless = self._narrow or self._barren > MOST_BARREN
        if hopeless or (self.hurried and np.isfinite(self.worst)):
            self.stop()
        proven = max(self.complete, self._least)
        self._step = (min(self._threshold, threshold) - proven) / 4
        self._threshold = proven + self._step

    def receive(self, rows: Rows, count: int, *, threshold: float, cut: bool) -> None:
        """Take a shell: the assignments between ``complete`` and ``threshold``, in order.

        ``count`` is how many there are below ``threshold`` in all.
        """
        self._rows, self._at = rows, 0
        if len(rows) > count // 50:
            self._barren = 0
        self.complete, self.exhausted = threshold, not cut
        last = self._history[-1] if self._history else None
        self._history.append((self._threshold, count))
        if last is not None and count > last[1] > 0 and self._threshold > last[0]:
            rate = np.log(count / last[1]) / (self._threshold - last[0])
            self._step = float(np.clip(np.log(GROWTH) / rate, self._step / 4, self._step * 4))
        else:
            self._step *= 2
        self._threshold = max(self._threshold, self.complete) + self._step

    def close_if_done(self) -> bool:
        """Decide the front when nothing below the dearest incumbent is left."""
        if self.exhausted or self.complete > self.worst + EQUAL * self.unit:
            self.decided = True
        return self.decided

    def next_batch(self, size: int) -> Rows | None:
        """The next assignments to score, smallest bound first."""
        rows = self._rows
        if rows is None:
            return None
        end = min(len(rows), self._at + size)
        if np.isfinite(self.worst):
            last = self.worst + EQUAL * self.unit
            end = min(end, int(np.searchsorted(rows.bounds, last, side="right")))
        return rows.part(self._at, max(end, self._at))

    def scored(self, count: int) -> None:
        """The first ``count`` assignments of the last batch have been looked at."""
        self._at += count
        self.rounds += 1
