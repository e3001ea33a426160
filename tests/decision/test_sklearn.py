"""Fitted scikit-learn estimators of every sort give their own scores through the black box."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from pear.decision import from_sklearn, load_model
from pear.decision.encoding import unit_inputs
from pear.errors import InvalidProblem, InvalidSetting, ModelError, ModelOutput
from pear.problem import Feature, FeatureSpace, Goal
from pear.problem.model_inputs import Interface, ModelInput

from .conftest import SPACE, UNIT, make_pipeline_for, make_problem

NUMBERS = FeatureSpace(SPACE.features[:3])


def test_a_pipeline_gets_the_table_it_was_fitted_on(pipeline, problem, states):
    model = from_sklearn(pipeline, problem)
    assert model.name == "LogisticRegression"
    assert np.array_equal(model.score(states), pipeline.predict_proba(SPACE.frame(states))[:, 1])


def test_a_model_that_knows_fewer_columns_gets_those(states, labels, problem):
    frame = SPACE.frame(states)[["cards", "income"]]
    fitted = LogisticRegression(max_iter=500).fit(frame, labels)
    assert np.array_equal(
        from_sklearn(fitted, problem).score(states), fitted.predict_proba(frame)[:, 1]
    )


def test_a_model_fitted_on_columns_the_problem_lacks_is_refused(states, labels, problem):
    frame = SPACE.frame(states)[["income"]].assign(shoe_size=40)
    with pytest.raises(ModelError, match="'shoe_size', which the problem does not have"):
        from_sklearn(LogisticRegression().fit(frame, labels), problem)


def test_a_model_of_the_one_hot_encoding_is_declared_never_guessed(states, labels, problem):
    encoded = unit_inputs(SPACE)(states)
    fitted = RandomForestClassifier(5, random_state=0).fit(encoded, labels)
    expected = fitted.predict_proba(encoded)[:, 1]
    stated = make_problem(interface=Interface(UNIT))
    assert np.array_equal(from_sklearn(fitted, problem, inputs=UNIT).score(states), expected)
    assert np.array_equal(from_sklearn(fitted, stated).score(states), expected)
    with pytest.raises(ModelError, match=r"array of 8 columns without .*\[model.inputs\]"):
        from_sklearn(fitted, problem)


def test_dummies_are_known_by_their_names(states, labels, problem):
    frame = pd.get_dummies(SPACE.frame(states), columns=["city", "job"])
    fitted = RandomForestClassifier(5, random_state=0).fit(frame, labels)
    model = from_sklearn(fitted, problem)
    assert np.array_equal(model.score(states), fitted.predict_proba(frame)[:, 1])
    assert model.uses == SPACE.names


def test_columns_that_tell_what_is_missing_are_known_or_declared(labels):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "income": pd.Series(rng.uniform(0, 5, 200)).mask(rng.random(200) < 0.3),
            "job": pd.Series(rng.choice(["none", "part"], 200), dtype=object),
        }
    )
    frame.loc[::5, "job"] = None
    space = FeatureSpace(
        (
            Feature("income", missing_counts_as=2.0),
            Feature("job", "categorical", categories=("none", "part"), missing_counts_as="none"),
        )
    )
    dummies = pd.get_dummies(frame, dummy_na=True)
    filled = dummies.assign(income=frame["income"].fillna(2.0), gone=frame["income"].isna())
    fitted = LogisticRegression().fit(filled.astype(float), labels)
    inputs = [ModelInput("income", missing=2.0), ModelInput("gone", "income", "is_missing")]
    model = from_sklearn(fitted, make_problem_of(space), inputs=inputs)
    expected = fitted.predict_proba(filled.astype(float))[:, 1]
    states = space.encode(frame)
    assert model.score(states) == pytest.approx(expected)
    for record, score in zip(space.decode(states[:12]), expected, strict=False):
        assert model.score_record(record) == pytest.approx(score)
    with pytest.raises(InvalidProblem, match="'missing' puts a value in, and is_missing tells"):
        ModelInput("gone", "income", "is_missing", missing=2.0)


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_a_booster_alone_is_no_classifier(package, problem):
    kind = type("Booster", (), {"predict": None, "__module__": f"{package}.core"})
    with pytest.raises(ModelError, match=rf"Booster of {package} .* give the (LGBM|XGB)Classifier"):
        from_sklearn(kind(), problem)


def test_dummies_of_numbers_ask_for_a_categorical_feature(states, labels, problem):
    frame = pd.get_dummies(SPACE.frame(states)[["income", "cards"]], columns=["cards"])
    fitted = LogisticRegression(max_iter=500).fit(frame, labels)
    with pytest.raises(ModelError, match="'cards_0' may be a category of 'cards', which the prob"):
        from_sklearn(fitted, problem)


def test_signs_that_libraries_spell_otherwise_are_known_unless_two_columns_would_be_one():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    space = FeatureSpace((Feature("Einkommen (€)", scale=(0, 1)), Feature("b", scale=(0, 1))))
    states = np.random.default_rng(0).uniform(size=(200, 2))
    labels = (states[:, 0] > states[:, 1]).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(space.frame(states), labels)
    assert list(model.feature_name_) == ["Einkommen_(€)", "b"]
    expected = model.predict_proba(space.frame(states))[:, 1]
    assert from_sklearn(model, make_problem_of(space)).score(states) == pytest.approx(expected)
    two = pd.DataFrame(np.column_stack([states, states[:, 0]]), columns=["a_b", "b", "a b"])
    other = FeatureSpace((Feature("a_b", scale=(0, 1)), Feature("b", scale=(0, 1))))
    with pytest.raises(ModelError, match="trained on 'a b', which the problem does not have"):
        from_sklearn(LogisticRegression().fit(two, labels), make_problem_of(other))


def test_columns_with_other_names_are_declared(states, labels, problem):
    frame = SPACE.frame(states)[["cards", "income"]].set_axis(["Cards", "Income (k)"], axis=1)
    frame["Income (k)"] /= 1_000
    fitted = LogisticRegression(max_iter=500).fit(frame, labels)
    inputs = [ModelInput("Income (k)", "income", divide=1_000), ModelInput("Cards", "cards")]
    model = from_sklearn(fitted, problem, inputs=inputs)
    assert np.array_equal(model.score(states), fitted.predict_proba(frame)[:, 1])
    with pytest.raises(ModelError, match=r"'Income \(k\)', which the problem does not"):
        from_sklearn(fitted, problem, inputs=inputs[1:])
    with pytest.raises(ModelError, match="declares 'owner', and the model was not trained on"):
        from_sklearn(fitted, problem, inputs=[*inputs, ModelInput("owner")])


def test_a_model_of_category_codes_must_be_asked_for(states, labels, problem):
    fitted = DecisionTreeClassifier(random_state=0).fit(states, labels)
    with pytest.raises(ModelError, match="job, city are categories"):
        from_sklearn(fitted, problem, inputs="numbers")
    model = from_sklearn(fitted, problem, inputs="codes")
    assert np.array_equal(model.score(states), fitted.predict_proba(states)[:, 1])


def test_a_model_of_plain_numbers(states, labels):
    problem = make_problem(space=NUMBERS)
    fitted = LogisticRegression(max_iter=500).fit(states[:, :3], labels)
    assert np.array_equal(
        from_sklearn(fitted, problem, inputs="numbers").score(states[:, :3]),
        fitted.predict_proba(states[:, :3])[:, 1],
    )
    with pytest.raises(ModelError, match=r"array of 3 columns without names.*inputs='numbers'"):
        from_sklearn(fitted, problem)


def test_a_model_of_another_width_is_refused(states, labels, problem):
    fitted = LogisticRegression(max_iter=500).fit(states[:, :4], labels)
    with pytest.raises(ModelError, match="array of 4 columns without names"):
        from_sklearn(fitted, problem)


def test_something_that_is_no_classifier_is_refused(problem):
    with pytest.raises(ModelError, match="'OneHotEncoder' has none of predict_proba"):
        from_sklearn(OneHotEncoder(), problem)


def test_inputs_of_an_unknown_kind_are_refused(pipeline, problem):
    with pytest.raises(InvalidSetting, match=r"'inputs' must be one of auto.*got 'rows'"):
        from_sklearn(pipeline, problem, inputs="rows")


def test_a_category_never_seen_in_training_names_model_and_row(states, labels):
    known = states[states[:, 4] == 0]
    encoder = make_pipeline_for(LogisticRegression(max_iter=500))
    encoder.set_params(columntransformer__texts__categories="auto")
    encoder.fit(SPACE.frame(known), labels[states[:, 4] == 0])
    with pytest.raises(ModelOutput, match=r"'LogisticRegression' failed on row .*Trento"):
        from_sklearn(encoder, make_problem())


def test_several_classes_with_two_favourable(states):
    grades = np.digitize(states[:, 0], [1_500, 3_500])
    fitted = make_pipeline_for(LogisticRegression(max_iter=500)).fit(
        SPACE.frame(states), np.array(["low", "middle", "high"])[grades]
    )
    model = from_sklearn(fitted, make_problem(Goal(favourable=("middle", "high"))))
    low = list(fitted.classes_).index("low")
    expected = 1 - fitted.predict_proba(SPACE.frame(states))[:, low]
    assert model.score(states) == pytest.approx(expected)
    with pytest.raises(ModelOutput, match="3 classes; say in the problem's goal"):
        from_sklearn(fitted, make_problem())


@pytest.mark.parametrize(("favourable", "rising"), [((), True), ((1,), True), ((0,), False)])
def test_a_decision_function_becomes_a_score(states, labels, favourable, rising):
    fitted = LinearSVC(random_state=0).fit(unit_inputs(SPACE)(states), labels)
    model = from_sklearn(fitted, make_problem(Goal(favourable=favourable)), inputs=UNIT)
    decided = fitted.predict(unit_inputs(SPACE)(states)) == 1
    assert np.array_equal(model.favourable(states), decided if rising else ~decided)


def test_a_decision_function_without_the_favourable_class_is_refused(states, labels):
    fitted = LinearSVC(random_state=0).fit(unit_inputs(SPACE)(states), labels)
    with pytest.raises(ModelError, match="no class 'gold'; its classes are 0, 1"):
        from_sklearn(fitted, make_problem(Goal(favourable=("gold",))), inputs=UNIT)


def test_a_decision_function_of_several_classes_asks_for_calibration(states):
    grades = np.digitize(states[:, 0], [1_500, 3_500])
    fitted = LinearSVC(random_state=0).fit(unit_inputs(SPACE)(states), grades)
    with pytest.raises(ModelError, match="calibrate it"):
        from_sklearn(fitted, make_problem(Goal(favourable=(2,))), inputs=UNIT)


class Rule:
    """A model with nothing but predict."""

    n_features_in_ = len(SPACE)

    def predict(self, frame):
        return np.where(frame.income > 2_500, "grant", "refuse")


def test_a_model_that_only_predicts_scores_zero_or_one(states):
    goal = Goal(favourable=("grant",))
    model = from_sklearn(Rule(), make_problem(goal), inputs="frame")
    assert np.array_equal(model.score(states), (states[:, 0] > 2_500).astype(float))


def test_gradient_boosting_reads_categories_itself(states, labels, problem):
    frame = SPACE.frame(states).astype(dict.fromkeys(("job", "city"), "category"))
    fitted = HistGradientBoostingClassifier(max_iter=5).fit(frame, labels)
    assert np.array_equal(
        from_sklearn(fitted, problem).score(states), fitted.predict_proba(frame)[:, 1]
    )


def test_lightgbm_through_the_same_interface(states, labels, problem):
    lightgbm = pytest.importorskip("lightgbm")
    frame = SPACE.frame(states)
    for name in ("job", "city"):
        frame[name] = pd.Categorical(frame[name], categories=SPACE[name].categories)
    fitted = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(frame, labels)
    assert from_sklearn(fitted, problem).score(states) == pytest.approx(
        fitted.predict_proba(frame)[:, 1]
    )


def test_xgboost_through_the_same_interface(states, labels, problem):
    xgboost = pytest.importorskip("xgboost")
    frame = SPACE.frame(states)
    for name in ("job", "city"):
        frame[name] = pd.Categorical(frame[name], categories=SPACE[name].categories)
    fitted = xgboost.XGBClassifier(n_estimators=5, n_jobs=1, enable_categorical=True).fit(
        frame, labels
    )
    assert from_sklearn(fitted, problem).score(states) == pytest.approx(
        fitted.predict_proba(frame)[:, 1], abs=1e-6
    )


def test_it_travels_to_a_worker_process(pipeline, problem, states):
    model = from_sklearn(pipeline, problem)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.score(states), model.score(states))


def test_one_feature_needs_no_names():
    space = FeatureSpace((Feature("a"),))
    fitted = LogisticRegression().fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    model = from_sklearn(fitted, make_problem_of(space))
    assert model.score(np.array([[1.5]])) == pytest.approx([0.5], abs=0.2)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_model_that_says_nothing_of_its_columns_is_asked_by_name_or_not_at_all(by_name):
    class Rule:
        classes_ = (0, 1)

        def predict_proba(self, table):
            values = table["a"] if by_name else np.asarray(table)[:, 0]
            yes = np.asarray(values, float)
            return np.column_stack([1 - yes, yes])

    space = FeatureSpace((Feature("b", scale=(0, 1)), Feature("a", scale=(0, 1))))
    if by_name:
        assert from_sklearn(Rule(), make_problem_of(space)).score([[0.2, 0.7]]).tolist() == [0.7]
        return
    with pytest.raises(ModelError, match=r"reads the columns of a table by their place.*'frame'"):
        from_sklearn(Rule(), make_problem_of(space))
    said = from_sklearn(Rule(), make_problem_of(space), inputs="frame")
    assert said.score([[0.2, 0.7]]).tolist() == [0.2]


def make_problem_of(space):
    from pear.problem import Action, ActionSpace, CostGraph, Problem

    actions = ActionSpace(space, (Action("more", space.names[0], "add", (1,)),))
    return Problem(space, actions, CostGraph(space))


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("sklearn.linear_model", "LogisticRegression"),
        ("sklearn.ensemble", "RandomForestClassifier"),
        ("sklearn.ensemble", "HistGradientBoostingClassifier"),
        ("lightgbm", "LGBMClassifier"),
        ("xgboost", "XGBClassifier"),
        ("catboost", "CatBoostClassifier"),
    ],
)
@pytest.mark.parametrize("around", ["nothing", "a pipeline", "a calibration"])
def test_what_is_not_fitted_is_refused(package, name, around, problem):
    model = getattr(pytest.importorskip(package), name)()
    if around == "a pipeline":
        model = make_pipeline(StandardScaler(), model)
    elif around == "a calibration":
        model = CalibratedClassifierCV(model)
    with pytest.raises(ModelError, match="is not fitted; fit it"):
        load_model(model, problem)
