"""What does the classifier say?"""

from pear.decision.adapters import (
    export_onnx,
    from_endpoint,
    from_onnx,
    from_sklearn,
    from_torch,
    load_model,
    load_models,
    load_skops,
    save_sklearn,
)
from pear.decision.blackbox import BlackBox, from_callable
from pear.decision.several import several

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
