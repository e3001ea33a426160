"""Which assignments are looked at next? Bands of rising cost, wider as the work allows.

A band is enumerated from its first node, in slices; the next one goes on where it ends. One that
holds too much before anything of it is scored is made narrower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pear.arrays import Floats, Indices
from pear.planning.exact.kernel import at_the_root, at_the_top, below, favourable_below
from pear.planning.exact.options import Options

if TYPE_CHECKING:
    from pear.decision.ceilings import Specialised

BUFFER, FAVOURABLE = 16_384, 64
"""Assignments listed before they are scored; fewer where only what may be favourable is listed."""
FEW_NODES = 1_000
"""Bands with less than this hardly cost anything."""
MOST_NARROWED = 4
"""How often a band is narrowed before it is scored in the order it is listed."""
GROWTH = 4.0
"""A new band aims at this many times the nodes of the last one."""


class Band:
    """A band of costs, and what is listed of it; the next one goes on where this one ends.

    ``high`` ``(Q,)`` is its end: ``level`` steps of each query's own size, or infinity where that
    is beyond everything.
    """

    def __init__(self, options: Options) -> None:
        singles = options.single_costs
        quarters = [float(mine[len(mine) // 4]) if len(mine) else 0.0 for mine in singles]
        spans = [float(mine[-1] - mine[0]) / 8 if len(mine) else 0.0 for mine in singles]
        self._options = options
        self._base = np.array(quarters)
        self._unit = np.maximum(np.maximum(spans, np.abs(quarters) * 0.125), 1e-300)
        self._proven, self._last_nodes = -np.inf, 0
        self.level, self._step = 0.125, 1.0
        self.begun = False
        self._narrowed = 0
        self._assignments = np.empty((BUFFER, len(options.columns)), np.int16)
        self._bounds = np.empty(BUFFER)
        self.special: Specialised | None = None

    @property
    def high(self) -> Floats:
        with np.errstate(over="ignore"):
            high = self._base + self.level * self._unit
        return np.asarray(np.where(high >= self._options.dearest, np.inf, high))

    def begin(self, special: Specialised | None) -> None:
        """From the root."""
        self.special = special
        self.cursor = at_the_root(self._options)
        if special is not None:
            self.nodes = at_the_top(self._options)
        self.begun = self._whole = True
        self._looked = 0

    def go_on(
        self, low: Floats, high: Floats, most_nodes: int
    ) -> tuple[Indices, Floats, int, bool]:
        """Look at some more nodes.

        Returns the assignments listed, smallest bound first, with their bounds, how many nodes were
        looked at, and whether that was the end.
        """
        if self.special is not None:
            found, looked, finished = favourable_below(
                self._options.choices, self.special, self.nodes, low, high, most_nodes,
                self._assignments[:FAVOURABLE], self._bounds[:FAVOURABLE],
            )  # fmt: skip
        else:
            found, looked, finished = below(
                self._options.choices, self.cursor, low, high, most_nodes,
                self._assignments, self._bounds,
            )  # fmt: skip
        self._looked += looked
        assignments = self._assignments[:found].astype(np.intp)
        bounds = self._bounds[:found].copy()
        order = np.lexsort((self._options.steps(assignments), bounds))
        return assignments[order], bounds[order], looked, finished

    def cut(self, query: int) -> bool:
        """Whether anything was left out of a finished band because of its cost."""
        if self.special is not None:
            return bool(np.isfinite(self.high[query]))
        return bool(self.cursor.cut[query])

    def narrow(self) -> bool:
        """Begin again with a quarter of the band, where it holds too much and nothing is scored."""
        if not self._whole or self._narrowed >= MOST_NARROWED or self.special is not None:
            self._whole = False
            return False
        self._narrowed += 1
        proven = self._proven if np.isfinite(self._proven) else self.level - 8 * self._step
        self._step = (self.level - proven) / 4
        self.level = proven + self._step
        self.begun = False
        return True

    def advance(self) -> None:
        """To the next band: wider by what the work of the last ones suggests."""
        nodes, last = max(self._looked, 1), self._last_nodes
        if nodes > FEW_NODES and nodes > last > 0:
            rate = np.log(nodes / last) / (self.level - self._proven)
            self._step = float(np.clip(np.log(GROWTH) / rate, self._step / 4, self._step * 4))
        else:
            self._step *= 2 if nodes > FEW_NODES else GROWTH
        self._proven, self._last_nodes = self.level, nodes
        self.level += self._step
        self.begun, self._narrowed = False, 0
