"""What does the classifier say?"""

from pear.decision.adapters.endpoint import from_endpoint
from pear.decision.adapters.export import export_onnx
from pear.decision.adapters.loading import load_model, load_models, load_skops, save_sklearn
from pear.decision.adapters.onnx import from_onnx
from pear.decision.adapters.sklearn import from_sklearn
from pear.decision.adapters.torch import from_torch
from pear.decision.blackbox import BlackBox, from_callable
from pear.decision.several_models import several

__all__ = [
    "BlackBox",
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
    "several",
]
