"""What does a person see and do in the browser? Plain forms; every change leads to a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi import Request as HttpRequest
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse

from pear.elicitation.says import check_record
from pear.elicitation.shown import Question
from pear.elicitation.words import points
from pear.service import conversations
from pear.service.access import new_token
from pear.service.api import receipt_of
from pear.service.conversations import Says, Stale, View
from pear.service.engine import example_people
from pear.service.schemas import ServiceError
from pear.service.service import Service, address_of, pin_cookie, service_of
from pear.service.store import Conversation, Request
from pear.service.words import (
    day,
    entries,
    errors_of,
    facts,
    from_form,
    new_nonce,
    page,
    picture,
)

router = APIRouter()

VISITOR = "pear_visitor"
"""Cookie of a visitor without a link: forms on the first page and the sign-in belong to it."""

MOST_FIELDS = 600


# Forms


async def form_of(
    service: Service, request: HttpRequest, subject: str
) -> tuple[dict[str, str], str]:
    """The fields of a form about a subject, and what its page showed.

    A form that is not from us changes nothing.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise ServiceError(415, "Send this as a form.")
    try:
        form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    except HTTPException:
        raise ServiceError(400, "The form cannot be read.") from None
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    shown = service.forms.shown(fields.pop("csrf", ""), subject) if subject else None
    if shown is None:
        raise ServiceError(403, "The form's token does not fit; load the page again.")
    return fields, shown


def cookie_subject(request: HttpRequest) -> str:
    """What forms without a link belong to: the visitor's cookie."""
    visitor = request.cookies.get(VISITOR, "")
    return f"visitor:{visitor}" if visitor else ""


def sealed(service: Service, request: HttpRequest, render: Callable[[str], Response]) -> Response:
    """A page whose forms belong to this visitor, who gets a cookie if there is none yet."""
    visitor = request.cookies.get(VISITOR, "")
    fresh = not visitor or len(visitor) > 100
    if fresh:
        visitor = new_token()
    response = render(service.forms.token(f"visitor:{visitor}"))
    if fresh:
        set_cookie(service, response, VISITOR, visitor)
    return response


def set_cookie(
    service: Service,
    response: Response,
    name: str,
    value: str,
    *,
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """A cookie that scripts cannot read and other sites cannot use."""
    response.set_cookie(
        name,
        value,
        httponly=True,
        samesite=same_site,
        secure=service.settings.cookies_are_secure,
        path="/",
    )


def _number(form: Mapping[str, str], name: str) -> int:
    text = form.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ServiceError(422, f"The form's '{name}' must be a whole number.")
    return int(text)


# Without a link


@router.get("/")
async def welcome(request: HttpRequest) -> Response:
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
async def own(request: HttpRequest) -> Response:
    """In the demonstration: enter data of one's own."""
    return _own(request, {}, [])


def _own(request: HttpRequest, values: Mapping[str, Any], wrong: list[tuple[str, str]]) -> Response:
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
            wrong=errors_of(fields),
        ),
    )


@router.post("/start")
async def begin(request: HttpRequest) -> Response:
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
        record = from_form(service.problem, form)
        _clean, wrong = check_record(service.problem, record)
        if wrong:
            return _own(request, form, wrong)
    token, _conversation = await service.conversations.create(record)
    return RedirectResponse(f"/c/{token}", 303)


# What a person sees


async def _look(request: HttpRequest, token: str) -> tuple[Service, View]:
    service = service_of(request)
    conversation = await service.enter(request, token)
    return service, await service.conversations.look(conversation, address_of(request))


def _common(service: Service, request: HttpRequest, token: str, shown: str) -> dict[str, Any]:
    """What every page of a conversation has; its forms carry what it ``shown``."""
    said = request.query_params.get("said", "")
    return {
        "token": token,
        "demo": service.settings.demo,
        "csrf": service.forms.token(token, shown),
        "key": new_nonce(),
        "said": said if f"said.{said}" in service.texts else "",
        "correct_link": service.settings.correct_data_link or f"/c/{token}/data",
        "presenter": service.presenter,
        "words": service.presenter.words,
    }


@router.get("/c/{token}")
async def start(request: HttpRequest, token: str) -> Response:
    """The decision in plain words, and what will happen."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    position = await service.conversations.position(conversation)
    [record] = service.problem.space.decode(position.start)
    return page(
        "start.html",
        service.texts,
        **_common(service, request, token, ""),
        stage=conversation.stage,
        begun=conversation.standing is not None,
        points=points(conversation.outcome.score, service.problem.goal.required()),
        bar=points(service.problem.goal.required()),
        most=service.settings.max_questions,
        choices=service.settings.choices,
        facts=facts(service.problem, record),
    )


@router.get("/c/{token}/now")
async def now(request: HttpRequest, token: str) -> Response:
    """Wherever the conversation is: a question, the plan, or why there is none."""
    service, view = await _look(request, token)
    if view.standing is not None and view.standing.stage == "favourable":
        return RedirectResponse(f"/c/{token}", 303)
    return _page_of(service, request, token, view)


def _page_of(
    service: Service,
    request: HttpRequest,
    token: str,
    view: View,
    *,
    status: int = 200,
    said: str = "",
) -> Response:
    """The page of what a person sees: question, plan, no plan, or their place in the queue."""
    seen = service.presenter.conversation(view)
    common = {
        **_common(service, request, token, view.shown),
        **{name: getattr(seen, name) for name in type(seen).model_fields},
        "standing": view.standing,
    }
    common["said"] = said or common["said"]
    if view.standing is None:
        response = page("waiting.html", service.texts, status, **common)
        response.headers["Refresh"] = f"1; url=/c/{token}/now"
        return response
    if seen.stage == "question":
        return page("question.html", service.texts, status, **common)
    if seen.stage == "no_plan":
        return page("no_plan.html", service.texts, status, **common)
    if seen.result is None:
        return RedirectResponse(f"/c/{token}", 303)
    return page(
        "plan.html",
        service.texts,
        status,
        **common,
        made=day(view.conversation.updated_at),
        expires=day(view.conversation.expires_at),
        model=view.conversation.model_fingerprint,
        answered=view.conversation.questions,
        can_resume=seen.result.more,
        picture=picture(service.texts, seen.result.plan.steps, seen.bar),
    )


@router.get("/c/{token}/question/{number}")
async def previous(request: HttpRequest, token: str, number: int) -> Response:
    """An answered question, to look back at; nothing is lost by looking."""
    service, view = await _look(request, token)
    answers = await service.conversations.answers(view.conversation)
    if not 1 <= number <= len(answers):
        return RedirectResponse(f"/c/{token}/now", 303)
    event = answers[number - 1]
    question = Question.from_dict(event["shown"])
    chosen = event["answer"]
    return page(
        "previous.html",
        service.texts,
        **_common(service, request, token, view.shown),
        answer={
            "question": number,
            "choice": {"chosen": chosen.get("plan")}.get(chosen["kind"], chosen["kind"]),
            "plans": service.presenter.question(question).plans,
        },
        question=question,
    )


@router.get("/c/{token}/data")
async def data(request: HttpRequest, token: str) -> Response:
    """The person's data, to correct or bring up to date."""
    service, view = await _look(request, token)
    position = await service.conversations.position(view.conversation)
    [record] = service.problem.space.decode(position.start)
    return _data_page(request, token, view.shown, record, [])


def _data_page(
    request: HttpRequest,
    token: str,
    shown: str,
    values: Mapping[str, Any],
    wrong: list[tuple[str, str]],
) -> Response:
    """The form with a person's data, and what is wrong with them."""
    service = service_of(request)
    fields = entries(service.problem, service.texts, values, wrong)
    return page(
        "data.html",
        service.texts,
        status=422 if wrong else 200,
        **_common(service, request, token, shown),
        entries=fields,
        wrong=errors_of(fields),
    )


@router.get("/c/{token}/receipt")
async def receipt(request: HttpRequest, token: str) -> Response:
    """The plan as a page to print."""
    service, view = await _look(request, token)
    seen = service.presenter.conversation(view)
    if view.standing is None or view.standing.result is None or seen.result is None:
        return RedirectResponse(f"/c/{token}/now", 303)
    steps = [
        {
            "words": step.words,
            "before_points": points(step.score_before, seen.bar),
            "after_points": points(step.score_after, seen.bar),
        }
        for step in seen.result.plan.steps
    ]
    return page(
        "receipt.html",
        service.texts,
        **_common(service, request, token, view.shown),
        result=seen.result,
        standing=view.standing,
        steps=steps,
        facts=facts(service.problem, view.standing.result.plan.start),
        made=day(view.conversation.updated_at),
        expires=day(view.conversation.expires_at),
        problem=view.conversation.problem_fingerprint,
        model=view.conversation.model_fingerprint,
    )


@router.get("/c/{token}/receipt.json")
async def receipt_json(request: HttpRequest, token: str) -> Response:
    """The plan as a file for ``pear verify``."""
    _service, view = await _look(request, token)
    found = receipt_of(view)
    if found is None:
        return RedirectResponse(f"/c/{token}/now", 303)
    headers = {"Content-Disposition": 'attachment; filename="pear-plan.json"'}
    return JSONResponse(found, headers=headers)


@router.get("/c/{token}/everything.json")
async def everything(request: HttpRequest, token: str) -> Response:
    """All that is stored about a person, as a file."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    headers = {"Content-Disposition": 'attachment; filename="pear-everything.json"'}
    return JSONResponse(await service.conversations.everything(conversation), headers=headers)


@router.get("/c/{token}/help")
async def ask_a_person(request: HttpRequest, token: str) -> Response:
    """How to ask for a human."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    return page(
        "help.html",
        service.texts,
        **_common(service, request, token, ""),
        human_link=service.settings.human_link,
        number=conversation.id[:8],
    )


@router.get("/c/{token}/delete")
async def delete_page(request: HttpRequest, token: str) -> Response:
    """Ask before everything is deleted."""
    service = service_of(request)
    await service.enter(request, token)
    return page("delete.html", service.texts, **_common(service, request, token, ""), done=False)


# What a person does


async def _form(request: HttpRequest, token: str) -> tuple[Conversation, dict[str, str], str]:
    """The conversation of a form, its fields, and what its page showed."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    return conversation, *await form_of(service, request, token)


async def _say(
    request: HttpRequest,
    token: str,
    conversation: Conversation,
    what: Says,
    form: Mapping[str, str],
    shown: str,
    said: str = "",
) -> Response:
    """Say one thing of what a form's page showed; of something else, show what stands now."""
    service = service_of(request)
    kind = request.scope["route"].name
    key = form.get("key")
    asked = Request(key, json.dumps([kind, dict(form)], sort_keys=True)) if key else None
    service.metrics.happened(kind)
    try:
        await service.conversations.say(
            conversation,
            what,
            shown=shown,
            request=asked,
            address=address_of(request),
            follow=False,
        )
    except Stale as stale:
        return _page_of(service, request, token, stale.view, status=409, said="conflict")
    return RedirectResponse(f"/c/{token}/now" + (f"?said={said}" if said else ""), 303)


def pin_page(
    request: HttpRequest, token: str, *, chosen: bool, wrong: bool = False, status: int = 401
) -> Response:
    """The form to choose a PIN, or to give the one chosen."""
    service = service_of(request)
    return page(
        "pin.html",
        service.texts,
        status,
        demo=service.settings.demo,
        token=token,
        csrf=service.forms.token(token, "pin"),
        chosen=chosen,
        wrong=wrong,
    )


@router.post("/c/{token}/pin")
async def give_pin(request: HttpRequest, token: str) -> Response:
    """Choose a PIN, or give the one chosen."""
    service = service_of(request)
    if not service.settings.pin:
        raise ServiceError(404, "This service asks for no PIN.")
    conversation = await service.behind(request, token)
    form, _ = await form_of(service, request, token)
    pin = form.get("pin", "")
    if conversation.pin_hash is None:
        try:
            conversation = await service.choose_pin(conversation, pin)
        except ServiceError:
            return pin_page(request, token, chosen=False, wrong=True, status=422)
    elif not await service.check_pin(conversation, pin):
        return pin_page(request, token, chosen=True, wrong=True)
    response = RedirectResponse(f"/c/{token}", 303)
    set_cookie(service, response, pin_cookie(conversation), service.pin_proof(conversation))
    return response


@router.post("/c/{token}/answer")
async def answer(request: HttpRequest, token: str) -> Response:
    """Answer the question shown."""
    conversation, form, shown = await _form(request, token)
    choice: int | str = form.get("choice", "")
    if choice not in ("same", "none"):
        choice = _number(form, "choice")
    return await _say(request, token, conversation, conversations.answer(choice), form, shown)


@router.post("/c/{token}/undo")
async def undo(request: HttpRequest, token: str) -> Response:
    """Take back the last answer, or all from an earlier one on."""
    conversation, form, shown = await _form(request, token)
    kept = _number(form, "kept") if "kept" in form else None
    return await _say(request, token, conversation, conversations.undo(kept), form, shown, "undone")


@router.post("/c/{token}/limit")
async def limit(request: HttpRequest, token: str) -> Response:
    """ "I can't do this step"."""
    conversation, form, shown = await _form(request, token)
    try:
        stated = json.loads(form.get("limit", ""))
    except (ValueError, RecursionError):
        stated = None
    if not isinstance(stated, dict):
        raise ServiceError(422, "The form does not say which limit to set.")
    what = conversations.limit(stated, service_of(request).problem)
    return await _say(request, token, conversation, what, form, shown, "limit")


@router.post("/c/{token}/lift")
async def lift(request: HttpRequest, token: str) -> Response:
    """Take limits back."""
    conversation, form, shown = await _form(request, token)
    what = conversations.lift(form.get("id", "").split(","))
    return await _say(request, token, conversation, what, form, shown, "lifted")


@router.post("/c/{token}/accept")
async def accept(request: HttpRequest, token: str) -> Response:
    """Use the best plan so far."""
    conversation, form, shown = await _form(request, token)
    return await _say(request, token, conversation, conversations.accept, form, shown)


@router.post("/c/{token}/resume")
async def resume(request: HttpRequest, token: str) -> Response:
    """Go on with questions."""
    conversation, form, shown = await _form(request, token)
    return await _say(request, token, conversation, conversations.resume, form, shown)


@router.post("/c/{token}/done")
async def done(request: HttpRequest, token: str) -> Response:
    """ "I have done this step"."""
    conversation, form, shown = await _form(request, token)
    what = conversations.done(_number(form, "steps"))
    return await _say(request, token, conversation, what, form, shown, "checked")


@router.post("/c/{token}/data")
async def change_data(request: HttpRequest, token: str) -> Response:
    """ "My data changed": the plan is made again from there."""
    conversation, form, shown = await _form(request, token)
    service = service_of(request)
    record, wrong = check_record(service.problem, from_form(service.problem, form))
    if wrong:
        return _data_page(request, token, shown, form, wrong)
    what = conversations.correct(record)
    return await _say(request, token, conversation, what, form, shown, "updated")


@router.post("/c/{token}/delete")
async def delete(request: HttpRequest, token: str) -> Response:
    """Delete everything in the conversation."""
    conversation, _, _ = await _form(request, token)
    service = service_of(request)
    await service.forget(conversation)
    return page("delete.html", service.texts, demo=service.settings.demo, done=True)
