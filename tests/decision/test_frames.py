"""Columns of the wrong type are refused where an encoder would turn them into zeros silently."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from pear.decision import from_sklearn
from pear.decision.adapters.frames import LearntValues
from pear.errors import ModelError, ModelWarning
from pear.problem import Feature, FeatureSpace
from pear.problem.model_inputs import Interface, ModelInput

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


def test_a_category_more_than_the_model_knows_is_told():
    frame, decided = table()
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["card"]), remainder="passthrough"
    )
    fitted = make_pipeline(encoder, LogisticRegression()).fit(frame, decided)
    card = Feature("card", "categorical", categories=("no", "yes", "revoked"))
    space = FeatureSpace((Feature("income", scale=(0, 1)), card))
    with pytest.warns(
        ModelWarning, match=r"never learnt 'revoked' of 'card' \(it knows 'no', 'yes'"
    ):
        from_sklearn(fitted, make_problem(space=space))


def test_a_regressor_is_no_classifier():
    frame, decided = table()
    fitted = LinearRegression().fit(frame[["income"]], decided)
    with pytest.raises(ModelError, match=r"predicts numbers such as .*, not classes"):
        from_sklearn(fitted, make_problem(space=SPACES["truth"]))


def graded(grade=None, **settings):
    """People with a grade of 1 to 3, as whatever ``grade`` makes of it, and who was decided for."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"income": rng.random(200), "card": rng.integers(1, 4, 200)})
    decided = (frame["income"] + frame["card"].map({1: 0.6, 2: -0.4, 3: 0.1}) > 0.5).astype(int)
    return frame if grade is None else frame.assign(card=grade(frame["card"])), decided


GRADES = FeatureSpace(
    (Feature("income", scale=(0, 1)), Feature("card", "categorical", categories=("1", "2", "3")))
)


@pytest.mark.parametrize("kind", ["lightgbm", "hist", "one hot", "one hot of decimals"])
def test_numbers_learnt_as_categories_are_given_as_numbers(kind):
    frame, decided = graded()
    made = frame.astype({"card": float if kind.endswith("decimals") else int})
    if kind.startswith("one hot"):
        encoder = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["card"]), remainder="passthrough"
        )
        model = make_pipeline(encoder, LogisticRegression())
    elif kind == "hist":
        made = made.astype({"card": "category"})
        model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    else:
        made = made.astype({"card": "category"})
        lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
        model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    model.fit(made, decided)
    black_box = from_sklearn(model, make_problem(space=GRADES))
    records = frame.astype({"card": str}).to_dict("records")
    expected = model.predict_proba(made)[:, 1]
    assert np.allclose(black_box.score(GRADES.encode(records)), expected, atol=1e-12)
    assert [black_box.score_record(r) for r in records[:5]] == pytest.approx(expected[:5])


def test_lightgbm_names_the_columns_that_were_categories_in_its_training():
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    frame, decided = graded(lambda card: card.astype("category"))
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(frame, decided)
    whole = FeatureSpace((Feature("income", scale=(0, 1)), Feature("card", "integer", 1, 3)))
    with pytest.raises(ModelError, match=r"learnt 1 columns of categories \(1, 2, 3\).*none"):
        from_sklearn(model, make_problem(space=whole))


MAY_MISS = FeatureSpace(
    (
        Feature("income", scale=(0, 1)),
        Feature("card", "categorical", categories=("no", "yes"), missing_counts_as="no"),
    )
)


def with_gaps(missing):
    frame, decided = table(200)
    card = np.array(frame["card"], object)
    card[::4] = missing
    return frame.assign(card=pd.Series(card, dtype=object)), np.where(card == "no", 0, decided)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("filled", ["", "by the usual one", "by another"])
def test_a_missing_text_is_given_as_the_model_learnt_it(missing, filled):
    encoder = OneHotEncoder(handle_unknown="ignore")
    if filled:
        strategy = {"fill_value": "gone", "missing_values": missing, "strategy": "constant"}
        usual = {"strategy": "most_frequent"}
        imputer = SimpleImputer(**(usual if filled == "by the usual one" else strategy))
        encoder = make_pipeline(imputer, encoder)
    frame, decided = with_gaps(missing)
    columns = make_column_transformer((encoder, ["card"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, decided)
    black_box = from_sklearn(model, make_problem(space=MAY_MISS))
    assert black_box.doubts == ()
    expected = model.predict_proba(frame)[:, 1]
    assert np.allclose(black_box.score(MAY_MISS.encode(frame)), expected, atol=1e-12)
    assert black_box.score_record(frame.iloc[0].to_dict()) == pytest.approx(expected[0])


def encoded_without_gaps(*more):
    frame, decided = table(200)
    frame.loc[: len(more) * 20, "card"] = more[0] if more else frame["card"]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["card"]), remainder="passthrough"
    )
    return make_pipeline(encoder, LogisticRegression()).fit(frame, decided)


def test_a_missing_value_the_encoder_never_learnt_is_told():
    with pytest.warns(ModelWarning, match=r"never learnt a missing 'card'.* put an imputer"):
        from_sklearn(encoded_without_gaps(), make_problem(space=MAY_MISS))


def test_a_question_mark_that_was_a_category_in_training_is_no_missing_value():
    model = encoded_without_gaps("?")
    with pytest.raises(ModelError, match=r"learnt '\?' as a category of 'card'.* add '\?' to"):
        from_sklearn(model, make_problem(space=MAY_MISS))
    declared = Interface((ModelInput("card", missing="?"),))
    black_box = from_sklearn(model, make_problem(space=MAY_MISS, interface=declared))
    expected = model.predict_proba(pd.DataFrame({"income": [0.4], "card": ["?"]}))[0, 1]
    assert black_box.score(np.array([[0.4, np.nan]])) == pytest.approx(expected)


def test_spaces_around_a_category_are_those_the_model_learnt():
    known = LearntValues("job", ("full", " none", " part", "part"))
    assert [known.spelled(text) for text in (" full", "none", "part", " part")] == [
        "full", " none", "part", " part",
    ]  # fmt: skip
    assert known.spelled("part ") == "part "  # Of two it could be, it is neither.
