"""Which models could decide tomorrow? The one of today, trained again on other people.

Bootstraps stand for the chance in who was in the training data; windows of time for how people
and decisions change. Versions that a lender kept need none of this: :func:`load_model` takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pear.decision.adapters.sklearn import SklearnScores
from pear.decision.blackbox import BlackBox
from pear.errors import InvalidData, InvalidSetting, ModelError
from pear.problem.features import States
from pear.problem.problem import class_key

Rows = NDArray[np.intp]

WINDOW = 0.5
"""Share of the people that one window of time holds."""


def bootstraps(n_people: int, n: int, rng: np.random.Generator) -> list[Rows]:
    """n times half as many people as there are, drawn with replacement.

    Half as many, because a model trained on them then differs from today's as much as one trained
    on as many new people would: both differences have twice the variance of a single model. (Of
    full size they would vary with today's model as their centre, and promise too much.)
    """
    return [rng.integers(0, n_people, max(1, n_people // 2)) for _ in range(n)]


def halves(n_people: int, n: int, rng: np.random.Generator) -> list[Rows]:
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


def windows(times: ArrayLike, n: int) -> list[Rows]:
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
    samples: Sequence[Rows],
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
