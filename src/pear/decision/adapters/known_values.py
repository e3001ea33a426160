"""Does the model know the values that a problem's states are turned into, and as what?

An encoder told to ignore what it does not know turns a text where it learnt a number, or a NaN
where it learnt None, into zeros without a word. The scores are then wrong and look right. So what a
model learnt is read from it: values are given as it learnt them, and one that it cannot know is
refused or told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pear.errors import ModelError
from pear.problem.checks import is_missing, plain
from pear.problem.tables import MISSING_TEXTS

if TYPE_CHECKING:
    from pear.decision.adapters.frames import FrameMaker
    from pear.problem.features import Feature


@dataclass(frozen=True)
class Before:
    """What happens to a column before an encoder reads it: imputers fill it, or nobody does.

    ``missing`` is what stands for a missing value in the column, NaN or None.
    """

    filled: bool = False
    missing: Any = np.nan


@dataclass(frozen=True)
class Learnt:
    """The values of one column that an encoder learnt, missing ones left out.

    ``missing`` is what stands for a missing value, NaN or None; ``takes_missing`` tells whether the
    model has learnt what that means, or fills it in first.
    """

    column: str
    values: tuple[Any, ...]
    missing: Any = np.nan
    takes_missing: bool = True

    def spelled(self, text: str) -> Any:
        """A category as the model learnt it: the number 2, where it learnt no text "2", and without
        the spaces around it, where it learnt it so.

        >>> Learnt("grade", (1, 2, 3)).spelled("2"), Learnt("job", ("none", "part")).spelled("part")
        (2, 'part')
        """
        same = [value for value in self.values if _spelling(value).strip() == text.strip()]
        return text if text in self.values or len(same) != 1 else same[0]


def _spelling(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(plain(value))


def learnt_values(model: Any, frame: FrameMaker) -> dict[str, Learnt]:
    """What is known of each column of a table; a column read by two encoders is the first's."""
    found: dict[str, Learnt] = {}
    for learnt in _learnt(model, dict.fromkeys(frame.columns, Before()), frame):
        found.setdefault(learnt.column, learnt)
    return found


def check_known_values(learnt: Mapping[str, Learnt], frame: FrameMaker, name: str) -> list[str]:
    """Refuse a feature none of whose values the model knows; what else it cannot know, in words."""
    doubts: list[str] = []
    for column, known in learnt.items():
        feature = frame.values_of(column) if column in frame.columns else None
        if feature is None or feature.is_number:
            continue
        given = frame.values_given(column)
        unknown = [value for value in given if value not in known.values]
        if len(unknown) == len(given):
            raise ModelError(
                f"model '{name}' learnt the values {_shown(known.values)} of '{column}', and the "
                f"problem gives it {_shown(given)}, none of which it knows; {_remedy(known)}"
            )
        if unknown:
            doubts.append(
                f"model '{name}' never learnt {_shown(unknown)} of '{column}' (it knows "
                f"{_shown(known.values)}), and answers as if it were none of its categories; look "
                "at how they are spelt, or take out of the problem what the model does not know"
            )
        doubts += _missing_doubts(known, feature, frame, name)
    return doubts


def _missing_doubts(known: Learnt, feature: Feature, frame: FrameMaker, name: str) -> list[str]:
    """Whether a missing value reaches the model as one that it has learnt."""
    column = known.column
    if not feature.may_be_missing or frame.sources[column].missing is not None:
        return []
    marks = [v for v in known.values if v in MISSING_TEXTS and v not in feature.categories]
    if marks and not known.takes_missing:
        raise ModelError(
            f"model '{name}' learnt {_shown(marks)} as a category of '{column}', and the problem "
            f"takes that for a missing value, which the model does not know: add {_shown(marks)} "
            f"to the categories of '{feature.name}', or declare missing = {marks[0]!r} for "
            f"'{column}' under [model.inputs]"
        )
    if known.takes_missing:
        return []
    return [
        f"model '{name}' never learnt a missing '{column}', and answers as if it were none of its "
        "categories; put an imputer in front of its encoder, train it on some, or take "
        f"'missing_counts_as' of '{feature.name}' out of the problem"
    ]


def _shown(values: Any) -> str:
    return ", ".join(repr(value) for value in values[:6]) + ("…" if values[6:] else "")


def _remedy(known: Learnt) -> str:
    if all(isinstance(value, str) for value in known.values):
        return "make the feature categorical, with these as its categories"
    return "correct the feature's kind and categories"


def _learnt(model: Any, given: Mapping[str, Before], frame: FrameMaker) -> Iterator[Learnt]:
    """What every encoder inside a model learnt of the columns it is ``given``, in their order."""
    columns = tuple(given)
    if getattr(model, "steps", None):
        # What follows a step that makes other columns is no longer about the table's.
        for _, step in model.steps:
            yield from _learnt(step, given, frame)
            if not _keeps_columns(step, columns):
                return
            own = None if step.missing_values is None else np.nan
            given = {column: Before(True, own) for column in columns}
    elif hasattr(model, "transformers_"):
        for _, part, chosen in model.transformers_:
            names = chosen_names(chosen, columns)
            if not isinstance(part, str):
                yield from _learnt(part, {n: given[n] for n in names if n in given}, frame)
    elif hasattr(model, "transformer_list"):
        for _, part in model.transformer_list:
            yield from _learnt(part, given, frame)
    elif hasattr(model, "categories_") and len(model.categories_) == len(columns):
        for column, values in zip(columns, model.categories_, strict=True):
            yield _of_encoder(column, given[column], np.asarray(values, object).tolist())
    elif getattr(model, "_preprocessor", None) is not None:  # Gradient boosting's own encoder.
        for known in _learnt(model._preprocessor, given, frame):
            yield replace(known, takes_missing=True)
    elif getattr(getattr(model, "_Booster", None), "pandas_categorical", None):
        yield from _of_lightgbm(model, columns, frame)
    else:
        for inner in _inner(model):
            yield from _learnt(inner, given, frame)


def _inner(model: Any) -> list[Any]:
    """The estimators that a search, a threshold, a calibration or a vote asks."""
    for part in ("best_estimator_", "estimator_"):
        if hasattr(model, part):
            return [getattr(model, part)]
    calibrated = getattr(model, "calibrated_classifiers_", [])
    voting = [] if hasattr(model, "estimator") else getattr(model, "estimators_", [])
    return [part.estimator for part in calibrated] or [e for e in voting if hasattr(e, "steps")]


def _of_encoder(column: str, before: Before, values: list[Any]) -> Learnt:
    stated = tuple(value for value in values if not is_missing(value))
    gone = [value for value in values if is_missing(value)]
    missing = None if gone and all(value is None for value in gone) else before.missing
    return Learnt(column, stated, missing, takes_missing=bool(gone) or before.filled)


def _of_lightgbm(model: Any, columns: tuple[str, ...], frame: FrameMaker) -> Iterator[Learnt]:
    """LightGBM keeps the categories of its columns of pandas categories, without their names."""
    learnt = model._Booster.pandas_categorical
    texts = [
        column
        for column in columns
        if (feature := frame.values_of(column)) is not None and feature.is_categorical
    ]
    if len(texts) != len(learnt):
        what = "; ".join(_shown(list(values)) for values in learnt)
        raise ModelError(
            f"model '{type(model).__name__}' learnt {len(learnt)} columns of categories ({what}), "
            f"and of its columns {len(texts)} are categorical in the problem "
            f"({', '.join(texts) or 'none'}); make those categorical that were so in its training"
        )
    for column, values in zip(texts, learnt, strict=True):
        yield Learnt(column, tuple(values))


def _keeps_columns(step: Any, columns: tuple[str, ...]) -> bool:
    """Whether a step is an imputer that fills its columns and leaves their order."""
    filled = getattr(step, "statistics_", None)
    return filled is not None and len(filled) == len(columns) and not step.add_indicator


def chosen_names(chosen: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a transformer's columns, given as names, numbers, a mask or a slice."""
    if isinstance(chosen, slice) or (np.asarray(chosen).dtype.kind in "bi"):
        return tuple(np.asarray(columns, object)[chosen].tolist())
    return tuple(str(column) for column in np.atleast_1d(np.asarray(chosen, object)).tolist())
