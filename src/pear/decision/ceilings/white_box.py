"""Which models can be read, and what do they say about one person's options?

:func:`read_white_box` finds the final estimator of a black box and the encoding in front of it,
reads the estimator into plain arrays, and compares scores on probes. :meth:`WhiteBox.specialise`
then encodes the person's start with each single option of each feature. The inputs that an option
changes belong to its feature; every other input is a constant. Where two features meet in one
input, nothing is said.

Of several models that decide together, what one of them surely refuses is refused where all must
say yes: the one that likes the person least is taken. Where a share is enough, some may say no; of
as many models as may, and one more, at least one says yes. Linear ones of these are bounded
together, by the largest gain that any of them sees in each option; other kinds are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision.adapters.sklearn import SklearnScores, final_estimator
from pear.decision.blackbox import BlackBox, favourable_columns, probes_with_gaps
from pear.decision.ceilings.linear import LINEAR_READERS
from pear.decision.ceilings.margins import (
    LINEAR,
    EncodedOptions,
    Link,
    Matrix,
    Readable,
    ReadModel,
    Specialised,
    empty_fields,
)
from pear.decision.ceilings.networks import (
    NETWORK_READERS,
    Layers,
    ReducedNetwork,
    own_network,
    torch_network,
)
from pear.decision.ceilings.onnx_graphs import read_graph
from pear.decision.ceilings.tree_readers import TREE_READERS, own_tree
from pear.decision.encoding import Inputs, same_numbers
from pear.decision.numpy_models import DecisionTree, Network
from pear.decision.several_models import SeveralScores
from pear.problem.features import States

Encoding = Callable[[States], Matrix]

PROBES = 256
"""States on which extracted and real scores are compared."""

CLOSE = 1e-5
"""How far the two may differ: more than single precision does, less than another branch."""

TELLING = 0.01
"""How far apart the scores of probes must be to tell which of several readings is right."""

COLUMN_BY_COLUMN = (
    "Binarizer",
    "FunctionTransformer",
    "GenericUnivariateSelect",
    "KBinsDiscretizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MissingIndicator",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RFE",
    "RFECV",
    "RobustScaler",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "SimpleImputer",
    "SplineTransformer",
    "StandardScaler",
    "TargetEncoder",
    "VarianceThreshold",
)
"""Transformers of scikit-learn whose every output depends on one input."""

KNOWN_CODE = ("sklearn", "imblearn", "lightgbm", "xgboost", "catboost", "torch")
"""Packages whose classes are read by their names."""


@dataclass(frozen=True)
class Scorer:
    """Scores of one person's assignments by what was read of a network: far cheaper than asking.

    A favourable state exceeds the score ``required``.
    """

    network: ReducedNetwork
    link: Link
    required: float

    def scores(self, assignments: NDArray[np.intp]) -> tuple[Matrix, NDArray[np.bool_]]:
        """Scores ``(n,)`` of assignments ``(n, F)``, and which of them may be favourable.

        No score here is above ``required``: of those that may be, the model has to be asked.
        """
        margins = self.network.margins(assignments)
        scores = np.clip(self.link.score(margins), 0.0, self.required)
        return scores, margins >= self.network.required


@dataclass(frozen=True)
class WhiteBox:
    """A model that was looked into; ``what`` names it in certificates.

    ``worth_after``: rows that a search asks before it looks inside, which is slower at first, and
    ``scored_after`` before it takes a network's scores from what was read.
    """

    what: str
    encode: Encoding
    model: Readable
    link: Link
    worth_after: float = 1_000.0
    scored_after: float = 250.0

    def scores(self, states: States) -> Matrix:
        """Scores by what was read from the model, shape ``(n,)``."""
        return np.clip(self.link.score(self.model.margins(self.encode(states))), 0.0, 1.0)

    def agrees(self, states: States, scores: Matrix) -> bool:
        """Whether what was read gives the model's own ``scores`` ``(n,)`` of states ``(n, d)``."""
        return bool((np.abs(self.scores(states) - scores) <= CLOSE).all())

    def specialise(
        self,
        start: Matrix,
        columns: Sequence[int],
        values: Sequence[Matrix],
        required: float,
        max_changes: int | None = None,
    ) -> Specialised | None:
        """The model for one person, or None where it has nothing useful to say.

        ``start`` ``(d,)``; ``values[f]`` ``(V_f,)`` are the options of the feature in column
        ``columns[f]``, its present value first. ``required`` is the score a favourable state
        exceeds; no assignment changes more than ``max_changes`` features.
        """
        if not len(columns) or len(columns) > 64:
            return None
        options = self._encoded(np.asarray(start, float), columns, values)
        margin = self.link.required(required)
        if options is None or margin == -np.inf:
            return None
        return self.model.specialise(
            options, margin, len(columns) if max_changes is None else min(max_changes, len(columns))
        )

    def scorer(
        self, start: Matrix, columns: Sequence[int], values: Sequence[Matrix], required: float
    ) -> Scorer | None:
        """One person's scores, where they take far less than asking, and ceilings far more.

        Parameters as in :meth:`specialise`; None for models other than networks.
        """
        if not isinstance(self.model, Layers) or not len(columns):
            return None
        options = self._encoded(np.asarray(start, float), columns, values)
        margin = self.link.required(required)
        network = None if options is None else self.model.reduced(options, margin)
        return None if network is None else Scorer(network, self.link, required)

    def _encoded(
        self, start: Matrix, columns: Sequence[int], values: Sequence[Matrix]
    ) -> EncodedOptions | None:
        counts = np.array([len(options) for options in values], np.int64)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        rng = np.random.default_rng(0)
        drawn = np.column_stack([rng.integers(0, count, 16) for count in counts])
        states = np.repeat(start[None], counts.sum() + len(drawn), axis=0)
        for feature, (column, options) in enumerate(zip(columns, values, strict=True)):
            states[first[feature] : first[feature] + counts[feature], column] = options
            states[counts.sum() :, column] = np.asarray(options)[drawn[:, feature]]
        rows = self.model.inputs(self.encode(states))
        rows, together = rows[: counts.sum()], rows[counts.sum() :]
        owner = np.full(rows.shape[1], -1, np.int64)
        for feature in range(len(counts)):
            mine = rows[first[feature] : first[feature] + counts[feature]]
            moved = ~same_numbers(mine, rows[0]).all(axis=0)
            if (owner[moved] >= 0).any():
                return None
            owner[moved] = feature
        encoded = EncodedOptions(np.ascontiguousarray(rows), first, counts, owner)
        return encoded if same_numbers(encoded.composed(drawn), together).all() else None


def read_white_box(black_box: BlackBox) -> WhiteBox | SeveralWhiteBoxes | None:
    """What can be read from the model of a black box, or from several; None where nothing can.

    The scores it gives are compared with the model's own on probe states, which are not counted as
    rows asked.
    """
    if isinstance(black_box.function, SeveralScores):
        return _read_several(black_box.function)
    try:
        opened = _candidates(black_box)
        if not opened:
            return None
        probes = probes_with_gaps(black_box.space, PROBES, np.random.default_rng(2))
        real = black_box.probe(probes)
        if len(opened) > 1 and np.ptp(real) < TELLING:
            return None
        agreeing = [
            inside
            for encode, found in opened
            if (
                inside := WhiteBox(
                    found.what, encode, found.model, found.link, found.model.worth_after
                )
            ).agrees(probes, real)
        ]
        margins = [inside.model.margins(inside.encode(probes)) for inside in agreeing]
        alike = all(np.allclose(mine, margins[0], CLOSE, CLOSE) for mine in margins)
        return agreeing[0] if agreeing and alike else None
    except Exception:
        # Whatever is odd about this model: it stays a black box, which is always right.
        return None


def _candidates(black_box: BlackBox) -> list[tuple[Encoding, ReadModel]]:
    """What the model may be: what gives its scores, where all that do are the same."""
    if type(black_box.function).__name__ == "OnnxScores":
        read = read_graph(black_box.function)
        return [] if read is None else [(read[0], found) for found in read[1]]
    opened = _candidate(black_box)
    return [] if opened is None else [opened]


def _candidate(black_box: BlackBox) -> tuple[Encoding, ReadModel] | None:
    function: Any = black_box.function
    if isinstance(function, Network):
        return function.inputs, own_network(function)
    if isinstance(function, DecisionTree):
        return function.inputs, own_tree(function)
    if isinstance(function, SklearnScores):
        return _sklearn_candidate(function, black_box)
    if type(function).__name__ == "TorchScores" and isinstance(function.encode, Inputs):
        # Of somebody's own encoding nothing is known: not even that each column has one feature.
        if not all(is_known(part) for part in function.module.modules()):
            return None
        found = torch_network(function.module, function.output)
        return None if found is None else (function.encode, found)
    return None


def _sklearn_candidate(
    function: SklearnScores, black_box: BlackBox
) -> tuple[Encoding, ReadModel] | None:
    estimator = final_estimator(function.model)
    if not is_known(function.model) or not is_known(estimator):
        return None
    encode = encoding_of(function, estimator)
    readers = {**TREE_READERS, **LINEAR_READERS, **NETWORK_READERS}
    reader = readers.get(type(estimator).__name__)
    if encode is None or reader is None:
        return None
    if function.method == "predict_proba":
        names = function.classes
        columns = favourable_columns(black_box.goal, names, len(names), function.name)
    elif function.method == "decision_function":
        columns = [1 if function.favours_last() else 0]
    else:
        return None
    found = reader(estimator, columns)
    return None if found is None else (encode, found)


def is_known(part: Any) -> bool:
    """Whether a part of a model is code that does what its name says, not somebody's own."""
    return type(part).__module__.partition(".")[0] in KNOWN_CODE


def encoding_of(function: SklearnScores, estimator: Any) -> Encoding | None:
    """How states become the matrix of the final estimator; None where a column mixes features."""
    if (fast := function.fast) is not None:
        return lambda states: _numbers(fast.for_final(states), estimator)
    steps = getattr(function.model, "steps", [(None, estimator)])[:-1]
    if not all(column_by_column(step) for _, step in steps):
        return None

    def encode(states: States) -> Matrix:
        table = function.table(states)
        for _, step in steps:
            table = table if step in (None, "passthrough") else step.transform(table)
        return _numbers(table, estimator)

    return encode


def column_by_column(step: Any) -> bool:
    """Whether every output of a transformer depends on one column of its input."""
    if step is None or isinstance(step, str):
        return True
    name = type(step).__name__
    if not type(step).__module__.startswith(("sklearn.", "imblearn.")):
        return False
    if name == "FunctionTransformer":
        return step.func is None
    if hasattr(step, "steps"):
        return all(column_by_column(part) for _, part in step.steps)
    if hasattr(step, "transformers_"):
        return all(column_by_column(part) for _, part, _ in step.transformers_)
    if hasattr(step, "transformer_list"):
        return all(column_by_column(part) for _, part in step.transformer_list)
    return name in COLUMN_BY_COLUMN


def _numbers(table: Any, estimator: Any) -> Matrix:
    """A table as the numbers that the estimator itself makes of it."""
    if type(estimator).__name__ == "HistGradientBoostingClassifier":
        return np.asarray(estimator._preprocess_X(table, reset=False), float)
    if hasattr(table, "toarray") and type(estimator).__name__.startswith("XGB"):
        # What a sparse matrix does not store is missing to XGBoost, and 0 to all others.
        stored, made = table.tocoo(), np.full(table.shape, np.nan)
        made[stored.row, stored.col] = stored.data
        return made
    if hasattr(table, "toarray"):
        return np.asarray(table.toarray(), float)
    if not hasattr(table, "columns"):
        return np.asarray(table, float)
    learnt = iter(getattr(getattr(estimator, "_Booster", None), "pandas_categorical", None) or ())
    columns = []
    for name in table.columns:
        column = table[name]
        if column.dtype.name == "category":
            ordered = next(learnt, column.cat.categories)
            codes = column.cat.set_categories(ordered).cat.codes.to_numpy(float)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(column.to_numpy(float))
    return np.column_stack(columns)


# What do several models that decide together rule out?


@dataclass(frozen=True)
class SeveralWhiteBoxes:
    """The models that could be looked into, of several of which ``doubters - 1`` may say no."""

    members: tuple[WhiteBox, ...]
    doubters: int

    @property
    def what(self) -> str:
        """What was read, for certificates."""
        kinds = sorted({member.what for member in self.members})
        return f"{' and '.join(kinds)} of {len(self.members)} models"

    @property
    def worth_after(self) -> float:
        """Rows that a search asks before a look inside is the faster way."""
        return max(member.worth_after for member in self.members)

    @property
    def scored_after(self) -> float:
        """Only ceilings are read of several models."""
        return np.inf

    def scores(self, states: States) -> Matrix:
        """The highest scores that the models which could be read allow, shape ``(n,)``."""
        each = np.stack([member.scores(states) for member in self.members])
        return np.asarray(np.partition(each, self.doubters - 1, axis=0)[self.doubters - 1])

    def agrees(self, states: States, scores: Matrix) -> bool:
        """Whether no state has a higher score ``(n,)`` than that."""
        return bool((scores <= self.scores(states) + CLOSE).all())

    def scorer(
        self, start: Matrix, columns: Sequence[int], values: Sequence[Matrix], required: float
    ) -> None:
        """As :attr:`scored_after` says."""

    def specialise(
        self,
        start: Matrix,
        columns: Sequence[int],
        values: Sequence[Matrix],
        required: float,
        max_changes: int | None = None,
    ) -> Specialised | None:
        """The models for one person, as :meth:`WhiteBox.specialise` gives that of one."""
        scores = [float(member.scores(np.atleast_2d(start))[0]) for member in self.members]
        hardest = np.argsort(scores, kind="stable")[: self.doubters]
        found = []
        for number in hardest:
            one = self.members[number].specialise(start, columns, values, required, max_changes)
            if one is None:
                return None
            found.append(one)
        return found[0] if len(found) == 1 else _bounded_together(found)


def _read_several(scores: SeveralScores) -> SeveralWhiteBoxes | None:
    """What can be read of several models; None where too few can be read to rule anything out."""
    found = [black_box.inside for black_box in scores.black_boxes]
    members = tuple(inside for inside in found if isinstance(inside, WhiteBox))
    doubters = len(scores.black_boxes) - scores.needed + 1
    return SeveralWhiteBoxes(members, doubters) if len(members) >= doubters else None


def _bounded_together(models: Sequence[Specialised]) -> Specialised | None:
    """One linear model that is nowhere below the best of these; None where one is not linear."""
    if any(model.kind != LINEAR for model in models):
        return None
    fields = empty_fields(len(models[0].counts), models[0].counts)
    fields["gains"] = np.max([model.gains for model in models], axis=0)
    # Each is measured from what it requires itself: the margins of two models do not compare.
    bases = [model.base[0] - model.required for model in models]
    fields["base"][:] = max(bases)
    size = max(abs(model.base[0]) + abs(model.required) for model in models)
    size += float(np.abs(fields["gains"]).max(axis=1).sum())
    return Specialised(kind=LINEAR, required=-(2.0**-48) * size, **fields)
