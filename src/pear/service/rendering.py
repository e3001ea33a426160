"""How does a template become a page, and in which language?

A page speaks the language its visitor chose with the links at its foot, else the one the lender
set, else the first that the browser asks for and the service has, else English.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

import pear
from pear.elicitation.words import capital
from pear.problem import Problem
from pear.service.words import Presenter

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
