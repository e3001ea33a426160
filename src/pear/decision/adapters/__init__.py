"""Every kind of model as a black box: scikit-learn, torch, ONNX, a callable, an endpoint."""

from pear.decision.adapters.endpoint import from_endpoint
from pear.decision.adapters.export import export_onnx
from pear.decision.adapters.loading import load_model, load_models, load_skops, save_sklearn
from pear.decision.adapters.onnx import from_onnx
from pear.decision.adapters.sklearn import from_sklearn
from pear.decision.adapters.torch import from_torch
from pear.decision.blackbox import from_callable

__all__ = [
    "export_onnx",
    "from_callable",
    "from_endpoint",
    "from_onnx",
    "from_sklearn",
    "from_torch",
    "load_model",
    "load_models",
    "load_skops",
    "save_sklearn",
]
