"""A model that reads how a value is written, and not what it is, is told."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from pear.decision import from_sklearn
from pear.errors import ModelWarning
from pear.problem import Action, Feature, Goal, Problem
from pear.problem.model_inputs import Interface, ModelInput

N = 400


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.gamma(4, 500, N).round(),
            "owner": rng.integers(0, 2, N),
            "cards": rng.integers(0, 5, N),
            "job": pd.Categorical(
                rng.choice(["none", "part", "full"], N), ["part", "none", "full"]
            ),
        }
    )
    wish = frame["income"] / 1_000 + frame["owner"] + 0.5 * frame["cards"]
    wish += 2.0 * (frame["job"] == "full")
    return frame, np.where(wish > np.median(wish), "yes", "no")


def problem(**features):
    known = {
        "income": Feature("income", lower=0, scale=(0, 6_000)),
        "owner": Feature("owner", "boolean"),
        "cards": Feature("cards", "integer", 0, 10, (0, 4)),
        "job": Feature("job", "categorical", categories=("full", "none", "part")),
    }
    inputs = features.pop("inputs", ())
    return Problem(
        [*(known | features).values()],
        [Action("earn", "income", "add", (500, 1_000), "increase")],
        goal=Goal(("yes",)),
        interface=Interface(inputs),
    )


def as_texts(columns):
    """A pipeline that makes categories of whatever a column's values are written as."""
    texts = make_pipeline(
        FunctionTransformer(lambda part: part.astype(str)), OneHotEncoder(handle_unknown="ignore")
    )
    front = make_column_transformer((texts, columns), (StandardScaler(), ["income"]))
    return make_pipeline(front, LogisticRegression(max_iter=1_000))


def doubts(model, stated):
    with pytest.warns(ModelWarning) as told:
        from_sklearn(model, stated)
    return [str(one.message) for one in told]


def test_numbers_that_become_texts_are_told_with_what_to_do():
    frame, decided = table()
    model = as_texts(["owner", "cards"]).fit(frame[["income", "owner", "cards"]], decided)
    owner, cards = doubts(model, problem())
    assert "'owner' is written as 1 and not as True" in owner
    assert "make 'owner' an integer" in owner
    assert (
        "'cards' is written as a whole number (3) and not as a decimal (3.0), and it gets 3"
        in cards
    )


@pytest.mark.parametrize("kind", ["integer", "numeric"])
def test_what_is_declared_is_taken_for_looked_at(kind):
    frame, decided = table()
    owner = Feature("owner", kind, 0, 1, (0, 1))
    frame = frame[["income", "owner", "cards"]].astype(
        {"owner": int if kind == "integer" else float}
    )
    model = as_texts(["owner"]).fit(frame, decided)
    assert len(doubts(model, problem(owner=owner))) == 1
    right = from_sklearn(model, problem(owner=owner, inputs=(ModelInput("owner"),)))
    assert right.doubts == ()
    expected = model.predict_proba(frame)[:, 1]
    states = right.space.encode(frame.assign(job="full"))
    assert right.score(states) == pytest.approx(expected)


def test_codes_of_categories_depend_on_their_order():
    frame, decided = table()
    codes = FunctionTransformer(lambda part: part.assign(job=part["job"].cat.codes))
    model = make_pipeline(codes, DecisionTreeClassifier(max_depth=4)).fit(frame, decided)
    told = doubts(model, problem())
    assert any("'job' is written as a pandas category in another order" in doubt for doubt in told)


def test_most_models_do_not_care():
    frame, decided = table()
    front = make_column_transformer((OneHotEncoder(), ["job", "cards"]), remainder=StandardScaler())
    model = make_pipeline(front, LogisticRegression(max_iter=1_000))
    model.fit(frame.astype({"job": object}), decided)
    assert from_sklearn(model, problem()).doubts == ()
