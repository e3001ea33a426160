"""Who asks the model: for one person, for many whose batches are merged, against the clock.

Searches yield states and receive scores. Everything that is yielded in a round goes to the model in
one call. With a deadline the rows of a call are held to what the model surely answers in time, and
what it cannot answer any more comes back as NaN: how a slow endpoint is asked.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

import numpy as np

from pear.arrays import Floats
from pear.decision import BlackBox
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
