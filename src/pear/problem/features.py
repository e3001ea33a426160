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

from pear.arrays import Flags, Floats
from pear.errors import InvalidProblem, InvalidRecord
from pear.problem.values import (
    as_tuple,
    is_finite,
    is_missing,
    is_number,
    is_whole,
    kind_of,
    plain,
    refusal_at,
    shown,
    tuple_of,
)
from pear.problem.wording import NO_AND_YES, UNKNOWN, in_language, show_amount

Kind = Literal["numeric", "integer", "categorical", "boolean"]
Value = float | int | bool | str

Record = Mapping[str, Value | None]
"""A person in the problem's own terms, feature by feature; None where a value is missing."""

LARGEST_WHOLE = 2**53
"""States are 64-bit floats, which do not hold all larger whole numbers exactly."""


@dataclass(frozen=True)
class Feature:
    """One thing the classifier knows about a person.

    Parameters
    ----------
    name, kind
        What it is called, and whether it is numeric, integer, categorical or boolean.
    lower, upper
        Hard bounds of a number.
    scale
        The range that costs see as [0, 1]; None: costs see the raw value.
    categories, ordered, levels
        The values of a categorical feature, whether they have an order, and the place of each in
        [0, 1] (left out: evenly spread, where there is an order).
    unit, label
        The unit shown after its values, and what people call it.
    immutable, protected
        Whether it cannot change, or must never be changed by a plan.
    missing_counts_as
        Allows a missing value and says what costs see for it; the model is given the missing value
        itself. None refuses a missing value.
    used
        False for a feature that is on file but that the model does not use.
    language, category_words
        The language its values are shown in, and pairs of a category and what people call it.

    Raises
    ------
    InvalidProblem
        Where the parts contradict each other, naming the feature and the key.

    Examples
    --------
    >>> Feature("job", "categorical", categories=("none", "part", "full"), ordered=True).levels
    (0.0, 0.5, 1.0)
    >>> Feature("income", unit="€").show(2100.0)
    '€2,100'
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
    missing_counts_as: Value | None = None
    used: bool = True
    language: str = "en"
    category_words: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "->" in self.name:
            raise refusal_at(
                "name",
                f"a feature's 'name' must be a text without '->', which names the weights of edges "
                f"(got {self.name!r})",
            )
        if self.kind not in get_args(Kind):
            raise self._refusal(
                "kind", f"must be one of {', '.join(get_args(Kind))} (got {self.kind!r})"
            )
        for key in ("unit", "label"):
            if not isinstance(getattr(self, key), str):
                raise self._refusal(key, f"must be a text (got {shown(getattr(self, key))})")
        for key in ("ordered", "immutable", "protected", "used"):
            if not isinstance(getattr(self, key), bool):
                raise self._refusal(key, f"must be true or false (got {shown(getattr(self, key))})")
        self._store_lists()
        if self.is_categorical:
            self._check_categories()
        for key in ("categories", "ordered", "levels"):
            if getattr(self, key) and not self.is_categorical:
                raise self._refusal(
                    key, f"is only for categorical features (this is {self.kind}); remove it"
                )
        self._check_bounds()
        self._check_missing()

    def _refusal(self, key: str, message: str) -> InvalidProblem:
        return refusal_at(key, f"feature '{self.name}': '{key}' {message}")

    def _store_lists(self) -> None:
        for key in ("categories", "levels", "scale"):
            given = getattr(self, key)
            if key == "scale" and given is None:
                continue
            content = as_tuple(given)
            if content is None:
                raise self._refusal(key, f"must be a list (got {shown(given)})")
            object.__setattr__(self, key, tuple(plain(item) for item in content))

    def _check_categories(self) -> None:
        for category in self.categories:
            if not isinstance(category, str):
                raise self._refusal(
                    "categories",
                    f"must be texts (got {shown(category)}); write it in quotes, "
                    "or make the feature an integer",
                )
        if len(self.categories) < 1 or len(set(self.categories)) != len(self.categories):
            raise self._refusal(
                "categories", f"must list each category once (got {list(self.categories)!r})"
            )
        for key in ("lower", "upper", "scale"):
            if getattr(self, key) is not None:
                raise self._refusal(key, "is not for categorical features; remove it")
        if self.ordered and not self.levels:
            top = max(len(self.categories) - 1, 1)
            object.__setattr__(self, "levels", tuple(i / top for i in range(len(self.categories))))
        if self.levels and len(self.levels) != len(self.categories):
            raise self._refusal(
                "levels",
                f"must give one number per category ({len(self.categories)} categories, "
                f"{len(self.levels)} levels)",
            )
        for level in self.levels:
            if not (is_finite(level) and 0 <= level <= 1):
                raise self._refusal("levels", f"must be numbers in [0, 1] (got {level!r})")
        if self.ordered and any(a > b for a, b in zip(self.levels, self.levels[1:], strict=False)):
            raise self._refusal(
                "levels",
                f"must not fall along ordered categories (got {list(self.levels)!r}); "
                "list the categories from the lowest to the highest",
            )

    def _check_bounds(self) -> None:
        for key in ("lower", "upper"):
            bound = getattr(self, key)
            if bound is None:
                continue
            if self.kind == "boolean":
                raise self._refusal(key, "is not for boolean features; remove it")
            if not is_finite(bound):
                raise self._refusal(
                    key, f"must be a finite number (got {shown(bound)}); leave it out for no bound"
                )
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise self._refusal("lower", f"{self.lower} is above 'upper' {self.upper}; swap them")
        if self.scale is not None and (
            len(self.scale) != 2
            or not all(is_finite(end) for end in self.scale)
            or not self.scale[0] < self.scale[1]
            or not is_finite(self.scale[1] - self.scale[0])
        ):
            raise self._refusal(
                "scale", f"must be a list of two increasing numbers (got {list(self.scale)!r})"
            )

    def _check_missing(self) -> None:
        if self.missing_counts_as is None:
            return
        if is_missing(self.missing_counts_as):
            raise self._refusal(
                "missing_counts_as", f"must be a value (got {self.missing_counts_as!r})"
            )
        try:
            self.code(self.missing_counts_as)
        except InvalidRecord as error:
            raise self._refusal("missing_counts_as", f"does not fit the feature: {error}") from None

    @property
    def may_be_missing(self) -> bool:
        return self.missing_counts_as is not None

    @property
    def is_categorical(self) -> bool:
        return self.kind == "categorical"

    @property
    def is_number(self) -> bool:
        """Whether amounts can be added to it."""
        return self.kind in ("numeric", "integer")

    @property
    def words(self) -> str:
        """What people call it."""
        return self.label or self.name.replace("_", " ")

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {category: code for code, category in enumerate(self.categories)}

    def code(self, value: Any) -> float:
        """The number that stands for a value in a state vector: NaN for a missing one."""
        if is_missing(value):
            if not self.may_be_missing:
                raise InvalidRecord(
                    f"'{self.name}' is missing; give a value, or declare 'missing_counts_as' for "
                    "it in the problem if the model takes missing values"
                )
            return math.nan
        if self.is_categorical:
            return self._category_code(value)
        return self._boolean_code(value) if self.kind == "boolean" else self._number(value)

    def _category_code(self, value: Any) -> float:
        """Numbers and truth values match by their text: a table may hold 2 for "2"."""
        value = plain(value)
        texts = [value] if isinstance(value, str) else [str(value), str(value).removesuffix(".0")]
        for text in texts:
            if text in self._codes:
                return float(self._codes[text])
        known = ", ".join(self.categories[:12]) + (", …" if len(self.categories) > 12 else "")
        raise InvalidRecord(f"'{self.name}' must be one of {known} (got {value!r})")

    def _boolean_code(self, value: Any) -> float:
        if isinstance(value, (bool, np.bool_)) or (is_number(value) and value in (0, 1)):
            return float(value)
        if isinstance(value, str) and value.strip().lower() in _WORDS_FOR_BOOLEANS:
            return _WORDS_FOR_BOOLEANS[value.strip().lower()]
        raise InvalidRecord(f"'{self.name}' must be true or false (got {plain(value)!r})")

    def _number(self, value: Any) -> float:
        if not is_number(value):
            raise InvalidRecord(
                f"'{self.name}' must be a number (got {shown(value)}); correct the record"
            )
        if not is_whole(value) and not np.isfinite(value):
            raise InvalidRecord(f"'{self.name}' must be a finite number (got {value!r})")
        # Compared before the conversion: float(2**53 + 1) silently becomes 2**53.
        if is_whole(value) and abs(int(value)) > LARGEST_WHOLE:
            raise InvalidRecord(
                f"'{self.name}' must be a whole number of at most 2**53 in size, so that it is "
                f"kept exactly (got {plain(value)!r}); use a larger unit, or a category"
            )
        number = float(value)
        if self.kind == "integer" and (number != int(number) or abs(number) > LARGEST_WHOLE):
            raise InvalidRecord(
                f"'{self.name}' must be a whole number (got {plain(value)!r}); round it, "
                "or make the feature numeric"
            )
        if self.lower is not None and number < self.lower:
            raise InvalidRecord(
                f"'{self.name}' must be at least {self.lower:g} (got {plain(value)!r})"
            )
        if self.upper is not None and number > self.upper:
            raise InvalidRecord(
                f"'{self.name}' must be at most {self.upper:g} (got {plain(value)!r})"
            )
        return number

    def value(self, code: float) -> Value | None:
        """The value a number in a state vector stands for; None for NaN."""
        if math.isnan(code) and self.may_be_missing:
            return None
        if self.is_categorical:
            if not 0 <= code < len(self.categories):
                raise InvalidRecord(
                    f"'{self.name}' has no category number {code!r}; "
                    f"it has {len(self.categories)} categories"
                )
            return self.categories[int(code)]
        if self.kind == "boolean":
            return bool(code)
        return int(code) if self.kind == "integer" else float(code)

    def show(self, code: float) -> str:
        """A value as people read it: ``€2,100``, ``Bachelors``, ``yes``."""
        value = self.value(code)
        if value is None:
            return in_language(UNKNOWN, self.language)
        if isinstance(value, bool):
            return in_language(NO_AND_YES, self.language)[value]
        if isinstance(value, str):
            return dict(self.category_words).get(value, value.strip())
        return show_amount(value, self.unit, self.language)


_WORDS_FOR_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "no", "0", "0.0"), 0.0),
}

States = Floats
"""States of n people, shape ``(n, d)``."""

PersonLike = Mapping[str, Any] | pd.Series | pd.DataFrame | Floats
"""One person: a record, a row of a table, a table of one row, or a state ``(d,)``."""

PeopleLike = pd.DataFrame | pd.Series | Mapping[str, Any] | Iterable[Any] | Floats
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
        features = tuple_of(Feature, self.features, "the features")
        object.__setattr__(self, "features", features)
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
                f"(got {kind_of(people)})"
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
    def _code_ranges(self) -> tuple[Floats, Floats, Flags]:
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
                f"a record must map feature names to values (got {kind_of(record)})"
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
        """States as a DataFrame of the values themselves.

        Missing values are NaN. The type of a column does not depend on whether a value is missing
        in these rows: a feature that may be missing gives decimals for numbers, objects otherwise.
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

    def scale_column(self, column: int, codes: Floats) -> Floats:
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
        # As np.clip, which takes far longer for a few values.
        return np.asarray(np.minimum(np.maximum((codes - low) / (high - low), 0.0), 1.0))

    def distances(self, before: States, after: States) -> States:
        """How far apart each feature lies, ``(n, d)``: the scaled change, 1 for a category."""
        apart = np.abs(self.scaled(after) - self.scaled(before))
        for column, feature in enumerate(self.features):
            if feature.is_categorical:
                apart[:, column] = before[:, column] != after[:, column]
        return np.asarray(apart)


def value_column(feature: Feature, codes: Floats) -> NDArray[Any]:
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


def _encode_column(feature: Feature, series: pd.Series) -> Floats:
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


def _fits(feature: Feature, codes: Floats, *, whole: bool) -> bool:
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
