"""What does a fitted scikit-learn estimator or pipeline say?

XGBoost and LightGBM classifiers come through the same interface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pear.decision.adapters.fast_columns import FastColumns, fast_columns
from pear.decision.adapters.frames import FrameMaker, number_matrix
from pear.decision.adapters.known_values import check_known_values
from pear.decision.blackbox import BlackBox
from pear.errors import InvalidSetting, ModelError
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States
from pear.problem.problem import class_key

Inputs = Literal["auto", "frame", "numbers", "codes", "one_hot"]
Method = Literal["predict_proba", "decision_function", "predict"]


def from_sklearn(
    model: Any,
    problem: Problem,
    *,
    name: str = "",
    inputs: Inputs = "auto",
    category_dtype: bool | None = None,
) -> BlackBox:
    """A fitted estimator or pipeline as a black box.

    ``inputs`` says what the model was fitted on: a ``frame`` with the feature names as
    columns, an array of ``numbers``, the same with ``codes`` in place of categories, or
    the ``one_hot`` encoding of :meth:`FeatureSpace.one_hot`. ``auto`` looks at what the
    model remembers. Estimators without probabilities are asked for their decision
    function (passed through a sigmoid), else for their class (scores 0 and 1).

    >>> from sklearn.linear_model import LogisticRegression
    >>> from pear.problem import *
    >>> space = FeatureSpace((Feature("income"),))
    >>> problem = Problem(space, ActionSpace(space, (Action("earn", "income", "add", (1,)),)),
    ...                   CostGraph(space))
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> from_sklearn(model, problem).score(np.array([[1.5]])).round(3)
    array([0.5])
    """
    if inputs not in get_args(Inputs):
        raise InvalidSetting(
            f"'inputs' must be one of {', '.join(get_args(Inputs))} (got {inputs!r})"
        )
    name = name or type(final_estimator(model)).__name__
    function = SklearnScores(
        model,
        problem.space,
        name,
        _inputs(model, problem.space, name) if inputs == "auto" else inputs,
        _wants_category_dtype(model) if category_dtype is None else category_dtype,
        _method(model, name),
        tuple(class_key(value) for value in problem.goal.favourable),
    )
    classes = function.classes if function.method == "predict_proba" else ()
    seen = [str(column) for column in getattr(model, "feature_names_in_", ())]
    uses = tuple(feature for feature in problem.space.names if feature in seen)
    return BlackBox(function, problem.space, problem.goal, name, classes, uses=uses).checked()


@dataclass
class SklearnScores:
    """The score function of a fitted estimator; pickles when the estimator does."""

    model: Any
    space: FeatureSpace
    name: str
    inputs: Inputs
    category_dtype: bool
    method: Method
    favourable: tuple[str | float, ...] = ()
    classes: tuple[Any, ...] = ()
    _frame: FrameMaker | None = field(default=None, repr=False)
    _fast: FastColumns | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        classes = getattr(self.model, "classes_", None)
        self.classes = () if classes is None else tuple(np.asarray(classes).tolist())
        if self.inputs == "frame":
            columns = getattr(self.model, "feature_names_in_", self.space.names)
            self._frame = FrameMaker(
                self.space, [str(c) for c in columns], category_dtype=self.category_dtype
            )
            check_known_values(self.model, self.space, self._frame, self.name)
            self._fast = fast_columns(self.model, self.space, self._frame)

    def __call__(self, states: States) -> NDArray[np.float64]:
        if self._fast is not None:
            model, table = final_estimator(self.model), self._fast(states)
        else:
            model, table = self.model, self.table(states)
        if self.method == "predict_proba":
            return np.asarray(model.predict_proba(table), float)
        if self.method == "decision_function":
            margins = np.asarray(model.decision_function(table), float)
            if margins.ndim > 1:
                raise ModelError(
                    f"model '{self.name}' has several classes but no predict_proba; calibrate it "
                    "(sklearn.calibration.CalibratedClassifierCV) first"
                )
            upside = self._favours_last()
            return np.asarray(1.0 / (1.0 + np.exp(-margins if upside else margins)))
        decided = np.asarray(model.predict(table))
        if decided.dtype.kind == "f" and not (decided == np.rint(decided)).all():
            amount = decided[decided != np.rint(decided)][0]
            raise ModelError(
                f"model '{self.name}' predicts numbers such as {amount:g}, not classes; give the "
                "classifier itself, or wrap what makes a score in [0, 1] of them with from_callable"
            )
        wanted = self.favourable or (class_key(self.classes[-1] if self.classes else 1),)
        return np.array([class_key(value) in wanted for value in decided.tolist()], float)

    def table(self, states: States) -> Any:
        """What the model is given for these states."""
        if self._frame is not None:
            return self._frame(states)
        if self.inputs == "one_hot":
            return self.space.one_hot(states)
        return states if self.inputs == "codes" else number_matrix(self.space, states, self.name)

    def _favours_last(self) -> bool:
        if not self.favourable or not self.classes:
            return True
        known = [class_key(value) for value in self.classes]
        absent = [value for value in self.favourable if value not in known]
        if absent:
            raise ModelError(
                f"model '{self.name}' has no class {absent[0]!r}; its classes are "
                f"{', '.join(map(str, self.classes))}: correct 'favourable' in the problem's goal"
            )
        return known[-1] in self.favourable


def save_sklearn(model: Any, path: str | Path) -> Path:
    """Write a fitted estimator as a ``.skops`` file, which loads without running its code."""
    import skops.io

    path = Path(path)
    if path.suffix != ".skops":
        raise InvalidSetting(f"'path' must end in .skops (got {path.name!r})")
    skops.io.dump(model, path)
    return path


def final_estimator(model: Any) -> Any:
    """The estimator at the end of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def _method(model: Any, name: str) -> Method:
    for method in get_args(Method):
        if hasattr(model, method):
            return method  # type: ignore[no-any-return]
    raise ModelError(
        f"model '{name}' has none of {', '.join(get_args(Method))}; give a fitted classifier, or "
        "wrap it with from_callable"
    )


def _inputs(model: Any, space: FeatureSpace, name: str) -> Inputs:
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return "frame"
    width = getattr(model, "n_features_in_", None)
    has_categories = any(feature.is_categorical for feature in space.features)
    if width is None or (width == len(space) and not has_categories):
        return "frame" if has_categories else "numbers"
    if width == space.one_hot_width and has_categories:
        return "one_hot"
    if width == len(space):
        return "numbers"
    raise ModelError(
        f"model '{name}' was fitted on {width} columns without names; the problem has "
        f"{len(space)} features ({space.one_hot_width} columns when one-hot encoded): fit it on a "
        "DataFrame with the feature names as columns"
    )


def _wants_category_dtype(model: Any) -> bool:
    """Whether the model reads pandas categoricals itself; inside a pipeline an encoder does."""
    if getattr(model, "steps", None):
        return False
    if getattr(model, "enable_categorical", False):
        return True
    booster = getattr(model, "_Booster", None)
    if getattr(booster, "pandas_categorical", None):
        return True
    return getattr(model, "is_categorical_", None) is not None and (
        getattr(model, "categorical_features", None) == "from_dtype"
    )
