"""What is known about a person, and how it becomes a state vector.

A state is a vector in the person's own units. Categories are stored as integer codes,
booleans as 0 and 1. Costs see *scaled* values, see :meth:`FeatureSpace.scaled`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import InvalidProblem, InvalidRecord

Kind = Literal["numeric", "integer", "categorical", "boolean"]
Value = float | int | bool | str
States = NDArray[np.float64]
"""States of n people, shape ``(n, d)``."""


@dataclass(frozen=True)
class Feature:
    """One thing the classifier knows about a person.

    ``lower`` and ``upper`` are hard bounds of the value; ``scale`` is the range that costs
    see as [0, 1] (None: costs see the raw value). ``levels`` gives ordered categories their
    place in [0, 1]. ``missing`` is the value put in place of a missing one; None refuses it.

    >>> Feature("job", "categorical", categories=("none", "part", "full"), ordered=True).levels
    (0.0, 0.5, 1.0)
    """

    name: str
    kind: Kind = "numeric"
    lower: float | None = None
    upper: float | None = None
    scale: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    ordered: bool = False
    levels: tuple[float, ...] = ()
    unit: str = ""
    label: str = ""
    immutable: bool = False
    protected: bool = False
    missing: Value | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidProblem(f"a feature's 'name' must be a text (got {self.name!r})")
        if self.kind not in get_args(Kind):
            raise InvalidProblem(
                f"feature '{self.name}': 'kind' must be one of {', '.join(get_args(Kind))} "
                f"(got {self.kind!r})"
            )
        if self.is_categorical:
            self._check_categories()
        elif self.categories or self.ordered or self.levels:
            raise InvalidProblem(
                f"feature '{self.name}' is {self.kind} and cannot have categories, an order or "
                "levels; make it categorical or remove them"
            )
        for key in ("lower", "upper"):
            bound = getattr(self, key)
            if bound is not None and not _is_number(bound):
                raise InvalidProblem(
                    f"feature '{self.name}': '{key}' must be a number (got {bound!r})"
                )
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidProblem(
                f"feature '{self.name}': 'lower' {self.lower} is above 'upper' {self.upper}; swap them"
            )
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise InvalidProblem(
                f"feature '{self.name}': 'scale' must be two increasing numbers (got {self.scale!r})"
            )
        if self.missing is not None:
            self.code(self.missing)

    def _check_categories(self) -> None:
        if len(self.categories) < 1 or len(set(self.categories)) != len(self.categories):
            raise InvalidProblem(
                f"feature '{self.name}': 'categories' must list each category once "
                f"(got {list(self.categories)!r})"
            )
        if self.lower is not None or self.upper is not None or self.scale is not None:
            raise InvalidProblem(
                f"feature '{self.name}' is categorical and cannot have bounds or a scale; remove them"
            )
        if self.ordered and not self.levels:
            top = max(len(self.categories) - 1, 1)
            object.__setattr__(self, "levels", tuple(i / top for i in range(len(self.categories))))
        if self.levels and len(self.levels) != len(self.categories):
            raise InvalidProblem(
                f"feature '{self.name}': 'levels' must give one number per category "
                f"({len(self.categories)} categories, {len(self.levels)} levels)"
            )

    @property
    def is_categorical(self) -> bool:
        return self.kind == "categorical"

    @property
    def words(self) -> str:
        """What people call it."""
        return self.label or self.name.replace("_", " ")

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {category: code for code, category in enumerate(self.categories)}

    def code(self, value: Any) -> float:
        """The number that stands for a value in a state vector."""
        if _is_missing(value):
            if self.missing is None:
                raise InvalidRecord(
                    f"'{self.name}' is missing; give a value, or declare 'missing' for it in the problem"
                )
            value = self.missing
        if self.is_categorical:
            try:
                return float(self._codes[value])
            except (KeyError, TypeError):
                known = ", ".join(self.categories[:12]) + (
                    ", …" if len(self.categories) > 12 else ""
                )
                raise InvalidRecord(
                    f"'{self.name}' must be one of {known} (got {value!r})"
                ) from None
        return self._number(value)

    def _number(self, value: Any) -> float:
        if self.kind == "boolean":
            if isinstance(value, (bool, np.bool_)) or (_is_number(value) and value in (0, 1)):
                return float(value)
            if isinstance(value, str) and value.strip().lower() in _WORDS_FOR_BOOLEANS:
                return _WORDS_FOR_BOOLEANS[value.strip().lower()]
            raise InvalidRecord(f"'{self.name}' must be true or false (got {value!r})")
        if not _is_number(value):
            raise InvalidRecord(
                f"'{self.name}' must be a number (got {value!r} that is a {type(value).__name__})"
            )
        number = float(value)
        if not math.isfinite(number):
            raise InvalidRecord(f"'{self.name}' must be a finite number (got {value!r})")
        if self.kind == "integer" and (number != int(number) or abs(number) > 2**53):
            raise InvalidRecord(f"'{self.name}' must be a whole number (got {value!r})")
        if self.lower is not None and number < self.lower:
            raise InvalidRecord(f"'{self.name}' must be at least {self.lower:g} (got {value!r})")
        if self.upper is not None and number > self.upper:
            raise InvalidRecord(f"'{self.name}' must be at most {self.upper:g} (got {value!r})")
        return number

    def value(self, code: float) -> Value:
        """The value a number in a state vector stands for."""
        if self.is_categorical:
            return self.categories[int(code)]
        if self.kind == "boolean":
            return bool(code)
        return int(code) if self.kind == "integer" else float(code)

    def show(self, code: float) -> str:
        """A value in people's words: ``2,100 €``, ``Bachelors``, ``yes``."""
        value = self.value(code)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return value
        text = f"{value:,.4f}".rstrip("0").rstrip(".") if value != int(value) else f"{int(value):,}"
        return f"{text} {self.unit}".strip()


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

    def encode(
        self, records: pd.DataFrame | pd.Series | Mapping[str, Any] | Iterable[Any]
    ) -> States:
        """Records (a dict, a row, a DataFrame, a list of dicts) as states, shape ``(n, d)``."""
        if isinstance(records, pd.Series):
            records = records.to_dict()
        if isinstance(records, Mapping):
            records = [records]
        if isinstance(records, pd.DataFrame):
            return self._encode_frame(records)
        return np.array([self._encode_one(record) for record in records], float).reshape(
            -1, len(self)
        )

    def _encode_one(self, record: Any) -> list[float]:
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
        absent = [
            f.name for f in self.features if f.name not in frame.columns and f.missing is None
        ]
        if absent:
            raise InvalidRecord(f"the table lacks the columns {', '.join(absent)}")
        states = np.empty((len(frame), len(self)))
        for column, feature in enumerate(self.features):
            if feature.name not in frame.columns:
                states[:, column] = feature.code(None)
                continue
            states[:, column] = self._encode_column(feature, frame[feature.name])
        return states

    def _encode_column(self, feature: Feature, series: pd.Series) -> NDArray[np.float64]:
        values = series.to_numpy()
        if values.dtype.kind in "iuf" and feature.kind in ("numeric", "integer"):
            codes = values.astype(float)
            if np.isfinite(codes).all() and self._fits(feature, codes):
                return codes
        objects = series.to_numpy(dtype=object)
        places, distinct = pd.factorize(objects, use_na_sentinel=False)
        try:
            return np.array([feature.code(_plain(value)) for value in distinct], float)[places]
        except InvalidRecord as error:
            raise InvalidRecord(f"row {self._first_bad_row(feature, objects)}: {error}") from None

    @staticmethod
    def _fits(feature: Feature, codes: NDArray[np.float64]) -> bool:
        low = -np.inf if feature.lower is None else feature.lower
        high = np.inf if feature.upper is None else feature.upper
        inside = bool(((codes >= low) & (codes <= high)).all())
        return inside and (feature.kind != "integer" or bool((codes == np.rint(codes)).all()))

    @staticmethod
    def _first_bad_row(feature: Feature, values: NDArray[Any]) -> int:
        for row, value in enumerate(values):
            try:
                feature.code(_plain(value))
            except InvalidRecord:
                return row
        return -1

    def decode(self, states: States) -> list[dict[str, Value]]:
        """States as records: one dict per row."""
        return [
            {
                feature.name: feature.value(code)
                for feature, code in zip(self.features, state, strict=True)
            }
            for state in np.atleast_2d(states)
        ]

    def frame(self, states: States) -> pd.DataFrame:
        """States as a DataFrame with the values in the person's own words."""
        states = np.atleast_2d(states)
        columns: dict[str, Any] = {}
        for column, feature in enumerate(self.features):
            codes = states[:, column]
            if feature.is_categorical:
                columns[feature.name] = np.array(feature.categories, object)[codes.astype(int)]
            elif feature.kind == "boolean":
                columns[feature.name] = codes.astype(bool)
            else:
                columns[feature.name] = codes.astype(int) if feature.kind == "integer" else codes
        return pd.DataFrame(columns)

    def scaled(self, states: States) -> States:
        """What costs see, shape ``(n, d)``: numbers in [0, 1], categories 1 or their level."""
        return np.column_stack(
            [self.scale_column(column, states[..., column]) for column in range(len(self))]
        ).reshape(states.shape)

    def scale_column(self, column: int, codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scaled values of one feature, for codes of any shape."""
        feature = self.features[column]
        if feature.is_categorical:
            if not feature.levels:
                return np.ones_like(codes)
            return np.asarray(feature.levels)[codes.astype(int)]
        if feature.scale is None:
            return np.asarray(codes, float)
        low, high = feature.scale
        return np.clip((codes - low) / (high - low), 0.0, 1.0)

    @property
    def one_hot_width(self) -> int:
        """Columns of :meth:`one_hot`."""
        return sum(len(f.categories) if f.is_categorical else 1 for f in self.features)

    def one_hot(self, states: States) -> States:
        """Scaled numbers and one-hot categories in feature order, shape ``(n, one_hot_width)``."""
        states = np.atleast_2d(states)
        encoded = np.zeros((len(states), self.one_hot_width))
        start, rows = 0, np.arange(len(states))
        for column, feature in enumerate(self.features):
            if feature.is_categorical:
                encoded[rows, start + states[:, column].astype(int)] = 1.0
                start += len(feature.categories)
            else:
                encoded[:, start] = self.scale_column(column, states[:, column])
                start += 1
        return encoded


_WORDS_FOR_BOOLEANS = {"true": 1.0, "yes": 1.0, "1": 1.0, "false": 0.0, "no": 0.0, "0": 0.0}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, (bool, np.bool_)
    )


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
