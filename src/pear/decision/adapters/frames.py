"""How do states become the table a model was trained on, cheaply and often?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import ModelError
from pear.problem.features import FeatureSpace, States


class FrameMaker:
    """Turns states into a DataFrame with the columns a model wants, in its order.

    ``category_dtype`` gives categories as pandas categoricals instead of text, for models
    trained on those (LightGBM, XGBoost, gradient boosting without a pipeline).

    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("income"), Feature("owner", "boolean")))
    >>> FrameMaker(space, ["owner"])(np.array([[2100.0, 1.0]])).to_dict("records")
    [{'owner': True}]
    """

    def __init__(
        self, space: FeatureSpace, columns: Sequence[str], *, category_dtype: bool = False
    ) -> None:
        absent = [name for name in columns if name not in space.names]
        if absent:
            raise ModelError(
                f"the model was trained on {', '.join(map(repr, absent))}, which the problem does "
                f"not have; its features are {', '.join(space.names)}: add them to the problem, or "
                "train the model on the problem's features"
            )
        self.space = space
        self.columns = tuple(columns)
        self.category_dtype = category_dtype

    @cached_property
    def _places(self) -> list[tuple[str, int, Any]]:
        """Name, column and lookup table (for categories) or dtype of each column."""
        places: list[tuple[str, int, Any]] = []
        for name in self.columns:
            feature, column = self.space[name], self.space.index(name)
            if feature.is_categorical:
                places.append((name, column, np.array(feature.categories, object)))
            else:
                dtype = {"boolean": bool, "integer": np.int64}.get(feature.kind, float)
                places.append((name, column, np.dtype(dtype)))
        return places

    def __call__(self, states: States) -> pd.DataFrame:
        made: dict[str, Any] = {}
        for name, column, how in self._places:
            codes = states[:, column]
            if isinstance(how, np.dtype):
                made[name] = codes.astype(how)
            elif self.category_dtype:
                made[name] = pd.Categorical.from_codes(
                    codes.astype(int).tolist(), categories=how.tolist()
                )
            else:
                made[name] = how[codes.astype(int)]
        return pd.DataFrame(made, copy=False)


def number_matrix(space: FeatureSpace, states: States, name: str) -> NDArray[np.float64]:
    """States as plain numbers for a model that takes an array; categories are refused."""
    texts = [feature.name for feature in space.features if feature.is_categorical]
    if texts:
        raise ModelError(
            f"model '{name}' takes an array of {len(space)} numbers, but {', '.join(texts)} are "
            "categories; fit a pipeline on a DataFrame with column names, or pass "
            "inputs='codes' if the model was trained on the positions of the categories"
        )
    return states
