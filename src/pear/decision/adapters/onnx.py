"""What does a model in an ONNX file say?

Such a file has either one input per feature, named like it, or a single tensor. A single
tensor as wide as the problem gets the numbers as they are; one as wide as the one-hot
encoding gets that. Files made by :func:`export_onnx` carry the names of the classes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision.adapters.frames import number_matrix
from pear.decision.adapters.torch import Output, check_output, probabilities
from pear.decision.blackbox import BlackBox, probe_states
from pear.errors import InvalidSetting, ModelError, ModelRefused
from pear.optional import require
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States

CLASSES_KEY = "pear.classes"
"""Metadata of the file: the model's classes as a JSON list."""

_DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


_LABEL_TYPES = ("tensor(int64)", "tensor(string)")


def from_onnx(
    model: str | Path | bytes,
    problem: Problem,
    *,
    output: Output = "probabilities",
    classes: Sequence[Any] = (),
    name: str = "",
) -> BlackBox:
    """A model in an ONNX file (or its bytes) as a black box; needs the extra ``onnx``."""
    check_output(output)
    content = model if isinstance(model, bytes) else Path(model).read_bytes()
    name = name or ("ONNX model" if isinstance(model, bytes) else Path(model).name)
    function = OnnxScores(content, problem.space, name, output)
    known = tuple(classes) or function.classes
    return BlackBox(function, problem.space, problem.goal, name=name, classes=known).checked()


class OnnxScores:
    """The score function of an ONNX model; pickles as its bytes."""

    def __init__(self, content: bytes, space: FeatureSpace, name: str, output: Output) -> None:
        self.content, self.space, self.name, self.output = content, space, name, output
        self._open()

    def _open(self) -> None:
        runtime = require("onnxruntime")
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(
                self.content, settings, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise ModelRefused(
                f"'{self.name}' cannot be read as ONNX ({str(error)[:200]}); export it again"
            ) from error
        self._inputs = [(i.name, i.type, list(i.shape)) for i in self._session.get_inputs()]
        self._width = self._single_width()
        self._result = self._score_output()
        labels = self._session.get_modelmeta().custom_metadata_map.get(CLASSES_KEY)
        self.classes: tuple[Any, ...] = tuple(json.loads(labels)) if labels else ()
        if self._result.type.startswith("seq(map("):
            self.classes = tuple(self._run(np.zeros((1, len(self.space))))[0])
        elif not self.classes:
            self.classes = self._classes_by_answers(classes_in_graph(self.content))

    def __getstate__(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in ("content", "space", "name", "output")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __call__(self, states: States) -> NDArray[np.float64]:
        result = self._run(states)
        if isinstance(result, list):
            result = [[row[label] for label in self.classes] for row in result]
        values = np.asarray(result, float)
        return probabilities(values) if self.output == "logits" else values

    def _run(self, states: States) -> Any:
        return self._session.run([self._result.name], self._feed(states))[0]

    def _classes_by_answers(self, stated: tuple[Any, ...]) -> tuple[Any, ...]:
        """Which label the model gives where a column is the largest; the rest as ``stated``.

        Inner nodes of an ensemble may hold other labels than those of its answer, so what
        the model answers goes before what its graph holds.
        """
        labels = [o for o in self._session.get_outputs() if o.type in _LABEL_TYPES]
        if not labels:
            return stated
        try:
            feed = self._feed(probe_states(self.space, 256, np.random.default_rng(0)))
            given, scores = self._session.run([labels[0].name, self._result.name], feed)
        except Exception:
            return stated  # The model is asked again for its fingerprint, with a clear error.
        if np.ndim(scores) != 2 or np.ndim(given) != 1 or np.shape(scores)[1] < 2:
            return stated
        width = scores.shape[1]
        ranked = np.sort(scores, axis=1)
        clear = ranked[:, -1] > ranked[:, -2] + 1e-6
        seen = dict(zip(scores.argmax(axis=1)[clear].tolist(), given[clear].tolist(), strict=True))
        fits = len(stated) == width and all(stated[j] == label for j, label in seen.items())
        if fits or not seen:
            return stated
        return tuple(seen.get(column, f"column {column}") for column in range(width))

    def _single_width(self) -> int | None:
        """Width of the single tensor the model takes; None for one input per feature."""
        if len(self._inputs) == 1 and self._inputs[0][0] not in self.space.names:
            width = self._inputs[0][2][-1]
            has_categories = self.space.one_hot_width != len(self.space)
            if not isinstance(width, int):
                return self.space.one_hot_width if has_categories else len(self.space)
            if width in (len(self.space), self.space.one_hot_width):
                return width
            raise ModelError(
                f"model '{self.name}' takes a tensor of {width} columns; the problem has "
                f"{len(self.space)} features ({self.space.one_hot_width} columns when one-hot "
                "encoded): export the model for this problem"
            )
        unknown = [name for name, _, _ in self._inputs if name not in self.space.names]
        if unknown:
            raise ModelError(
                f"model '{self.name}' has inputs the problem does not have: {', '.join(unknown)}; "
                f"the features are {', '.join(self.space.names)}"
            )
        return None

    def _feed(self, states: States) -> dict[str, Any]:
        if self._width is not None:
            [(name, kind, _)] = self._inputs
            if self._width == len(self.space):
                matrix = number_matrix(self.space, states, self.name)
            else:
                matrix = self.space.one_hot(states)
            return {name: matrix.astype(_dtype(kind, self.name))}
        return {
            name: self._column(name, kind, states).reshape((-1, 1) if len(shape) > 1 else (-1,))
            for name, kind, shape in self._inputs
        }

    def _column(self, name: str, kind: str, states: States) -> NDArray[Any]:
        feature, codes = self.space[name], states[:, self.space.index(name)]
        if kind == "tensor(string)":
            if feature.is_categorical:
                return np.asarray(np.array(feature.categories, object)[codes.astype(int)])
            return np.array([str(feature.value(code)) for code in codes], object)
        if feature.is_categorical:
            raise ModelError(
                f"model '{self.name}' takes '{name}' as a {kind}, but it is categorical; export "
                "the model with its encoder, taking text"
            )
        return np.asarray(codes.astype(_dtype(kind, self.name)))

    def _score_output(self) -> Any:
        """The output with the scores: named like probabilities, else the last of numbers."""
        outputs = self._session.get_outputs()
        for output in outputs:
            if "prob" in output.name.lower():
                return output
        kinds = ("tensor(float", "tensor(double", "seq(")
        numbers = [output for output in outputs if output.type.startswith(kinds)]
        if not numbers:
            raise ModelError(
                f"model '{self.name}' has no output of scores (its outputs are "
                f"{', '.join(o.name for o in outputs)}); export it with probabilities"
            )
        return numbers[-1]


def classes_in_graph(content: bytes) -> tuple[Any, ...]:
    """Class labels that the classifier's own node, or a constant called classes, holds."""
    onnx = require("onnx")
    graph = onnx.load_model_from_string(content).graph
    found: list[Any] = []
    for constant in graph.initializer:
        if constant.name == "classes":
            found = onnx.numpy_helper.to_array(constant).tolist()
    # Nodes stand in the order they are run: the last classifier is the one that answers.
    for node in reversed(graph.node):
        for attribute in node.attribute:
            if not found and attribute.name.startswith("classlabels_"):
                found = list(onnx.helper.get_attribute_value(attribute))
    return tuple(label.decode() if isinstance(label, bytes) else label for label in found)


def export_onnx(model: Any, problem: Problem, path: str | Path) -> Path:
    """Write a scikit-learn classifier fitted on a DataFrame as ONNX, one input per feature.

    Numbers and booleans become single-precision inputs, categories text. Needs the extra
    ``onnx``.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise InvalidSetting(f"'path' must end in .onnx (got {path.name!r})")
    convert = require("skl2onnx").to_onnx
    types = require("skl2onnx.common.data_types")
    names = [str(n) for n in getattr(model, "feature_names_in_", ())]
    if not names:
        raise ModelError(
            "the model was not fitted on a DataFrame; fit it on one with the feature names as "
            "columns"
        )
    text, number = types.StringTensorType, types.FloatTensorType
    initial = [
        (name, (text if problem.space[name].is_categorical else number)([None, 1]))
        for name in names
    ]
    try:
        made = convert(model, initial_types=initial, options={"zipmap": False})
    except Exception as error:  # skl2onnx raises many kinds, for what it does not know yet
        first = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(
            f"'{type(model).__name__}' cannot be written as ONNX ({first}); "
            "save it with save_sklearn as .skops instead"
        ) from error
    entry = made.metadata_props.add()
    entry.key = CLASSES_KEY
    entry.value = json.dumps(np.asarray(model.classes_).tolist())
    path.write_bytes(made.SerializeToString())
    return path


def _dtype(kind: str, name: str) -> Any:
    if kind not in _DTYPES:
        raise ModelError(
            f"model '{name}' has an input of type {kind}; it must be one of {', '.join(_DTYPES)}"
        )
    return _DTYPES[kind]
