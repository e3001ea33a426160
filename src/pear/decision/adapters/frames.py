"""How do states become the table a model was trained on, cheaply and often?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import ModelError
from pear.problem.feature_space import value_column
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

    def __call__(self, states: States) -> pd.DataFrame:
        made: dict[str, Any] = {}
        for name in self.columns:
            feature, codes = self.space[name], states[:, self.space.index(name)]
            if feature.is_categorical and self.category_dtype:
                numbers = np.where(np.isnan(codes), -1, codes).astype(int)
                made[name] = pd.Categorical.from_codes(
                    numbers, categories=pd.Index(feature.categories, dtype=object)
                )
            else:
                made[name] = value_column(feature, codes)
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
