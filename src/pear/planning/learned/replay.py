"""Which traces does the agent learn from next? A buffer that prefers the successful ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pear.planning.learned.traces import Traces

Floats = NDArray[np.float64]

NEVER_SEEN = -np.inf


class Replay:
    """One slot per training person: the best trace found for them so far.

    ``merit`` ``(n,)`` orders traces of one person: a success is above any failure, a
    better plan above a worse one. ``moves`` ``(n, L)`` are kept to rebuild the traces. Only
    the ``capacity`` people kept last are learned from (None: everybody).
    """

    def __init__(
        self,
        empty: Traces,
        moves: NDArray[np.intp],
        failure_share: float = 0.25,
        capacity: int | None = None,
    ) -> None:
        self.traces = empty
        self.moves = moves
        self.merit = np.full(len(empty), NEVER_SEEN)
        self.age = np.zeros(len(empty), np.int64)
        self.failure_share = failure_share
        self.capacity = capacity

    def add(
        self,
        people: NDArray[np.intp],
        traces: Traces,
        moves: NDArray[np.intp],
        merit: Floats,
    ) -> int:
        """Keep the traces that are no worse than what is known; how many were kept."""
        better = np.flatnonzero(merit >= self.merit[people])
        who = people[better]
        self.traces.put(who, traces.where(better))
        self.moves[who] = moves[better]
        self.merit[who] = merit[better]
        self.age[who] = self.age.max(initial=0) + 1
        return len(who)

    def sample(self, n: int, rng: np.random.Generator) -> Traces:
        """n traces; a failure is drawn ``failure_share`` times as often as a success."""
        known = np.flatnonzero(self.merit > NEVER_SEEN)
        if self.capacity is not None:
            known = known[np.argsort(-self.age[known], kind="stable")[: self.capacity]]
        weight = np.where(self.traces.success[known], 1.0, self.failure_share)
        chosen = rng.choice(known, n, p=weight / weight.sum())
        return self.traces.where(chosen)

    def hardest(self, n: int) -> NDArray[np.intp]:
        """The n people met so far whose best trace is worst: failures, then the dearest plans."""
        known = np.flatnonzero(self.merit > NEVER_SEEN)
        return np.asarray(known[np.argsort(self.merit[known], kind="stable")[:n]])
