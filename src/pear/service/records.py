"""How does what a person types become a record, and what is wrong with it, field by field?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pear.errors import InvalidInput
from pear.problem import Feature, Problem

MOST_CHARACTERS = 200
LARGEST = 1e15


def check_record(
    problem: Problem, record: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The record as stored, and what is wrong with it as (feature, message)."""
    clean: dict[str, Any] = {}
    wrong: list[tuple[str, str]] = []
    known = set(problem.space.names)
    for name in record:
        if name not in known:
            wrong.append((str(name)[:MOST_CHARACTERS], "this is no feature of the problem"))
    for feature in problem.space.features:
        value = record.get(feature.name)
        if isinstance(value, int | float) and abs(value) > LARGEST:
            wrong.append((feature.name, f"'{feature.name}' must be smaller"))
            continue
        try:
            clean[feature.name] = feature.value(feature.code(value))
        except InvalidInput as error:
            wrong.append((feature.name, str(error)))
    return clean, wrong


def from_form(problem: Problem, form: Mapping[str, Any]) -> dict[str, Any]:
    """A record from a form's texts: numbers as people write them, nothing refused yet.

    >>> plain_number("2 100,50"), plain_number("1,850"), plain_number("x")
    (2100.5, 1850, 'x')
    """
    record: dict[str, Any] = {}
    for feature in problem.space.features:
        text = str(form.get(feature.name, "") or "").strip()[:MOST_CHARACTERS]
        if not text:
            record[feature.name] = None
        elif feature.is_categorical or feature.kind == "boolean":
            record[feature.name] = text
        else:
            record[feature.name] = plain_number(text)
    return record


def plain_number(text: str) -> float | int | str:
    """A number as people write it; anything else stays the text it was.

    >>> plain_number("1,850.5"), plain_number("12.000"), plain_number("7 %")
    (1850.5, 12.0, '7 %')
    """
    compact = re.sub(r"[\s\u00a0\u202f']", "", text)
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", compact, re.ASCII):
        compact = compact.replace(",", "")
    elif re.fullmatch(r"[+-]?\d+,\d{1,2}", compact, re.ASCII):
        compact = compact.replace(",", ".")
    if not re.fullmatch(r"[+-]?\d{1,18}(\.\d{1,12})?", compact, re.ASCII):
        return text
    return float(compact) if "." in compact else int(compact)


def groups_of(problem: Problem, record: Mapping[str, Any]) -> dict[str, str]:
    """The protected groups someone belongs to, numbers by tens, hundreds…."""
    found = {}
    for feature in problem.space.features:
        if feature.protected:
            found[feature.name] = _group(feature, record[feature.name])
    return found


def _group(feature: Feature, value: Any) -> str:
    if feature.is_categorical or feature.kind == "boolean":
        return feature.show(feature.code(value))
    low, high = feature.scale or (0.0, 100.0)
    width = 10.0 ** math.floor(math.log10(max(high - low, 10.0)))
    first = width * math.floor(float(value) / width)
    return f"{first:.0f} to {first + width - 1:.0f}"
