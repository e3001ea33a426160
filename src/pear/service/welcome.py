"""What does a visitor without a link see? The first page, the demonstration, the language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from pear.elicitation.says import check_record
from pear.service.engine import example_people
from pear.service.forms import (
    cookie_subject,
    entries,
    errors_of,
    form_of,
    from_form,
    sealed,
    set_cookie,
)
from pear.service.rendering import LANGUAGE, facts, page, presenter_of
from pear.service.schemas import ServiceError
from pear.service.service import address_of, service_of

router = APIRouter()


@router.get("/")
async def welcome(request: Request) -> Response:
    """The first page: example people in the demonstration."""
    service = service_of(request)
    people = []
    if service.settings.demo:
        found = await run_in_threadpool(example_people, service.settings)
        people = [{"name": n, "facts": _person(request, r)} for n, r in found.items()]
    return sealed(
        service, request, lambda csrf: page(request, "welcome.html", people=people, csrf=csrf)
    )


def _person(request: Request, record: Mapping[str, Any]) -> str:
    presenter = presenter_of(request)
    used, besides = facts(presenter.problem, record)
    words = {fact["name"]: fact["value"] for fact in (*used, *besides)}
    return presenter.texts(
        "welcome.person_facts",
        age=words["age"],
        occupation=words["occupation"],
        income=words["monthly_income"],
        amount=words["loan_amount"],
    )


@router.get("/language/{code}")
async def speak(request: Request, code: str, back: str = Query("/", max_length=300)) -> Response:
    """From now on in this language, on the page the visitor came from."""
    service = service_of(request)
    if code not in service.presenters:
        raise ServiceError(404, "There is no such language.")
    here = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    response = RedirectResponse(back if here else "/", 303)
    set_cookie(service, response, LANGUAGE, code)
    return response


@router.get("/own")
async def own(request: Request) -> Response:
    """In the demonstration: enter data of one's own."""
    return _own(request, {}, [])


def _own(request: Request, values: Mapping[str, Any], wrong: list[tuple[str, str]]) -> Response:
    service, presenter = service_of(request), presenter_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "Only the demonstration takes data of one's own.")
    fields = entries(presenter.problem, presenter.texts, values, wrong)
    return sealed(
        service,
        request,
        lambda csrf: page(
            request,
            "own.html",
            422 if wrong else 200,
            csrf=csrf,
            entries=fields,
            wrong=errors_of(fields),
        ),
    )


@router.post("/start")
async def begin(request: Request) -> Response:
    """In the demonstration: open a conversation for an example person or own data."""
    service = service_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "Links are made by the lender.")
    service.pace(service.per_stranger, address_of(request))
    form, _ = await form_of(service, request, cookie_subject(request))
    people = await run_in_threadpool(example_people, service.settings)
    if form.get("person"):
        if form["person"] not in people:
            raise ServiceError(422, "There is no such example person.")
        record = people[form["person"]]
    else:
        record = from_form(service.problem, form, presenter_of(request).texts.language)
        _clean, wrong = check_record(service.problem, record)
        if wrong:
            return _own(request, form, wrong)
    token, _conversation = await service.conversations.create(record)
    return RedirectResponse(f"/c/{token}", 303)
