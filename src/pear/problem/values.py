"""Is a single value usable? Refusals name the key, the value and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

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


def kind_of(value: Any) -> str:
    """The type of a refused value for a message, with its article.

    >>> kind_of("abc"), kind_of(3), kind_of(None)
    ('a str', 'an int', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def shown(value: Any) -> str:
    """A refused value for a message: ``'abc' that is a str``."""
    return "None" if value is None else f"{plain(value)!r} that is {kind_of(value)}"


def refusal_at(key: str, message: str) -> InvalidProblem:
    """A refusal that remembers which key of ``problem.toml`` it is about."""
    error = InvalidProblem(message)
    error.key = key
    return error


LISTS = (list, tuple, range, np.ndarray, pd.Series, pd.Index)


def as_tuple(values: Any) -> tuple[Any, ...] | None:
    """A list, an array or the like as a tuple; None for anything else, a text in particular."""
    return tuple(values) if isinstance(values, LISTS) else None


def check_type(key: str, value: Any, kind: type) -> None:
    """Refuse an argument of the wrong class."""
    if not isinstance(value, kind):
        raise InvalidSetting(f"'{key}' must be a {kind.__name__} (got {value!r:.100})")


def tuple_of(kind: type, values: Any, what: str) -> tuple[Any, ...]:
    """Any number of objects of a class as a tuple; ``what`` names them in the refusal."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidProblem(f"{what} must be a list of {kind.__name__} (got {values!r:.100})")
    content = tuple(values)
    for value in content:
        if not isinstance(value, kind):
            raise InvalidProblem(f"{what} must be a list of {kind.__name__} (got {value!r:.100})")
    return content
