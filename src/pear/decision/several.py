"""What do several models say together?

A plan takes months, and the model that decides then is not the one that decides now. A black box
made of several says yes when all of them do, or a stated share: its score is the lowest of theirs,
or the highest that so many of them reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision.blackbox import BlackBox
from pear.errors import InvalidSetting
from pear.problem.checks import is_number
from pear.problem.features import States

SHOWN = 8
"""Letters of each model's fingerprint in that of several."""

MOST_SHOWN = 5
"""Most models whose fingerprints stand in that of several; of more it is a hash."""


@dataclass(frozen=True)
class SeveralScores:
    """The score that ``needed`` of the models reach: above it, so many say yes.

    >>> from pear.problem import Feature, FeatureSpace
    >>> space = FeatureSpace((Feature("income"),))
    >>> models = [BlackBox(lambda s, most=most: s[:, 0] / most, space) for most in (50, 100, 200)]
    >>> [float(SeveralScores(tuple(models), n)(np.array([[40.0]]))[0]) for n in (1, 2, 3)]
    [0.8, 0.4, 0.2]
    """

    black_boxes: tuple[BlackBox, ...]
    needed: int

    def each(self, states: States) -> NDArray[np.float64]:
        """What each of m models says of n states, shape ``(m, n)``."""
        return np.stack([black_box.score(states) for black_box in self.black_boxes])

    def __call__(self, states: States) -> NDArray[np.float64]:
        return self._reached(self.each(states))

    def plainly(self, record: dict[str, Any]) -> NDArray[np.float64]:
        """The same for one record, each model asked in its plainest way."""
        return self._reached(np.array([[model.plainly(record)] for model in self.black_boxes]))

    def _reached(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        rank = len(self.black_boxes) - self.needed
        return np.asarray(np.partition(scores, rank, axis=0)[rank])


def several(black_boxes: Sequence[BlackBox], agree: float = 1.0) -> BlackBox:
    """One black box of several about the same features: all say yes, or the share ``agree``.

    Its fingerprint says how many of how many must agree, and which they are.

    Raises
    ------
    InvalidSetting
        Where no black box is given, where their features differ, or ``agree`` is not a share.

    Examples
    --------
    >>> from pear.datasets import loan_book_classifier, loan_book_problem
    >>> one = loan_book_classifier(loan_book_problem())
    >>> several([one, one]).name
    '2 models'
    """
    if not black_boxes:
        raise InvalidSetting("'models' must name at least one model (got none)")
    if not is_number(agree) or not 0 < agree <= 1:
        raise InvalidSetting(
            f"'agree' must be a share above 0, at most 1 (got {agree!r}); 1 asks all models to "
            "say yes, 0.9 nine of ten"
        )
    first = black_boxes[0]
    for other in black_boxes[1:]:
        if other.space != first.space or other.goal.favourable != first.goal.favourable:
            raise InvalidSetting(
                f"'{other.name}' is about other features or decisions than '{first.name}'; "
                "several models must be about the same problem"
            )
    count = len(black_boxes)
    # A share is a decimal: 0.9 of ten models are nine, whatever the product rounds to.
    needed = max(1, ceil(agree * count - 1e-9))
    return BlackBox(
        SeveralScores(tuple(black_boxes), needed),
        first.space,
        first.goal,
        f"{count} models" if needed == count else f"{needed} of {count} models",
        fingerprint=fingerprint_of(black_boxes, needed),
        uses=_uses(black_boxes),
        doubts=tuple(doubt for black_box in black_boxes for doubt in black_box.doubts),
    )


def fingerprint_of(black_boxes: Sequence[BlackBox], needed: int) -> str:
    """``2/3:`` and the beginnings of the models' fingerprints, or a hash of them all.

    The same models in another order are the same.
    """
    known = sorted(black_box.fingerprint for black_box in black_boxes)
    shown = "+".join(one[:SHOWN] for one in known)
    if len(known) > MOST_SHOWN:
        shown = sha256(" ".join(known).encode()).hexdigest()[:16]
    return f"{needed}/{len(known)}:{shown}"


def _uses(black_boxes: Sequence[BlackBox]) -> tuple[str, ...]:
    """Features that any of the models looks at; empty where one does not say."""
    if not all(black_box.uses for black_box in black_boxes):
        return ()
    seen = {name for black_box in black_boxes for name in black_box.uses}
    return tuple(name for name in black_boxes[0].space.names if name in seen)
