"""Which words and pages are made of what a person sees?

Texts stand in one catalogue for each language, in ``texts/``; pages are templates. Nothing here
claims more than: by what you told us, among the steps considered, for this version of the model.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

import pear
from pear.elicitation import Question, Result, Standing, Words, words
from pear.elicitation.words import Catalogue, capital, points
from pear.planning.reasons import StepReason
from pear.problem import Feature, Plan, Problem
from pear.problem.limits import Limit, refusals
from pear.service import schemas
from pear.service.conversations import View
from pear.service.engine import Notice

ENVIRONMENT = Environment(
    loader=PackageLoader("pear.service", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

BAR_HEIGHT, FIRST_BAR, WIDTH = 46, 22, 320

MOST_CHARACTERS = 200
"""Most characters of one entry of a form that are looked at."""


def catalogue(language: str) -> Catalogue:
    """The texts of a language; an unknown one is refused with those there are."""
    return words.catalogue(language, "pear.service")


def languages() -> tuple[str, ...]:
    """The languages the service speaks."""
    return words.languages("pear.service")


class Presenter:
    """Puts conversations into the words of one language."""

    def __init__(self, problem: Problem, texts: Catalogue, most_questions: int) -> None:
        self.problem, self.texts, self.most = problem, texts, most_questions
        self.words = Words(problem, texts)

    def conversation(self, view: View) -> schemas.ConversationView:
        """A conversation as the API gives it, and the pages show it."""
        conversation, standing = view.conversation, view.standing
        bar = self.problem.goal.required()
        score = standing.score if standing else conversation.outcome.score
        question = standing.question if standing else None
        result = standing.result if standing else None
        return schemas.ConversationView(
            stage=standing.stage if standing else "waiting",
            version=conversation.version,
            shown=view.shown,
            place=view.place,
            score=_share(score, bar),
            bar=bar,
            expires_at=conversation.expires_at,
            problem_fingerprint=conversation.problem_fingerprint,
            model_fingerprint=conversation.model_fingerprint,
            progress=schemas.Progress(
                answered=conversation.questions,
                left=question.questions_left if question else None,
                most=self.most,
            ),
            limits=[self._limit(limit) for limit in (standing.limits if standing else ())],
            notices=[self._notice(notice) for notice in view.told],
            question=None if question is None else self.question(question),
            result=self._result(result, conversation.updated_at, conversation.questions)
            if result and result.plan.success
            else None,
            no_plan=self._no_plan(standing, result) if result and not result.plan.success else None,
        )

    def _notice(self, notice: Notice) -> str:
        values = {**vars(notice), "until": day(notice.until)}
        return self.texts(f"notice.{values.pop('code')}", **values)

    def _limit(self, limit: Limit) -> schemas.Limit:
        return schemas.Limit(id=limit.id, words=self.words.limit(limit), **limit.to_dict())

    def refusal(self, limit: Mapping[str, Any]) -> str:
        """What a person says who sets this limit: "I can't change savings at all"."""
        return self.words.refusal(Limit.from_dict(limit))

    def question(self, question: Question) -> schemas.Question:
        """Which of these plans would you rather do?"""
        efforts = question.efforts or (1.0,) * len(question.plans)
        cards = [
            self._card(plan, effort, difference=self.words.difference(difference))
            for plan, effort, difference in zip(
                question.plans, efforts, question.differences, strict=True
            )
        ]
        return schemas.Question(id=question.id, number=question.number, plans=cards)

    def _card(
        self,
        plan: Plan,
        effort: float = 1.0,
        *,
        difference: str = "",
        reasons: Sequence[StepReason] = (),
    ) -> schemas.PlanCard:
        bar = self.problem.goal.required()
        steps = [
            schemas.Step(
                words=self.words.step(step),
                feature=step.feature,
                before=step.before,
                after=step.after,
                score_before=_share(step.score_before, bar),
                score_after=_share(step.score_after, bar),
                reason=self.words.reason(step, reasons[number]) if reasons else "",
                refusals=[limit.to_dict() for limit in refusals(self.problem, step)],
            )
            for number, step in enumerate(plan.steps)
        ]
        score = _share(plan.score, bar)
        return schemas.PlanCard(steps=steps, difference=difference, score=score, effort=effort)

    def _result(self, result: Result, made_at: float, answered: int) -> schemas.Result:
        plan, more = result.plan, result.questions_left > 0
        known = bool(plan.steps) and result.confidence >= 0
        return schemas.Result(
            plan=self._card(plan, reasons=result.reasons),
            confidence=result.confidence if known else None,
            confidence_words=self.words.certainty(result, answered) if known else "",
            certificate_words=self.words.certificate(plan.certificate.verdict),
            verdict=plan.certificate.verdict,
            made_at=made_at,
            more=more,
            alternatives=[
                schemas.Alternative(
                    steps=other.length, plan=self._card(other, other.cost / plan.cost)
                )
                for other in result.alternatives
            ],
        )

    def _no_plan(self, standing: Standing | None, result: Result) -> schemas.NoPlan:
        together = f" {self.texts('no_plan.and')} "
        verdict = result.plan.certificate.verdict
        key = "proven" if verdict == "infeasible" else "unknown"
        if standing is not None and standing.refused_before:
            key = "refused"
        return schemas.NoPlan(
            verdict=verdict,
            words=self.texts(f"no_plan.{key}"),
            loosenings=[
                schemas.Loosening(
                    limits=[limit.id for limit in item.limits],
                    words=together.join(self.words.limit(limit) for limit in item.limits),
                    plan=self._card(item.plan),
                )
                for item in result.loosenings
            ],
        )


def _share(score: float, bar: float) -> float:
    """A score as a share in whole points, on the same side of the bar."""
    return points(score, bar) / 100


# Pages


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
            "label": capital(feature.words),
            "value": feature.show(feature.code(record[feature.name])),
        }
        for feature in problem.space.features
    ]


def picture(texts: Catalogue, steps: Sequence[schemas.Step], bar: float) -> dict[str, Any]:
    """The model's score before and after each step, as bars with the bar to pass."""
    scores = [step.score_before for step in steps[:1]] + [step.score_after for step in steps]
    bars = []
    for number, score in enumerate(scores):
        label = texts("plan.score_after", step=number) if number else texts("plan.score_today")
        bars.append(
            {
                "label": label,
                "points": points(score, bar),
                "y": FIRST_BAR + BAR_HEIGHT * number,
                "width": max(3.0, round(WIDTH * score, 1)),
                "enough": score > bar,
            }
        )
    spoken = " ".join(
        texts("plan.score_bar", label=item["label"], points=item["points"]) for item in bars
    )
    return {
        "bars": bars,
        "bar_x": round(WIDTH * bar, 1),
        "needed": points(bar),
        "height": FIRST_BAR + BAR_HEIGHT * len(bars) + 8,
        "words": texts("plan.score_alt", bars=spoken, bar=points(bar)),
    }


# Forms


def from_form(problem: Problem, form: Mapping[str, Any]) -> dict[str, Any]:
    """A record from a form's texts: numbers as people write them, nothing refused yet."""
    return {
        feature.name: _typed_in(feature, form.get(feature.name))
        for feature in problem.space.features
    }


def _typed_in(feature: Feature, value: Any) -> float | int | str | None:
    text = str(value or "").strip()[:MOST_CHARACTERS]
    if not text:
        return None
    words_only = feature.is_categorical or feature.kind == "boolean"
    return text if words_only else plain_number(text)


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
        "value": _shown(value),
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


def _message(feature: Feature, texts: Catalogue, value: Any) -> str:
    """What is wrong with one entry, in words for the person who made it."""
    if value is None or str(value).strip() == "":
        return texts("form.missing")
    if feature.is_categorical or feature.kind == "boolean":
        return texts("form.not_choice")
    number = _typed_in(feature, value)
    if number is None or isinstance(number, str):
        return texts("form.not_whole" if feature.kind == "integer" else "form.not_number")
    if feature.kind == "integer" and number != int(number):
        return texts("form.not_whole")
    return texts("form.out_of_range", range=_range(feature, texts))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return "" if value is None else str(value)
