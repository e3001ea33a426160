"""How do states become the table a model was trained on, cheaply and often? And which values does
the model know?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.decision.encoding import Inputs, sources_of
from pear.errors import ModelError
from pear.problem.features import Feature, FeatureSpace, States, value_column
from pear.problem.model_inputs import ModelInput
from pear.problem.values import is_missing, plain
from pear.tables.reading import MISSING_TEXTS


class FrameMaker:
    """Turns states into a DataFrame with the columns a model wants, in its order.

    A column is what the problem declares for it, else the feature of its name, else one category
    of a feature in the spelling of :func:`pandas.get_dummies` (``job_part``). ``category_dtype``
    gives categories as pandas categoricals instead of text, for models trained on those (LightGBM,
    XGBoost, gradient boosting without a pipeline). ``learnt`` is what the model's encoders learnt:
    categories and missing values are given as they know them, and truth values as True and False
    where they learnt those, else as truth values or, where one may be missing, as 0, 1 and NaN.

    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("income"), Feature("owner", "boolean")))
    >>> FrameMaker(space, ["owner"])(np.array([[2100.0, 1.0]])).to_dict("records")
    [{'owner': True}]
    """

    def __init__(
        self,
        space: FeatureSpace,
        columns: Sequence[str],
        *,
        declared: Sequence[ModelInput] = (),
        category_dtype: bool = False,
        learnt: Mapping[str, LearntValues] | None = None,
    ) -> None:
        self.sources, absent, strange = sources_of(columns, declared, space)
        if absent:
            begun = [f.name for f in space.features if absent[0].startswith(f.name) and f.is_number]
            hint = (
                f" ('{absent[0]}' may be a category of '{begun[0]}', which the problem takes for a "
                "number: make it categorical then)"
                if begun
                else ""
            )
            raise ModelError(
                f"the model was trained on {', '.join(map(repr, absent))}, which the problem does "
                f"not have; its features are {', '.join(space.names)}: add them to the problem, "
                "declare under [model.inputs] which feature each column is made of, or train the "
                f"model on the problem's features{hint}"
            )
        if strange:
            raise ModelError(
                f"[model.inputs] declares '{strange[0]}', and the model was not trained on such a "
                f"column; its columns are {', '.join(columns)}"
            )
        self.space = space
        self.columns = tuple(columns)
        self.declared = frozenset(name for d in declared for name in d.names(space[d.source]))
        self.category_dtype = category_dtype
        numbers = [n for n, entry in self.sources.items() if not _is_value(entry, space)]
        self._numbers = {name: place for place, name in enumerate(numbers)}
        self._encoded = Inputs(space, tuple(self.sources[n] for n in numbers)) if numbers else None
        self._values = {
            name: values
            for name in columns
            if (values := self._values_table(name, (learnt or {}).get(name))) is not None
        }

    def values_of(self, column: str) -> Feature | None:
        """The feature whose values a column holds as they are; None where it holds numbers."""
        return None if column in self._numbers else self.space[self.sources[column].source]

    def values_given(self, column: str) -> list[Any]:
        """The values, missing ones left out, that a column of categories or truth values can
        have."""
        values = self._values.get(column)
        return [False, True] if values is None else list(values[:-1])

    def _values_table(self, column: str, learnt: LearntValues | None) -> NDArray[np.object_] | None:
        """What the model gets for each code of a feature; the last one is for a missing value."""
        feature = self.values_of(column)
        if feature is None or feature.is_number:
            return None
        stated = self.sources[column].missing
        gone: Any = np.nan if learnt is None else learnt.missing
        values: list[Any] = list(feature.categories)
        if feature.kind == "boolean":
            if learnt is None or not any(isinstance(value, bool) for value in learnt.values):
                return None
            values = [False, True]
        elif learnt is not None:
            values = [learnt.spelled(category) for category in feature.categories]
        return np.array([*values, gone if stated is None else stated], object)

    def __call__(self, states: States) -> pd.DataFrame:
        made: dict[str, Any] = {}
        matrix = None if self._encoded is None else self._encoded(states)
        for name, entry in self.sources.items():
            if matrix is not None and name in self._numbers:
                made[name] = matrix[:, self._numbers[name]]
                continue
            feature, codes = self.space[entry.source], states[:, self.space.index(entry.source)]
            values = self._values.get(name)
            if values is None:
                truth = feature.kind == "boolean" and feature.may_be_missing
                made[name] = codes if truth else value_column(feature, codes)
                continue
            places = np.where(np.isnan(codes), -1, codes).astype(np.intp)
            if feature.is_categorical and self.category_dtype:
                made[name] = self._categorical(values[places], name)
            else:  # Of plain texts pandas makes a column in which None is NaN.
                kind = object if values[-1] is None else None
                made[name] = pd.Series(values[places], dtype=kind)
        return pd.DataFrame(made, copy=False)

    def _categorical(self, values: Any, name: str) -> pd.Categorical:
        known = [value for value in self._values[name] if not is_missing(value)]
        return pd.Categorical(values, categories=pd.Index(dict.fromkeys(known), dtype=object))

    def encode_record(self, record: Mapping[str, Any]) -> pd.DataFrame:
        """The row of one record, made value by value, as any other program would."""
        row: dict[str, Any] = {}
        for name, entry in self.sources.items():
            feature, value = self.space[entry.source], record[entry.source]
            if name in self._numbers:
                row[name] = entry.number(feature, value)
            elif name in self._values:
                *stated, gone = self._values[name]
                known = feature.categories or (False, True)
                given = np.empty(1, object)
                given[0] = gone if is_missing(value) else stated[known.index(value)]
                categories = feature.is_categorical and self.category_dtype
                row[name] = (
                    self._categorical(given, name) if categories else pd.Series(given, dtype=object)
                )
            elif feature.is_number:
                value = np.nan if is_missing(value) else value
                row[name] = [float(value) if feature.may_be_missing else value]
            else:
                value = np.nan if is_missing(value) else value
                row[name] = np.array([value], float if feature.may_be_missing else bool)
        return pd.DataFrame(row)


def _is_value(entry: ModelInput, space: FeatureSpace) -> bool:
    """Whether a column holds the values of a feature themselves, and not a number made of them."""
    return entry.as_it_is or (entry.encoding == "value" and space[entry.source].is_categorical)


# Which values did the model learn?


@dataclass(frozen=True)
class Imputation:
    """What happens to a column before an encoder reads it: whether an imputer fills it.

    ``missing`` is what stands for a missing value in the column, NaN or None.
    """

    filled: bool = False
    missing: Any = np.nan


@dataclass(frozen=True)
class LearntValues:
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

        >>> LearntValues("grade", (1, 2, 3)).spelled("2")
        2
        >>> LearntValues("job", ("none", "part")).spelled("part")
        'part'
        """
        same = [value for value in self.values if _spelling(value).strip() == text.strip()]
        return text if text in self.values or len(same) != 1 else same[0]


def _spelling(value: Any) -> str:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(plain(value))


def learnt_values(model: Any, frame: FrameMaker) -> dict[str, LearntValues]:
    """What is known of each column of a table; where two encoders read a column, the first one
    counts."""
    found: dict[str, LearntValues] = {}
    for learnt in _learnt(model, dict.fromkeys(frame.columns, Imputation()), frame):
        found.setdefault(learnt.column, learnt)
    return found


def check_known_values(
    learnt: Mapping[str, LearntValues], frame: FrameMaker, name: str
) -> list[str]:
    """Refuse a feature if the model knows none of its values; warn about single values it does not
    know."""
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


def _missing_doubts(
    known: LearntValues, feature: Feature, frame: FrameMaker, name: str
) -> list[str]:
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


def _remedy(known: LearntValues) -> str:
    if all(isinstance(value, str) for value in known.values):
        return "make the feature categorical, with these as its categories"
    return "correct the feature's kind and categories"


def _learnt(
    model: Any, given: Mapping[str, Imputation], frame: FrameMaker
) -> Iterator[LearntValues]:
    """What every encoder inside a model learnt of the columns it is ``given``, in their order."""
    columns = tuple(given)
    if getattr(model, "steps", None):
        # Steps behind one that makes other columns no longer see the table's.
        for _, step in model.steps:
            yield from _learnt(step, given, frame)
            if not _keeps_columns(step, columns):
                return
            own = None if step.missing_values is None else np.nan
            given = {column: Imputation(True, own) for column in columns}
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


def _of_encoder(column: str, imputation: Imputation, values: list[Any]) -> LearntValues:
    stated = tuple(value for value in values if not is_missing(value))
    gone = [value for value in values if is_missing(value)]
    missing = None if gone and all(value is None for value in gone) else imputation.missing
    return LearntValues(column, stated, missing, takes_missing=bool(gone) or imputation.filled)


def _of_lightgbm(model: Any, columns: tuple[str, ...], frame: FrameMaker) -> Iterator[LearntValues]:
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
        yield LearntValues(column, tuple(values))


def _keeps_columns(step: Any, columns: tuple[str, ...]) -> bool:
    """Whether a step is an imputer that fills its columns and leaves their order."""
    filled = getattr(step, "statistics_", None)
    return filled is not None and len(filled) == len(columns) and not step.add_indicator


def chosen_names(chosen: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a transformer's columns, given as names, numbers, a mask or a slice."""
    if isinstance(chosen, slice) or (np.asarray(chosen).dtype.kind in "bi"):
        return tuple(np.asarray(columns, object)[chosen].tolist())
    return tuple(str(column) for column in np.atleast_1d(np.asarray(chosen, object)).tolist())
