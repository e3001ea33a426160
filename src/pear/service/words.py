"""How is what the service says put into words, and a template into a page, in which language?

Texts stand in ``texts/``, beside those of :mod:`pear.elicitation`, which says what there is to
say of questions and plans. Nothing here claims more than: by what you told us, among the steps
considered, for this version of the model. A page speaks the language its visitor chose with the
links at its foot, else the one the lender set, else the first that the browser asks for and the
service has, else English.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

import pear
from pear.elicitation import Result, Words, words
from pear.elicitation.shown import Question, Standing
from pear.elicitation.told import Line, Suggestion, Told, ToldPlan, ToldQuestion, tell
from pear.elicitation.words import Catalogue, capital, points
from pear.problem import Plan, Problem
from pear.service import schemas
from pear.service.conversations import View
from pear.service.engine import Notice


def catalogue(language: str) -> Catalogue:
    """The texts of a language; an unknown one is refused with those there are."""
    return words.catalogue(language, "pear.service")


def languages() -> tuple[str, ...]:
    """The languages the service speaks."""
    return words.languages("pear.service")


def day(at: float, texts: Catalogue) -> str:
    """A date people can read: 3 March 2026."""
    moment = time.gmtime(at)
    month = texts("date.months").split()[moment.tm_mon - 1]
    return texts("date.day", day=moment.tm_mday, month=month, year=moment.tm_year)


class Presenter:
    """Puts conversations into the words of one language."""

    def __init__(self, problem: Problem, texts: Catalogue, most_questions: int) -> None:
        self.texts, self.most = texts, most_questions
        self.words = Words(problem, texts)
        self.problem = self.words.problem

    def told(self, standing: Standing) -> Told:
        """Where a conversation stands, as the pages show it."""
        return tell(standing, self.words)

    def notices(self, view: View) -> list[str]:
        """What a person is told about how it came to this."""
        return [self._notice(notice) for notice in view.told]

    def _notice(self, notice: Notice) -> str:
        values = {**vars(notice), "until": day(notice.until, self.texts)}
        return self.texts(f"notice.{values.pop('code')}", **values)

    def conversation(self, view: View) -> schemas.ConversationView:
        """A conversation as the API gives it."""
        conversation, standing = view.conversation, view.standing
        bar = self.problem.goal.required()
        score = standing.score if standing else conversation.outcome.score
        question = standing.question if standing else None
        result = standing.result if standing else None
        told = self.told(standing) if standing else None
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
            limits=[
                schemas.Limit(id=limit.id, words=self.words.limit(limit), **limit.to_dict())
                for limit in (standing.limits if standing else ())
            ],
            notices=self.notices(view),
            question=self._question(question, told.question)
            if question is not None and told is not None and told.question is not None
            else None,
            result=self._result(result, told, conversation.updated_at)
            if result is not None and told is not None and told.result is not None
            else None,
            no_plan=self._no_plan(result, told)
            if result is not None and told is not None and told.result is None
            else None,
        )

    def _question(self, question: Question, told: ToldQuestion) -> schemas.Question:
        efforts = question.efforts or (1.0,) * len(question.plans)
        return schemas.Question(
            id=question.id,
            number=question.number,
            progress=told.progress,
            plans=[
                self._card(plan, said, effort)
                for plan, said, effort in zip(question.plans, told.plans, efforts, strict=True)
            ],
            facts=_lines(told.facts),
            lines=_lines(told.lines),
            shared=_lines(told.shared),
        )

    def _card(self, plan: Plan, told: ToldPlan, effort: float = 1.0) -> schemas.PlanCard:
        bar = self.problem.goal.required()
        steps = [
            schemas.Step(
                words=said.words,
                feature=step.feature,
                before=step.before,
                after=step.after,
                score_before=_share(step.score_before, bar),
                score_after=_share(step.score_after, bar),
                weeks=step.weeks,
                once=step.once,
                monthly=step.monthly,
                takes=said.takes,
                reason=said.reason,
                refusals=[refusal.limit.to_dict() for refusal in said.refusals],
            )
            for step, said in zip(plan.steps, told.steps, strict=True)
        ]
        return schemas.PlanCard(
            steps=steps,
            score=_share(plan.score, bar),
            effort=effort,
            time=told.time,
            money=told.money,
            loan=told.loan,
            loan_in_all=told.loan_in_all,
            thin=told.thin,
        )

    def _result(self, result: Result, told: Told, made_at: float) -> schemas.Result:
        plan, said = result.plan, told.result
        assert said is not None
        known = bool(plan.steps) and result.confidence >= 0
        return schemas.Result(
            plan=self._card(plan, said.plan),
            confidence=result.confidence if known else None,
            confidence_words=said.certainty if known else "",
            certificate_words=said.proof,
            verdict=plan.certificate.verdict,
            made_at=made_at,
            more=said.more,
            alternatives=[
                schemas.Alternative(
                    steps=other.length, plan=self._card(other, words, other.cost / plan.cost)
                )
                for other, words in zip(result.alternatives, said.alternatives, strict=True)
            ],
        )

    def _no_plan(self, result: Result, told: Told) -> schemas.NoPlan:
        return schemas.NoPlan(
            verdict=result.plan.certificate.verdict,
            words=self.texts(f"no_plan.{why_none(told)}"),
            loosenings=[
                self._loosening(item.plan, said)
                for item, said in zip(result.loosenings, told.suggestions, strict=False)
            ],
        )

    def _loosening(self, plan: Plan, said: Suggestion) -> schemas.Loosening:
        return schemas.Loosening(
            limits=said.ids.split(","), words=said.words, plan=self._card(plan, said.plan)
        )


def chosen_in(answer: Mapping[str, Any]) -> int | str:
    """What a stored answer chose: a plan's place from 0, ``same`` or ``none``."""
    kinds = {"about_the_same": "same", "none_of_these": "none"}
    return kinds.get(answer["kind"]) or int(answer["plan"])


def why_none(told: Told) -> str:
    """Why there is no plan: the name of its text."""
    if told.refused_before:
        return "refused"
    return "proven" if told.proven else "unknown"


def _lines(lines: Sequence[Line]) -> list[schemas.Line]:
    return [
        schemas.Line(label=line.label, now=line.now, cells=[cell.value for cell in line.cells])
        for line in lines
    ]


def _share(score: float, bar: float) -> float:
    """A score as a share in whole points, on the same side of the bar."""
    return points(score, bar) / 100


# Pages


ENVIRONMENT = Environment(
    loader=PackageLoader("pear.service", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

LANGUAGE = "pear_language"
"""Cookie of the language that a visitor chose."""

GROUP = 4
"""Signs of a reference that stand together when it is read out."""


def presenter_of(request: Request) -> Presenter:
    """Who puts things into words for whoever sent this request."""
    presenters: Mapping[str, Presenter] = request.app.state.service.presenters
    stated = request.app.state.service.settings.language
    wanted = [request.cookies.get(LANGUAGE, ""), stated, *accepted(request), "en"]
    return next(presenters[language] for language in wanted if language in presenters)


def accepted(request: Request) -> list[str]:
    """The languages a browser asks for, best first, without their countries."""
    found = []
    for place, part in enumerate(request.headers.get("accept-language", "")[:500].split(",")):
        name, _, weight = part.strip().lower().partition(";q=")
        try:
            found.append((-float(weight or 1), place, name.partition("-")[0]))
        except ValueError:
            continue
    return [name for _weight, _place, name in sorted(found)]


def page(
    request: Request,
    template: str,
    status: int = 200,
    *,
    environment: Environment = ENVIRONMENT,
    presenter: Presenter | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page from a template; what a template may leave out has a value here."""
    service, presenter = request.app.state.service, presenter or presenter_of(request)
    settings = service.settings
    content = {
        "t": presenter.texts,
        "words": presenter.words,
        "demo": settings.demo,
        "pin": settings.pin,
        "human_link": settings.human_link,
        "package_version": pear.__version__,
        "languages": {
            code: other.texts("language.name") for code, other in service.presenters.items()
        },
        "back": _again(request, str(context.get("token", ""))),
        "token": "",
        "said": "",
        "notices": (),
        "key_name": "",
        "correct_link": "",
        **context,
    }
    return HTMLResponse(environment.get_template(template).render(**content), status)


def _again(request: Request, token: str) -> str:
    """Where to see the same again, in another language: what was sent is not sent twice."""
    if request.method == "GET":
        return request.url.path
    return f"/c/{token}/now" if token else "/"


def reference_of(number: str) -> str:
    """The start of a number, as people read it out: ``2a99 ed63``."""
    return f"{number[:GROUP]}\N{NO-BREAK SPACE}{number[GROUP : 2 * GROUP]}".strip()


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
