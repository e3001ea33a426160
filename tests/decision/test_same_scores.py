"""One model in four forms gives one answer: pipeline, ONNX export, torch module, endpoint."""

import json

import numpy as np
import pytest

from pear.decision import export_onnx, from_endpoint, from_onnx, from_sklearn, from_torch

from .conftest import SPACE, UNIT


@pytest.fixture
def expected(pipeline, states):
    return pipeline.predict_proba(SPACE.frame(states))[:, 1]


def test_the_pipeline(pipeline, problem, states, expected):
    assert from_sklearn(pipeline, problem).score(states) == pytest.approx(expected, abs=1e-12)


def test_its_onnx_export(pipeline, problem, states, expected, tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    pytest.importorskip("skl2onnx", reason="needs the extra 'onnx'")
    model = from_onnx(export_onnx(pipeline, problem, tmp_path / "m.onnx"), problem)
    assert model.score(states) == pytest.approx(expected, abs=1e-6)
    assert model.fingerprint == from_sklearn(pipeline, problem).fingerprint


def test_a_torch_module_with_its_weights(pipeline, problem, states, expected):
    torch = pytest.importorskip("torch", reason="needs the extra 'learned'")
    scaler = pipeline[0].named_transformers_["numbers"]
    final = pipeline[-1]
    # Undo our scale, then apply the pipeline's own, column by column: both are affine.
    low = np.array([SPACE[n].scale[0] for n in ("income", "cards", "owner")], float)
    span = np.array([SPACE[n].scale[1] for n in ("income", "cards", "owner")], float) - low
    weights = final.coef_[0].copy()
    bias = final.intercept_[0] + (weights[:3] * (low * scaler.scale_ + scaler.min_)).sum()
    weights[:3] *= span * scaler.scale_
    module = torch.nn.Linear(len(weights), 1).double()
    with torch.no_grad():
        module.weight[:] = torch.as_tensor(weights)
        module.bias[:] = float(bias)
    assert from_torch(module, problem, inputs=UNIT).score(states) == pytest.approx(
        expected, abs=1e-6
    )


def test_an_endpoint_serving_it(pipeline, problem, states, expected, serve):
    import pandas as pd

    def reply(body, number):
        shares = pipeline.predict_proba(pd.DataFrame(body["records"]))
        answer = {"probabilities": shares.tolist(), "classes": pipeline.classes_.tolist()}
        return 200, {}, json.dumps(answer).encode()

    model = from_endpoint(serve(reply).url, problem)
    assert model.score(states) == pytest.approx(expected, abs=1e-12)
    assert model.fingerprint == from_sklearn(pipeline, problem).fingerprint
