"""What kind of feature does a column hold, with which bounds, categories and scale?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from pear.errors import InvalidData
from pear.problem import names
from pear.problem.feature import LARGEST_WHOLE, Feature

MOST_CATEGORIES = 100
FEW_VALUES = 10
"""Whole numbers of so few different values may be codes; none beyond them is assumed."""
LARGEST = 1e100
"""Numbers beyond this are mistakes, or marks for something else."""


def draft_feature(name: str, column: pd.Series) -> tuple[Feature, str] | str:
    """A feature and what to review about it, or why the column gives none."""
    present = column.dropna()
    if not len(present):
        return "empty"
    numbers = _numbers(name, present)
    distinct = present.nunique()
    whole = numbers is not None and bool((numbers == np.rint(numbers)).all())
    if distinct == len(present):
        identifier = names.is_identifier(name) and (numbers is None or whole)
        if identifier or (numbers is None and distinct > MOST_CATEGORIES // 5):
            return "names rows"
    if numbers is None and distinct > MOST_CATEGORIES:
        return f"{distinct:,} different texts"
    notes: list[str] = []
    named, unit = names.unit_of(name)
    settings: dict[str, Any] = {"label": names.label_of(named) if named == name else named}
    if numbers is not None and not _is_truth(present, numbers):
        settings["unit"] = unit
    if names.is_immutable(name):
        settings["immutable"] = True
        settings["protected"] = names.is_protected(name)
        marks = "immutable and protected" if settings["protected"] else "immutable"
        notes.append(f"Review: marked {marks} because of its name.")
    elif distinct == 1:
        settings["immutable"] = True
        notes.append("Review: everybody in the table has the same value, so no action changes it.")
    elif whole and not _is_truth(present, numbers) and names.is_code(name):
        settings["immutable"] = True
        notes.append("Review: marked immutable because its numbers look like codes, not amounts.")
    if numbers is None or _is_truth(present, numbers):
        kind_settings: dict[str, Any] = _named_values(present, numbers)
    else:
        kind_settings = _number_settings(numbers, whole, notes)
        if settings.get("immutable"):
            kind_settings.pop("upper")  # It would only keep people out.
    if len(present) < len(column):
        share = 1 - len(present) / len(column)
        kind_settings["missing_counts_as"] = _usual(present, kind_settings)
        notes.append(f"Review: {share:.1%} of the values are missing; costs see the usual one.")
    return Feature(name, **settings, **kind_settings), "\n".join(notes)


def _numbers(name: str, present: pd.Series) -> Any:
    if not pd.api.types.is_numeric_dtype(present):  # Truth values count as numbers here.
        return None
    numbers = present.to_numpy(float)
    beyond = ~(np.abs(numbers) < LARGEST)
    if beyond.any():
        row = present.index[np.flatnonzero(beyond)[0]]
        raise InvalidData(
            f"row {row}: '{name}' is too large for a number of a person (got "
            f"{numbers[beyond][0]:g}); correct it, or leave it empty if it is not known"
        )
    return numbers


def _is_truth(present: pd.Series, numbers: Any) -> bool:
    if numbers is not None:
        return pd.api.types.is_bool_dtype(present) or set(np.unique(numbers)) == {0.0, 1.0}
    # Texts such as "yes" stay texts: a model trained on the table knows them as such.
    return {str(value).lower() for value in present.unique()} == {"true", "false"}


def _named_values(present: pd.Series, numbers: Any) -> dict[str, Any]:
    if _is_truth(present, numbers):
        return {"kind": "boolean"}
    return {"kind": "categorical", "categories": tuple(sorted(str(v) for v in present.unique()))}


def _number_settings(numbers: Any, whole: bool, notes: list[str]) -> dict[str, Any]:
    least, most = float(numbers.min()), float(numbers.max())
    low, high = (float(q) for q in np.quantile(numbers, [0.005, 0.995]))
    integer = whole and max(abs(least), abs(most)) < LARGEST_WHOLE
    number: Any = int if integer else float
    settings: dict[str, Any] = {"kind": "integer" if integer else "numeric"}
    settings["lower"] = number(0) if least >= 0 else number(round_out(least, down=True))
    settings["upper"] = number(round_out(most, down=False))
    values = np.unique(numbers)
    if integer and 2 < len(values) <= FEW_VALUES:
        settings["lower"], settings["upper"] = number(least), number(most)
        shown = ", ".join(f"{value:g}" for value in values)
        notes.append(f"Review: only {shown} occur; if they are codes, remove what changes them.")
    if low < high and most - least > 10 * (high - low):
        settings["scale"] = (number(math.floor(low)), number(math.ceil(high)))
        notes.append("Review: a few values lie far out; costs see the range of nearly everybody.")
    elif least < most:
        settings["scale"] = (number(least), number(most))
    return settings


def _usual(present: pd.Series, settings: dict[str, Any]) -> Any:
    kind = settings["kind"]
    if kind == "numeric":
        return float(present.median())
    if kind == "integer":
        return round(float(present.median()))
    common = present.mode().iloc[0]
    if kind == "categorical":
        return str(common)
    return str(common).lower() in ("true", "1", "1.0")


def round_out(value: float, *, down: bool) -> float:
    """A number with two significant digits that is not inside of a value.

    >>> round_out(17_342.0, down=False), round_out(-3.21, down=True), round_out(1.0, down=False)
    (18000.0, -3.3, 1.0)
    """
    if value == 0:
        return 0.0
    digits = 1 - math.floor(math.log10(abs(value)))
    scaled = round(value * 10.0**digits, 6)
    rounded = math.floor(scaled) if down else math.ceil(scaled)
    return round(rounded / 10.0**digits, max(digits, 0))


def nice_step(size: float, *, whole: bool) -> Any:
    """The round step (1, 2 or 5 times a power of ten) nearest below a size.

    >>> nice_step(430.0, whole=True), nice_step(0.13, whole=False), nice_step(0.3, whole=True)
    (200, 0.1, 1)
    """
    if whole and size < 1:
        return 1
    power = 10.0 ** math.floor(math.log10(size))
    step = max(m * power for m in (1, 2, 5) if m * power <= size * (1 + 1e-9))
    return round(step) if whole else float(f"{step:.1e}")
