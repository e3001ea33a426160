"""The fast encoding is the pipeline's own to the last digit, or it is not used."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from pear.decision import from_sklearn
from pear.decision.blackbox import probe_states
from pear.problem import Action, Feature, FeatureSpace

from .conftest import SPACE, make_problem

NUMBERS, TEXTS = ["income", "cards", "owner"], ["job", "city"]
LISTS = [list(SPACE[name].categories) for name in TEXTS]


def fitted(parts, states, labels, **settings):
    pipeline = make_pipeline(ColumnTransformer(parts, **settings), LogisticRegression())
    return pipeline.fit(SPACE.frame(states), labels)


@pytest.mark.parametrize(
    ("encoder", "scaler"),
    [
        (OneHotEncoder(), StandardScaler()),
        (OneHotEncoder(), StandardScaler(with_mean=False)),
        (OneHotEncoder(), StandardScaler(with_std=False)),
        (OneHotEncoder(), RobustScaler()),
        (OneHotEncoder(), RobustScaler(with_centering=False)),
        (OneHotEncoder(), RobustScaler(with_scaling=False)),
        (OneHotEncoder(), MaxAbsScaler()),
        (OneHotEncoder(), "passthrough"),
        (OneHotEncoder(drop="first", sparse_output=False), MinMaxScaler()),
        (OneHotEncoder(drop="if_binary"), MinMaxScaler(clip=True)),
        (OrdinalEncoder(categories=LISTS), MinMaxScaler()),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_it_is_used_and_exact(encoder, scaler, states, labels, problem):
    model = fitted([("t", encoder, TEXTS), ("n", scaler, NUMBERS)], states, labels)
    box = from_sklearn(model, problem)
    assert box.function.fast is not None
    people = probe_states(SPACE, 500, np.random.default_rng(5))
    expected = model.predict_proba(SPACE.frame(people))[:, 1]
    assert box.score(people) == pytest.approx(expected, abs=1e-14)
    assert np.array_equal(pickle.loads(pickle.dumps(box)).score(people), box.score(people))


def boosted():
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBClassifier(n_estimators=9)


@pytest.mark.parametrize("final", [LogisticRegression, boosted])
def test_a_sparse_matrix_stays_one(final, states, labels):
    """Gradient boosting takes what is not stored in a sparse matrix as missing."""
    names = [f"{letter}{number}" for letter in "abcdef" for number in range(9)]
    space = FeatureSpace(
        (SPACE["income"], Feature("shop", "categorical", categories=tuple(names)), SPACE["owner"])
    )
    people = np.column_stack([states[:, 0], np.arange(len(states)) % len(names), states[:, 2]])
    parts = [("t", OneHotEncoder(), ["shop"]), ("n", MaxAbsScaler(), ["income", "owner"])]
    model = make_pipeline(ColumnTransformer(parts), final()).fit(space.frame(people), labels)
    assert model[0].sparse_output_
    box = from_sklearn(model, make_problem(space=space))
    assert box.function.fast is not None
    assert np.array_equal(box.score(people), model.predict_proba(space.frame(people))[:, 1])


def test_a_missing_category_is_what_the_encoder_makes_of_it(states, labels):
    space = FeatureSpace(
        (
            replace(SPACE["job"], missing_counts_as="none"),
            replace(SPACE["city"], missing_counts_as="Rome"),
        )
    )
    people = states[:, 3:].copy()
    people[::7, 0] = people[::5, 1] = np.nan
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    frame = space.frame(people)
    known = frame.assign(city=frame["city"].fillna("Rome"))
    parts = [("t", encoder, ["job", "city"])]
    model = make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(known, labels)
    box = from_sklearn(
        model, make_problem(space=space, action=Action("work", "job", "set", ("full",)))
    )
    assert box.function.fast is not None
    assert np.array_equal(box.score(people), model.predict_proba(frame)[:, 1])


def test_columns_by_number_a_boolean_encoded_and_one_left_out(states, labels, problem):
    parts = [("t", OneHotEncoder(), [2, 4]), ("n", StandardScaler(), [0]), ("x", "drop", [1])]
    model = fitted(parts, states, labels)
    box = from_sklearn(model, problem)
    assert box.function.fast is not None
    expected = model.predict_proba(SPACE.frame(states))[:, 1]
    assert box.score(states) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    "part",
    [
        (
            "n",
            KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
            ["income"],
        ),
        ("n", FunctionTransformer(np.log1p), NUMBERS),
        ("n", OneHotEncoder(handle_unknown="ignore"), ["cards"]),
    ],
    ids=lambda part: type(part[1]).__name__,
)
def test_other_steps_take_the_slow_way_to_the_same_scores(part, states, labels, problem):
    model = fitted([part, ("t", OneHotEncoder(), TEXTS)], states, labels)
    box = from_sklearn(model, problem)
    assert box.function.fast is None
    expected = model.predict_proba(SPACE.frame(states))[:, 1]
    assert np.array_equal(box.score(states), expected)


def test_a_pipeline_of_tables_takes_the_slow_way(states, labels, problem):
    parts = [("t", OneHotEncoder(sparse_output=False), TEXTS), ("n", StandardScaler(), NUMBERS)]
    model = make_pipeline(ColumnTransformer(parts), LogisticRegression())
    model.set_output(transform="pandas").fit(SPACE.frame(states), labels)
    assert from_sklearn(model, problem).function.fast is None


def test_a_pipeline_of_three_steps_takes_the_slow_way(states, labels, problem):
    parts = [("t", OneHotEncoder(sparse_output=False), TEXTS), ("n", StandardScaler(), NUMBERS)]
    model = make_pipeline(ColumnTransformer(parts), MinMaxScaler(), LogisticRegression())
    model.fit(SPACE.frame(states), labels)
    assert from_sklearn(model, problem).function.fast is None


def test_a_scaler_that_does_something_else_is_found_out(states, labels, problem):
    class Squared(StandardScaler):
        def transform(self, table, copy=None):
            return super().transform(table) ** 2

    Squared.__name__ = "StandardScaler"
    model = fitted([("n", Squared(), NUMBERS)], states, labels)
    box = from_sklearn(model, problem)
    assert box.function.fast is None
    assert np.array_equal(box.score(states), model.predict_proba(SPACE.frame(states))[:, 1])
