"""Single values: are they usable, and how are they said to a person in their language?

Refusals name the key, the value and the remedy. English is what features and actions themselves
say; a problem may carry the same words in other languages (:class:`Words`). Numbers and money are
written as each language writes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pear.errors import InvalidProblem, InvalidSetting


def is_number(value: Any) -> bool:
    """Whether a value is a number and not a truth value.

    >>> is_number(3), is_number(np.float32(0.5)), is_number(True), is_number("3")
    (True, True, False, False)
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, (bool, np.bool_)
    )


def is_finite(value: Any) -> bool:
    """Whether a value is a number that a 64-bit float can hold, neither NaN nor infinite.

    >>> is_finite(3), is_finite(float("nan")), is_finite(10**400)
    (True, False, False)
    """
    try:
        return is_number(value) and math.isfinite(float(value))
    except OverflowError:
        return False


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number given as an integer.

    >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
    (True, True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def is_missing(value: Any) -> bool:
    """Whether a value stands for "not known": None, NaN, or pandas' own marks."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value it holds; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def class_key(value: Any) -> str | float:
    """What makes two spellings of one class equal: True, 1, 1.0, "1" and "true" are one."""
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text)
    except ValueError:
        return text


def shown(value: Any) -> str:
    """A refused value for a message: ``'abc' that is a str``."""
    return f"{plain(value)!r} that is a {type(value).__name__}"


def at_key(key: str, message: str) -> InvalidProblem:
    """A refusal that remembers which key of ``problem.toml`` it is about."""
    error = InvalidProblem(message)
    error.key = key
    return error


LISTS = (list, tuple, range, np.ndarray, pd.Series, pd.Index)


def names_tuple(values: Any) -> tuple[Any, ...] | None:
    """A list, an array or the like as a tuple; None for anything else, a text in particular."""
    return tuple(values) if isinstance(values, LISTS) else None


def check_type(key: str, value: Any, kind: type) -> None:
    """Refuse an argument of the wrong class."""
    if not isinstance(value, kind):
        raise InvalidSetting(f"'{key}' must be a {kind.__name__} (got {value!r:.100})")


def listed_of(kind: type, values: Any, what: str) -> tuple[Any, ...]:
    """Any number of objects of a class as a tuple; ``what`` names them in the refusal."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidProblem(f"{what} must be a list of {kind.__name__} (got {values!r:.100})")
    content = tuple(values)
    for value in content:
        if not isinstance(value, kind):
            raise InvalidProblem(f"{what} must be a list of {kind.__name__} (got {value!r:.100})")
    return content


T = TypeVar("T")

SEPARATORS = {"en": (",", ".")}
"""Signs between thousands and before decimals; other languages write 1.250,75."""

MONEY = ("€", "$", "£", "¥")
PERCENT_CLOSE = ("en", "it")
"""Languages that put no space before the sign for per cent."""

NO_AND_YES = {
    "en": ("no", "yes"),
    "de": ("nein", "ja"),
    "it": ("no", "sì"),
    "es": ("no", "sí"),
}
UNKNOWN = {"en": "not known", "de": "nicht bekannt", "it": "non noto", "es": "no se sabe"}

PHRASES = {
    "en": {
        "up": "Increase your {feature} from {before} to {after}",
        "down": "Reduce your {feature} from {before} to {after}",
        "other": "Change your {feature} from {before} to {after}",
    },
    "de": {
        "up": "{feature} von {before} auf {after} erhöhen",
        "down": "{feature} von {before} auf {after} senken",
        "other": "{feature} ändern: von {before} zu {after}",
    },
    "it": {
        "up": "Aumenti {feature} da {before} a {after}",
        "down": "Riduca {feature} da {before} a {after}",
        "other": "Cambi {feature} da {before} a {after}",
    },
    "es": {
        "up": "Aumente {feature} de {before} a {after}",
        "down": "Reduzca {feature} de {before} a {after}",
        "other": "Cambie {feature} de {before} a {after}",
    },
}
"""The phrase of an action that has none of its own."""

FROM_UNKNOWN = {
    "en": "Change your {feature}, which is not known, to {after}",
    "de": "{feature} ändern (bisher nicht bekannt): {after}",
    "it": "Cambi {feature} (finora non noto): {after}",
    "es": "Cambie {feature} (hasta ahora no se sabe): {after}",
}

PHRASE_FIELDS = ("feature", "before", "after", "argument", "amount")
"""What a phrase may use; ``amount`` is the size of the change."""


@dataclass(frozen=True)
class Words:
    """A problem's words in one language; what is left out is as in the problem itself.

    ``labels`` and ``units`` by feature, ``categories`` by feature and category, ``phrases``
    by action.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = {key: getattr(self, key) for key in ("labels", "units", "phrases")}
        if isinstance(self.categories, Mapping):
            tables |= {f"categories.{name}": said for name, said in self.categories.items()}
        else:
            tables["categories"] = self.categories
        for key, said in tables.items():
            if not isinstance(said, Mapping):
                raise at_key(key, f"'{key}' must be a table of texts (got {shown(said)})")
            for name, text in said.items():
                if not isinstance(text, str):
                    raise at_key(key, f"'{key}' of '{name}' must be a text (got {shown(text)})")


def in_language(table: Mapping[str, T], language: str) -> T:
    """The entry of a table for a language, or for English."""
    return table.get(language, table["en"])


def show_number(value: float, language: str = "en") -> str:
    """A number for people: grouped thousands, no digits that mean nothing.

    >>> show_number(2100.0), show_number(0.30000000000000004), show_number(1250.75)
    ('2,100', '0.3', '1,250.75')
    >>> show_number(1250.75, "de")
    '1.250,75'
    >>> show_number(0.00004)
    '4e-05'
    """
    if value == int(value):
        text = f"{int(value):,}"
    elif abs(value) < 0.001:
        text = f"{value:.3g}"
    else:
        text = f"{value:,.4f}".rstrip("0").rstrip(".")
    thousands, decimals = SEPARATORS.get(language, (".", ","))
    return text.replace(",", "\0").replace(".", decimals).replace("\0", thousands)


def show_amount(value: float, unit: str, language: str = "en") -> str:
    """A number with its unit, as the language writes it, never broken between the two.

    >>> show_amount(1900, "€"), show_amount(35, "%"), show_amount(24, "months")
    ('€1,900', '35%', '24\\xa0months')
    >>> show_amount(1900, "€", "de"), show_amount(35, "%", "de")
    ('1.900\\xa0€', '35\\xa0%')
    """
    number = show_number(value, language)
    if unit in MONEY and language == "en":
        return f"-{unit}{number[1:]}" if value < 0 else f"{unit}{number}"
    if unit == "%" and language in PERCENT_CLOSE:
        return f"{number}%"
    return f"{number}\N{NO-BREAK SPACE}{unit}" if unit else number


class Amount(str):
    """A value in words that knows its number, so that a phrase can name what is counted.

    >>> "Pay your {before:overdue bill|overdue bills}".format(before=Amount("1", 1))
    'Pay your 1 overdue bill'
    """

    def __new__(cls, words: str, number: float | None = None) -> Amount:
        amount = super().__new__(cls, words)
        amount.number = number
        return amount

    number: float | None

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        one, _, many = form.partition("|")
        return f"{self} {one if self.number == 1 else many}"


def check_phrase(where: str, template: Any) -> None:
    """Refuse a phrase with fields that no step has."""
    remedy = f"use only {', '.join('{' + name + '}' for name in PHRASE_FIELDS)}"
    if not isinstance(template, str):
        raise at_key("phrase", f"{where}: 'phrase' must be a text (got {shown(template)})")
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise at_key(
            "phrase", f"{where}: 'phrase' {template!r} cannot be read ({error}); {remedy}"
        ) from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if name not in PHRASE_FIELDS or conversion:
            raise at_key("phrase", f"{where}: 'phrase' has the unknown field {{{name}}}; {remedy}")
        if form and form.count("|") != 1:
            raise at_key(
                "phrase",
                f"{where}: 'phrase' has {{{name}:{form}}}; after the colon write what is counted, "
                "for one and for many: {before:bill|bills}",
            )
