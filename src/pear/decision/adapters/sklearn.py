"""What does a fitted scikit-learn estimator or pipeline say?

XGBoost, LightGBM and CatBoost classifiers come through the same interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import expit

from pear.arrays import Floats
from pear.decision.adapters.frames import (
    FrameMaker,
    LearntValues,
    check_known_values,
    learnt_values,
)
from pear.decision.blackbox import BlackBox, probe_states
from pear.decision.encoding import (
    Inputs,
    MatrixScores,
    feature_order,
    what_to_declare,
)
from pear.decision.load_checks import SAME, spelling_doubts
from pear.errors import InvalidSetting, ModelError
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States
from pear.problem.model_inputs import ModelInput
from pear.problem.values import class_key

if TYPE_CHECKING:
    from pear.decision.adapters.fast_encoding import FastEncoding

Kind = Literal["auto", "frame", "numbers", "codes"]
Method = Literal["predict_proba", "decision_function", "predict"]


def from_sklearn(
    model: Any,
    problem: Problem,
    *,
    name: str = "",
    inputs: Kind | Sequence[ModelInput] = "auto",
    category_dtype: bool | None = None,
) -> BlackBox:
    """A fitted estimator or pipeline as a black box.

    For estimators without probabilities, the decision function is used (passed through a sigmoid),
    else the class (scores 0 and 1).

    Parameters
    ----------
    inputs
        What the model was fitted on. ``auto``: the columns it remembers, each as the problem's
        ``[model.inputs]`` declares it, else the feature of its name; a model that remembers none
        is given the declared columns as an array. A list declares them here. A ``frame`` has the
        feature names as columns; ``numbers`` are the features in their order as an array, and
        ``codes`` the same with the positions of categories.
    category_dtype
        Whether categories are pandas categoricals; detected if left out.

    Raises
    ------
    ModelError
        Where nothing tells which column is what, naming what to declare.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from pear.problem import *
    >>> import pandas as pd
    >>> problem = Problem([Feature("income")], [Action("earn", "income", "add", (1,))])
    >>> table = pd.DataFrame({"income": [0.0, 1.0, 2.0, 3.0]})
    >>> model = LogisticRegression().fit(table, [0, 0, 1, 1])
    >>> from_sklearn(model, problem).score(np.array([[1.5]])).round(3)
    array([0.5])
    """
    if isinstance(inputs, str) and inputs not in get_args(Kind):
        raise InvalidSetting(
            f"'inputs' must be one of {', '.join(get_args(Kind))}, or a list of ModelInput "
            f"(got {inputs!r})"
        )
    space, name = problem.space, name or type(final_estimator(model)).__name__
    method = _method(model, name)
    _refuse_unfitted(model, name)
    declared = problem.interface.inputs if isinstance(inputs, str) else tuple(inputs)
    kind = inputs if isinstance(inputs, str) else "auto"
    columns = column_names(model)
    doubts: list[str] = []
    learnt: dict[str, LearntValues] = {}
    maker: FrameMaker | Inputs
    if kind == "frame" or (kind == "auto" and columns):
        maker = _frame(model, space, columns, declared, category_dtype, name)
    elif kind in ("numbers", "codes"):
        maker = _in_order(space, kind, name)
    elif declared:
        maker = Inputs(space, declared)
    else:
        maker = _without_names(model, space, name)
    _check_width(model, maker, name)
    if isinstance(maker, FrameMaker):
        learnt = learnt_values(model, maker)
        doubts += check_known_values(learnt, maker, name)
    favourable = tuple(class_key(value) for value in problem.goal.favourable)
    function = SklearnScores(model, space, name, maker, method, favourable)
    classes = function.classes if function.method == "predict_proba" else ()
    entries = maker.columns if isinstance(maker, Inputs) else maker.sources.values()
    seen = {entry.source for entry in entries}
    uses = tuple(feature for feature in space.names if feature in seen)
    black_box = BlackBox(function, space, problem.goal, name, classes, uses=uses)
    if isinstance(maker, FrameMaker):
        doubts += spelling_doubts(function.of_table, maker, learnt, name)
    black_box.doubts = (*doubts, *threshold_doubts(black_box, function))
    return black_box.checked()


def _refuse_unfitted(model: Any, name: str) -> None:
    """Refuse an estimator that says itself that it is not fitted.

    Classes of other packages that do not tell are trusted.
    """
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    final, fitted = final_estimator(model), True
    if type(final).__module__.split(".")[0] == "catboost":
        fitted = bool(final.is_fitted())
    for one in (model, final):
        if hasattr(one, "fit") and (
            hasattr(one, "__sklearn_is_fitted__") or type(one).__module__.startswith("sklearn.")
        ):
            try:
                check_is_fitted(one)
            except NotFittedError:
                fitted = False
    if not fitted:
        raise ModelError(f"model '{name}' is not fitted; fit it on the training data first")


def threshold_doubts(black_box: BlackBox, function: SklearnScores) -> list[str]:
    """A warning where the model's own ``predict`` disagrees with the problem's threshold.

    A threshold other than one half is taken as intended, unless the model has one of its own.
    """
    goal, model = black_box.goal, function.model
    final = final_estimator(model)
    own = getattr(final, "best_threshold_", getattr(final, "threshold", None))
    if function.method == "predict" or (own is None and goal.threshold != 0.5):
        return []
    wanted = function.favourable or (class_key(function.classes[-1]),)
    probes = probe_states(black_box.space, 256, np.random.default_rng(8))
    try:
        scores = black_box.probe(probes)
        decided = np.ravel(model.predict(function.table(probes))).tolist()
    except Exception:
        return []  # What the model cannot take, `check_model` reports with the row.
    if not {class_key(value) for value in decided} <= {class_key(c) for c in function.classes}:
        return []
    approved = np.array([class_key(value) in wanted for value in decided])
    differs = (approved != (scores > goal.threshold)) & (np.abs(scores - goal.threshold) > SAME)
    if not differs.any() and (own is None or own in (goal.threshold, 1 - goal.threshold)):
        return []
    at = "" if own is None else f" (its own threshold is {own:.4g})"
    return [
        f"the predict of model '{black_box.name}' disagrees with a score above {goal.threshold:g} "
        f"for {int(differs.sum())} of {len(probes)} invented people{at}: check which of "
        "the two decides in production, and at 'threshold' of the goal"
    ]


@dataclass
class SklearnScores:
    """The score function of a fitted estimator; pickles when the estimator does."""

    model: Any
    space: FeatureSpace
    name: str
    maker: FrameMaker | Inputs
    method: Method
    favourable: tuple[str | float, ...] = ()
    classes: tuple[Any, ...] = ()
    fast: FastEncoding | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        classes = getattr(self.model, "classes_", None)
        self.classes = () if classes is None else tuple(np.asarray(classes).tolist())
        if isinstance(self.maker, FrameMaker):
            # Imported here, where scikit-learn is loaded anyway: importing it takes half a second.
            from pear.decision.adapters.fast_encoding import fast_encoding

            self.fast = fast_encoding(self.model, self.space, self.maker)

    def __call__(self, states: States) -> Floats:
        if self.fast is not None:
            return self._scores(final_estimator(self.model), self.fast.for_final(states))
        return self._scores(self.model, self.table(states))

    def score_record(self, record: dict[str, Any]) -> Floats:
        """Scores of one record through the whole pipeline, as any other program would ask."""
        made: Any = self.maker.encode_record(record)
        return self._scores(self.model, np.array([made]) if isinstance(made, list) else made)

    def _scores(self, model: Any, table: Any) -> Floats:
        if self.method == "predict_proba":
            return np.asarray(model.predict_proba(table), float)
        if self.method == "decision_function":
            margins = np.asarray(model.decision_function(table), float)
            if margins.ndim > 1:
                raise ModelError(
                    f"model '{self.name}' has several classes but no predict_proba; calibrate it "
                    "(sklearn.calibration.CalibratedClassifierCV) first"
                )
            return np.asarray(expit(margins if self.favours_last() else -margins))
        decided = np.asarray(model.predict(table))
        if decided.dtype.kind == "f" and not (decided == np.rint(decided)).all():
            amount = decided[decided != np.rint(decided)][0]
            raise ModelError(
                f"model '{self.name}' predicts numbers such as {amount:g}, not classes; give the "
                "classifier itself, or wrap what makes a score in [0, 1] of them with from_callable"
            )
        wanted = self.favourable or (class_key(self.classes[-1] if self.classes else 1),)
        return np.array([class_key(value) in wanted for value in decided.tolist()], float)

    def of_table(self, table: pd.DataFrame) -> Floats:
        """Scores of a table as it is."""
        return self._scores(self.model, table)

    def table(self, states: States) -> Any:
        """The input of the model for these states."""
        return self.maker(states)

    def of_matrix(self) -> MatrixScores | None:
        """The declared columns and the model's answers for them; None where it takes a table."""
        if not isinstance(self.maker, Inputs):
            return None
        return self.maker, lambda matrix: self._scores(self.model, matrix)

    def favours_last(self) -> bool:
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


def final_estimator(model: Any) -> Any:
    """The estimator at the end of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def _method(model: Any, name: str) -> Method:
    if name == type(model).__name__ == "Booster":
        package = type(model).__module__.split(".")[0]
        known = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier"}.get(
            package, "classifier"
        )
        raise ModelError(
            f"a Booster of {package} does not say its classes, nor how its categories are coded: "
            f"give the {known} it is of, or wrap what it predicts with from_callable"
        )
    for method in get_args(Method):
        if hasattr(model, method):
            return method  # type: ignore[no-any-return]
    raise ModelError(
        f"model '{name}' has none of {', '.join(get_args(Method))}; give a fitted classifier, or "
        "wrap it with from_callable"
    )


def column_names(model: Any) -> list[str]:
    """The columns a model remembers, in its order; empty where it was fitted on an array."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(model, "feature_names_", None)  # CatBoost's; numbers where it had none.
        if names is None or list(names) == [str(place) for place in range(len(names))]:
            return []
    return [str(name) for name in names]


def _frame(
    model: Any,
    space: FeatureSpace,
    columns: list[str],
    declared: tuple[ModelInput, ...],
    category_dtype: bool | None,
    name: str,
) -> FrameMaker:
    names = columns or space.names
    learnt = learnt_values(model, FrameMaker(space, names, declared=declared))
    made = [
        FrameMaker(space, names, declared=declared, category_dtype=as_category, learnt=learnt)
        for as_category in (False, True)
    ]
    if category_dtype is None:
        category_dtype = _wants_category_dtype(model, made, name)
    return made[category_dtype]


def _in_order(space: FeatureSpace, kind: str, name: str) -> Inputs:
    """The features in their order, as an array."""
    if kind == "codes":
        return Inputs(
            space,
            tuple(
                ModelInput(f.name, encoding="code" if f.is_categorical else "value")
                for f in space.features
            ),
        )
    numbers = feature_order(space)
    if numbers is None:
        texts = [feature.name for feature in space.features if feature.is_categorical]
        raise ModelError(
            f"model '{name}' takes an array of {len(space)} numbers, but {', '.join(texts)} are "
            "categories; fit a pipeline on a DataFrame with column names, or pass "
            "inputs='codes' if the model was trained on the positions of the categories"
        )
    return numbers


def _without_names(model: Any, space: FeatureSpace, name: str) -> FrameMaker | Inputs:
    """The input of a model that remembers no columns, where there is only one possibility."""
    width = getattr(model, "n_features_in_", None)
    if width is None:
        maker = FrameMaker(space, space.names)
        if _reads_by_place(model, maker):
            raise ModelError(
                f"model '{name}' does not say what it was fitted on, and reads the columns of a "
                "table by their place, whatever their names: nothing says which is which feature; "
                f"{what_to_declare(space)}, or pass inputs='numbers' or 'frame' if they are the "
                "features in their order"
            )
        return maker
    numbers = feature_order(space)
    if numbers is not None and width == len(space) == 1:
        return numbers
    in_order = ", or pass inputs='numbers' if they are the features in their order"
    raise ModelError(
        f"model '{name}' was fitted on an array of {width} columns without names, and nothing says "
        f"which of them is which of the {len(space)} features; fit it on a DataFrame with the "
        f"feature names as columns, or {what_to_declare(space)}"
        f"{in_order if numbers is not None and width == len(space) else ''}"
    )


def _reads_by_place(model: Any, maker: FrameMaker) -> bool:
    """Whether a model's answers change when the columns of a table change places."""
    table = maker(probe_states(maker.space, 64, np.random.default_rng(2)))
    ask = getattr(model, _method(model, type(model).__name__))
    try:
        return not np.array_equal(ask(table), ask(table[table.columns[::-1]]))
    except Exception:
        return False  # It knows its columns, or fails on any table, which `check_model` reports.


def _check_width(model: Any, maker: FrameMaker | Inputs, name: str) -> None:
    width = getattr(model, "n_features_in_", None)
    given = maker.width if isinstance(maker, Inputs) else len(maker.columns)
    if width is not None and width != given:
        raise ModelError(
            f"model '{name}' takes {width} columns, but the declared inputs make {given}: correct "
            "[model.inputs]"
        )


def _wants_category_dtype(model: Any, made: Sequence[FrameMaker], name: str) -> bool:
    """Whether the model reads pandas categoricals itself."""
    columns = [made[0].values_of(column) for column in made[0].columns]
    if not any(feature is not None and feature.is_categorical for feature in columns):
        return False
    if getattr(model, "enable_categorical", False):
        return True
    booster = getattr(model, "_Booster", None)
    if getattr(booster, "pandas_categorical", None):
        return True
    if getattr(model, "is_categorical_", None) is not None:
        return getattr(model, "categorical_features", None) == "from_dtype"
    if getattr(model, "steps", None) is None and not _is_composite(model):
        return False
    # An encoder further in takes texts, an estimator further in may want categoricals: try both.
    ask = getattr(model, "predict_proba", None) or getattr(model, "predict", None)
    if ask is None:
        return False
    probes = probe_states(made[0].space, 64, np.random.default_rng(3))
    answers: list[Any] = []
    for maker in made:
        try:
            answers.append(np.asarray(ask(maker(probes))))
        except Exception:
            answers.append(None)
    as_text, as_category = answers
    if as_text is None or as_category is None or np.array_equal(as_text, as_category):
        return as_text is None and as_category is not None
    raise ModelError(
        f"model '{name}' gives other scores when categories are pandas categoricals; say which it "
        "was trained on: from_sklearn(…, category_dtype=True or False)"
    )


def _is_composite(model: Any) -> bool:
    """Whether an estimator is made of others: a search, a calibration, a vote."""
    return any(
        hasattr(model, part)
        for part in ("best_estimator_", "calibrated_classifiers_", "estimators_")
    )
