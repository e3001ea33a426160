"""Can a pipeline's encoding of columns be done with arrays alone, many times faster?

scikit-learn's ColumnTransformer spends milliseconds on a handful of rows, most of it on
tables. Where it only scales numbers and encodes categories, :func:`fast_columns` builds the
same matrix from the states. It is used only after it gave the same matrix on random states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision.adapters.frames import FrameMaker
from pear.decision.blackbox import probe_states
from pear.problem.features import FeatureSpace, States

Matrix = NDArray[np.float64]


@dataclass
class Scaled:
    """Outputs of one feature each: ``(value - shift) / divisor * factor + offset``."""

    columns: list[int]
    outputs: slice
    shift: Any = 0.0
    divisor: Any = 1.0
    factor: Any = 1.0
    offset: Any = 0.0

    def fill(self, states: States, matrix: Matrix) -> None:
        values = (states[:, self.columns] - self.shift) / self.divisor
        matrix[:, self.outputs] = values * self.factor + self.offset


@dataclass
class Looked:
    """Output columns that depend on the category of one feature: ``table`` ``(categories, k)``."""

    column: int
    outputs: NDArray[np.intp]
    table: Matrix

    def fill(self, states: States, matrix: Matrix) -> None:
        matrix[:, self.outputs] = self.table[states[:, self.column].astype(int)]


@dataclass
class FastColumns:
    """Encodes states as a fitted ColumnTransformer would, shape ``(n, width)``."""

    width: int
    blocks: list[Scaled | Looked]

    def __call__(self, states: States) -> Matrix:
        matrix = np.empty((len(states), self.width))
        for block in self.blocks:
            block.fill(states, matrix)
        return matrix


def fast_columns(model: Any, space: FeatureSpace, frame: FrameMaker) -> FastColumns | None:
    """The fast encoding of a two-step pipeline, or None where there is none."""
    steps = getattr(model, "steps", None)
    if not steps or len(steps) != 2 or not hasattr(steps[0][1], "output_indices_"):
        return None
    transformer, final = steps[0][1], steps[1][1]
    if hasattr(final, "feature_names_in_"):
        return None
    try:
        fast = _compiled(transformer, space, frame)
        if fast is None:
            return None
        probes = probe_states(space, 128, np.random.default_rng(1))
        expected = _dense(transformer.transform(frame(probes)))
    except Exception:
        # Whatever is odd about this pipeline, the slow way names it with the row.
        return None
    return fast if np.array_equal(fast(probes), expected) else None


def _compiled(transformer: Any, space: FeatureSpace, frame: FrameMaker) -> FastColumns | None:
    blocks: list[Scaled | Looked] = []
    covered = 0
    for name, part, columns in transformer.transformers_:
        outputs = transformer.output_indices_[name]
        if outputs.stop == outputs.start:
            continue
        places = [_place(column, space, frame) for column in np.atleast_1d(columns)]
        made = _blocks(part, places, outputs, space, frame)
        if made is None:
            return None
        blocks += made
        covered += outputs.stop - outputs.start
    width = max(indices.stop for indices in transformer.output_indices_.values())
    return FastColumns(width, blocks) if covered == width else None


def _place(column: Any, space: FeatureSpace, frame: FrameMaker) -> int:
    return space.index(frame.columns[column] if isinstance(column, int | np.integer) else column)


def _blocks(
    part: Any,
    places: list[int],
    outputs: slice,
    space: FeatureSpace,
    frame: FrameMaker,
) -> list[Scaled | Looked] | None:
    scaler = _SCALERS.get(type(part).__name__)
    bends = getattr(part, "clip", False) or getattr(part, "func", None) is not None
    if scaler is not None and not bends:
        return [Scaled(places, outputs, **scaler(part))]
    if type(part).__name__ in ("OneHotEncoder", "OrdinalEncoder"):
        return _lookups(part, places, outputs, space, frame)
    return None


def _lookups(
    part: Any,
    places: list[int],
    outputs: slice,
    space: FeatureSpace,
    frame: FrameMaker,
) -> list[Scaled | Looked] | None:
    """Try every category of every feature, the others at rest: what moves belongs to it."""
    counts = [_values(space, place) for place in places]
    if None in counts:
        return None
    rest = probe_states(space, 1, np.random.default_rng(0))
    rest[:, places] = 0.0
    found: list[Scaled | Looked] = []
    names = [space.names[place] for place in places]
    numbers = np.arange(outputs.start, outputs.stop)
    for position, (place, count) in enumerate(zip(places, counts, strict=True)):
        states = np.repeat(rest, int(count or 0), axis=0)
        states[:, place] = np.arange(len(states))
        table = _dense(part.transform(frame(states)[names]))
        own = (table != table[0]).any(axis=0)
        if position == 0:
            steady = table[0].copy()
            found.append(Looked(place, numbers, np.tile(steady, (len(states), 1))))
        found.append(Looked(place, numbers[own], table[:, own]))
    return found


def _values(space: FeatureSpace, place: int) -> int | None:
    """How many values a feature has, if they can be listed."""
    feature = space.features[place]
    if feature.is_categorical:
        return len(feature.categories)
    return 2 if feature.kind == "boolean" else None


def _dense(matrix: Any) -> Matrix:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, float)


def _standard(part: Any) -> dict[str, Any]:
    return {
        "shift": part.mean_ if part.with_mean else 0.0,
        "divisor": part.scale_ if part.with_std else 1.0,
    }


def _robust(part: Any) -> dict[str, Any]:
    return {
        "shift": part.center_ if part.with_centering else 0.0,
        "divisor": part.scale_ if part.with_scaling else 1.0,
    }


_SCALERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MaxAbsScaler": lambda part: {"divisor": part.scale_},
    "MinMaxScaler": lambda part: {"factor": part.scale_, "offset": part.min_},
    "FunctionTransformer": lambda part: {},
}
