"""What does the lender see and do in the browser? Cases, new links, fairness."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse

from pear.elicitation.says import check_record
from pear.elicitation.shown import Result, Told, tell, tell_again
from pear.elicitation.words import Words, capital
from pear.problem.wording import MONEY, SEPARATORS
from pear.service.api import receipt_of
from pear.service.conversations import View
from pear.service.forms import entries, errors_of, facts, from_form
from pear.service.lender.api import allowed, every_line, link_to, printable, summary, write_down
from pear.service.lender.fairness import (
    SMALLEST_GROUP,
    fairness,
    feature_words,
    pairs,
    sentences,
    value_words,
)
from pear.service.lender.staff import Key, NotSignedIn, ProviderFailed
from pear.service.operation import note
from pear.service.schemas import ServiceError, retry_later
from pear.service.service import (
    Service,
    address_of,
    cookie_subject,
    day,
    form_of,
    page,
    sealed,
    service_of,
    set_cookie,
    words_of,
)
from pear.service.store.database import Conversation, Line, new_token, number_of

router = APIRouter(prefix="/lender")

SIGN_IN = "pear_lender"
"""Cookie of a browser that is signed in."""

UNDER_WAY = "pear_signing_in"
"""Cookie of a browser that was sent to sign in; what it must bring back follows from it."""

ROWS = 50

SURE = 0.8
"""Confidence from which the preferences of an applicant count as known."""

Stage = Literal["", "new", "question", "plan", "no_plan", "favourable"]
STAGES = ("new", "question", "plan", "no_plan", "favourable")


async def signed_in(request: Request) -> tuple[Service, Key | None, str]:
    """The service, the key someone signed in with, and what their forms belong to."""
    service = service_of(request)
    token = request.cookies.get(SIGN_IN, "")
    key = await service.database.run(service.keys.signed_in, token) if token else None
    if key is not None:
        service.pace(service.per_key, key.id)
    return service, key, f"lender:{token}"


async def required(
    request: Request, role: str, action: str = "", target: str = ""
) -> tuple[Service, Key, str]:
    """The same, for someone who must be signed in with a key of a role; what they do is logged."""
    service, key, subject = await signed_in(request)
    if key is None:
        raise ServiceError(401, "Sign in with a key first.")
    allowed(key, role)
    if action:
        await write_down(request, key, action, target)
    return service, key, subject


def _page(
    request: Request,
    key: Key,
    subject: str,
    template: str,
    here: str,
    status: int = 200,
    **context: Any,
) -> Response:
    csrf = service_of(request).forms.token(subject)
    return page(request, template, status, csrf=csrf, key_name=key.name, here=here, **context)


# Signing in


def sign_in_page(request: Request, *, wrong: bool) -> Response:
    return sealed(
        service_of(request),
        request,
        lambda csrf: page(
            request,
            "lender_sign_in.html",
            401 if wrong else 200,
            csrf=csrf,
            wrong=wrong,
            elsewhere=service_of(request).sign_in is not None,
            here="",
        ),
    )


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Sign in with a key, where people do not sign in elsewhere."""
    service = service_of(request)
    if service.sign_in is not None:
        raise ServiceError(404, "People sign in elsewhere here; keys are for machines.")
    form, _ = await form_of(service, request, cookie_subject(request))
    key = await service.database.run(service.keys.find, form.get("key", "").strip())
    if key is None:
        # Only who has no key is slowed down: nobody can lock the others out, or fill the log.
        service.pace(service.per_stranger, address_of(request))
    await write_down(request, key, "sign in" if key else "sign in refused")
    if key is None:
        return sign_in_page(request, wrong=True)
    response = RedirectResponse("/lender", 303)
    set_cookie(service, response, SIGN_IN, await service.database.run(service.keys.sign_in, key))
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End this sign-in."""
    service, _key, subject = await required(request, "read", "sign out")
    await form_of(service, request, subject)
    await service.database.run(service.keys.sign_out, request.cookies.get(SIGN_IN, ""))
    response = RedirectResponse("/lender", 303)
    response.delete_cookie(SIGN_IN)
    return response


@router.get("/sign-in")
async def send_to_sign_in(request: Request) -> Response:
    """Send a browser to where staff sign in."""
    service = service_of(request)
    if service.sign_in is None:
        raise ServiceError(404, "This service has no such sign-in.")
    service.pace(service.per_stranger, address_of(request))
    token = new_token()
    try:
        address = await service.sign_in.address(service.forms, token)
    except ProviderFailed:
        raise retry_later(503, "The sign-in does not answer right now.", 10) from None
    response = RedirectResponse(address, 303)
    # Lax: the provider's page leads back here.
    set_cookie(service, response, UNDER_WAY, token, same_site="lax")
    return response


@router.get("/signed-in")
async def come_back(request: Request, state: str = "", code: str = "") -> Response:
    """Let in who comes back from there, if they may do anything here."""
    service = service_of(request)
    if service.sign_in is None:
        raise ServiceError(404, "This service has no such sign-in.")
    token = request.cookies.get(UNDER_WAY, "")
    key = None
    try:
        person = await service.sign_in.person(service.forms, token, state, code)
        if person.roles:
            who = person.subject, person.name, person.roles
            key = await service.database.run(service.keys.staff, *who)
    except NotSignedIn as error:
        note("sign in refused", why=str(error))
    except ProviderFailed:
        raise retry_later(503, "The sign-in does not answer right now.", 10) from None
    if key is None:
        service.pace(service.per_stranger, address_of(request))
    await write_down(request, key, "sign in" if key else "sign in refused")
    if key is None:
        return sign_in_page(request, wrong=True)
    # A page, and no redirect: what comes next is asked for by us, and so brings our cookie along.
    response = page(request, "lender_signed_in.html", here="", name=key.name)
    response.headers["Refresh"] = "0; url=/lender"
    response.delete_cookie(UNDER_WAY)
    set_cookie(service, response, SIGN_IN, await service.database.run(service.keys.sign_in, key))
    return response


# Cases


@router.get("")
async def cases(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    stage: Stage = "",
    reference: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The cases, all or those that fit a filter; or the form to sign in."""
    service, key, subject = await signed_in(request)
    if key is None:
        return sign_in_page(request, wrong=False)
    allowed(key, "read")
    wanted = printable(reference).strip()
    rows, total = await service.database.run(
        lambda: service.store.summaries(
            limit=ROWS, offset=offset, stage=stage or None, reference=wanted
        )
    )
    return _page(
        request,
        key,
        subject,
        "lender_list.html",
        "list",
        rows=[_row(request, row) for row in rows],
        total=total,
        stages=STAGES,
        stage=stage,
        wanted=wanted,
        filtered=bool(stage or wanted),
        query={name: value for name, value in (("stage", stage), ("reference", wanted)) if value},
        earlier=offset + ROWS if offset + ROWS < total else None,
        later=max(0, offset - ROWS) if offset else None,
    )


def _row(request: Request, line: Line) -> dict[str, Any]:
    texts = words_of(request).texts
    dates = {
        "changed": day(line.updated_at, texts),
        "ends": day(line.expires_at, texts),
    }
    told = {"state": _state(line), "why": line.outcome.why}
    return {**summary(line).model_dump(), **dates, **told}


def _state(line: Line) -> str:
    """The state of a case: the name of its text."""
    if line.expires_at <= time.time():
        return "expired"
    finished = line.stage == "plan" and line.outcome.steps == 0
    return "done" if finished else line.stage


async def _case(service: Service, number: str) -> Conversation:
    found = await service.database.run(service.store.by_id, number[:64])
    if found is None:
        raise ServiceError(404, "There is no such case.")
    return found


@router.get("/cases/{number}")
async def case(request: Request, number: str) -> Response:
    """One case: what was asked and answered, the plan, how far they are, what was checked."""
    service, key, subject = await required(request, "read", "open case", number[:64])
    found = await _case(service, number)
    return await _case_page(request, key, subject, found)


async def _case_page(
    request: Request, key: Key, subject: str, found: Conversation, link: str = ""
) -> Response:
    service, words = service_of(request), words_of(request)
    standing = found.standing
    result = standing.result if standing is not None else None
    used, besides = _facts(request, found)
    dates = {
        "created": day(found.created_at, words.texts),
        "updated": day(found.updated_at, words.texts),
        "expires": day(found.expires_at, words.texts),
    }
    told = tell(standing, words) if standing is not None else None
    start, end = found.record, {}
    if result is not None and result.plan.success:
        changes = {step.feature: step.after for step in result.plan.steps}
        end = {**result.plan.start, **changes}
    return _page(
        request,
        key,
        subject,
        "lender_case.html",
        "list",
        row={**summary(found).model_dump(), **dates, "state": _state(found)},
        told=told,
        verdict=result.plan.certificate.verdict if result is not None else "",
        confidence=_confidence(result, found.questions, words),
        applied=words.applied_for(start),
        planned=words.applied_for(end) if end else ("", ""),
        reported=await _reported(request, found, told),
        all_steps=_all_steps(told),
        answers=[] if service.settings.pin else await _answers(request, found),
        used=used,
        besides=besides,
        corrections=_corrections(request, found),
        problem=found.problem_fingerprint,
        model=found.model_fingerprint,
        link=link,
        until=dates["expires"],
        renewed=bool(link),
        may_create="create" in key.roles,
        may_delete="administer" in key.roles,
    )


def _all_steps(told: Told | None) -> int:
    left = len(told.result.plan.steps) if told is not None and told.result is not None else 0
    return left + len(told.done) if told is not None else 0


def _confidence(result: Result | None, answered: int, words: Words) -> str:
    """How well the preferences are known that the plan was made for."""
    if result is None or not result.plan.steps or result.confidence < 0:
        return ""
    if not answered:
        return words.texts("lender.case.unasked")
    kind = "rough" if result.confidence < SURE else "known"
    percent = words.share(result.confidence)
    return words.texts.count(f"lender.{kind}", answered, percent=percent)


async def _reported(request: Request, found: Conversation, told: Told | None) -> list[str]:
    """The days on which the steps done were said to be done; "" where that is not known."""
    if told is None or not told.done:
        return []
    service, texts = service_of(request), words_of(request).texts
    history = await service.database.run(service.store.history, found.id)
    at = {event.number: event.at for event in history}
    days = [
        day(at[said["event"]], texts) if said.get("event") in at else ""
        for said in found.said
        if said["kind"] == "done"
        for _step in said["steps"]
    ]
    return ([""] * len(told.done) + days)[-len(told.done) :]


def _facts(request: Request, found: Conversation) -> tuple[list[dict[str, str]], ...]:
    """The record the decision was made with, where the problem can still read it."""
    try:
        return facts(words_of(request).problem, found.record)
    except (KeyError, ValueError):
        return [], []


def _corrections(request: Request, found: Conversation) -> list[dict[str, str]]:
    if not found.asked:
        return []
    used, besides = facts(words_of(request).problem, {**found.record, **found.asked})
    return [fact for fact in (*used, *besides) if fact["name"] in found.asked]


async def _answers(request: Request, found: Conversation) -> list[dict[str, Any]]:
    """What was asked and what was answered, in order."""
    service, words = service_of(request), words_of(request)
    required = service.problem.goal.required()
    return [
        {"question": tell_again(asked, required, words), "choice": choice}
        for asked, choice in await service.conversations.answers(found)
    ]


@router.get("/cases/{number}/plan.json")
async def case_plan(request: Request, number: str) -> Response:
    """The plan of a case, as ``pear verify`` reads it."""
    service, _key, _subject = await required(request, "read", "read plan", number[:64])
    found = await _case(service, number)
    plan = receipt_of(View(found, found.standing))
    if plan is None:
        raise ServiceError(404, "There is no plan yet.")
    headers = {"Content-Disposition": 'attachment; filename="pear-plan.json"'}
    return JSONResponse(plan, headers=headers)


@router.post("/cases/{number}/link")
async def renew(request: Request, number: str) -> Response:
    """A new link for a case; the old one ends at once."""
    service, key, subject = await required(request, "create")
    await form_of(service, request, subject)
    found = await _case(service, number)
    await write_down(request, key, "renew link", found.id)
    link = link_to(service, request, await service.conversations.new_link(found))
    return await _case_page(request, key, subject, await _case(service, number), link)


@router.get("/cases/{number}/delete")
async def ask_to_delete(request: Request, number: str) -> Response:
    """Ask before a case is deleted."""
    service, key, subject = await required(request, "administer")
    row = summary(await _case(service, number))
    return _page(request, key, subject, "lender_delete.html", "list", row=row)


@router.post("/cases/{number}/delete")
async def delete(request: Request, number: str) -> Response:
    """Delete a case."""
    service, key, subject = await required(request, "administer")
    await form_of(service, request, subject)
    found = await _case(service, number)
    await write_down(request, key, "delete", found.id)
    await service.forget(found)
    return RedirectResponse("/lender", 303)


@router.get("/download")
async def download(request: Request, format: str = "csv") -> Response:
    """Every case's line, as a file."""
    service, _key, _subject = await required(request, "read", "export")
    return every_line(service, "json" if format == "json" else "csv")


# New cases


@router.get("/new")
async def new_page(request: Request) -> Response:
    """The form for a new link."""
    _service, key, subject = await required(request, "create")
    return _new(request, key, subject, {}, [])


def _new(
    request: Request,
    key: Key,
    subject: str,
    values: Mapping[str, Any],
    wrong: list[tuple[str, str]],
    **made: str,
) -> Response:
    words = words_of(request)
    fields = entries(words.problem, words.texts, values, wrong)
    return _page(
        request,
        key,
        subject,
        "lender_new.html",
        "new",
        422 if wrong else 200,
        groups=_parts(words, fields),
        wrong=errors_of(fields),
        reference=str(values.get("reference", "")),
        days=str(values.get("days", "") or service_of(request).settings.expiry_days),
        **{"link": "", "number": "", "until": "", "renewed": False, **made},
    )


def _parts(words: Words, fields: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """A form's fields by what they are about: the person, money, the loan.

    What a feature's own facts do not tell is about the same as the one before it.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    asked, part = words.problem.asked, "person"
    for feature, entry in zip(words.problem.space.features, fields, strict=True):
        if feature.protected or feature.immutable:
            kind = "person"
        elif asked is not None and feature.name in (asked.amount, asked.months):
            kind = part = "loan"
        elif feature.unit in (*MONEY, "%"):
            kind = part = "money"
        else:
            kind = part
        if not feature.used:
            hint = words.texts(f"lender.make.{'watched' if feature.protected else 'unused'}")
            entry["hint"] = f"{entry['hint']}. {hint}" if entry["hint"] else hint
        found.setdefault(kind, []).append(entry)
    return found


@router.post("/new")
async def make(request: Request) -> Response:
    """Make a link; it is shown on this one page."""
    service, key, subject = await required(request, "create")
    form, _ = await form_of(service, request, subject)
    record = from_form(service.problem, form, words_of(request).texts.language)
    _clean, wrong = check_record(service.problem, record)
    if wrong:
        return _new(request, key, subject, form, wrong)
    days = form.get("days", "")
    token = new_token()
    await write_down(request, key, "make link", number_of(token))
    _token, conversation = await service.conversations.create(
        record,
        reference=printable(form.get("reference", "")) or None,
        days=min(366, max(1, int(days))) if days.isdecimal() and len(days) < 5 else None,
        key_id=key.id,
        token=token,
    )
    link = link_to(service, request, token)
    until = day(conversation.expires_at, words_of(request).texts)
    return _new(request, key, subject, {}, [], link=link, number=conversation.id, until=until)


# Fairness


@router.get("/fairness")
async def fairness_page(request: Request) -> Response:
    """Outcomes by protected group: in sentences, then in figures."""
    service, key, subject = await required(request, "read", "fairness")
    words = words_of(request)
    rows = await run_in_threadpool(lambda: list(service.store.all_summaries()))
    found, compared = fairness(rows), pairs(rows)
    beside = {(pair.feature, pair.group): pair for pair in compared}
    protected = [f.name for f in service.problem.space.features if f.protected]
    kinds: dict[str, list[dict[str, Any]]] = {}
    for group in found:
        line = {
            **group.model_dump(),
            "label": capital(value_words(words, group.feature, group.group)),
            "pair": beside.get((group.feature, group.group)),
            "effort": _decimal(group.effort, words),
            "questions": _decimal(group.questions, words),
        }
        kinds.setdefault(capital(feature_words(words, group.feature)), []).append(line)
    return _page(
        request,
        key,
        subject,
        "lender_fairness.html",
        "fairness",
        sentences=sentences(compared, protected, words) if found else [],
        kinds=kinds,
        counted=sum(row.outcome.success is not None for row in rows),
        total=len(rows),
        smallest=SMALLEST_GROUP,
    )


def _decimal(value: float | None, words: Words) -> str:
    """A mean with one decimal, as the language writes it."""
    _thousands, point = SEPARATORS.get(words.texts.language, (".", ","))
    return "–" if value is None else f"{value:.1f}".replace(".", point)
