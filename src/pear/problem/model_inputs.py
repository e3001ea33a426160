"""What does the model get, column by column, and how is it made from a person's record?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from pear.errors import InvalidProblem
from pear.problem.features import Feature, Value
from pear.problem.values import as_tuple, is_finite, is_missing, plain, refusal_at, shown

Encoding = Literal["value", "one_hot", "code", "is_missing"]


@dataclass(frozen=True)
class ModelInput:
    """One column of the model, or several next to each other, made of one feature.

    ``column`` is what the model calls it, ``feature`` whose value it holds (left out: the feature
    of the same name). ``encoding`` is the ``value`` itself, a ``code`` for each category (``codes``
    in the order of ``categories``; left out: 0, 1, 2 …), ``one_hot``: a column of 0 and 1 for each
    of ``categories`` (left out: all of the feature's), called ``column_category`` or, for a single
    one, ``column``; or ``is_missing``: 1 where the value is missing, else 0. Numbers then become
    ``(number - subtract) / divide``, limited to [0, 1] with ``clip``. ``missing`` is put in place
    of a missing value first; left out, the model is given NaN, or no 1 at all.

    >>> ModelInput("income", subtract=2100.0, divide=850.0).names(Feature("income"))
    ('income',)
    >>> job = Feature("job", "categorical", categories=("none", "part", "full"))
    >>> ModelInput("job", encoding="one_hot", categories=("part", "full")).names(job)
    ('job_part', 'job_full')
    """

    column: str
    feature: str = ""
    encoding: Encoding = "value"
    categories: tuple[str, ...] = ()
    codes: tuple[float, ...] = ()
    subtract: float = 0.0
    divide: float = 1.0
    clip: bool = False
    missing: Value | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise refusal_at("column", f"an input's 'column' must be a text (got {self.column!r})")
        if self.encoding not in get_args(Encoding):
            raise self._refusal(
                "encoding",
                f"must be one of {', '.join(get_args(Encoding))} (got {self.encoding!r})",
            )
        for key in ("categories", "codes"):
            content = as_tuple(getattr(self, key))
            if content is None:
                raise self._refusal(key, f"must be a list (got {shown(getattr(self, key))})")
            object.__setattr__(self, key, tuple(plain(item) for item in content))
        for key in ("subtract", "divide"):
            if not is_finite(getattr(self, key)):
                raise self._refusal(key, f"must be a number (got {shown(getattr(self, key))})")
        if not isinstance(self.clip, bool):
            raise self._refusal("clip", f"must be true or false (got {shown(self.clip)})")
        if self.divide == 0:
            raise self._refusal("divide", "must not be 0")
        if not all(is_finite(code) for code in self.codes):
            raise self._refusal("codes", f"must be numbers (got {list(self.codes)!r})")
        zeros_and_ones = self.encoding in ("one_hot", "is_missing")
        if zeros_and_ones and (self.subtract, self.divide) != (0.0, 1.0):
            raise self._refusal(
                "encoding", f"{self.encoding} is 0 and 1: remove 'subtract' and 'divide'"
            )
        if self.encoding == "is_missing" and self.missing is not None:
            raise self._refusal(
                "missing", "puts a value in, and is_missing tells that there is none"
            )
        if self.encoding != "code" and self.codes:
            raise self._refusal("codes", 'are for encoding = "code"')
        if self.encoding in ("value", "is_missing") and self.categories:
            raise self._refusal(
                "categories", 'are for encoding = "one_hot" or "code"; say which of the two it is'
            )

    def _refusal(self, key: str, message: str) -> InvalidProblem:
        return refusal_at(key, f"the model's input '{self.column}': '{key}' {message}")

    @property
    def source(self) -> str:
        """The name of the feature whose value it holds."""
        return self.feature or self.column

    @property
    def as_it_is(self) -> bool:
        """Whether the model gets the value unchanged."""
        same = (self.subtract, self.divide, self.clip) == (0.0, 1.0, False)
        return self.encoding == "value" and same and self.missing is None

    def check(self, feature: Feature) -> None:
        """Refuse what does not fit the feature."""
        if self.encoding == "is_missing":
            return
        if self.encoding != "value" and not feature.is_categorical:
            raise self._refusal(
                "encoding",
                f"'{self.encoding}' is for categories ('{feature.name}' is {feature.kind})",
            )
        changed = (self.subtract, self.divide, self.clip) != (0.0, 1.0, False)
        if self.encoding == "value" and feature.is_categorical and changed:
            raise self._refusal(
                "subtract", f"is for numbers ('{feature.name}' is categorical): give an 'encoding'"
            )
        unknown = [value for value in self.categories if value not in feature.categories]
        if unknown or len(set(self.categories)) != len(self.categories):
            raise self._refusal(
                "categories",
                f"must be categories of '{feature.name}', each once (got "
                f"{list(self.categories)!r}; it has {', '.join(feature.categories)})",
            )
        if self.encoding == "code":
            known = self.categories or feature.categories
            if set(known) != set(feature.categories):
                left = [value for value in feature.categories if value not in known]
                raise self._refusal("categories", f"has no code for {', '.join(left)}")
            if self.codes and len(self.codes) != len(known):
                raise self._refusal(
                    "codes",
                    f"must be one for each of {len(known)} categories (got {len(self.codes)})",
                )
        self._check_missing(feature)

    def _check_missing(self, feature: Feature) -> None:
        if self.missing is None:
            return
        if not feature.may_be_missing:
            raise self._refusal(
                "missing", f"but '{feature.name}' may not be missing: give it 'missing_counts_as'"
            )
        if feature.is_categorical and self.encoding != "value":
            if self.missing not in feature.categories and not (
                self.encoding == "code" and is_finite(self.missing)
            ):
                raise self._refusal("missing", f"must be a category (got {self.missing!r})")
            return
        if not feature.is_categorical and not (
            is_finite(self.missing) or isinstance(self.missing, bool)
        ):
            raise self._refusal("missing", f"must be a number (got {self.missing!r})")

    def names(self, feature: Feature) -> tuple[str, ...]:
        """The names of its columns."""
        if self.encoding != "one_hot":
            return (self.column,)
        chosen = self.categories or feature.categories
        return tuple(f"{self.column}_{c}" for c in chosen) if len(chosen) > 1 else (self.column,)

    def number(self, feature: Feature, value: Any) -> list[float]:
        """What the model gets for one value: one number per column."""
        gone = is_missing(value)
        if self.encoding == "is_missing":
            return [float(gone)]
        if gone and self.missing is not None:
            value = self.missing
        if self.encoding == "one_hot":
            return [float(value == category) for category in self.categories or feature.categories]
        if self.encoding == "code" and isinstance(value, str):
            known = self.categories or feature.categories
            value = (self.codes or tuple(range(len(known))))[known.index(value)]
        number = float("nan") if is_missing(value) else float(value)
        number = (number - self.subtract) / self.divide
        return [min(max(number, 0.0), 1.0) if self.clip and number == number else number]


Output = Literal["", "probabilities", "logits"]


@dataclass(frozen=True)
class Interface:
    """How the model is called and how it answers, where the problem says so.

    ``inputs`` are its columns in order; ``output`` tells whether its numbers are ``probabilities``
    or ``logits``; ``classes`` name its columns of output.
    """

    inputs: tuple[ModelInput, ...] = ()
    output: Output = ""
    classes: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.output not in get_args(Output):
            raise refusal_at(
                "output", f"'output' must be probabilities or logits (got {self.output!r})"
            )
        for key in ("inputs", "classes"):
            content = as_tuple(getattr(self, key))
            if content is None:
                raise refusal_at(key, f"'{key}' must be a list (got {shown(getattr(self, key))})")
            object.__setattr__(self, key, tuple(plain(item) for item in content))
        for name in self.classes:
            if not isinstance(name, (str, bool, int, float)):
                raise refusal_at("classes", f"a class must be a text or a number (got {name!r})")
        names = [entry.column for entry in self.inputs]
        if len(set(names)) != len(names):
            raise refusal_at("inputs", f"the inputs' columns must differ (got {names!r})")
