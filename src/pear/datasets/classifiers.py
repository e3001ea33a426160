"""The paper's classifiers for a data set: trained once, then read from the cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np

from pear.datasets import training
from pear.datasets.sources import cache_folder
from pear.datasets.splits import Dataset, load_dataset
from pear.datasets.training import Kind, Report
from pear.decision import BlackBox
from pear.decision.network import Network
from pear.decision.tree import DecisionTree
from pear.errors import InvalidSetting
from pear.problem.features import FeatureSpace

VERSION = 1
"""Raised whenever training changes, so that older files are not taken for new ones."""

Model = Network | DecisionTree
TRAINERS: dict[Kind, Callable[[Dataset, int], tuple[Model, str]]] = {
    "network": training.train_network,
    "logistic": training.train_logistic,
    "tree": training.train_tree,
}


def trained_classifier(
    name: str, kind: Kind = "network", seed: int = 0, *, data: Dataset | None = None
) -> BlackBox:
    """The classifier of a data set (``adult``, ``givemecredit``, ``loan_book``).

    ``data`` avoids loading the data set again when it is at hand; it must be split with the
    same seed to be the same classifier.
    """
    data = data or load_dataset(name, seed)
    model, _ = _trained(data, kind, seed)
    return BlackBox(model, data.problem.space, data.problem.goal, name=f"{data.name} {kind}")


def classifier_report(
    name: str, kind: Kind = "network", seed: int = 0, *, data: Dataset | None = None
) -> Report:
    """How good that classifier is on the test part."""
    return _trained(data or load_dataset(name, seed), kind, seed)[1]


def _trained(data: Dataset, kind: Kind, seed: int) -> tuple[Model, Report]:
    if kind not in get_args(Kind):
        raise InvalidSetting(f"'kind' must be one of {', '.join(get_args(Kind))} (got {kind!r})")
    path = _path(data, kind, seed)
    if stored := _read(path, data.problem.space):
        return stored
    model, settings = TRAINERS[kind](data, seed)
    result = training.report(model, data, settings)
    _write(path, model, result)
    return model, result


def _path(data: Dataset, kind: Kind, seed: int) -> Path:
    """One file per data, settings and seed."""
    settings = [
        VERSION,
        data.fingerprint,
        data.problem.fingerprint,
        kind,
        seed,
        training.LEARNING_RATE,
        training.WEIGHT_DECAY,
        training.BATCH,
        training.EPOCHS,
        training.STRENGTHS,
        training.CRITERIA,
        training.SPLITTERS,
    ]
    key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
    return cache_folder() / "classifiers" / f"{data.name}-{kind}-{key}.npz"


def _write(path: Path, model: Model, result: Report) -> None:
    arrays: dict[str, Any] = {"report": np.array(json.dumps(asdict(result)))}
    if isinstance(model, Network):
        for number, (weights, bias) in enumerate(model.layers):
            arrays |= {f"weights_{number}": weights, f"bias_{number}": bias}
    else:
        arrays |= {part: getattr(model, part) for part in _TREE_PARTS}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{os.getpid()}-{path.name}")
    np.savez(unfinished, **arrays)
    os.replace(unfinished, path)


def _read(path: Path, space: FeatureSpace) -> tuple[Model, Report] | None:
    """The stored classifier; None when there is none or its file is damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        result = Report(**json.loads(str(arrays["report"])))
        if "left" in arrays:
            return DecisionTree(space, **{part: arrays[part] for part in _TREE_PARTS}), result
        depth = sum(name.startswith("weights_") for name in arrays)
        layers = tuple((arrays[f"weights_{i}"], arrays[f"bias_{i}"]) for i in range(depth))
        return Network(space, layers), result
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


_TREE_PARTS = ("left", "right", "column", "threshold", "score")
