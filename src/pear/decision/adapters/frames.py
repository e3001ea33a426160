"""How do states become the table a model was trained on, cheaply and often?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

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
    XGBoost, gradient boosting without a pipeline). A truth value that may be missing is 0, 1 or
    NaN; in the columns ``truths``, whose encoder learnt True and False, it is True, False or NaN.

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
        truths: Sequence[str] = (),
    ) -> None:
        self.sources, absent, strange = sources_of(columns, declared, space)
        if absent:
            raise ModelError(
                f"the model was trained on {', '.join(map(repr, absent))}, which the problem does "
                f"not have; its features are {', '.join(space.names)}: add them to the problem, "
                "declare under [model.inputs] which feature each column is made of, or train the "
                "model on the problem's features"
            )
        if strange:
            raise ModelError(
                f"[model.inputs] declares '{strange[0]}', and the model was not trained on such a "
                f"column; its columns are {', '.join(columns)}"
            )
        self.space = space
        self.columns = tuple(columns)
        self.category_dtype = category_dtype
        self.truths = frozenset(truths)
        numbers = [n for n, entry in self.sources.items() if not _is_value(entry, space)]
        self._numbers = {name: place for place, name in enumerate(numbers)}
        self._encoded = Inputs(space, tuple(self.sources[n] for n in numbers)) if numbers else None

    def values_of(self, column: str) -> Feature | None:
        """The feature whose values a column holds as they are; None where it holds numbers."""
        return None if column in self._numbers else self.space[self.sources[column].source]

    def __call__(self, states: States) -> pd.DataFrame:
        made: dict[str, Any] = {}
        matrix = None if self._encoded is None else self._encoded(states)
        for name, entry in self.sources.items():
            if matrix is not None and name in self._numbers:
                made[name] = matrix[:, self._numbers[name]]
                continue
            feature, codes = self.space[entry.source], states[:, self.space.index(entry.source)]
            known = entry.missing is None or (feature.may_be_missing and not np.isnan(codes).any())
            if not known and entry.missing in feature.categories:
                codes = np.where(np.isnan(codes), feature.code(entry.missing), codes)
            if feature.is_categorical and self.category_dtype:
                numbers = np.where(np.isnan(codes), -1, codes).astype(int)
                made[name] = pd.Categorical.from_codes(
                    numbers, categories=pd.Index(feature.categories, dtype=object)
                )
                continue
            number = feature.kind == "boolean" and feature.may_be_missing
            values = codes if number and name not in self.truths else value_column(feature, codes)
            if not known:
                values = np.where(np.isnan(codes), np.array(entry.missing, object), values)
            made[name] = values
        return pd.DataFrame(made, copy=False)

    def plainly(self, record: Mapping[str, Any]) -> pd.DataFrame:
        """The row of one record, made value by value as a program outside would."""
        row: dict[str, Any] = {}
        for name, entry in self.sources.items():
            feature, value = self.space[entry.source], record[entry.source]
            if name in self._numbers:
                row[name] = entry.number(feature, value)
                continue
            if is_missing(value):
                value = np.nan if entry.missing is None else entry.missing
            if feature.is_categorical and self.category_dtype:
                row[name] = pd.Categorical([value], pd.Index(feature.categories, dtype=object))
            elif feature.is_number:
                row[name] = [float(value) if feature.may_be_missing else value]
            elif feature.is_categorical or name in self.truths:
                row[name] = np.array([value], object)
            else:
                row[name] = np.array([value], float if feature.may_be_missing else bool)
        return pd.DataFrame(row)


def _is_value(entry: ModelInput, space: FeatureSpace) -> bool:
    """Whether a column holds the values of a feature themselves, and not a number made of them."""
    return entry.as_it_is or (entry.encoding == "value" and space[entry.source].is_categorical)
