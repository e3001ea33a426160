"""Linear models: the ceiling of a sum of options is exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pear.decision.ceilings.margins import (
    LINEAR,
    SINGLE,
    EncodedOptions,
    Matrix,
    ReadModel,
    Sigmoid,
    Specialised,
    empty_fields,
    favoured,
    largest,
)


@dataclass(frozen=True)
class Linear:
    """The margin is ``bias`` plus the inputs times ``weights`` ``(D,)``."""

    weights: Matrix
    bias: float
    single: bool = False
    rounding: float = 2.0**-53
    worth_after: float = 300.0

    def inputs(self, matrix: Matrix) -> Matrix:
        matrix = np.asarray(matrix, float)
        return matrix.astype(np.float32).astype(float) if self.single else matrix

    def margins(self, matrix: Matrix) -> Matrix:
        return np.asarray(self.inputs(matrix) @ self.weights + self.bias)

    def used_columns(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.weights)

    def specialise(
        self, options: EncodedOptions, required: float, max_changes: int
    ) -> Specialised | None:
        parts = options.rows * self.weights
        if not np.isfinite(parts).all():
            return None
        fields = empty_fields(len(options.counts), options.counts)
        for feature, count in enumerate(options.counts):
            rows = slice(options.first[feature], options.first[feature] + count)
            mine = parts[rows][:, options.owner == feature].sum(axis=1)
            fields["gains"][feature, :count] = mine - mine[0]
        fields["base"][:] = parts[0].sum() + self.bias
        size = np.abs(parts).max(axis=0).sum() + abs(self.bias)
        slack = (len(self.weights) + 64) * (self.rounding + 2.0**-52) * size
        return Specialised(kind=LINEAR, required=required - slack, **fields)


def linear(model: Any, columns: Sequence[int]) -> ReadModel | None:
    """A scikit-learn model with one row of coefficients."""
    side = favoured(columns, 2)
    weights = np.atleast_2d(np.asarray(model.coef_, float))
    if not side or weights.shape[0] != 1 or len(getattr(model, "classes_", (0, 1))) != 2:
        return None
    bias = float(np.ravel(model.intercept_)[0])
    if type(model).__name__ == "SGDClassifier" and model.loss == "modified_huber":
        return None
    # Columns in single precision are multiplied by such coefficients in single precision.
    single = model.coef_.dtype == np.float32
    read = Linear(side * weights[0], side * bias, single, 2.0**-24 if single else 2.0**-53)
    return ReadModel(read, Sigmoid(error=SINGLE) if single else Sigmoid(), "the coefficients")


LINEAR_READERS: dict[str, Callable[[Any, Sequence[int]], ReadModel | None]] = dict.fromkeys(
    (
        "LogisticRegression",
        "LogisticRegressionCV",
        "LinearSVC",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
        "Perceptron",
        "PassiveAggressiveClassifier",
        "LinearDiscriminantAnalysis",
    ),
    linear,
)


@numba.njit(cache=True)
def linear_ceiling(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> float:
    """The exact highest margin: the largest gains of as many features as may still change."""
    best = special.best
    for feature in range(len(best)):
        best[feature] = 0.0
        for option in range(1, special.counts[feature]):
            if open_options[feature, option]:
                best[feature] = max(best[feature], special.gains[feature, option])
    return float(special.base[depth] + largest(best, special.free[depth], remaining))
