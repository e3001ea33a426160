"""What can one feature become, and what does that cost at least?

A *lane* is one search: a start state, weights and limits. Lanes are worked on together in
arrays. A *level* is one actionable feature. The last option of a level leaves it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Level:
    """Options of one feature for N lanes under S weight samples each: V, then "no change".

    ``values`` ``(N, V + 1)`` in the person's units, ``links`` ``(N, V + 1)`` changes used (0
    for the last, 1, or more for chains), ``moves`` ``(N, V + 1)`` (-1 where no single move),
    ``alone`` ``(N, S, V + 1)`` the cost before the floor if no parent changes, ``low`` and
    ``high`` ``(N, V + 1)`` the least and largest scaled value on the way.
    """

    column: int
    values: Floats
    links: Indices
    moves: Indices
    valid: NDArray[np.bool_]
    alone: Floats
    low: Floats
    high: Floats
    parents: tuple[tuple[int, Floats], ...]
    """(level of a parent, the least each of its options adds to one change ``(N, S, V' + 1)``)."""

    @property
    def last(self) -> int:
        """The option that leaves the feature as it is."""
        return int(self.values.shape[1]) - 1

    @cached_property
    def mean_parents(self) -> tuple[tuple[int, Floats], ...]:
        """``parents`` averaged over samples, ``(N, V' + 1)`` each."""
        return tuple((number, delta.mean(axis=1)) for number, delta in self.parents)

    @cached_property
    def value_ids(self) -> Indices:
        """Numbers that are equal for equal values of a lane; 0 is the start, ``(N, V + 1)``."""
        rounded = np.round(self.values, 9)
        order = np.argsort(rounded, axis=1, kind="stable")
        ordered = np.take_along_axis(rounded, order, axis=1)
        fresh = np.concatenate([np.ones((len(rounded), 1)), np.diff(ordered, axis=1) > 0], axis=1)
        ids = np.empty(rounded.shape, np.intp)
        np.put_along_axis(ids, order, np.cumsum(fresh, axis=1).astype(np.intp), axis=1)
        return np.where(ids == ids[:, -1:], 0, ids)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The options by number of changes, cheapest first."""
        mean = np.where(self.valid, self.alone.mean(axis=1), np.inf)
        groups = []
        for links in range(1, int(self.links.max(initial=0)) + 1):
            alone = np.where(self.links == links, mean, np.inf)
            width = int(np.isfinite(alone).sum(axis=1).max(initial=0))
            if width:
                order = np.argsort(alone, axis=1, kind="stable")[:, :width]
                groups.append(Group(links, order, np.take_along_axis(alone, order, axis=1)))
        return tuple(groups)


@dataclass(frozen=True)
class Group:
    """The options of a level that use the same number of changes, cheapest first.

    ``options`` ``(N, G)``; ``alone`` ``(N, G)`` is the mean over samples, infinite where not valid.
    """

    links: int
    options: Indices
    alone: Floats

    @cached_property
    def sizes(self) -> Indices:
        """How many options each lane has here, shape ``(N,)``."""
        return np.asarray(np.isfinite(self.alone).sum(axis=1))

    @cached_property
    def span(self) -> tuple[float, float, float]:
        """Least and largest cost, and the space left between lanes on one line."""
        finite = self.alone[np.isfinite(self.alone)]
        low, high = float(finite.min()), float(finite.max())
        return low, high, max(1.0, 1e-3 * max(-low, high))

    @cached_property
    def _line(self) -> Floats:
        """All lanes' costs in one ascending line: each lane in its own stretch."""
        low, high, pad = self.span
        capped = np.minimum(self.alone, high + 2 * pad) - low
        stretch = high - low + 4 * pad
        return np.asarray((capped + stretch * np.arange(len(capped))[:, None]).ravel())

    def count_below(self, lanes: Indices, limits: Floats) -> Indices:
        """How many options of ``lanes[i]`` cost less than ``limits[i]``, up to rounding."""
        if len(self.alone) == 1:
            return np.searchsorted(self.alone[0], limits, side="left")
        low, high, pad = self.span
        capped = np.clip(limits, low - pad, high + pad) - low
        capped += (high - low + 4 * pad) * lanes
        place = np.searchsorted(self._line, capped, side="left")
        return np.asarray(place - lanes * self.alone.shape[1])
