"""Ceilings of several models that decide together: what one of them refuses surely is refused.

Where all must say yes, the ceiling of any single one holds: that of the model which likes the
person least is taken. Where a share is enough, some may say no: of as many models as may, and one
more, at least one says yes. Linear ones of these are bounded together, by the largest gain that
any of them sees in each option; other kinds are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.decision.ceilings.inside import CLOSE, Inside
from pear.decision.ceilings.specialised import LINEAR, Specialised, blank
from pear.decision.several import SeveralScores
from pear.problem.features import States

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Together:
    """The models that could be looked into, of several of which ``doubters - 1`` may say no."""

    members: tuple[Inside, ...]
    doubters: int

    @property
    def what(self) -> str:
        """What was read, for certificates."""
        kinds = sorted({member.what for member in self.members})
        return f"{' and '.join(kinds)} of {len(self.members)} models"

    @property
    def worth_after(self) -> float:
        """Rows that a search asks before a look inside is the faster way."""
        return max(member.worth_after for member in self.members)

    @property
    def scored_after(self) -> float:
        """Only ceilings are read of several models."""
        return np.inf

    def scores(self, states: States) -> Matrix:
        """The highest scores that the models which could be read allow, shape ``(n,)``."""
        each = np.stack([member.scores(states) for member in self.members])
        return np.asarray(np.partition(each, self.doubters - 1, axis=0)[self.doubters - 1])

    def agrees(self, states: States, scores: Matrix) -> bool:
        """Whether no state has a higher score ``(n,)`` than that."""
        return bool((scores <= self.scores(states) + CLOSE).all())

    def scorer(
        self, start: Matrix, columns: Sequence[int], values: Sequence[Matrix], required: float
    ) -> None:
        """As :attr:`scored_after` says."""

    def specialise(
        self,
        start: Matrix,
        columns: Sequence[int],
        values: Sequence[Matrix],
        required: float,
        max_changes: int | None = None,
    ) -> Specialised | None:
        """The models for one person, as :meth:`Inside.specialise` gives that of one."""
        scores = [float(member.scores(np.atleast_2d(start))[0]) for member in self.members]
        hardest = np.argsort(scores, kind="stable")[: self.doubters]
        found = []
        for number in hardest:
            one = self.members[number].specialise(start, columns, values, required, max_changes)
            if one is None:
                return None
            found.append(one)
        return found[0] if len(found) == 1 else _bounded_together(found)


def together(scores: SeveralScores) -> Together | None:
    """What can be read of several models; None where too few can be read to rule anything out."""
    found = [black_box.inside for black_box in scores.black_boxes]
    members = tuple(inside for inside in found if isinstance(inside, Inside))
    doubters = len(scores.black_boxes) - scores.needed + 1
    return Together(members, doubters) if len(members) >= doubters else None


def _bounded_together(models: Sequence[Specialised]) -> Specialised | None:
    """One linear model that is nowhere below the best of these; None where one is not linear."""
    if any(model.kind != LINEAR for model in models):
        return None
    fields = blank(len(models[0].counts), models[0].counts)
    fields["gains"] = np.max([model.gains for model in models], axis=0)
    # Each is measured from what it requires itself: the margins of two models do not compare.
    bases = [model.base[0] - model.required for model in models]
    fields["base"][:] = max(bases)
    size = max(abs(model.base[0]) + abs(model.required) for model in models)
    size += float(np.abs(fields["gains"]).max(axis=1).sum())
    return Specialised(kind=LINEAR, required=-(2.0**-48) * size, **fields)
