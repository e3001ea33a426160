"""How do states become the table a model was trained on, cheaply and often?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.decision.adapters.known_values import Learnt
from pear.decision.inputs import Inputs, sources_of
from pear.errors import ModelError
from pear.problem.checks import is_missing
from pear.problem.feature_space import value_column
from pear.problem.features import Feature, FeatureSpace, States
from pear.problem.inputs import ModelInput


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
        learnt: Mapping[str, Learnt] | None = None,
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
            if (values := self._looked_up(name, (learnt or {}).get(name))) is not None
        }

    def values_of(self, column: str) -> Feature | None:
        """The feature whose values a column holds as they are; None where it holds numbers."""
        return None if column in self._numbers else self.space[self.sources[column].source]

    def values_given(self, column: str) -> list[Any]:
        """The values other than missing ones that a column of categories or truth values has."""
        values = self._values.get(column)
        return [False, True] if values is None else list(values[:-1])

    def _looked_up(self, column: str, learnt: Learnt | None) -> NDArray[np.object_] | None:
        """What the model is given for each code of a feature, and last for a missing value."""
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

    def plainly(self, record: Mapping[str, Any]) -> pd.DataFrame:
        """The row of one record, made value by value as a program outside would."""
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
