"""Which tests does a report hold, and what do all of them together say of each?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.portfolio.audit.cells import SHARES, Attribute, Cell, Flip, Group
from pear.portfolio.audit.groups import Grouping
from pear.portfolio.audit.statistics import (
    amount_test,
    estimate,
    gained_or_lost_test,
    paired_test,
    share_estimate,
    share_test,
)

Floats = NDArray[np.float64]


class Tests:
    """All tests of one report; a test's number waits in ``adjusted`` until all are known."""

    def __init__(self, smallest: int, rng: np.random.Generator) -> None:
        self.smallest, self.rng = smallest, rng
        self.entries: list[float] = []
        self._known: dict[Any, int] = {}

    def add(self, p: float, key: Any = None) -> int:
        """The number of a test; the same comparison from the other side is the same test."""
        self.entries.append(p)
        if key is not None:
            self._known[key] = len(self.entries) - 1
        return len(self.entries) - 1

    def groups(
        self,
        grouping: Grouping,
        measures: Mapping[str, Floats],
        undecided: NDArray[np.bool_] | None = None,
    ) -> tuple[Group, ...]:
        """Every group by every measure ``(n,)``; who is in no group counts nowhere."""
        inside = {m: np.where(grouping.of >= 0, values, np.nan) for m, values in measures.items()}
        return tuple(
            Group(
                label,
                {m: self.cell(grouping.of == code, values, m) for m, values in inside.items()},
                0 if undecided is None else int((undecided & (grouping.of == code)).sum()),
            )
            for code, label in enumerate(grouping.labels)
        )

    def cell(self, members: NDArray[np.bool_], values: Floats, measure: str) -> Cell:
        """One measure of a group against everybody else; values NaN do not count."""
        counted = ~np.isnan(values)
        inside, outside = values[members & counted], values[~members & counted]
        n, share = len(inside), measure in SHARES
        if n < self.smallest:
            return Cell(n, too_small=True)
        middle = share_estimate(inside > 0) if share else estimate(inside, self.rng)
        found = Cell(n, too_small=False, estimate=middle)
        if len(outside) < self.smallest:
            return found
        key = (
            measure,
            frozenset([(members & counted).tobytes(), (~members & counted).tobytes()]),
        )
        number = self._known.get(key)
        if number is None:
            p = share_test(inside > 0, outside > 0) if share else amount_test(inside, outside)
            number = self.add(p, key)
        difference = float(inside.mean() - outside.mean())
        return replace(
            found,
            difference=difference,
            size=abs(difference) / (float(values[counted].std()) or 1.0),
            p=self.entries[number],
            adjusted=number,
        )

    def flip(self, flipped: Any) -> Flip:
        """The same people twice; those undecided either way count only as such."""
        decided = ~flipped.undecided
        n = int(decided.sum())
        entry = Flip(
            flipped.attribute,
            flipped.before,
            flipped.after,
            len(decided),
            n < self.smallest,
            of=flipped.of,
            value=flipped.value,
            undecided=int(flipped.undecided.sum()),
        )
        if entry.too_small:
            return entry
        gained, lost = flipped.gained[decided], flipped.lost[decided]
        plan_p = gained_or_lost_test(int(gained.sum()), int(lost.sum()))
        entry = replace(
            entry,
            share_approved=float(flipped.approved[decided].mean()),
            share_plan_lost=float(lost.mean()),
            share_plan_gained=float(gained.mean()),
            plan_p=plan_p,
            plan_adjusted=self.add(plan_p),
        )
        both = flipped.difference[~np.isnan(flipped.difference)]
        if len(both) < self.smallest:
            return entry
        p = paired_test(both)
        return replace(entry, difference=estimate(both, self.rng), p=p, adjusted=self.add(p))


def judged(part: Attribute, adjusted: Sequence[float], level: float) -> Attribute:
    """The groups with their adjusted probabilities in place of their tests' numbers."""
    groups = (
        replace(g, cells={m: _judge(cell, adjusted, level) for m, cell in g.cells.items()})
        for g in part.groups
    )
    return replace(part, groups=tuple(groups))


def judged_flip(entry: Flip, adjusted: Sequence[float], level: float) -> Flip:
    """The same for people flipped."""
    found: Flip = _judge(entry, adjusted, level)
    if found.plan_adjusted is None:
        return found
    value = adjusted[int(found.plan_adjusted)]
    return replace(found, plan_adjusted=value, plan_flagged=value <= level)


def _judge(entry: Any, adjusted: Sequence[float], level: float) -> Any:
    if entry.adjusted is None:
        return entry
    value = adjusted[int(entry.adjusted)]
    return replace(entry, adjusted=value, flagged=value <= level)
