"""Columns of the wrong type are refused where an encoder would turn them into zeros silently."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from pear.decision import from_sklearn
from pear.errors import ModelError
from pear.problem import Feature, FeatureSpace

from .conftest import make_problem

YES_NO = Feature("card", "categorical", categories=("no", "yes"))
SPACES = {
    "texts": FeatureSpace((Feature("income", scale=(0, 1)), YES_NO)),
    "truth": FeatureSpace((Feature("income", scale=(0, 1)), Feature("card", "boolean"))),
}


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.random(n), "card": rng.choice(["no", "yes"], n)})
    return frame, ((frame["card"] == "yes") ^ (frame["income"] > 0.9)).astype(int)


def pipelines():
    ignoring = OneHotEncoder(handle_unknown="ignore")
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), ignoring)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return {
        "by name": make_column_transformer((ignoring, ["card"]), remainder="passthrough"),
        "by number": make_column_transformer((ignoring, [1]), remainder="passthrough"),
        "by mask": make_column_transformer((ignoring, [False, True]), remainder="passthrough"),
        "by slice": make_column_transformer((ignoring, slice(1, 2)), remainder="passthrough"),
        "after an imputer": make_column_transformer((filled, ["card"]), remainder="passthrough"),
        "as codes": make_column_transformer((codes, ["card"]), remainder="passthrough"),
        "the whole table": ignoring,
    }


@pytest.mark.parametrize("kind", pipelines())
def test_texts_the_encoder_learnt_and_truth_values_it_is_given(kind):
    frame, decided = table()
    fitted = make_pipeline(pipelines()[kind], LogisticRegression()).fit(frame, decided)
    right = from_sklearn(fitted, make_problem(space=SPACES["texts"]))
    states = SPACES["texts"].encode(frame)
    assert np.allclose(right.score(states), fitted.predict_proba(frame)[:, 1])
    with pytest.raises(
        ModelError,
        match=r"'LogisticRegression' learnt the values 'no', 'yes' of 'card', and the problem "
        r"gives it False, True, none of which it knows; make the feature categorical",
    ):
        from_sklearn(fitted, make_problem(space=SPACES["truth"]))


def test_numbers_learnt_where_texts_are_given():
    frame, decided = table()
    frame["card"] = (frame["card"] == "yes").astype(int)
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["card"]))
    fitted = make_pipeline(encoder, LogisticRegression()).fit(frame, decided)
    assert from_sklearn(fitted, make_problem(space=SPACES["truth"])).rows == 0
    with pytest.raises(ModelError, match=r"learnt the values 0, 1 .*correct the feature's kind"):
        from_sklearn(fitted, make_problem(space=SPACES["texts"]))


def test_a_category_more_than_the_model_knows_is_its_own_business():
    frame, decided = table()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["card"]), remainder="passthrough"
    )
    fitted = make_pipeline(encoder, LogisticRegression()).fit(frame, decided)
    card = Feature("card", "categorical", categories=("no", "yes", "revoked"))
    space = FeatureSpace((Feature("income", scale=(0, 1)), card))
    assert from_sklearn(fitted, make_problem(space=space)).rows == 0


def test_a_regressor_is_no_classifier():
    frame, decided = table()
    fitted = LinearRegression().fit(frame[["income"]], decided)
    with pytest.raises(ModelError, match=r"predicts numbers such as .*, not classes"):
        from_sklearn(fitted, make_problem(space=SPACES["truth"]))
