"""What does a model in an ONNX file say?

Such a file has either one input per feature, named like it or as the problem declares, or a single
tensor whose columns the problem declares. Files made by :func:`export_onnx` carry the names of the
classes and what stands for a missing text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.decision.adapters.torch import (
    Output,
    check_output,
    extreme_inputs,
    probabilities,
    refuse_probabilities,
)
from pear.decision.blackbox import BlackBox, probe_states, require_class_names
from pear.decision.encoding import (
    Inputs,
    MatrixScores,
    feature_order,
    sources_of,
    what_to_declare,
)
from pear.errors import ModelError, ModelRefused
from pear.optional import require
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States
from pear.problem.model_inputs import ModelInput
from pear.problem.values import is_missing

CLASSES_KEY = "pear.classes"
"""Metadata of the file: the model's classes as a JSON list."""

INPUTS_KEY, OUTPUT_KEY = "pear.inputs", "pear.output"
"""Metadata of the file: its declared columns as a JSON list, and what its numbers are."""

DIGITS_KEY = "pear.digits"
"""Metadata of the file: how many decimals of its scores are those of the model it was made from."""

DOUBT_KEY = "pear.doubt"
"""Metadata of the file: where it differs from the model it was made from, in words."""

MISSING_KEY = "pear.missing"
"""Metadata of the file: the text that its inputs of text take for a missing value."""

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
    output: Output | None = None,
    inputs: Sequence[ModelInput] | None = None,
    classes: Sequence[Any] = (),
    name: str = "",
) -> BlackBox:
    """A model in an ONNX file (or its bytes) as a black box; needs the extra ``onnx``.

    What is left out is as the problem declares it, else as the file says: ``output`` (else
    probabilities), ``inputs`` (``[model.inputs]``) and ``classes``.
    """
    if output is not None:
        check_output(output)
    content = model if isinstance(model, bytes) else Path(model).read_bytes()
    name = name or ("ONNX model" if isinstance(model, bytes) else Path(model).name)
    declared = problem.interface.inputs if inputs is None else tuple(inputs)
    stated = output or problem.interface.output
    function = OnnxScores(content, problem.space, name, stated, declared)
    if function.output == "logits":
        refuse_probabilities(function.probed, name)
    known = tuple(classes) or problem.interface.classes or function.classes
    if function.answers_one_number:
        require_class_names(problem.goal, known, name)
    return BlackBox(
        function,
        problem.space,
        problem.goal,
        name=name,
        classes=known,
        doubts=function.doubts,
        uses=function.uses,
    ).checked()


class OnnxScores:
    """The score function of an ONNX model; pickles as its bytes."""

    def __init__(
        self,
        content: bytes,
        space: FeatureSpace,
        name: str,
        output: Output | Literal[""] = "",
        declared: tuple[ModelInput, ...] = (),
    ) -> None:
        self.content, self.space, self.name, self.output = content, space, name, output
        self.declared = declared
        self._open()

    def _open(self) -> None:
        runtime = require("onnxruntime")
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.log_severity_level = 4  # Failures are raised and need not be printed as well.
        try:
            self._session = runtime.InferenceSession(
                self.content, settings, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise ModelRefused(
                f"'{self.name}' cannot be read as ONNX ({str(error)[:200]}); export it again"
            ) from error
        self._inputs = [(i.name, i.type, list(i.shape)) for i in self._session.get_inputs()]
        facts = self._session.get_modelmeta().custom_metadata_map
        self._missing_text: str | None = facts.get(MISSING_KEY)
        self._digits = int(facts[DIGITS_KEY]) if DIGITS_KEY in facts else None
        self.output = self.output or facts.get(OUTPUT_KEY, "probabilities")
        if not self.declared and INPUTS_KEY in facts:
            self.declared = tuple(ModelInput(**entry) for entry in json.loads(facts[INPUTS_KEY]))
        self.doubts = (facts[DOUBT_KEY],) if DOUBT_KEY in facts else ()
        self._sources = self._named_sources()
        self._matrix = None if self._sources else self._declared_matrix()
        self._result = self._score_output()
        labels = facts.get(CLASSES_KEY)
        self.classes: tuple[Any, ...] = tuple(json.loads(labels)) if labels else ()
        if self._result.type.startswith("seq(map("):
            some = probe_states(self.space, 1, np.random.default_rng(0))
            self.classes = tuple(self._run(self.feed(some))[0])
        elif not self.classes:
            self.classes = self._classes_by_answers(classes_in_graph(self.content))

    def __getstate__(self) -> dict[str, Any]:
        kept = ("content", "space", "name", "output", "declared")
        return {key: getattr(self, key) for key in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    @property
    def uses(self) -> tuple[str, ...]:
        """The features that an input is made of."""
        entries = self._matrix.columns if self._matrix else self._sources.values()
        seen = {entry.source for entry in entries}
        return tuple(name for name in self.space.names if name in seen)

    def __call__(self, states: States) -> Floats:
        return self._scores(self.feed(states))

    def score_record(self, record: dict[str, Any]) -> Floats:
        """Scores of one record, its inputs made one by one."""
        if self._matrix is not None:
            [(name, kind, _)] = self._inputs
            made = np.array([self._matrix.encode_record(record)], float)
            return self._scores({name: _as_kind(made, kind, name, self.name)})
        feed = {}
        for name, kind, shape in self._inputs:
            value = self._value(self._sources[name], kind, record[self._sources[name].source])
            made = np.array([value], object if kind == "tensor(string)" else float)
            made = made if kind == "tensor(string)" else _as_kind(made, kind, name, self.name)
            feed[name] = made.reshape((-1, 1) if len(shape) > 1 else (-1,))
        return self._scores(feed)

    @property
    def result_name(self) -> str:
        """The tensor of the graph that the scores are read from."""
        return str(self._result.name)

    @property
    def answers_one_number(self) -> bool:
        """Whether the file answers a row with a single number, by the shape it states."""
        shape = self._result.shape
        return not self._result.type.startswith("seq(") and (len(shape) < 2 or shape[-1] == 1)

    def of_matrix(self) -> MatrixScores | None:
        """The declared columns and the model's answers for them; None for named inputs."""
        if self._matrix is None:
            return None
        [(name, kind, _)] = self._inputs
        return self._matrix, lambda matrix: self._scores(
            {name: _as_kind(matrix, kind, name, self.name)}
        )

    def probed(self) -> list[Any]:
        """What the model itself answers for plausible and for extreme inputs."""
        states = probe_states(self.space, 64, np.random.default_rng(4))
        if self._matrix is not None:
            [(name, kind, _)] = self._inputs
            given = self._matrix(states)
            feeds = [{name: x.astype(_DTYPES[kind])} for x in (given, extreme_inputs(given))]
        else:
            far = states.copy()
            numbers = [i for i, f in enumerate(self.space.features) if f.is_number]
            far[:, numbers] = extreme_inputs(states[:, numbers])
            feeds = [self.feed(states), self.feed(far)]
        return [self._run(feed) for feed in feeds]

    def _scores(self, feed: dict[str, Any]) -> Floats:
        result = self._run(feed)
        if isinstance(result, list):
            result = [[row[label] for label in self.classes] for row in result]
        values = np.asarray(result, float)
        values = probabilities(values) if self.output == "logits" else values
        return values if self._digits is None else np.round(values, self._digits)

    def _run(self, feed: dict[str, Any]) -> Any:
        return self._session.run([self._result.name], feed)[0]

    def _classes_by_answers(self, stated: tuple[Any, ...]) -> tuple[Any, ...]:
        """Which label the model gives where a column is the largest; the rest as ``stated``.

        Inner nodes of an ensemble may hold other labels than those of its answer, so what
        the model answers goes before what its graph holds.
        """
        labels = [o for o in self._session.get_outputs() if o.type in _LABEL_TYPES]
        if not labels:
            return stated
        try:
            feed = self.feed(probe_states(self.space, 256, np.random.default_rng(0)))
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

    def _named_sources(self) -> dict[str, ModelInput]:
        """What each named input is made of; empty for a single tensor of many columns."""
        [(first, _, shape), *more] = self._inputs
        known = {entry.column for entry in self.declared} | set(self.space.names)
        wide = bool(shape) and isinstance(shape[-1], int) and len(shape) > 1 and shape[-1] > 1
        if not more and (first not in known or wide):
            return {}
        names = [name for name, _, _ in self._inputs]
        sources, unknown, strange = sources_of(names, self.declared, self.space)
        if unknown:
            raise ModelError(
                f"model '{self.name}' has inputs the problem does not have: {', '.join(unknown)}; "
                f"the features are {', '.join(self.space.names)}: declare under [model.inputs] "
                "which feature each is made of"
            )
        if strange:
            raise ModelError(
                f"[model.inputs] declares '{strange[0]}', and model '{self.name}' has no such "
                f"input; it has {', '.join(names)}"
            )
        for name, kind, _ in self._inputs:
            if kind == "tensor(string)":
                continue
            _dtype(kind, self.name)
            entry = sources[name]
            if entry.encoding == "value" and self.space[entry.source].is_categorical:
                raise ModelError(
                    f"model '{self.name}' takes '{name}' as a {kind}, but it is categorical; "
                    "export the model with its encoder, taking text, or declare its codes under "
                    "[model.inputs]"
                )
        return sources

    def _declared_matrix(self) -> Inputs:
        """The columns of a single tensor, as declared; a single column needs no declaration."""
        [(_, kind, shape)] = self._inputs
        _dtype(kind, self.name)
        width = shape[-1] if shape and isinstance(shape[-1], int) else None
        if self.declared:
            inputs = Inputs(self.space, self.declared)
            if width not in (None, inputs.width):
                raise ModelError(
                    f"model '{self.name}' takes a tensor of {width} columns, but the declared "
                    f"inputs make {inputs.width}: correct [model.inputs]"
                )
            return inputs
        numbers = feature_order(self.space)
        if numbers is not None and len(self.space) == 1 and width in (None, 1):
            return numbers
        raise ModelError(
            f"model '{self.name}' takes a tensor of {width or 'some'} columns without names, and "
            f"nothing says which of them is which of the {len(self.space)} features; export it "
            f"with one named input per feature (pear.decision.export_onnx), or "
            f"{what_to_declare(self.space)}"
        )

    def feed(self, states: States) -> dict[str, Any]:
        """The file's inputs for states ``(n, d)``."""
        if self._matrix is not None:
            [(name, kind, _)] = self._inputs
            return {name: _as_kind(self._matrix(states), kind, name, self.name)}
        return {
            name: self._column(self._sources[name], kind, states).reshape(
                (-1, 1) if len(shape) > 1 else (-1,)
            )
            for name, kind, shape in self._inputs
        }

    def _column(self, entry: ModelInput, kind: str, states: States) -> NDArray[Any]:
        feature, codes = self.space[entry.source], states[:, self.space.index(entry.source)]
        if kind == "tensor(string)":
            distinct, places = np.unique(codes, return_inverse=True)
            texts = [self._value(entry, kind, feature.value(code)) for code in distinct]
            return np.array(texts, object)[places]
        numbers = Inputs(self.space, (entry,))(states)[:, 0]
        if np.isnan(numbers).any() and not kind.startswith(("tensor(float", "tensor(double")):
            raise self._no_missing(entry)
        return _as_kind(numbers, kind, entry.column, self.name)

    def _value(self, entry: ModelInput, kind: str, value: Any) -> Any:
        """One input for one value."""
        feature = self.space[entry.source]
        if kind != "tensor(string)":
            [number] = entry.number(feature, value)
            if number != number and not kind.startswith(("tensor(float", "tensor(double")):
                raise self._no_missing(entry)
            return number
        if is_missing(value):
            value = self._missing_text if entry.missing is None else entry.missing
            if value is None:
                raise self._no_missing(entry)
        return str(value)

    def _no_missing(self, entry: ModelInput) -> ModelError:
        return ModelError(
            f"model '{self.name}' cannot be given a missing '{entry.source}': declare what stands "
            f"for it as 'missing' of {entry.column} under [model.inputs]"
        )

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


def _as_kind(numbers: Floats, kind: str, column: str, name: str) -> NDArray[Any]:
    """Numbers in the type of an input; what the type cannot hold is refused, never truncated."""
    with np.errstate(over="ignore", invalid="ignore"):
        made = numbers.astype(_DTYPES[kind])
    rounds = kind.startswith(("tensor(float", "tensor(double"))
    lost = np.isinf(made) if rounds else made.astype(float) != numbers
    if not lost.any():
        return made
    first = float(numbers[lost][0])
    raise ModelError(
        f"model '{name}' takes '{column}' as a {kind}, which does not hold {first:g}: make the "
        "feature an integer or boolean if it is one, or export the model with an input that holds "
        "it"
    )


def _dtype(kind: str, name: str) -> Any:
    if kind not in _DTYPES:
        raise ModelError(
            f"model '{name}' has an input of type {kind}; it must be one of {', '.join(_DTYPES)}"
        )
    return _DTYPES[kind]
