"""A model is read as it scores, or not at all: what was misread would prove what is false."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from pear.decision import from_onnx, from_sklearn, from_torch
from pear.problem import Action, Feature, Problem
from pear.problem.model_inputs import ModelInput

LETTERS = tuple("abcdefghij")


def numbers_problem(**settings):
    features = [Feature(name, **settings) for name in "ab"]
    return Problem(features, [Action(f"set_{f.name}", f.name, "set", (1.0,)) for f in features])


@pytest.mark.parametrize("sparse", [True, False])
def test_what_a_sparse_matrix_leaves_out_is_missing_to_xgboost(sparse):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"job": rng.choice(LETTERS, 600), "debt": rng.gamma(2, 1, 600) + 0.01})
    refused = table["debt"] > 1.5
    table.loc[:60, "debt"], refused[:61] = 0.0, True
    columns = make_column_transformer(
        (OneHotEncoder(), ["job"]), remainder="passthrough", sparse_threshold=float(sparse)
    )
    trees = xgboost.XGBClassifier(n_estimators=8, max_depth=2, min_child_weight=20)
    model = make_pipeline(columns, trees).fit(table, ~refused)
    problem = Problem(
        [Feature("job", "categorical", categories=LETTERS), Feature("debt", scale=(0, 8))],
        [Action("pay", "debt", "set", (0.0,))],
    )
    black_box = from_sklearn(model, problem)
    states = np.array([[job, debt] for job in range(10) for debt in (0.0, 1.0, 5.0)])
    assert black_box.inside is not None
    assert black_box.inside.agrees(states, black_box.score(states))


@pytest.mark.parametrize("kind", [LogisticRegression, RidgeClassifier, LinearDiscriminantAnalysis])
def test_coefficients_in_single_precision_are_as_inexact_as_their_scores(kind):
    rng = np.random.default_rng(0)
    names = list("pqrs")
    table = pd.DataFrame({name: rng.choice(LETTERS[:4], 400) for name in names})
    labels = sum(rng.normal() * (table[name] > "b") for name in names) + rng.normal(size=400) > 0
    features = [Feature(name, "categorical", categories=LETTERS[:4]) for name in names]
    encoders = [
        (OneHotEncoder(dtype=np.float32, sparse_output=False), names[:2]),
        (OrdinalEncoder(dtype=np.float32), names[2:]),
    ]
    model = make_pipeline(make_column_transformer(*encoders), kind()).fit(table, labels)
    actions = [Action(f"set_{f.name}", f.name, "set", LETTERS[:4]) for f in features]
    black_box = from_sklearn(model, Problem(features, actions))
    states = np.array(list(product(range(4), repeat=4)), float)
    margins = black_box.inside.model.margins(black_box.inside.encode(states))
    scores = black_box.score(states)
    for margin, score in list(zip(margins, scores, strict=True))[::8]:
        required = np.nextafter(score, -1.0)
        special = black_box.inside.specialise(states[0], range(4), [np.arange(4.0)] * 4, required)
        assert margin >= special.required


class Mixed(ColumnTransformer):
    """Somebody's own, of which nothing is known."""


def test_of_a_transformer_of_somebodys_own_nothing_is_read():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    parts = [("all", "passthrough", ["a", "b"])]
    for kind, known in ((ColumnTransformer, True), (Mixed, False)):
        model = make_pipeline(kind(parts), LogisticRegression()).fit(table, table["a"] > 0)
        black_box = from_sklearn(model, numbers_problem(scale=(-1, 1)))
        assert (black_box.inside is not None) == known


@pytest.mark.parametrize(("slope", "known"), [(0.1, True), (1.0, True), (-0.5, False)])
def test_a_rectifier_that_rises_on_both_sides_is_not_read(slope, known):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2, 4), torch.nn.LeakyReLU(slope), torch.nn.Linear(4, 1)]
    inputs = [ModelInput("a"), ModelInput("b")]
    problem = numbers_problem(scale=(-1, 1))
    black_box = from_torch(torch.nn.Sequential(*layers), problem, inputs=inputs)
    assert (black_box.inside is not None) == known


@pytest.mark.parametrize(("scale", "known"), [((0, 100), True), (None, False)])
def test_scores_that_are_all_zero_do_not_tell_what_was_read(scale, known):
    """The difference of two rows of coefficients, or one of them? Far from anybody both give 0."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    number = onnx.TensorProto.FLOAT
    node = onnx.helper.make_node(
        "LinearClassifier", ["x"], ["label", "probabilities"], domain="ai.onnx.ml",
        coefficients=[0.1, 0.1, 0.3, 0.3], intercepts=[16.0, 0.0], classlabels_ints=[0, 1],
        post_transform="SOFTMAX",
    )  # fmt: skip
    graph = onnx.helper.make_graph(
        [node], "g",
        [onnx.helper.make_tensor_value_info("x", number, [None, 2])],
        [onnx.helper.make_tensor_value_info("probabilities", number, [None, 2])],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    made = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    black_box = from_onnx(
        made.SerializeToString(), numbers_problem(scale=scale), classes=(0, 1),
        inputs=[ModelInput("a"), ModelInput("b")],
    )  # fmt: skip
    assert (black_box.inside is not None) == known
    if known:
        states = np.array([[30.0, 50.0], [45.0, 40.0]])
        assert black_box.inside.agrees(states, black_box.score(states))
