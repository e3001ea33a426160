"""A feature is called unused only where it is: known from the model, or declared and true."""

import json
import warnings

import numpy as np
import pytest
from benchmarks._draws import KINDS, lacking, random_black_box
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from pear.datasets import loan_book_classifier, loan_book_problem
from pear.decision import export_onnx, from_callable, from_endpoint, from_onnx, from_sklearn
from pear.decision.blackbox import probes_with_gaps
from pear.decision.several_models import several
from pear.decision.used_features import mark_used, used_features, wrongly_unused
from pear.problem import Feature, FeatureSpace
from tests.decision.conftest import SPACE, make_problem

JOB_AND_INCOME = {"income", "job"}


def columns(final, names=("income", "job"), **settings):
    """Only these columns of the table reach the final estimator."""
    numbers = [name for name in names if SPACE[name].is_number]
    texts = [name for name in names if SPACE[name].is_categorical]
    steps = [("numbers", StandardScaler(), numbers), ("texts", OneHotEncoder(), texts)]
    return make_pipeline(ColumnTransformer(steps, **settings), final)


def declared(*names):
    """The problem, which declares these features unused."""
    features = tuple(Feature(**{**vars(f), "used": f.name not in names}) for f in SPACE.features)
    return make_problem(space=FeatureSpace(features))


def unused_of(problem, black_box):
    return {
        feature.name for feature in mark_used(problem, black_box).space.features if not feature.used
    }


@pytest.mark.parametrize(
    "final",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        KNeighborsClassifier(),
    ],
    ids=["linear", "tree", "not readable"],
)
def test_columns_that_a_pipeline_drops_are_unused(final, problem, states, labels):
    model = columns(final).fit(SPACE.frame(states), labels)
    black_box = from_sklearn(model, problem)
    assert used_features(black_box).unused == set(SPACE.names) - JOB_AND_INCOME
    assert unused_of(problem, black_box) == set(SPACE.names) - JOB_AND_INCOME


def test_of_coefficients_those_that_are_nought_are_unused(problem, states, labels, pipeline):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lasso = LogisticRegression(l1_ratio=1.0, C=0.05, solver="liblinear", penalty="l1")
        model = make_pipeline(pipeline[0], lasso).fit(SPACE.frame(states), labels)
    weights = dict(zip(model[0].get_feature_names_out(), model[-1].coef_[0], strict=True))
    nought = {
        name
        for name in SPACE.names
        if all(weight == 0 for column, weight in weights.items() if f"__{name}" in column)
    }
    assert nought
    assert used_features(from_sklearn(model, problem)).unused == nought


def test_features_on_which_no_tree_splits_are_unused(problem, states, labels, pipeline):
    tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0)
    model = make_pipeline(pipeline[0], tree).fit(SPACE.frame(states), labels)
    names = model[0].get_feature_names_out()
    split = {names[column] for column in tree.tree_.feature if column >= 0}
    expected = {n for n in SPACE.names if not any(f"__{n}" in column for column in split)}
    found = used_features(from_sklearn(model, problem))
    assert found.unused == expected
    assert found.used == set(SPACE.names) - expected


def test_a_step_that_selects_columns_is_read(states, labels, problem):
    space = FeatureSpace(SPACE.features[:3])
    problem = make_problem(space=space)
    model = make_pipeline(StandardScaler(), SelectKBest(k=1), LogisticRegression())
    model.fit(space.frame(states[:, :3]), labels)
    [kept] = np.flatnonzero(model[1].get_support())
    assert used_features(from_sklearn(model, problem)).unused == set(space.names) - {
        space.names[kept]
    }


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_called_unused_changes_no_score(kind):
    if package := lacking(kind):
        pytest.skip(f"{package} is not installed")
    rng = np.random.default_rng([3, KINDS.index(kind)])
    black_box = random_black_box(kind, rng)
    found = used_features(black_box)
    assert not found.used & found.unused
    states = probes_with_gaps(black_box.space, 400, rng)
    scores = black_box.probe(states)
    for name in found.unused:
        other = states.copy()
        column = black_box.space.index(name)
        other[:, column] = rng.permutation(states[:, column])
        assert np.abs(black_box.probe(other) - scores).max() == 0


def test_what_is_left_out_of_an_onnx_file_is_unused(problem, states, labels, tmp_path):
    pytest.importorskip("skl2onnx")
    model = columns(LogisticRegression()).fit(SPACE.frame(states), labels)
    path = export_onnx(model, problem, tmp_path / "model.onnx")
    assert used_features(from_onnx(path, problem)).unused == set(SPACE.names) - JOB_AND_INCOME


def test_a_rule_beside_the_core_of_an_onnx_file_is_not_overlooked(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    space = FeatureSpace((Feature("income", scale=(0, 1)), Feature("cards", scale=(0, 1))))
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    constants = [
        helper.make_tensor("w", kind, [1, 1], [1.0]),
        helper.make_tensor("b", kind, [1], [0.0]),
        helper.make_tensor("most", kind, [1], [1e9]),
        helper.make_tensor("nought", kind, [1], [0.0]),
    ]
    nodes = [
        helper.make_node("Gemm", ["income", "w", "b"], ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["score"]),
        # Nobody whom a probe invents has so many cards; somebody may.
        helper.make_node("Greater", ["cards", "most"], ["many"]),
        helper.make_node("Where", ["many", "nought", "score"], ["final"]),
    ]
    inputs = [helper.make_tensor_value_info(n, kind, [None, 1]) for n in space.names]
    output = [helper.make_tensor_value_info("final", kind, [None, 1])]
    graph = helper.make_graph(nodes, "rule", inputs, output, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    black_box = from_onnx(model.SerializeToString(), make_problem(space=space))
    assert black_box.inside is None, "no ceiling holds where another input can decide"
    assert used_features(black_box).unused == set()


class Lookalike(LogisticRegression):
    """Has coefficients and looks elsewhere as well."""

    def predict_proba(self, matrix):
        shares = super().predict_proba(matrix)
        return np.where(matrix[:, 1:2] > 1e6, [[1.0, 0.0]], shares)


Lookalike.__name__ = "LogisticRegression"


def test_somebodys_own_estimator_is_not_read_by_its_name(states, labels):
    space = FeatureSpace(SPACE.features[:2])
    model = Lookalike().fit(states[:, :2], labels)
    model.coef_[0, 1] = 0.0
    black_box = from_sklearn(model, make_problem(space=space), inputs="numbers")
    assert black_box.inside is None
    assert used_features(black_box).unused == set()


def test_of_a_function_nothing_is_known_and_what_is_declared_counts():
    problem = declared("city")
    black_box = from_callable(lambda states: states[:, 0] / 5_000, problem)
    assert used_features(black_box).unused == set()
    assert unused_of(problem, black_box) == {"city"}


def test_a_declaration_that_a_probe_belies_does_not_count():
    problem = declared("city", "owner")
    black_box = from_callable(lambda states: states[:, 0] / 9_000 + states[:, 4] / 5, problem)
    assert unused_of(problem, black_box) == {"owner"}
    [told] = wrongly_unused(problem, black_box)
    assert "says that 'city' is not used" in told


def test_a_declaration_that_the_model_itself_belies_does_not_count(states, labels):
    problem = declared("job")
    model = columns(LogisticRegression()).fit(SPACE.frame(states), labels)
    model[-1].coef_[0, 1:] = [1e-9, 0.0, 0.0]  # Too little for any probe, and there.
    assert "job" not in unused_of(problem, from_sklearn(model, problem))


def test_an_endpoint_is_asked_about_what_is_declared_only(serve):
    problem = declared("city")

    def reply(body, number):
        scores = [record["income"] / 5_000 for record in body["records"]]
        return 200, {}, json.dumps({"scores": scores}).encode()

    server = serve(reply)
    black_box = from_endpoint(server.url, problem)
    assert unused_of(problem, black_box) == {"city"}


def test_of_several_models_all_must_leave_a_feature_out(problem, states, labels):
    table = SPACE.frame(states)
    one = from_sklearn(columns(LogisticRegression()).fit(table, labels), problem)
    other = from_sklearn(
        columns(LogisticRegression(), ("income", "city")).fit(table, labels), problem
    )
    assert used_features(several([one, other])).unused == {"cards", "owner"}


def test_the_problem_keeps_its_fingerprint_and_its_words():
    problem = loan_book_problem()
    told = mark_used(problem, loan_book_classifier(problem))
    assert told.fingerprint == problem.fingerprint
    assert told.words == problem.words
    assert told.in_language("de").space["sex"].used is False
