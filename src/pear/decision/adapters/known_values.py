"""Does the encoder inside a pipeline know the values that a problem's states are turned into?

An encoder told to ignore what it does not know turns a column of the wrong type into zeros
without a word: truth values where it learnt the texts "yes" and "no", say. The scores are
then wrong and look right, so :func:`check_known_values` refuses such a column by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pear.decision.adapters.frames import FrameMaker
from pear.errors import ModelError


def check_known_values(model: Any, frame: FrameMaker, name: str) -> None:
    """Refuse a feature none of whose values the model's encoder has seen."""
    for column, learnt in learnt_categories(model, frame.columns):
        feature = frame.values_of(column) if column in frame.columns else None
        if feature is None or feature.is_number:
            continue
        given = list(feature.categories) if feature.is_categorical else [False, True]
        if set(given).isdisjoint(learnt):
            shown = ", ".join(repr(value) for value in learnt[:6]) + ("…" if learnt[6:] else "")
            remedy = (
                "make the feature categorical, with these as its categories"
                if all(isinstance(value, str) for value in learnt)
                else "correct the feature's kind and categories"
            )
            raise ModelError(
                f"model '{name}' learnt the values {shown} of '{column}', and the problem gives it "
                f"{', '.join(map(repr, given[:6]))}, none of which it knows; {remedy}"
            )


def learnt_categories(model: Any, columns: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Column and categories of every encoder whose columns can be told."""
    steps = getattr(model, "steps", None)
    if steps:
        # What follows a step that makes other columns is no longer about the table's.
        for _, step in steps:
            yield from learnt_categories(step, columns)
            if not _keeps_columns(step, columns):
                return
    elif hasattr(model, "transformers_"):
        for _, part, chosen in model.transformers_:
            if not isinstance(part, str):
                yield from learnt_categories(part, _names(chosen, columns))
    elif hasattr(model, "categories_") and len(model.categories_) == len(columns):
        for column, learnt in zip(columns, model.categories_, strict=True):
            yield column, np.asarray(learnt, object).tolist()


def _keeps_columns(step: Any, columns: tuple[str, ...]) -> bool:
    """Whether a step is an imputer that fills its columns and leaves their order."""
    filled = getattr(step, "statistics_", None)
    return filled is not None and len(filled) == len(columns) and not step.add_indicator


def _names(chosen: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a transformer's columns, given as names, numbers, a mask or a slice."""
    if isinstance(chosen, slice) or (np.asarray(chosen).dtype.kind in "bi"):
        return tuple(np.asarray(columns, object)[chosen].tolist())
    return tuple(str(column) for column in np.atleast_1d(np.asarray(chosen, object)).tolist())
