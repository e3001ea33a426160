"""Which optional packages are here, and what to install when one is not."""

from __future__ import annotations

import importlib
from typing import Any

from pear.errors import MissingExtra

EXTRA_OF_MODULE = {
    "torch": "learned",
    "safetensors": "learned",
    "fastapi": "service",
    "uvicorn": "service",
    "sqlalchemy": "service",
    "alembic": "service",
    "matplotlib": "plots",
    "pydantic_settings": "service",
    "prometheus_client": "service",
    "pythonjsonlogger": "service",
    "authlib": "sign-in",
    "httpx2": "sign-in",
    "joserfc": "sign-in",
    "opentelemetry": "traces",
    "ray": "cluster",
    "grpc": "cluster",
    "pymoo": "experiments",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "skl2onnx": "onnx",
    "onnxmltools": "onnx",
}


def require(module: str) -> Any:
    """Import an optional module, or say which extra brings it.

    >>> require("json").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        extra = EXTRA_OF_MODULE.get(module.split(".")[0])
        if extra is None:
            raise
        raise MissingExtra(
            f"'{module}' is not installed; it comes with the extra '{extra}': "
            f'pip install "pear-recourse[{extra}]"'
        ) from error
