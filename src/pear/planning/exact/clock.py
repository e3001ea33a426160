"""How much time is left, and what may still be started in it?"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

SLICE = 20
"""Nothing is started that takes more than one part in this many of the time left."""
ASSIGNMENTS_PER_SECOND = 1_000_000
"""A careful guess of how many partial assignments are extended in a second."""


class TimeUp(Exception):
    """The clock ended the search; never leaves it."""


@dataclass
class Clock:
    """A guard by the clock; without one (``deadline`` infinite) it never interferes.

    ``interfered`` says whether the clock has changed what the search did.
    """

    began: float
    deadline: float = np.inf
    kept_rows: int = 0
    """Rows that will be asked after the search, for the scores along the plans."""
    interfered: bool = False
    _pace: float = 0.0

    @classmethod
    def started(cls, seconds: float | None, kept_rows: int = 0) -> Clock:
        """A clock that starts now."""
        now = time.monotonic()
        return cls(now, np.inf if seconds is None else now + seconds, kept_rows)

    @property
    def left(self) -> float:
        """Seconds left for the search."""
        if np.isinf(self.deadline):
            return np.inf
        return self.deadline - time.monotonic() - self.kept_rows * self._pace

    def check(self) -> None:
        """End the search when time is up."""
        if self.left <= 0:
            self.interfered = True
            raise TimeUp

    def rows(self, wanted: int) -> int:
        """How many of ``wanted`` rows to ask at once: one before the model's pace is known."""
        if np.isinf(self.deadline):
            return wanted
        fits = max(self.left, 0.0) / SLICE / self._pace if self._pace else 1.0
        return max(1, int(min(fits, wanted)))

    def cap(self, wanted: int) -> int:
        """How many partial assignments a shell may hold."""
        if np.isinf(self.deadline):
            return wanted
        fits = max(self.left, 0.0) / SLICE * ASSIGNMENTS_PER_SECOND
        allowed = max(1_000, int(min(fits, wanted)))
        self.interfered |= allowed < wanted
        return min(allowed, wanted)

    def took(self, rows: int, seconds: float) -> None:
        """The model has answered; its pace is the slower of this and half of the last."""
        self._pace = max(seconds / rows, self._pace / 2)
