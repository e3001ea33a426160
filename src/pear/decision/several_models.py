"""How do several models decide together, and which models could decide tomorrow?

A plan takes months, and the model that decides then is not the one that decides now. A black box
made of several says yes when all of them do, or a stated share: its score is the lowest of theirs,
or the highest that so many of them reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pear.arrays import Floats, Indices
from pear.decision.adapters.sklearn import SklearnScores
from pear.decision.blackbox import BlackBox
from pear.errors import InvalidData, InvalidSetting, ModelError
from pear.problem.features import States
from pear.problem.values import class_key, is_number

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

    def each(self, states: States) -> Floats:
        """What each of m models says of n states, shape ``(m, n)``."""
        return np.stack([black_box.score(states) for black_box in self.black_boxes])

    def __call__(self, states: States) -> Floats:
        return self._reached(self.each(states))

    def score_record(self, record: dict[str, Any]) -> Floats:
        """The same for one record, each model asked in its plainest way."""
        return self._reached(np.array([[model.score_record(record)] for model in self.black_boxes]))

    def _reached(self, scores: Floats) -> Floats:
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
    check_agree(agree)
    first = black_boxes[0]
    for other in black_boxes[1:]:
        if differs := other.differs_from(first.space, first.goal):
            raise InvalidSetting(
                f"'{other.name}' is about other features or decisions than '{first.name}' "
                f"(it {differs.replace('the problem', 'the other')}); several models must be about "
                "the same problem"
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


def check_agree(agree: Any) -> None:
    """Refuse what is no share of the models."""
    if not is_number(agree) or not 0 < agree <= 1:
        raise InvalidSetting(
            f"'agree' must be a share above 0, at most 1 (got {agree!r}); 1 asks all models to "
            "say yes, 0.9 nine of ten"
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


# Which models could decide tomorrow?

WINDOW = 0.5
"""Share of the people that one window of time holds."""


def bootstraps(n_people: int, n: int, rng: np.random.Generator) -> list[Indices]:
    """n times half as many people as there are, drawn with replacement.

    Half as many, because a model trained on them then differs from today's as much as one trained
    on as many new people would: both differences have twice the variance of a single model. (Of
    full size they would vary with today's model as their centre, and promise too much.)
    """
    return [rng.integers(0, n_people, max(1, n_people // 2)) for _ in range(n)]


def halves(n_people: int, n: int, rng: np.random.Generator) -> list[Indices]:
    """2 n halves of the people: each of even number and the next have nobody in common.

    A model trained on one of such a pair plans, the model trained on the other decides: what
    happens when tomorrow's model is trained on new people, rehearsed on those there are.

    >>> [len(rows) for rows in halves(5, 1, np.random.default_rng(0))]
    [2, 2]
    """
    size, samples = n_people // 2, []
    for _ in range(n):
        order = rng.permutation(n_people)
        samples += [order[:size], order[size : 2 * size]]
    return samples


def windows(times: ArrayLike, n: int) -> list[Indices]:
    """n windows of time, each with half of the people: from the earliest to the latest.

    >>> [rows.tolist() for rows in windows(["2021", "2024", "2022", "2023"], 3)]
    [[0, 2], [2, 3], [3, 1]]
    """
    order = np.argsort(np.asarray(times), kind="stable")
    size = max(1, round(WINDOW * len(order)))
    starts = np.linspace(0, len(order) - size, n).round().astype(int)
    return [order[start : start + size] for start in starts]


def retrained(
    black_box: BlackBox,
    states: States,
    labels: Sequence[Any] | NDArray[Any],
    samples: Sequence[Indices],
    rng: np.random.Generator,
) -> list[BlackBox]:
    """The same kind of model with the same settings, trained again on each of the samples.

    Parameters
    ----------
    black_box
        A scikit-learn estimator or pipeline, through :func:`from_sklearn` or :func:`load_model`.
    states, labels
        The people to train on ``(n, d)`` and their classes ``(n,)``, as the model names them.
    samples
        Which of them to train on, once per model: :func:`bootstraps`, :func:`windows`.
    rng
        Seeds whatever in the model is drawn at random.

    Raises
    ------
    ModelError
        Where the model cannot be trained again.
    InvalidData
        Where the labels are not the model's classes, or one sample has only one of them.
    """
    from sklearn.base import clone

    function = black_box.function
    if not isinstance(function, SklearnScores):
        raise ModelError(
            f"model '{black_box.name}' cannot be trained again from here; train its versions "
            "yourself and give those"
        )
    classes = _classes(function, labels, len(states))
    table = function.table(states)
    models = []
    for number, rows in enumerate(samples):
        if len(np.unique(classes[rows])) < 2:
            raise InvalidData(
                f"sample {number + 1} of {len(samples)} has people of one class only; give more "
                "people, or fewer windows"
            )
        model = _seeded(clone(function.model), rng)
        model.fit(table.iloc[rows] if hasattr(table, "iloc") else table[rows], classes[rows])
        name = f"{black_box.name}, retrained ({number + 1})"
        again = replace(function, model=model, name=name)
        models.append(
            BlackBox(
                again, black_box.space, black_box.goal, name, black_box.classes, uses=black_box.uses
            )
        )
    return models


def _classes(function: SklearnScores, labels: Any, n: int) -> NDArray[Any]:
    """The labels as the model's own classes ``(n,)``: "1", 1 and True are one."""
    if len(labels) != n:
        raise InvalidSetting(f"'labels' must be one per person (got {len(labels)} for {n})")
    known = {class_key(value): value for value in function.classes}
    found = [known.get(class_key(value)) for value in np.asarray(labels, object).tolist()]
    for place, value in enumerate(found):
        if value is None:
            raise InvalidData(
                f"the label of row {place} is {labels[place]!r}, which is not a class of model "
                f"'{function.name}'; its classes are {', '.join(map(str, function.classes))}"
            )
    return np.array(found)


def _seeded(model: Any, rng: np.random.Generator) -> Any:
    """The model with fresh seeds for all that it draws."""
    seeds = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**{name: int(rng.integers(2**31)) for name in seeds})
