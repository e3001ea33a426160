"""What does a person see in the browser? Plain forms; every change redirects to a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse

from pear.service.api import service_of
from pear.service.errors import ServiceError
from pear.service.forms import cookie_subject, form_of, sealed
from pear.service.present import points
from pear.service.receipt import receipt_of
from pear.service.records import check_record, from_form
from pear.service.rendering import day, entries, facts, new_nonce, page, picture
from pear.service.service import Service, stranger
from pear.service.sources import example_people
from pear.service.store import Conversation

router = APIRouter()


@router.get("/")
async def welcome(request: Request) -> Response:
    """The first page: example people in the demonstration."""
    service = service_of(request)
    people = []
    if service.settings.demo:
        found = await run_in_threadpool(example_people, service.settings)
        people = [{"name": n, "facts": _person(service, r)} for n, r in found.items()]
    return sealed(
        service,
        request,
        lambda csrf: page(
            "welcome.html", service.texts, demo=service.settings.demo, people=people, csrf=csrf
        ),
    )


def _person(service: Service, record: Mapping[str, Any]) -> str:
    words = {fact["name"]: fact["value"] for fact in facts(service.problem, record)}
    return service.texts(
        "welcome.person_facts",
        age=words["age"].removesuffix(" years"),
        occupation=words["occupation"],
        income=words["monthly_income"],
        amount=words["loan_amount"],
    )


@router.get("/own")
async def own(request: Request) -> Response:
    """In the demonstration: enter data of one's own."""
    return _own(request, {}, [])


def _own(request: Request, values: Mapping[str, Any], wrong: list[tuple[str, str]]) -> Response:
    service = service_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "Only the demonstration takes data of one's own.")
    fields = entries(service.problem, service.texts, values, wrong)
    return sealed(
        service,
        request,
        lambda csrf: page(
            "own.html",
            service.texts,
            status=422 if wrong else 200,
            demo=True,
            csrf=csrf,
            entries=fields,
            wrong=[_summary(entry) for entry in fields if entry["error"]],
        ),
    )


def _summary(entry: Mapping[str, Any]) -> dict[str, str]:
    return {"name": entry["name"], "label": entry["label"], "message": entry["error"]}


@router.post("/start")
async def begin(request: Request) -> Response:
    """In the demonstration: open a conversation for an example person or own data."""
    service = service_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "Links are made by the lender.")
    service.pace(service.per_stranger, stranger(request))
    form = await form_of(service, request, cookie_subject(request))
    people = await run_in_threadpool(example_people, service.settings)
    if form.get("person"):
        if form["person"] not in people:
            raise ServiceError(422, "There is no such example person.")
        record = people[form["person"]]
    else:
        record = from_form(service.problem, form)
        _clean, wrong = check_record(service.problem, record)
        if wrong:
            return _own(request, form, wrong)
    token, _conversation = await service.conversations.create(record)
    return RedirectResponse(f"/c/{token}", 303)


async def _current(request: Request, token: str) -> tuple[Service, Conversation]:
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.current(token)
    request.state.facts = {"conversation": conversation.id}
    return service, conversation


def _common(service: Service, request: Request, token: str) -> dict[str, Any]:
    said = request.query_params.get("said", "")
    return {
        "token": token,
        "demo": service.settings.demo,
        "csrf": service.forms.token(token),
        "key": new_nonce(),
        "said": said if f"said.{said}" in service.texts else "",
        "correct_link": service.settings.correct_data_link or f"/c/{token}/data",
        "presenter": service.presenter,
    }


@router.get("/c/{token}")
async def start(request: Request, token: str) -> Response:
    """The decision in plain words, and what will happen."""
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.open(token)
    outcome = conversation.outcome or {}
    return page(
        "start.html",
        service.texts,
        **_common(service, request, token),
        stage=conversation.stage,
        begun=conversation.view is not None,
        points=points(outcome.get("score", 0.0), service.problem.goal.bar()),
        bar=points(service.problem.goal.bar()),
        most=service.settings.max_questions,
        facts=facts(service.problem, conversation.record),
    )


@router.get("/c/{token}/now")
async def now(request: Request, token: str) -> Response:
    """Wherever the conversation is: a question, the plan, or why there is none."""
    service, conversation = await _current(request, token)
    shown = service.presenter.conversation(conversation)
    common = {**_common(service, request, token), **shown}
    if shown["stage"] == "favourable":
        return RedirectResponse(f"/c/{token}", 303)
    if shown["stage"] == "question":
        return page("question.html", service.texts, **common)
    if shown["stage"] == "no_plan":
        return page("no_plan.html", service.texts, **common)
    return page(
        "plan.html",
        service.texts,
        **common,
        made=day(shown["result"]["made_at"]),
        expires=day(conversation.expires_at),
        model=conversation.model_fingerprint,
        answered=conversation.questions,
        can_resume=bool(shown["result"].get("more")),
        picture=picture(service.texts, shown["result"]["plan"]["steps"], shown["bar"]),
    )


@router.get("/c/{token}/question/{number}")
async def previous(request: Request, token: str, number: int) -> Response:
    """An answered question, to look back at; nothing is lost by looking."""
    service, conversation = await _current(request, token)
    answers = await service.conversations.history(conversation)
    if not 1 <= number <= len(answers):
        return RedirectResponse(f"/c/{token}/now", 303)
    common = _common(service, request, token)
    return page("previous.html", service.texts, **common, answer=answers[number - 1])


@router.get("/c/{token}/data")
async def data(request: Request, token: str) -> Response:
    """The person's data, to correct or bring up to date."""
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.open(token)
    return data_page(request, token, conversation.record, [])


def data_page(
    request: Request, token: str, values: Mapping[str, Any], wrong: list[tuple[str, str]]
) -> Response:
    """The form with a person's data, and what is wrong with them."""
    service = service_of(request)
    fields = entries(service.problem, service.texts, values, wrong)
    return page(
        "data.html",
        service.texts,
        status=422 if wrong else 200,
        **_common(service, request, token),
        entries=fields,
        wrong=[_summary(entry) for entry in fields if entry["error"]],
    )


@router.get("/c/{token}/receipt")
async def receipt(request: Request, token: str) -> Response:
    """The plan as a page to print."""
    service, conversation = await _current(request, token)
    found = receipt_of(conversation)
    if found is None:
        return RedirectResponse(f"/c/{token}/now", 303)
    shown = service.presenter.conversation(conversation)
    steps = [
        {
            "words": step["words"],
            "before_points": points(step["score_before"], shown["bar"]),
            "after_points": points(step["score_after"], shown["bar"]),
        }
        for step in found["steps"]
    ]
    return page(
        "receipt.html",
        service.texts,
        **_common(service, request, token),
        result=shown["result"],
        steps=steps,
        facts=facts(service.problem, found["start"]),
        made=day(shown["result"]["made_at"]),
        expires=day(conversation.expires_at),
        problem=conversation.problem_fingerprint,
        model=conversation.model_fingerprint,
    )


@router.get("/c/{token}/receipt.json")
async def receipt_json(request: Request, token: str) -> Response:
    """The plan as a file for ``pear verify``."""
    _service, conversation = await _current(request, token)
    found = receipt_of(conversation)
    if found is None:
        return RedirectResponse(f"/c/{token}/now", 303)
    headers = {"Content-Disposition": 'attachment; filename="pear-plan.json"'}
    return JSONResponse(found, headers=headers)


@router.get("/c/{token}/help")
async def ask_a_person(request: Request, token: str) -> Response:
    """How to ask for a human."""
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.open(token)
    return page(
        "help.html",
        service.texts,
        **_common(service, request, token),
        human_link=service.settings.human_link,
        number=conversation.id[:8],
    )


@router.get("/c/{token}/delete")
async def delete_page(request: Request, token: str) -> Response:
    """Ask before everything is deleted."""
    service = service_of(request)
    await service.link(request, token)
    await service.conversations.open(token)
    return page("delete.html", service.texts, **_common(service, request, token), done=False)
