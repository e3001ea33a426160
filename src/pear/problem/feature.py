"""What is one thing the classifier knows about a person, and which values can it have?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from pear.errors import InvalidProblem, InvalidRecord
from pear.problem import words
from pear.problem.checks import (
    at_key,
    is_finite,
    is_missing,
    is_number,
    is_whole,
    names_tuple,
    plain,
    shown,
)

Kind = Literal["numeric", "integer", "categorical", "boolean"]
Value = float | int | bool | str

Record = Mapping[str, Value | None]
"""A person in the problem's own terms, feature by feature; None where a value is missing."""

LARGEST_WHOLE = 2**53
"""States are 64-bit floats: whole numbers beyond this are not all held exactly."""


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
        How people write and call it.
    immutable, protected
        Whether it cannot change, or must never be asked to.
    missing_counts_as
        Allows a missing value and says what costs see for it; the model is given the missing value
        itself. None refuses a missing value.
    used
        False for what is on file but not looked at by the model.
    language, category_words
        How values are said: pairs of a category and what people call it.

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
            raise at_key(
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
        return at_key(key, f"feature '{self.name}': '{key}' {message}")

    def _store_lists(self) -> None:
        for key in ("categories", "levels", "scale"):
            given = getattr(self, key)
            if key == "scale" and given is None:
                continue
            content = names_tuple(given)
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
                "scale", f"must be two increasing numbers (got {list(self.scale)!r})"
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
        """Numbers and truth values are taken by their text: a table may hold 2 for "2"."""
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
        # Compared before the conversion: float(2**53 + 1) is 2**53 without a sound.
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
        """A value in people's words: ``€2,100``, ``Bachelors``, ``yes``."""
        value = self.value(code)
        if value is None:
            return words.of(words.UNKNOWN, self.language)
        if isinstance(value, bool):
            return words.of(words.NO_AND_YES, self.language)[value]
        if isinstance(value, str):
            return dict(self.category_words).get(value, value.strip())
        return words.show_amount(value, self.unit, self.language)


_WORDS_FOR_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "no", "0", "0.0"), 0.0),
}
