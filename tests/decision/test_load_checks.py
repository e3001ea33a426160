"""Models that are no function of a record, or decide otherwise than their scores, are found."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pear.decision import BlackBox, from_sklearn, from_torch
from pear.errors import ModelError, ModelWarning
from pear.problem import Feature, FeatureSpace, Goal
from pear.problem.model_inputs import Interface, ModelInput

from .conftest import make_problem

SPACE = FeatureSpace(
    (
        Feature("income", lower=0, scale=(0, 6), missing_counts_as=2.0),
        Feature("debt", lower=0, scale=(0, 3)),
    )
)
WHOLE = FeatureSpace((Feature("income", lower=0, scale=(0, 6)), SPACE["debt"]))


def people(n=300, gaps=True):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.gamma(4, 0.6, n), "debt": rng.gamma(2, 0.5, n)})
    decided = (frame["income"] - frame["debt"] + rng.normal(0, 0.4, n) > 1.2).astype(int)
    if gaps:
        frame["income"] = frame["income"].mask(rng.random(n) < 0.2)
    return frame, decided


def drawn(shape):
    """Other values at every call, for each row its own: none of a table is met twice by chance."""
    return np.random.default_rng().uniform(0, 6, shape)


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (lambda table: table.fillna(table.mean()), "depend on which other people"),
        (lambda table: table.where(table.notna(), drawn(table.shape)), "not answer the same"),
    ],
)
def test_what_only_missing_values_bring_out_is_found(fill, message):
    frame, decided = people()
    model = make_pipeline(FunctionTransformer(fill), HistGradientBoostingClassifier(max_iter=20))
    model.fit(frame, decided)
    with pytest.raises(ModelError, match=message):
        from_sklearn(model, make_problem(space=SPACE))
    from_sklearn(model, make_problem(space=WHOLE))


def test_models_that_differ_in_missing_values_alone_have_two_fingerprints():
    def scores(gone):
        return lambda states: np.where(np.isnan(states[:, 0]), gone, 0.5)

    prints = {
        space: {BlackBox(scores(gone), space).fingerprint for gone in (0.2, 0.8)}
        for space in (SPACE, WHOLE)
    }
    assert [len(each) for each in prints.values()] == [2, 1]


@pytest.mark.parametrize(
    "model",
    [
        FixedThresholdClassifier(LogisticRegression(), threshold=0.8),
        TunedThresholdClassifierCV(LogisticRegression(), scoring="recall"),
    ],
)
def test_a_threshold_of_the_models_own_is_told(model):
    model.fit(*people(gaps=False))
    own = getattr(model, "best_threshold_", 0.8)
    with pytest.warns(ModelWarning, match=rf"disagrees with a score .*own threshold is {own:.4g}"):
        from_sklearn(model, make_problem(space=WHOLE))
    same = make_problem(Goal((1,), own), WHOLE)
    assert from_sklearn(model, same).doubts == ()


def test_another_threshold_than_one_half_is_meant():
    model = LogisticRegression().fit(*people(gaps=False))
    assert from_sklearn(model, make_problem(Goal((1,), 0.8), WHOLE)).doubts == ()


def test_the_likeliest_of_three_classes_is_not_one_above_one_half():
    frame, _ = people(gaps=False)
    model = LogisticRegression(C=0.01).fit(
        frame, pd.qcut(frame["income"], 3, labels=["a", "b", "c"])
    )
    with pytest.warns(ModelWarning, match="disagrees with a score above 0.5"):
        from_sklearn(model, make_problem(Goal(("b",)), WHOLE))


COLUMNS = (ModelInput("income"), ModelInput("debt"))


def logit():
    torch = pytest.importorskip("torch", reason="needs the extra 'learned'")
    torch.manual_seed(0)
    return torch.nn.Linear(2, 1)


def test_one_number_is_the_probability_of_the_second_of_two_classes():
    states = np.array([[2.0, 1.0], [5.0, 0.5]])
    second, first = (
        from_torch(
            logit(), make_problem(Goal((good,)), WHOLE), inputs=COLUMNS, classes=("no", "yes")
        )
        for good in ("yes", "no")
    )
    assert np.allclose(second.score(states) + first.score(states), 1.0)
    record = {"income": 2.0, "debt": 1.0}
    assert first.score_record(record) == pytest.approx(first.score(states)[0])


@pytest.mark.parametrize("favourable", [0, "no", False])
def test_one_number_for_a_favourable_no_has_to_be_named(favourable):
    problem = make_problem(Goal((favourable,)), WHOLE)
    with pytest.raises(ModelError, match=r"nothing says whether that is .* name both as 'classes'"):
        from_torch(logit(), problem, inputs=COLUMNS)
    named = make_problem(
        Goal((favourable,)), WHOLE, interface=Interface(COLUMNS, classes=(favourable, "other"))
    )
    plain = from_torch(logit(), make_problem(space=WHOLE), inputs=COLUMNS)
    states = np.array([[2.0, 1.0]])
    assert from_torch(logit(), named).score(states) == pytest.approx(1 - plain.score(states))


def test_one_number_in_a_file_for_a_favourable_no_has_to_be_named(tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    from pear.decision import export_onnx, from_onnx

    path = export_onnx(logit(), make_problem(space=WHOLE), tmp_path / "model.onnx", inputs=COLUMNS)
    refused = make_problem(Goal((0,)), WHOLE)
    with pytest.raises(ModelError, match="name both as 'classes'"):
        from_onnx(path, refused)
    states = np.array([[2.0, 1.0]])
    plain = from_onnx(path, make_problem(space=WHOLE)).score(states)
    assert from_onnx(path, refused, classes=(0, 1)).score(states) == pytest.approx(1 - plain)
