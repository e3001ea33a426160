"""How does a page come to be? Templates, dates, forms' fields and the score picture."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

import pear
from pear.problem import Feature, Problem
from pear.service.catalogue import Catalogue
from pear.service.present import points
from pear.service.records import from_form

ENVIRONMENT = Environment(
    loader=PackageLoader("pear.service", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

BAR_HEIGHT, FIRST_BAR, WIDTH = 46, 22, 320


def page(template: str, texts: Catalogue, status: int = 200, **context: Any) -> HTMLResponse:
    """A page from a template; what a template may leave out has a value here."""
    content = {"demo": False, "token": "", "said": "", "notices": (), "key_name": "", **context}
    html = ENVIRONMENT.get_template(template).render(
        t=texts, package_version=pear.__version__, **content
    )
    return HTMLResponse(html, status)


def new_nonce() -> str:
    """A name for a form as it was shown, so that sending it twice does it once."""
    return secrets.token_urlsafe(12)


def day(at: float) -> str:
    """A date people can read: 3 March 2026."""
    moment = time.gmtime(at)
    return f"{moment.tm_mday} {time.strftime('%B %Y', moment)}"


def facts(problem: Problem, record: Mapping[str, Any]) -> list[dict[str, str]]:
    """A record in words, feature by feature."""
    return [
        {
            "name": feature.name,
            "label": _capital(feature.words),
            "value": feature.show(feature.code(record[feature.name])),
        }
        for feature in problem.space.features
    ]


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
        entry["error"] = message(feature, texts, value) if feature.name in names else ""
        found.append(entry)
    return found


def _entry(feature: Feature, texts: Catalogue, value: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": feature.name,
        "label": _capital(feature.words),
        "value": _typed(value),
        "unit": feature.unit,
        "choices": [],
        "hint": "",
        "range_error": "",
        "whole": feature.kind == "integer",
        "lower": feature.lower,
        "upper": feature.upper,
    }
    if feature.is_categorical:
        entry["choices"] = [{"value": c, "words": c} for c in feature.categories]
    elif feature.kind == "boolean":
        entry["choices"] = [{"value": "no", "words": texts("form.no")}]
        entry["choices"] += [{"value": "yes", "words": texts("form.yes")}]
    else:
        entry["hint"] = _range(feature, texts)
        entry["range_error"] = texts("form.out_of_range", range=_range(feature, texts))
    return entry


def _range(feature: Feature, texts: Catalogue) -> str:
    low, high = feature.lower, feature.upper
    if low is not None and high is not None:
        return texts("form.range", lower=f"{low:,.0f}", upper=f"{high:,.0f}")
    if low is not None:
        return texts("form.at_least", lower=f"{low:,.0f}")
    return texts("form.at_most", upper=f"{high:,.0f}") if high is not None else ""


def message(feature: Feature, texts: Catalogue, value: Any) -> str:
    """What is wrong with one entry, in words for the person who made it."""
    if value is None or str(value).strip() == "":
        return texts("form.missing")
    if feature.is_categorical or feature.kind == "boolean":
        return texts("form.not_choice")
    number = from_form(_Only(feature), {feature.name: value})[feature.name]  # type: ignore[arg-type]
    if isinstance(number, str):
        return texts("form.not_whole" if feature.kind == "integer" else "form.not_number")
    if feature.kind == "integer" and number != int(number):
        return texts("form.not_whole")
    return texts("form.out_of_range", range=_range(feature, texts))


class _Only:
    """A problem of a single feature, as far as a form needs one."""

    def __init__(self, feature: Feature) -> None:
        self.space = self
        self.features = (feature,)


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return "" if value is None else str(value)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def picture(texts: Catalogue, steps: Sequence[Mapping[str, Any]], bar: float) -> dict[str, Any]:
    """The model's score before and after each step, as bars with the bar to pass."""
    scores = [step["score_before"] for step in steps[:1]] + [step["score_after"] for step in steps]
    bars = []
    for number, score in enumerate(scores):
        label = texts("plan.score_after", step=number) if number else texts("plan.score_today")
        width = max(3.0, round(WIDTH * score, 1))
        bars.append(
            {
                "label": label,
                "points": points(score, bar),
                "y": FIRST_BAR + BAR_HEIGHT * number,
                "width": width,
                "enough": score > bar,
            }
        )
    words = " ".join(
        texts("plan.score_bar", label=item["label"], points=item["points"]) for item in bars
    )
    return {
        "bars": bars,
        "bar_x": round(WIDTH * bar, 1),
        "needed": points(bar),
        "height": FIRST_BAR + BAR_HEIGHT * len(bars) + 8,
        "words": texts("plan.score_alt", bars=words, bar=points(bar)),
    }
