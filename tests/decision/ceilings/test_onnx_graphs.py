"""What is read from ONNX files is as sound as what is read from the models themselves."""

import numpy as np
import pytest
from benchmarks._draws import draws, lacking, random_black_box

from pear.decision import export_onnx, from_onnx
from pear.problem import Action, ActionSpace, CostGraph, Problem

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("forest", "15 trees of an ONNX graph"),
        ("gradient boosting", "15 trees of an ONNX graph"),
        ("histogram boosting", "15 trees of an ONNX graph"),
        ("lightgbm", "15 trees of an ONNX graph"),
        ("xgboost", "15 trees of an ONNX graph"),
        ("logistic", "the coefficients"),
        ("rectified network", "a network with 12, 8 hidden units"),
        ("tanh network", "a network with 12, 8 hidden units"),
    ],
)
def test_no_completion_scores_above_its_ceiling(kind, what, tmp_path):
    if package := lacking(kind):
        pytest.skip(f"{package} is not installed")
    if kind in ("lightgbm", "xgboost"):
        pytest.importorskip("onnxmltools")
    rng = np.random.default_rng(5)
    made = random_black_box(kind, rng)
    actions = ActionSpace(made.space, (Action("change", "a", "set", (0.0, 1.0)),))
    problem = Problem(made.space, actions, CostGraph(made.space), made.goal)
    black_box = from_onnx(export_onnx(made.function.model, problem, tmp_path / "m.onnx"), problem)
    assert black_box.inside.what == what
    counts = np.array([draws(black_box, rng, 20, 10) for _ in range(3)])
    assert counts[:, 0].sum() == 600
    assert counts[:, 1].sum() == 0
