"""Can a pipeline's encoding of columns be done with arrays alone, many times faster?

scikit-learn's ColumnTransformer spends milliseconds on a handful of rows, most of it on tables.
:func:`fast_encoding` builds the same matrix from the states where that is exact by construction:
each part must be one of the classes below, which treat every column and every row by itself.
Numbers go through the fitted scaler's own code, as arrays; each value that a category can have is
encoded once by the fitted encoder itself, and looked up. Anything else takes the slow way.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from pear.arrays import Floats, Indices
from pear.decision.adapters.frames import FrameMaker
from pear.decision.blackbox import probe_states
from pear.decision.encoding import same_numbers
from pear.problem.features import Feature, FeatureSpace, States

SCALERS = (StandardScaler, RobustScaler, MaxAbsScaler, MinMaxScaler)
ENCODERS = (OneHotEncoder, OrdinalEncoder)
"""Classes that treat each column and each row by itself; subclasses may not."""


@dataclass
class Scaled:
    """Outputs of a fitted scaler for number features; None passes them on."""

    columns: list[int]
    outputs: slice
    scaler: Any

    def fill(self, states: States, matrix: Floats) -> None:
        values = states[:, self.columns]
        matrix[:, self.outputs] = values if self.scaler is None else self.scaler.transform(values)


@dataclass
class Lookup:
    """Output columns that depend on one feature: ``table`` ``(values + 1, k)``, missing last."""

    column: int
    outputs: Indices
    table: Floats

    def fill(self, states: States, matrix: Floats) -> None:
        codes = states[:, self.column]
        known = np.where(np.isnan(codes), len(self.table) - 1, codes).astype(np.intp)
        matrix[:, self.outputs] = self.table[known]


@dataclass
class FastEncoding:
    """Encodes states as a fitted ColumnTransformer would, shape ``(n, width)``.

    ``sparse`` says whether the transformer hands a sparse matrix on; gradient boosting takes what
    is not stored in one as missing.
    """

    width: int
    blocks: list[Scaled | Lookup]
    sparse: bool = False

    def __call__(self, states: States) -> Floats:
        matrix = np.empty((len(states), self.width))
        for block in self.blocks:
            block.fill(states, matrix)
        return matrix

    def for_final(self, states: States) -> Any:
        """The matrix in the form that the final estimator gets."""
        return csr_matrix(self(states)) if self.sparse else self(states)


def fast_encoding(model: Any, space: FeatureSpace, frame: FrameMaker) -> FastEncoding | None:
    """The fast encoding of a two-step pipeline, or None where none would be exact."""
    steps = getattr(model, "steps", None)
    if not steps or len(steps) != 2:
        return None
    transformer, final = steps[0][1], steps[1][1]
    if hasattr(final, "feature_names_in_"):
        return None
    try:
        fast = _compiled(transformer, space, frame)
        if fast is None:
            return None
        probes = probe_states(space, 128, np.random.default_rng(1))
        made = transformer.transform(frame(probes))
    except Exception:
        # Whatever is wrong with this pipeline, the slow way reports it with the row.
        return None
    # The conditions above make it exact; this notices a version of scikit-learn that does something
    # else.
    return fast if _is_same(fast.for_final(probes), made) else None


def _is_same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, np.ndarray):
        # Columns of several types arrive as objects, which every estimator turns into floats.
        same = isinstance(theirs, np.ndarray) and theirs.dtype in (float, object)
        return same and np.array_equal(ours, theirs.astype(float), equal_nan=True)
    stored = ("indptr", "indices", "data")
    return all(np.array_equal(getattr(ours, p), getattr(theirs, p)) for p in stored)


def _compiled(transformer: Any, space: FeatureSpace, frame: FrameMaker) -> FastEncoding | None:
    if type(transformer) in SCALERS:
        # A scaler of all columns, without a transformer around it.
        everything = slice(0, len(frame.columns))
        made = _blocks(transformer, list(frame.columns), everything, space, frame)
        return None if made is None else FastEncoding(len(frame.columns), made)
    if type(transformer) is not ColumnTransformer or transformer.transformer_weights:
        return None
    blocks: list[Scaled | Lookup] = []
    covered = 0
    for name, part, columns in transformer.transformers_:
        outputs = transformer.output_indices_[name]
        if outputs.stop == outputs.start:
            continue
        named = [_name(column, frame) for column in np.atleast_1d(columns)]
        made = _blocks(part, named, outputs, space, frame)
        if made is None:
            return None
        blocks += made
        covered += outputs.stop - outputs.start
    width = max(indices.stop for indices in transformer.output_indices_.values())
    if covered != width:
        return None
    return FastEncoding(width, blocks, sparse=transformer.sparse_output_)


def _name(column: Any, frame: FrameMaker) -> str:
    return frame.columns[column] if isinstance(column, int | np.integer) else str(column)


def _blocks(
    part: Any, named: list[str], outputs: slice, space: FeatureSpace, frame: FrameMaker
) -> list[Scaled | Lookup] | None:
    features = [_plain_feature(name, frame) for name in named]
    places = [space.index(feature.name) for feature in features if feature is not None]
    if len(places) < len(named):
        return None
    if type(part) in SCALERS:
        own = copy.copy(part)
        own.set_output(transform="default")
        # Its columns are the right ones; without names, arrays are as good as tables to it.
        vars(own).pop("feature_names_in_", None)
        return [Scaled(places, outputs, own)]
    if type(part) is FunctionTransformer and part.func is None:
        texts = any(feature is None or feature.is_categorical for feature in features)
        return None if texts else [Scaled(places, outputs, None)]
    if type(part) in ENCODERS and np.dtype(part.dtype) == float:
        return _lookups(part, named, outputs, space, frame)
    return None


def _plain_feature(name: str, frame: FrameMaker) -> Feature | None:
    """The feature whose values a column holds, unless something is put in for missing ones."""
    return frame.values_of(name) if frame.sources[name].missing is None else None


def _lookups(
    part: Any, named: list[str], outputs: slice, space: FeatureSpace, frame: FrameMaker
) -> list[Scaled | Lookup] | None:
    """Encode every value of each feature, the others held fixed: the outputs that change belong to
    it."""
    features = [frame.values_of(name) for name in named]
    counts = [_values(feature) for feature in features]
    if None in counts:
        return None
    places = [space.index(feature.name) for feature in features if feature is not None]
    rest = probe_states(space, 1, np.random.default_rng(0))
    rest[:, places] = 0.0
    found: list[Scaled | Lookup] = []
    numbers = np.arange(outputs.start, outputs.stop)
    for position, (place, count) in enumerate(zip(places, counts, strict=True)):
        values = [float(code) for code in range(int(count or 0))]
        # Where nothing may be missing, the last row of the table is never looked up.
        values.append(np.nan if space.features[place].may_be_missing else 0.0)
        states = np.repeat(rest, len(values), axis=0)
        states[:, place] = values
        table = _dense(part.transform(frame(states)[named]))
        own = ~same_numbers(table, table[0]).all(axis=0)
        if position == 0:
            found.append(Lookup(place, numbers, np.tile(table[0], (len(values), 1))))
        found.append(Lookup(place, numbers[own], table[:, own]))
    return found


def _values(feature: Feature | None) -> int | None:
    """How many values a feature has, if they can be listed."""
    if feature is None:
        return None
    if feature.is_categorical:
        return len(feature.categories)
    return 2 if feature.kind == "boolean" else None


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, float)
