"""How do records of people become state vectors, and state vectors records again?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import InvalidProblem, InvalidRecord
from pear.problem.checks import is_missing, is_number, plain
from pear.problem.feature import LARGEST_WHOLE, Feature, Value

States = NDArray[np.float64]
"""States of n people, shape ``(n, d)``."""

PersonLike = Mapping[str, Any] | pd.Series | pd.DataFrame | NDArray[np.float64]
"""One person: a record, a row of a table, a table of one row, or a state ``(d,)``."""

PeopleLike = pd.DataFrame | pd.Series | Mapping[str, Any] | Iterable[Any] | NDArray[np.float64]
"""Any number of people: a table, records, rows, or states ``(n, d)``."""


@dataclass(frozen=True)
class FeatureSpace:
    """The features in order; turns records into state matrices and back, exactly.

    >>> space = FeatureSpace((Feature("income", unit="€"), Feature("owner", "boolean")))
    >>> space.encode([{"income": 2100.0, "owner": True}])
    array([[2.1e+03, 1.0e+00]])
    >>> space.decode(space.encode([{"income": 2100.0, "owner": True}]))
    [{'income': 2100.0, 'owner': True}]
    """

    features: tuple[Feature, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        names = [feature.name for feature in self.features]
        if not names:
            raise InvalidProblem("a problem needs at least one feature")
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidProblem(f"feature names must differ (twice: {', '.join(twice)})")
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(names)})

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    def index(self, name: str) -> int:
        """Column of a feature; an unknown name is refused with the known ones."""
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise InvalidProblem(
                f"there is no feature {name!r}; the features are {', '.join(self._index)}"
            ) from None

    def encode(self, people: PeopleLike) -> States:
        """People as states, shape ``(n, d)``.

        Parameters
        ----------
        people
            A DataFrame, one of its rows, a dict, a list of these, or states ``(d,)`` or
            ``(n, d)`` as they are. A DataFrame or a row may have further columns but must have
            all of ours; a dict may leave out what is missing but have no others: a misspelt
            name is never taken for a missing value.

        Raises
        ------
        InvalidRecord
            Where a value does not fit its feature, naming the row, the feature and the value.
        """
        if isinstance(people, pd.DataFrame):
            return self._encode_frame(people)
        if isinstance(people, (pd.Series, Mapping)):
            people = [people]
        if isinstance(people, (str, bytes)) or not isinstance(people, Iterable):
            raise InvalidRecord(
                "people must be a dict, a list of dicts, a table or an array of states "
                f"(got a {type(people).__name__})"
            )
        rows = people if isinstance(people, np.ndarray) else list(people)
        first = rows[0] if len(rows) else None
        if isinstance(people, np.ndarray) or isinstance(first, np.ndarray) or is_number(first):
            return self._checked_states(rows)
        if len(rows) == 1:
            return np.array([self._encode_one(rows[0])], float)
        states = np.empty((len(rows), len(self)))
        for number, record in enumerate(rows):
            try:
                states[number] = self._encode_one(record)
            except InvalidRecord as error:
                raise InvalidRecord(f"row {number}: {error}") from None
        return states

    def _checked_states(self, states: Any) -> States:
        try:
            array = np.atleast_2d(np.array(states, float))
        except (TypeError, ValueError):
            array = np.zeros((0, 0))
        if array.ndim != 2 or array.shape[1] != len(self):
            raise InvalidRecord(
                f"a state must hold {len(self)} numbers, one per feature "
                f"(got shape {np.shape(states)}); give a record with the features' names instead"
            )
        lowest, highest, may_be_missing = self._code_ranges
        fits = (array >= lowest) & (array <= highest) | np.isnan(array) & may_be_missing
        if not fits.all():
            row, column = (int(place) for place in np.argwhere(~fits)[0])
            feature = self.features[column]
            raise InvalidRecord(
                f"row {row}: '{feature.name}' cannot be {array[row, column]} in a state; give a "
                "record with the features' names instead"
            )
        return array

    @cached_property
    def _code_ranges(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Lowest and highest code of each feature, and which may be missing, ``(d,)`` each."""
        largest = np.finfo(float).max
        pairs = [
            (0.0, len(feature.categories) - 1.0) if feature.is_categorical else (-largest, largest)
            for feature in self.features
        ]
        lowest, highest = np.array(pairs).T
        return lowest, highest, np.array([feature.may_be_missing for feature in self.features])

    def _encode_one(self, record: Any) -> list[float]:
        if isinstance(record, pd.Series):
            _refuse_twice(record.index, self.names, "row")
            absent = [name for name in self.names if name not in record.index]
            if absent:
                raise InvalidRecord(f"the row lacks {', '.join(absent)}; rename or add them")
            record = {name: record[name] for name in self.names if name in record.index}
        if not isinstance(record, Mapping):
            raise InvalidRecord(
                f"a record must map feature names to values (got a {type(record).__name__})"
            )
        unknown = [str(name) for name in record if name not in self._index]
        if unknown:
            raise InvalidRecord(
                f"the record has unknown features: {', '.join(unknown)}; "
                f"the features are {', '.join(self._index)}"
            )
        return [feature.code(record.get(feature.name)) for feature in self.features]

    def _encode_frame(self, frame: pd.DataFrame) -> States:
        _refuse_twice(frame.columns, self.names, "table")
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise InvalidRecord(
                f"the table lacks the columns {', '.join(absent)}; add them (empty where nothing "
                "is known), or rename the columns that hold them"
            )
        states = np.empty((len(frame), len(self)))
        for column, feature in enumerate(self.features):
            states[:, column] = _encode_column(feature, frame[feature.name])
        return states

    def decode(self, states: States) -> list[dict[str, Value | None]]:
        """States as records: one dict per row; None where a value is missing."""
        return [
            {
                feature.name: feature.value(code)
                for feature, code in zip(self.features, state, strict=True)
            }
            for state in np.atleast_2d(states).tolist()
        ]

    def frame(self, states: States) -> pd.DataFrame:
        """States as a DataFrame with the values in the person's own words.

        Missing values are NaN. A feature that may be missing has the same type of column
        whether or not a value of these rows is: decimals for numbers, objects for the others.
        """
        states = np.atleast_2d(states)
        columns: dict[str, Any] = {}
        for column, feature in enumerate(self.features):
            columns[feature.name] = value_column(feature, states[:, column])
        return pd.DataFrame(columns)

    def scaled(self, states: States) -> States:
        """What costs see, shape ``(n, d)``: numbers in [0, 1], categories 1 or their level."""
        return np.stack(
            [self.scale_column(column, states[..., column]) for column in range(len(self))], axis=-1
        )

    def scale_column(self, column: int, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scaled values of one feature, for codes of any shape; missing ones as declared."""
        feature = self.features[column]
        if feature.may_be_missing:
            codes = np.where(np.isnan(codes), feature.code(feature.missing_counts_as), codes)
        if feature.is_categorical:
            if not feature.levels:
                return np.ones_like(codes)
            return np.asarray(feature.levels, float)[np.asarray(codes, np.intp)]
        if feature.scale is None:
            return np.asarray(codes, float)
        low, high = feature.scale
        return np.asarray(np.clip((codes - low) / (high - low), 0.0, 1.0))

    def distances(self, before: States, after: States) -> States:
        """How far apart each feature lies, ``(n, d)``: the scaled change, 1 for a category."""
        apart = np.abs(self.scaled(after) - self.scaled(before))
        for column, feature in enumerate(self.features):
            if feature.is_categorical:
                apart[:, column] = before[:, column] != after[:, column]
        return np.asarray(apart)

    @cached_property
    def _one_hot_layout(self) -> _OneHotLayout:
        widths = [len(f.categories) if f.is_categorical else 1 for f in self.features]
        starts = np.cumsum([0, *widths])
        is_category = np.array([feature.is_categorical for feature in self.features])
        scales = [f.scale or (0.0, 1.0) for f in self.features]
        return _OneHotLayout(
            width=int(starts[-1]),
            categories=np.flatnonzero(is_category),
            numbers=np.flatnonzero(~is_category),
            starts=starts[:-1],
            low=np.array([low for low, _ in scales]),
            span=np.array([high - low for low, high in scales]),
            clip=np.array([feature.scale is not None for feature in self.features]),
            missing=np.array(
                [
                    feature.code(feature.missing_counts_as) if feature.may_be_missing else np.nan
                    for feature in self.features
                ]
            ),
        )

    @property
    def one_hot_width(self) -> int:
        """Columns of :meth:`one_hot`."""
        return self._one_hot_layout.width

    def one_hot(self, states: States) -> States:
        """Scaled numbers and one-hot categories in feature order, shape ``(n, one_hot_width)``.

        How planners that learn or compare people see them. A missing number is as costs see
        it, a missing category has no 1. Models are given what they declare, not this.
        """
        layout, states = self._one_hot_layout, np.atleast_2d(states)
        encoded = np.zeros((len(states), layout.width))
        codes = states[:, layout.categories]
        known = ~np.isnan(codes)
        rows, blocks = np.nonzero(known)
        places = layout.starts[layout.categories][blocks] + codes[known].astype(np.intp)
        encoded[rows, places] = 1.0
        numbers = states[:, layout.numbers]
        numbers = np.where(np.isnan(numbers), layout.missing[layout.numbers], numbers)
        low, span = layout.low[layout.numbers], layout.span[layout.numbers]
        scaled = (numbers - low) / span
        clipped = np.clip(scaled, 0.0, 1.0)
        encoded[:, layout.starts[layout.numbers]] = np.where(
            layout.clip[layout.numbers], clipped, scaled
        )
        return encoded


@dataclass(frozen=True)
class _OneHotLayout:
    """Where each feature goes in the one-hot encoding, and how numbers are scaled."""

    width: int
    categories: NDArray[np.intp]
    numbers: NDArray[np.intp]
    starts: NDArray[np.intp]
    low: NDArray[np.float64]
    span: NDArray[np.float64]
    clip: NDArray[np.bool_]
    missing: NDArray[np.float64]


def value_column(feature: Feature, codes: NDArray[np.float64]) -> NDArray[Any]:
    """Codes ``(n,)`` of one feature as the values of a table's column, missing ones NaN."""
    if not feature.is_categorical and feature.kind != "boolean":
        whole = feature.kind == "integer" and not feature.may_be_missing
        return codes.astype(int) if whole else codes
    if feature.kind == "boolean" and not feature.may_be_missing:
        return codes.astype(bool)
    if not feature.may_be_missing:
        return np.asarray(np.array(feature.categories, object)[codes.astype(int)])
    values = np.array([*(feature.categories or (False, True)), np.nan], object)
    return np.asarray(values[np.where(np.isnan(codes), -1, codes).astype(int)])


def _encode_column(feature: Feature, series: pd.Series) -> NDArray[np.float64]:
    values = series.to_numpy()
    if values.dtype.kind in "iuf" and feature.is_number:
        codes = values.astype(float)
        if _fits(feature, codes, whole=values.dtype.kind != "f"):
            return codes
    objects = series.to_numpy(dtype=object)
    known: dict[Any, float] = {}
    codes = np.empty(len(objects))
    for row, value in enumerate(objects):
        try:
            # The type is part of the key: True == 1, but it is not a number.
            key = (type(value), None if is_missing(value) else value)
            if key not in known:
                known[key] = feature.code(plain(value))
            codes[row] = known[key]
        except TypeError:
            raise InvalidRecord(
                f"row {row}: '{feature.name}' must be a single value (got {value!r})"
            ) from None
        except InvalidRecord as error:
            raise InvalidRecord(f"row {row}: {error}") from None
    return codes


def _fits(feature: Feature, codes: NDArray[np.float64], *, whole: bool) -> bool:
    low = -np.inf if feature.lower is None else feature.lower
    high = np.inf if feature.upper is None else feature.upper
    fits = np.isfinite(codes) & (codes >= low) & (codes <= high)
    if feature.kind == "integer":
        fits &= codes == np.rint(codes)
    if whole or feature.kind == "integer":
        fits &= np.abs(codes) < LARGEST_WHOLE
    if feature.may_be_missing:
        fits |= np.isnan(codes)
    return bool(fits.all())


def _refuse_twice(present: pd.Index, names: tuple[str, ...], what: str) -> None:
    if present.is_unique:
        return
    twice = [name for name in names if int((present == name).sum()) > 1]
    if twice:
        raise InvalidRecord(f"the {what} has the column '{twice[0]}' twice; rename or drop one")
