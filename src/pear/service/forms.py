"""How are a person's data shown and typed in, and what is wrong with them? Numbers as people write
them, in their language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pear.elicitation.words import Catalogue, capital
from pear.problem import Feature, Problem
from pear.problem.wording import MONEY, SEPARATORS, show_amount, show_number

MOST_CHARACTERS = 200
"""Most characters of one entry of a form that are looked at."""

EXAMPLE = 1850.5
"""A number to show how numbers are written."""


def facts(problem: Problem, record: Mapping[str, Any]) -> tuple[list[dict[str, str]], ...]:
    """A record in words: what the decision looks at, and what is on file besides."""
    found = [
        {
            "name": feature.name,
            "label": capital(feature.words),
            "value": feature.show(feature.code(record[feature.name])),
        }
        for feature in problem.space.features
    ]
    used = [feature.used for feature in problem.space.features]
    return (
        [fact for fact, looked_at in zip(found, used, strict=True) if looked_at],
        [fact for fact, looked_at in zip(found, used, strict=True) if not looked_at],
    )


# What was typed in


def from_form(problem: Problem, form: Mapping[str, Any], language: str = "en") -> dict[str, Any]:
    """A record from a form's texts: numbers as people write them, nothing refused yet."""
    return {
        feature.name: _typed_in(feature, form.get(feature.name), language)
        for feature in problem.space.features
    }


def _typed_in(feature: Feature, value: Any, language: str) -> float | int | str | None:
    text = str(value or "").strip()[:MOST_CHARACTERS]
    if not text:
        return None
    words_only = feature.is_categorical or feature.kind == "boolean"
    return text if words_only else plain_number(text, language, feature.unit)


def plain_number(text: str, language: str = "en", unit: str = "") -> float | int | str:
    """A number as people write it, with its own unit or without; else the text it was.

    Money of three decimals is not one: where points separate thousands, "€1.900" is 1,900.

    >>> plain_number("1,850.5"), plain_number("€1,900"), plain_number("40 %", unit="%")
    (1850.5, 1900, 40)
    >>> plain_number("€1,900", "de", "€"), plain_number("40%", unit="€")
    ('€1,900', '40%')
    >>> plain_number("1.900,50", "de"), plain_number("1 900,5"), plain_number("7 dogs")
    (1900.5, 1900.5, '7 dogs')
    """
    compact = re.sub(r"[\s\u00a0\u202f'’]", "", text)
    for sign in (unit.replace(" ", ""),) if unit else MONEY:
        compact = compact.removeprefix(sign).removesuffix(sign)
    thousands, decimals = SEPARATORS.get(language, (".", ","))
    group, point = re.escape(thousands), re.escape(decimals)
    if re.fullmatch(rf"[+-]?\d{{1,3}}({group}\d{{3}})+({point}\d+)?", compact, re.ASCII):
        compact = compact.replace(thousands, "").replace(decimals, ".")
    elif re.fullmatch(r"[+-]?\d+[.,]\d{1,2}", compact, re.ASCII):
        compact = compact.replace(",", ".")
    elif unit in MONEY and re.fullmatch(rf"[+-]?\d{{1,3}}{point}\d{{3}}", compact, re.ASCII):
        return text
    elif re.fullmatch(rf"[+-]?\d+{point}\d+", compact, re.ASCII):
        compact = compact.replace(decimals, ".")
    if not re.fullmatch(r"[+-]?\d{1,18}(\.\d{1,12})?", compact, re.ASCII):
        return text
    return float(compact) if "." in compact else int(compact)


# A form's fields


def entries(
    problem: Problem,
    texts: Catalogue,
    values: Mapping[str, Any],
    wrong: Sequence[tuple[str, str]] = (),
) -> list[dict[str, Any]]:
    """A form's fields with their values and, in plain words, what is wrong with them."""
    names = {name for name, _message in wrong}
    found = []
    for feature in problem.space.features:
        value = values.get(feature.name, "")
        entry = _entry(feature, texts, value)
        entry["error"] = _message(feature, texts, value) if feature.name in names else ""
        found.append(entry)
    return found


def errors_of(found: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What is wrong with a form, entry by entry."""
    return [
        {"name": entry["name"], "label": entry["label"], "message": entry["error"]}
        for entry in found
        if entry["error"]
    ]


def _entry(feature: Feature, texts: Catalogue, value: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": feature.name,
        "label": capital(feature.words),
        "value": _shown(value, texts.language),
        "unit": feature.unit,
        "choices": [],
        "hint": "",
        "range_error": "",
        "whole": feature.kind == "integer",
        "lower": feature.lower,
        "upper": feature.upper,
        "wrong_number": _wrong_number(feature, texts),
    }
    if feature.is_categorical:
        said = dict(feature.category_words)
        entry["choices"] = [{"value": c, "words": said.get(c, c)} for c in feature.categories]
    elif feature.kind == "boolean":
        entry["choices"] = [{"value": "no", "words": texts("form.no")}]
        entry["choices"] += [{"value": "yes", "words": texts("form.yes")}]
    else:
        entry["hint"] = _range(feature, texts)
        entry["range_error"] = texts("form.out_of_range", range=_range(feature, texts))
    return entry


def _range(feature: Feature, texts: Catalogue) -> str:
    low, high = feature.lower, feature.upper
    unit = feature.unit if feature.unit in (*MONEY, "%") else ""
    shown = {
        name: show_amount(value, unit, texts.language)
        for name, value in (("lower", low), ("upper", high))
        if value is not None
    }
    if len(shown) == 2:
        return texts("form.range", **shown)
    return texts("form.at_least" if low is not None else "form.at_most", **shown) if shown else ""


def _wrong_number(feature: Feature, texts: Catalogue) -> str:
    if feature.kind == "integer":
        return texts("form.not_whole")
    return texts("form.not_number", example=show_number(EXAMPLE, texts.language))


def _message(feature: Feature, texts: Catalogue, value: Any) -> str:
    """What is wrong with one entry, in words for the person who made it."""
    if value is None or str(value).strip() == "":
        return texts("form.missing")
    if feature.is_categorical or feature.kind == "boolean":
        return texts("form.not_choice")
    number = _typed_in(feature, value, texts.language)
    if number is None or isinstance(number, str):
        return _wrong_number(feature, texts)
    if feature.kind == "integer" and number != int(number):
        return _wrong_number(feature, texts)
    return texts("form.out_of_range", range=_range(feature, texts))


def _shown(value: Any, language: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # All digits, so that what nobody touched comes back as it was; never three decimals,
        # which are taken for thousands.
        _, decimals = SEPARATORS.get(language, (".", ","))
        digits = f"{value:.12f}".rstrip("0").rstrip(".")
        digits += "0" * (len(digits.partition(".")[2]) == 3)
        return digits.replace(".", decimals)
    return "" if value is None else str(value)
