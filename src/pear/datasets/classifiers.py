"""The paper's classifiers for a data set: how they are trained, chosen and kept.


A network (hidden layers of a half and a third of the encoded width, relu, Adam), a logistic
regression and a decision tree, on people of both decisions sampled or weighted evenly. The
best by F1 on the validation part is kept: the mean of the F1 of both decisions, because 93%
of GiveMeSomeCredit are favourable and a model that accepts everybody would otherwise win.
Reported are figures on the test part.
Each is trained once, then read from the cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from pear.arrays import Flags, Floats
from pear.datasets.sources import cache_folder
from pear.datasets.splits import Dataset, load_dataset
from pear.decision import BlackBox
from pear.decision.encoding import Inputs, unit_inputs
from pear.decision.numpy_models import DecisionTree, Layers, Network
from pear.errors import InvalidSetting
from pear.optional import require
from pear.problem.features import States
from pear.writing import replacing

Kind = Literal["network", "logistic", "tree"]
Scores = Callable[[States], Floats]
Model = Network | DecisionTree

VERSION = 1
"""Increased whenever training changes, so that older files are not used."""

LEARNING_RATE, WEIGHT_DECAY, BATCH, EPOCHS = 1e-3, 1e-5, 1_024, 15
STRENGTHS = (0.01, 0.1, 1.0, 10.0)
CRITERIA, SPLITTERS = ("gini", "entropy", "log_loss"), ("best", "random")


@dataclass(frozen=True)
class Report:
    """How good a classifier is on the test part.

    ``f1`` takes the favourable decision as positive, ``mean_f1`` is the mean over both
    decisions, ``refused`` the share of people refused.
    """

    accuracy: float
    f1: float
    mean_f1: float
    refused: float
    validation_f1: float
    settings: str


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
    if stored := _read(path, unit_inputs(data.problem.space)):
        return stored
    model, settings = TRAINERS[kind](data, seed)
    result = report(model, data, settings)
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
        LEARNING_RATE,
        WEIGHT_DECAY,
        BATCH,
        EPOCHS,
        STRENGTHS,
        CRITERIA,
        SPLITTERS,
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
    with replacing(path) as part, part.open("wb") as stream:
        np.savez(stream, **arrays)


def _read(path: Path, inputs: Inputs) -> tuple[Model, Report] | None:
    """The stored classifier; None when there is none or its file is damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        result = Report(**json.loads(str(arrays["report"])))
        if "left" in arrays:
            return DecisionTree(inputs, **{part: arrays[part] for part in _TREE_PARTS}), result
        depth = sum(name.startswith("weights_") for name in arrays)
        layers = tuple((arrays[f"weights_{i}"], arrays[f"bias_{i}"]) for i in range(depth))
        return Network(inputs, layers), result
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


_TREE_PARTS = ("left", "right", "column", "threshold", "score")


def train_network(data: Dataset, seed: int) -> tuple[Network, str]:
    """The two-layer network after its best epoch; needs the extra ``learned``."""
    torch = require("torch")
    rng = np.random.default_rng([seed, 0x4E7])
    encoding = unit_inputs(data.problem.space)
    width = encoding.width
    inputs = torch.as_tensor(encoding(data.states[data.train]), dtype=torch.float32)
    labels = data.favourable[data.train]
    targets = torch.as_tensor(labels, dtype=torch.float32)
    chances = np.where(labels, 0.5 / labels.sum(), 0.5 / (~labels).sum())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        module = torch.nn.Sequential(
            torch.nn.Linear(width, width // 2),
            torch.nn.ReLU(),
            torch.nn.Linear(width // 2, width // 3),
            torch.nn.ReLU(),
            torch.nn.Linear(width // 3, 1),
        )
    optimiser = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    best: tuple[float, int, Network] | None = None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for epoch in range(1, EPOCHS + 1):
            drawn = torch.as_tensor(rng.choice(len(labels), len(labels), p=chances))
            for batch in drawn.split(BATCH):
                optimiser.zero_grad()
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    module(inputs[batch])[:, 0], targets[batch]
                )
                loss.backward()
                optimiser.step()
            network = Network(encoding, _layers(module))
            quality = validation_f1(network, data)
            if best is None or quality > best[0]:
                best = (quality, epoch, network)
    finally:
        torch.set_num_threads(threads)
    assert best is not None
    return best[2], f"epoch {best[1]} of {EPOCHS}"


def train_logistic(data: Dataset, seed: int) -> tuple[Network, str]:
    """The logistic regression whose regularisation is best, as a network of one layer."""
    from sklearn.linear_model import LogisticRegression

    encoding = unit_inputs(data.problem.space)
    inputs, labels = encoding(data.states[data.train]), data.favourable[data.train]
    found = []
    for strength in STRENGTHS:
        model = LogisticRegression(
            C=strength, class_weight="balanced", max_iter=2_000, random_state=seed
        ).fit(inputs, labels)
        network = Network(encoding, ((model.coef_.T.copy(), model.intercept_.copy()),))
        found.append((validation_f1(network, data), f"C={strength:g}", network))
    _, settings, chosen = max(found, key=lambda item: item[0])
    return chosen, settings


def train_tree(data: Dataset, seed: int) -> tuple[DecisionTree, str]:
    """The tree, at most as deep as there are features, whose criterion and splitter are best."""
    from sklearn.tree import DecisionTreeClassifier

    encoding = unit_inputs(data.problem.space)
    inputs, labels = encoding(data.states[data.train]), data.favourable[data.train]
    found = []
    for criterion, splitter in product(CRITERIA, SPLITTERS):
        model = DecisionTreeClassifier(
            criterion=criterion,
            splitter=splitter,
            max_depth=len(data.problem.space),
            class_weight="balanced",
            random_state=seed,
        ).fit(inputs, labels)
        tree = DecisionTree.from_sklearn(encoding, model)
        found.append((validation_f1(tree, data), f"{criterion}, {splitter} splits", tree))
    _, settings, chosen = max(found, key=lambda item: item[0])
    return chosen, settings


def report(scores: Scores, data: Dataset, settings: str) -> Report:
    """Accuracy, F1 and share refused on the test part."""
    decided = scores(data.states[data.test]) > data.problem.goal.required()
    true = data.favourable[data.test]
    return Report(
        accuracy=float((decided == true).mean()),
        f1=f1(decided, true),
        mean_f1=mean_f1(decided, true),
        refused=float((~decided).mean()),
        validation_f1=validation_f1(scores, data),
        settings=settings,
    )


def validation_f1(scores: Scores, data: Dataset) -> float:
    """Mean F1 on the validation part, by which one of several models is chosen."""
    decided = scores(data.states[data.validation]) > data.problem.goal.required()
    return mean_f1(decided, data.favourable[data.validation])


def f1(decided: Flags, true: Flags) -> float:
    """Harmonic mean of precision and recall of the favourable decision.

    >>> f1(np.array([True, True, False]), np.array([True, False, True]))
    0.5
    """
    wrong, right = float((decided != true).sum()), float((decided & true).sum())
    return 2 * right / (2 * right + wrong) if right else 0.0


def mean_f1(decided: Flags, true: Flags) -> float:
    """Mean of the F1 of the favourable and of the unfavourable decision."""
    return (f1(decided, true) + f1(~decided, ~true)) / 2


def _layers(module: Any) -> Layers:
    return tuple(
        (
            np.array(layer.weight.detach().numpy().T, float),
            np.array(layer.bias.detach().numpy(), float),
        )
        for layer in module
        if hasattr(layer, "weight")
    )


TRAINERS: dict[Kind, Callable[[Dataset, int], tuple[Model, str]]] = {
    "network": train_network,
    "logistic": train_logistic,
    "tree": train_tree,
}
