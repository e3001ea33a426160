"""The trees, coefficients and layers inside a model in an ONNX file.

The graph is cut at the tensor that goes into its one ensemble, its one linear classifier or its
first layer. What is in front must take every column by itself; onnxruntime computes it, so that an
encoding is the file's own. What comes after must be made of that tensor alone and is not read: of
the few ways in which a margin becomes a score, the one that gives the model's own scores on probes
is taken; if none does, the model is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pear.decision.ceilings.linear import Linear
from pear.decision.ceilings.margins import SINGLE, Identity, Matrix, ReadModel, Sigmoid
from pear.decision.ceilings.networks import SIGMOID, TANH, network_found
from pear.decision.ceilings.trees import MISSING_LEFT, STRICT, join_trees
from pear.optional import require
from pear.problem.features import States

COLUMN_BY_COLUMN = (
    "ArrayFeatureExtractor", "Cast", "Concat", "FeatureVectorizer", "Flatten", "Identity",
    "Imputer", "LabelEncoder", "OneHotEncoder", "Reshape", "Scaler", "StringNormalizer",
)  # fmt: skip
"""Operators of which every output column depends on one input column."""
WITH_A_CONSTANT = ("Add", "Div", "Gather", "Mul", "Sub")
CORES = ("TreeEnsembleClassifier", "LinearClassifier")
ACTIVATIONS = {"Relu": 0.0, "Sigmoid": SIGMOID, "Tanh": TANH}
FLIPPED = ("BRANCH_GTE", "BRANCH_GT")


def read_graph(function: Any) -> tuple[Callable[[States], Matrix], list[ReadModel]] | None:
    """The encoding in front of the core, and what its margin and link may be."""
    onnx = require("onnx")
    model = onnx.load_model_from_string(function.content)
    nodes, constants = list(model.graph.node), _constants(onnx, model.graph)
    cores = [node for node in nodes if node.op_type.endswith(("Classifier", "Regressor"))]
    if len(cores) > 1 or (cores and cores[0].op_type not in CORES):
        return None
    layers = [node for node in nodes if node.op_type in ("Gemm", "MatMul")]
    if bool(cores) == bool(layers):
        return None
    tensor = (cores or layers)[0].input[0]
    inputs = {entry.name for entry in model.graph.input} - set(constants)
    if not _column_by_column(nodes, constants, tensor):
        return None
    if not _only_through(nodes, tensor, function.result_name, inputs):
        return None
    if layers:
        found = list(_networks(onnx, nodes, constants, layers[0]))
    else:
        settings = {a.name: onnx.helper.get_attribute_value(a) for a in cores[0].attribute}
        read = _trees if cores[0].op_type.startswith("Tree") else _coefficients
        found = list(read(settings))
    return _encoding(onnx, model, function, tensor), found


def _constants(onnx: Any, graph: Any) -> dict[str, Any]:
    found = {entry.name: onnx.numpy_helper.to_array(entry) for entry in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    return found


def _column_by_column(nodes: list[Any], constants: dict[str, Any], tensor: str) -> bool:
    makers = {name: node for node in nodes for name in node.output}
    waiting, seen = [tensor], set()
    while waiting:
        name = waiting.pop()
        node = makers.get(name)
        if node is None or name in constants or name in seen:
            continue
        seen.add(name)
        varying = [part for part in node.input if part not in constants]
        if node.op_type in WITH_A_CONSTANT and len(varying) > 1:
            return False
        if node.op_type == "Gather" and [a.i for a in node.attribute if a.name == "axis"] != [1]:
            return False
        if node.op_type not in (*COLUMN_BY_COLUMN, *WITH_A_CONSTANT, "Constant"):
            return False
        waiting += varying
    return True


def _only_through(nodes: list[Any], tensor: str, result: str, inputs: set[str]) -> bool:
    """Whether the result sees the inputs through the tensor alone."""
    makers = {name: node for node in nodes for name in node.output}
    waiting, seen = [result], {tensor}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        if name in inputs:
            return False
        seen.add(name)
        if name in makers:
            waiting += _needs(makers[name])
    return True


def _needs(node: Any) -> Iterator[str]:
    """The tensors that a node takes, those that its branches take from outside among them."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _needs(inner)


def _encoding(onnx: Any, model: Any, function: Any, tensor: str) -> Callable[[States], Matrix]:
    """What goes into the core, as onnxruntime computes it."""
    if tensor not in {entry.name for entry in model.graph.input}:
        del model.graph.output[:]
        model.graph.output.append(onnx.ValueInfoProto(name=tensor))
        session = require("onnxruntime").InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return lambda states: np.asarray(session.run([tensor], function.feed(states))[0], float)
    return lambda states: np.asarray(function.feed(states)[tensor], float)


def _trees(settings: dict[str, Any]) -> Iterator[ReadModel]:
    modes = [mode.decode() for mode in settings["nodes_modes"]]
    known = ("LEAF", "BRANCH_LEQ", "BRANCH_LT", *FLIPPED)
    if any(mode not in known for mode in modes) or "nodes_values_as_tensor" in settings:
        return
    where = list(zip(settings["nodes_treeids"], settings["nodes_nodeids"], strict=True))
    place = {key: number for number, key in enumerate(where)}
    tracks = settings.get("nodes_missing_value_tracks_true") or [0] * len(where)
    trees: dict[int, list[int]] = {}
    for number, (tree, _) in enumerate(where):
        trees.setdefault(tree, []).append(number)
    weights = np.zeros((max(settings["class_ids"]) + 1, len(where)))
    for tree, node, which, weight in zip(
        settings["class_treeids"], settings["class_nodeids"], settings["class_ids"],
        settings["class_weights"], strict=True,
    ):  # fmt: skip
        weights[which, place[tree, node]] += weight
    bases = [*settings.get("base_values", ()), *[0.0] * len(weights)]
    what = f"{len(trees)} trees of an ONNX graph"
    for which in sorted(set(settings["class_ids"])):
        for side in (1.0, -1.0):
            for link, shift in ((Sigmoid(error=SINGLE), 0.0), (Identity(SINGLE), side < 0)):
                read = [
                    _tree(settings, modes, tracks, members, place, side * weights[which])
                    for members in trees.values()
                ]
                base = side * bases[min(which, len(bases) - 1)] + shift
                ensemble = join_trees(read, single=True, base=base, rounding=2.0**-24)
                yield ReadModel(ensemble, link, what)


def _tree(
    settings: dict[str, Any],
    modes: list[str],
    tracks: list[int],
    members: list[int],
    place: dict[tuple[int, int], int],
    value: Matrix,
) -> dict[str, Any]:
    first = {number: row for row, number in enumerate(members)}
    columns: dict[str, list[Any]] = {
        key: [] for key in ("column", "left", "right", "threshold", "value", "flags")
    }
    for number in members:
        mode, tree = modes[number], settings["nodes_treeids"][number]
        leaf, flipped = mode == "LEAF", mode in FLIPPED
        yes = 0 if leaf else first[place[tree, settings["nodes_truenodeids"][number]]]
        no = 0 if leaf else first[place[tree, settings["nodes_falsenodeids"][number]]]
        missing_left = bool(tracks[number]) != flipped
        columns["column"].append(-1 if leaf else settings["nodes_featureids"][number])
        columns["left"].append(no if flipped else yes)
        columns["right"].append(yes if flipped else no)
        columns["threshold"].append(settings["nodes_values"][number])
        columns["value"].append(value[number])
        strict = STRICT if mode in ("BRANCH_LT", "BRANCH_GTE") else 0
        columns["flags"].append(strict | (MISSING_LEFT if missing_left else 0))
    return columns


def _coefficients(settings: dict[str, Any]) -> Iterator[ReadModel]:
    intercepts = np.array(settings["intercepts"], float)
    rows = np.array(settings["coefficients"], float).reshape(len(intercepts), -1)
    if len(rows) > 2:
        return
    rows = rows if len(rows) == 1 else np.vstack([rows, rows[1] - rows[0]])
    intercepts = np.append(intercepts, intercepts[-1] - intercepts[0])[: len(rows)]
    for weights, bias in zip(rows, intercepts, strict=True):
        for side in (1.0, -1.0):
            model = Linear(side * weights, side * float(bias), True, 2.0**-24)
            yield ReadModel(model, Sigmoid(error=SINGLE), "the coefficients")


def _networks(
    onnx: Any, nodes: list[Any], constants: dict[str, Any], first: Any
) -> Iterator[ReadModel]:
    layers: list[list[Matrix]] = []
    activations: list[float] = []
    tensor = first.input[0]
    for node in nodes[nodes.index(first) :]:
        if node.op_type == "Constant":
            continue
        others: list[Any] = [constants.get(name) for name in node.input if name != tensor]
        plain = tensor in node.input and all(other is not None for other in others)
        settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if not plain:
            break
        if node.op_type in ("Gemm", "MatMul") and node.input[0] == tensor:
            if settings.get("alpha", 1.0) != 1.0 or settings.get("beta", 1.0) != 1.0:
                return
            if settings.get("transA", 0) or len(layers) > len(activations):
                return
            weights = np.asarray(others[0], float)
            weights = weights.T if settings.get("transB", 0) else weights
            bias = np.zeros(weights.shape[1]) if len(others) < 2 else np.ravel(others[1])
            layers.append([weights, np.asarray(bias, float)])
        elif node.op_type == "Add" and len(layers) > len(activations):
            layers[-1][1] = layers[-1][1] + np.ravel(np.asarray(others[0], float))
        elif node.op_type in ACTIVATIONS and len(layers) > len(activations):
            activations.append(ACTIVATIONS[node.op_type])
        elif node.op_type not in ("Identity", "Cast"):
            break
        tensor = node.output[0]
    activations = activations[: len(layers) - 1]
    weights, bias = layers[-1]
    if weights.shape[1] == 2:
        weights, bias = weights[:, 1:] - weights[:, :1], bias[1:] - bias[:1]
    if weights.shape[1] != 1 or len(activations) != len(layers) - 1:
        return
    for side in (1.0, -1.0):
        last = (side * weights, side * bias)
        yield network_found([*((w, b) for w, b in layers[:-1]), last], activations, single=True)
