"""What does a person see and do in the browser? Plain forms; every change leads to a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse

from pear.elicitation.says import check_record
from pear.elicitation.shown import tell, tell_again
from pear.elicitation.words import points
from pear.service import conversations
from pear.service.api import receipt_of
from pear.service.conversations import Says, Stale, View
from pear.service.engine import example_people
from pear.service.forms import entries, errors_of, facts, from_form
from pear.service.schemas import ServiceError
from pear.service.service import (
    LANGUAGE,
    Service,
    address_of,
    cookie_subject,
    day,
    form_of,
    new_nonce,
    notices,
    page,
    pin_cookie,
    reference_of,
    sealed,
    service_of,
    set_cookie,
    whole_number,
    words_of,
)
from pear.service.store.database import Conversation
from pear.service.store.database import Request as Once

router = APIRouter()


# Without a link


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
    words = words_of(request)
    used, besides = facts(words.problem, record)
    known = {fact["name"]: fact["value"] for fact in (*used, *besides)}
    return words.texts(
        "welcome.person_facts",
        age=known["age"],
        occupation=known["occupation"],
        income=known["monthly_income"],
        amount=known["loan_amount"],
    )


@router.get("/language/{code}")
async def speak(request: Request, code: str, back: str = Query("/", max_length=300)) -> Response:
    """From now on in this language, on the page the visitor came from."""
    service = service_of(request)
    if code not in service.words:
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
    service, words = service_of(request), words_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "Only the demonstration takes data of one's own.")
    fields = entries(words.problem, words.texts, values, wrong)
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
        record = from_form(service.problem, form, words_of(request).texts.language)
        _clean, wrong = check_record(service.problem, record)
        if wrong:
            return _own(request, form, wrong)
    made = await service.conversations.create(record, reference=form.get("person") or None)
    token = made[0]
    return RedirectResponse(f"/c/{token}", 303)


# What a person sees


async def _look(request: Request, token: str) -> tuple[Service, View]:
    service = service_of(request)
    conversation = await service.enter(request, token)
    return service, await service.conversations.look(conversation, address_of(request))


def _page(
    request: Request, token: str, template: str, shown: str = "", status: int = 200, **more: Any
) -> Response:
    """A page of a conversation; its forms carry what it ``shown``."""
    service, texts = service_of(request), words_of(request).texts
    said = request.query_params.get("said", "")
    context = {
        "token": token,
        "csrf": service.forms.token(token, shown),
        "key": new_nonce(),
        "said": said if f"said.{said}" in texts else "",
        "correct_link": service.settings.correct_data_link or f"/c/{token}/data",
        **more,
    }
    return page(request, template, status, **context)


@router.get("/c/{token}")
async def start(request: Request, token: str) -> Response:
    """The decision in plain words, and what will happen."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    position = await service.conversations.position(conversation)
    [record] = service.problem.space.decode(position.start)
    used, besides = facts(words_of(request).problem, record)
    bar = service.problem.goal.required()
    return _page(
        request,
        token,
        "start.html",
        stage=conversation.stage,
        begun=conversation.standing is not None,
        points=points(conversation.outcome.score, bar),
        bar=points(bar),
        choices=service.settings.choices,
        loan=words_of(request).applied_for(record)[0],
        used=used,
        besides=besides,
    )


@router.get("/c/{token}/now")
async def now(request: Request, token: str) -> Response:
    """Wherever the conversation is. An open question has its own address, so that the browser's
    Back leads through the questions."""
    _service, view = await _look(request, token)
    standing = view.standing
    if standing is not None and standing.stage == "favourable":
        return RedirectResponse(f"/c/{token}", 303)
    if standing is not None and standing.question is not None:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/c/{token}/question/{standing.question.number}{query}", 303)
    return _page_of(request, token, view)


def _page_of(
    request: Request, token: str, view: View, *, status: int = 200, said: str = ""
) -> Response:
    """The page of what a person sees: question, plan, no plan, or their place in the queue."""
    words, standing = words_of(request), view.standing
    context: dict[str, Any] = {"notices": notices(view, words), "answered": 0}
    if said:
        context["said"] = said
    if standing is None:
        response = _page(request, token, "waiting.html", "", status, place=view.place, **context)
        response.headers["Refresh"] = f"1; url=/c/{token}/now"
        return response
    told = tell(standing, words)
    context |= {"told": told, "answered": view.conversation.questions}
    if told.question is not None:
        return _page(request, token, "question.html", view.shown, status, **context)
    if told.result is None:
        context["why"] = told.why_none
        return _page(request, token, "no_plan.html", view.shown, status, **context)
    template = "plan.html"
    if not told.result.plan.steps:
        template, context["notices"] = "success.html", ()  # the whole page says so
    context["dates"] = _dates(request, view)
    context["apply_link"] = service_of(request).settings.apply_link
    return _page(request, token, template, view.shown, status, **context)


def _dates(request: Request, view: View) -> dict[str, str]:
    texts, conversation = words_of(request).texts, view.conversation
    return {
        "made": day(conversation.updated_at, texts),
        "expires": day(conversation.expires_at, texts),
    }


@router.get("/c/{token}/question/{number}")
async def question(request: Request, token: str, number: int) -> Response:
    """A question: the open one to answer, an earlier one to look back at; looking loses nothing."""
    service, view = await _look(request, token)
    standing = view.standing
    if standing is None:
        return _page_of(request, token, view)
    if standing.question is not None and standing.question.number == number:
        return _page_of(request, token, view)
    answers = await service.conversations.answers(view.conversation)
    if not 1 <= number <= len(answers):
        return RedirectResponse(f"/c/{token}/now", 303)
    asked, choice = answers[number - 1]
    return _page(
        request,
        token,
        "previous.html",
        view.shown,
        question=tell_again(asked, standing.required, words_of(request)),
        number=number,
        choice=choice,
    )


@router.get("/c/{token}/none")
async def which_is_too_hard(request: Request, token: str) -> Response:
    """ "None of these": which step is too hard?"""
    _service, view = await _look(request, token)
    if view.standing is None or view.standing.question is None:
        return RedirectResponse(f"/c/{token}/now", 303)
    told = tell(view.standing, words_of(request))
    return _page(request, token, "none.html", view.shown, question=told.question)


@router.get("/c/{token}/data")
async def data(request: Request, token: str) -> Response:
    """The person's data, to correct or bring up to date."""
    service, view = await _look(request, token)
    position = await service.conversations.position(view.conversation)
    [record] = service.problem.space.decode(position.start)
    return _data_page(request, token, view.shown, record, [])


def _data_page(
    request: Request,
    token: str,
    shown: str,
    values: Mapping[str, Any],
    wrong: list[tuple[str, str]],
) -> Response:
    """The form with a person's data, and what is wrong with them."""
    words = words_of(request)
    fields = entries(words.problem, words.texts, values, wrong)
    status = 422 if wrong else 200
    more = {"entries": fields, "wrong": errors_of(fields)}
    return _page(request, token, "data.html", shown, status, **more)


@router.get("/c/{token}/receipt")
async def receipt(request: Request, token: str) -> Response:
    """The plan as a page to print."""
    service, view = await _look(request, token)
    words = words_of(request)
    told = tell(view.standing, words) if view.standing is not None else None
    if view.standing is None or view.standing.result is None or told is None or not told.result:
        return RedirectResponse(f"/c/{token}/now", 303)
    used, besides = facts(words.problem, view.standing.result.plan.start)
    base = service.settings.base_url or str(request.base_url)
    return _page(
        request,
        token,
        "receipt.html",
        view.shown,
        told=told,
        used=used,
        besides=besides,
        reference=reference_of(view.conversation.id),
        link=f"{base.rstrip('/')}/c/{token}",
        dates=_dates(request, view),
    )


@router.get("/c/{token}/receipt.json")
async def receipt_json(request: Request, token: str) -> Response:
    """The plan as a file for ``pear verify``."""
    _service, view = await _look(request, token)
    found = receipt_of(view)
    if found is None:
        return RedirectResponse(f"/c/{token}/now", 303)
    headers = {"Content-Disposition": 'attachment; filename="pear-plan.json"'}
    return JSONResponse(found, headers=headers)


@router.get("/c/{token}/everything.json")
async def everything(request: Request, token: str) -> Response:
    """All that is stored about a person, as a file."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    headers = {"Content-Disposition": 'attachment; filename="pear-everything.json"'}
    return JSONResponse(await service.conversations.everything(conversation), headers=headers)


@router.get("/c/{token}/help")
async def ask_a_person(request: Request, token: str) -> Response:
    """How to ask for a human."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    return _page(request, token, "help.html", reference=reference_of(conversation.id))


@router.get("/c/{token}/delete")
async def delete_page(request: Request, token: str) -> Response:
    """Ask before everything is deleted."""
    service = service_of(request)
    await service.enter(request, token)
    return _page(request, token, "delete.html", done=False)


# What a person does


async def _form(request: Request, token: str) -> tuple[Conversation, dict[str, str], str]:
    """The conversation of a form, its fields, and what its page showed."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    return conversation, *await form_of(service, request, token)


async def _say(
    request: Request,
    token: str,
    conversation: Conversation,
    what: Says,
    form: Mapping[str, str],
    shown: str,
    said: str = "",
) -> Response:
    """Say one thing about what a form's page showed; if that is out of date, show what is
    current."""
    service = service_of(request)
    kind = request.scope["route"].name
    key = form.get("key")
    content = json.dumps([kind, dict(form)], sort_keys=True)
    asked = Once(key, content) if key else None
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
        return _page_of(request, token, stale.view, status=409, said="conflict")
    return RedirectResponse(f"/c/{token}/now" + (f"?said={said}" if said else ""), 303)


def pin_page(
    request: Request, token: str, *, chosen: bool, wrong: bool = False, status: int = 401
) -> Response:
    """The form to choose a PIN, or to give the one chosen."""
    service = service_of(request)
    csrf = service.forms.token(token, "pin")
    return page(request, "pin.html", status, token=token, csrf=csrf, chosen=chosen, wrong=wrong)


@router.post("/c/{token}/pin")
async def give_pin(request: Request, token: str) -> Response:
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
async def answer(request: Request, token: str) -> Response:
    """Answer the question shown."""
    conversation, form, shown = await _form(request, token)
    choice: int | str = form.get("choice", "")
    if choice not in ("same", "none"):
        choice = whole_number(form, "choice")
    return await _say(request, token, conversation, conversations.answer(choice), form, shown)


@router.post("/c/{token}/undo")
async def undo(request: Request, token: str) -> Response:
    """Take back the last answer, or all from an earlier one on."""
    conversation, form, shown = await _form(request, token)
    kept = whole_number(form, "kept") if "kept" in form else None
    return await _say(request, token, conversation, conversations.undo(kept), form, shown, "undone")


@router.post("/c/{token}/limit")
async def limit(request: Request, token: str) -> Response:
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
async def lift(request: Request, token: str) -> Response:
    """Take limits back."""
    conversation, form, shown = await _form(request, token)
    what = conversations.lift(form.get("id", "").split(","))
    return await _say(request, token, conversation, what, form, shown, "lifted")


@router.post("/c/{token}/accept")
async def accept(request: Request, token: str) -> Response:
    """Use the best plan so far."""
    conversation, form, shown = await _form(request, token)
    return await _say(request, token, conversation, conversations.accept, form, shown)


@router.post("/c/{token}/resume")
async def resume(request: Request, token: str) -> Response:
    """Go on with questions."""
    conversation, form, shown = await _form(request, token)
    return await _say(request, token, conversation, conversations.resume, form, shown)


@router.post("/c/{token}/done")
async def done(request: Request, token: str) -> Response:
    """ "I have done this step"."""
    conversation, form, shown = await _form(request, token)
    what = conversations.done(whole_number(form, "steps"))
    return await _say(request, token, conversation, what, form, shown)


@router.post("/c/{token}/undone")
async def undo_done(request: Request, token: str) -> Response:
    """ "Not done after all"."""
    conversation, form, shown = await _form(request, token)
    return await _say(
        request, token, conversation, conversations.undo_done, form, shown, "undone_step"
    )


@router.post("/c/{token}/data")
async def change_data(request: Request, token: str) -> Response:
    """ "My data changed": the plan is made again from there."""
    conversation, form, shown = await _form(request, token)
    service = service_of(request)
    typed = from_form(service.problem, form, words_of(request).texts.language)
    record, wrong = check_record(service.problem, typed)
    if wrong:
        return _data_page(request, token, shown, form, wrong)
    return await _say(
        request, token, conversation, conversations.correct(record), form, shown, "updated"
    )


@router.post("/c/{token}/delete")
async def delete(request: Request, token: str) -> Response:
    """Delete everything in the conversation."""
    conversation, _, _ = await _form(request, token)
    await service_of(request).forget(conversation)
    return page(request, "delete.html", done=True)
