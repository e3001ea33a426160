"""Every kind of classifier that lenders have becomes a file that answers as it does."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from pear.decision import export_onnx, from_onnx, from_sklearn
from pear.errors import ModelError, ModelWarning
from pear.problem import Action, Feature, Goal, Problem

pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
pytest.importorskip("skl2onnx", reason="needs the extra 'onnx'")

JOBS = ["none", "part", "full"]


def people(*, gaps=True, texts=True, n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.gamma(4, 500, n).round(),
            "debt": rng.gamma(2, 200, n).round(),
            "job": rng.choice(JOBS, n),
        }
    )
    wish = frame["income"] / 1_000 - frame["debt"] / 300 + (frame["job"] == "full")
    decided = (wish + rng.normal(0, 0.3, n) > 1.4).astype(int)
    if gaps:
        frame["income"] = frame["income"].mask(rng.random(n) < 0.2)
        frame["job"] = frame["job"].mask(rng.random(n) < 0.2)
    return frame if texts else frame.drop(columns="job"), decided


def problem(frame):
    gaps = frame["income"].isna().any()
    features = [
        Feature("income", lower=0, scale=(0, 5_000), missing_counts_as=1_900.0 if gaps else None),
        Feature("debt", lower=0, scale=(0, 1_500)),
        Feature("job", "categorical", categories=JOBS, missing_counts_as="none" if gaps else None),
    ]
    earn = Action("earn", "income", "add", (500.0, 1_000.0), "increase")
    return Problem([f for f in features if f.name in frame.columns], [earn], goal=Goal((1,)))


def encoded(final):
    texts = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)
    )
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    front = make_column_transformer((numbers, ["income", "debt"]), (texts, ["job"]))
    return make_pipeline(front, final)


def lightgbm(**settings):
    module = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return module.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, **settings)


def xgboost():
    module = pytest.importorskip("xgboost", reason="xgboost is not installed")
    return module.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)


def gradient_boosting():
    return HistGradientBoostingClassifier(max_iter=20)


CASES = {
    "logistic": (LogisticRegression, {"gaps": False, "texts": False}),
    "scaled": (
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        {"gaps": False, "texts": False},
    ),
    "forest": (lambda: RandomForestClassifier(20, random_state=0), {"gaps": False, "texts": False}),
    "hist": (gradient_boosting, {"texts": False}),
    "lightgbm": (lightgbm, {"texts": False}),
    "xgboost": (xgboost, {"texts": False}),
    "logistic behind imputers": (lambda: encoded(LogisticRegression()), {}),
    "hist behind imputers": (lambda: encoded(gradient_boosting()), {}),
    "lightgbm behind imputers": (lambda: encoded(lightgbm()), {}),
    "xgboost behind imputers": (lambda: encoded(xgboost()), {}),
}


@pytest.mark.filterwarnings("ignore::pear.errors.ModelWarning")
@pytest.mark.parametrize("case", CASES)
def test_the_file_answers_as_the_model_does_or_says_that_it_does_not_quite(case, tmp_path):
    make, settings = CASES[case]
    frame, decided = people(**settings)
    model = make().fit(frame, decided)
    stated = problem(frame)
    written = from_onnx(export_onnx(model, stated, tmp_path / "model.onnx"), stated)
    states = stated.states(frame)
    difference = np.abs(written.score(states) - from_sklearn(model, stated).score(states))
    assert np.median(difference) < 1e-5
    assert (difference < 1e-5).all() or "as ONNX" in written.doubts[0]
    assert written.classes == (0, 1)


def test_lightgbm_with_categories_of_its_own(tmp_path):
    frame, decided = people()
    model = lightgbm().fit(frame.astype({"job": "category"}), decided)
    stated = problem(frame)
    written = from_onnx(export_onnx(model, stated, tmp_path / "model.onnx"), stated)
    expected = model.predict_proba(frame.astype({"job": "category"}))[:, 1]
    assert written.score(stated.states(frame)) == pytest.approx(expected, abs=1e-5)


def test_a_tie_of_votes_is_no_yes_in_single_precision_either(tmp_path):
    frame, decided = people(gaps=False, texts=False)
    model = RandomForestClassifier(30, max_depth=3, max_leaf_nodes=4, random_state=1)
    for tree in model.fit(frame, decided).estimators_:
        votes = tree.tree_.value[:, 0, 1].round()
        tree.tree_.value[:, 0, 0], tree.tree_.value[:, 0, 1] = 1 - votes, votes
    stated = problem(frame)
    states = stated.states(frame)
    shares = model.predict_proba(frame)[:, 1]
    assert np.isin([0.5], shares.round(9)).all()
    written = from_onnx(export_onnx(model, stated, tmp_path / "model.onnx"), stated)
    assert np.array_equal(written.favourable(states), shares.round(9) > 0.5)


def test_a_file_that_hardly_answers_otherwise_is_told(tmp_path, monkeypatch):
    frame, decided = people(gaps=False, texts=False)
    model = DecisionTreeClassifier(max_depth=3).fit(frame, decided)
    monkeypatch.setattr("pear.decision.adapters.export.TOLERANCE", -1.0)
    with pytest.raises(ModelError, match=r"would give other scores for 100\.0% of invented people"):
        export_onnx(model, problem(frame), tmp_path / "model.onnx")
    monkeypatch.setattr("pear.decision.adapters.export.SHARE", 1.0)
    with pytest.warns(ModelWarning, match=r"gives other scores for 100\.0% of invented people"):
        export_onnx(model, problem(frame), tmp_path / "model.onnx")


def test_what_a_file_cannot_do_names_the_way_that_works(tmp_path):
    frame, decided = people(texts=False)
    model = make_pipeline(SimpleImputer(add_indicator=True), gradient_boosting())
    model.fit(frame, decided)
    with pytest.raises(ModelError, match=r"save_sklearn\(model, 'model.skops'\).*--trust"):
        export_onnx(model, problem(frame), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
