"""What may the lender see and do? Make links, see how conversations went, and whether all groups
fared alike; in the API and on its pages. Never the person's answers.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, StreamingResponse

from pear.elicitation.says import check_record
from pear.elicitation.words import capital
from pear.service import schemas
from pear.service.access import KEY_PREFIX, Key, new_token, number_of
from pear.service.api import IdempotencyKey
from pear.service.pages import cookie_subject, form_of, sealed, set_cookie
from pear.service.schemas import ServiceError, responses
from pear.service.service import Service, address_of, allowed, service_of
from pear.service.words import entries, errors_of, from_form, page

api = APIRouter(prefix="/api/v1", tags=["the lender"])
pages = APIRouter(prefix="/lender")

LimitQuery = Annotated[int, Query(ge=1, le=1000)]
OffsetQuery = Annotated[int, Query(ge=0, le=1_000_000)]

SMALLEST_GROUP = 5
"""Figures of fewer people are withheld: they would be about someone."""

FIELDS = (
    "id",
    "reference",
    "stage",
    "created_at",
    "updated_at",
    "expires_at",
    "questions",
    "minutes",
    "success",
    "steps",
    "effort",
)


def summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the lender's list."""
    outcome = row.get("outcome") or {}
    return {
        **{name: row[name] for name in FIELDS if name in row},
        "minutes": round((row["updated_at"] - row["created_at"]) / 60, 2),
        "success": outcome.get("success"),
        "steps": outcome.get("steps"),
        "effort": outcome.get("effort"),
    }


def fairness(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Validity, effort and questions by protected group, of conversations that came to an end.

    Validity is the share of people for whom there is a plan; effort and questions are means.
    """
    members: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        outcome = row.get("outcome") or {}
        if outcome.get("success") is None:
            continue
        for feature, group in (row.get("groups") or {}).items():
            members[(feature, group)].append({**outcome, "questions": row["questions"]})
    return [_group(*name, people) for name, people in sorted(members.items())]


def _group(feature: str, group: str, people: list[Mapping[str, Any]]) -> dict[str, Any]:
    shown = len(people) >= SMALLEST_GROUP
    efforts = [p["effort"] for p in people if p["success"] and p.get("effort") is not None]
    return {
        "feature": feature,
        "group": group,
        "people": len(people),
        "validity": float(np.mean([bool(p["success"]) for p in people])) if shown else None,
        "effort": float(np.mean(efforts)) if shown and efforts else None,
        "questions": float(np.mean([p["questions"] for p in people])) if shown else None,
    }


def as_csv(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The lender's list as a table; a text that a spreadsheet would run is made harmless."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _harmless(row.get(name)) for name in FIELDS})
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def as_json(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The lender's list as one JSON object."""
    yield '{"conversations": ['
    total = 0
    for row in rows:
        yield (", " if total else "") + json.dumps(row)
        total += 1
    yield f'], "total": {total}}}'


def _every_line(service: Service, kind: str) -> Response:
    """Every conversation's line as a file, sent as it is read."""
    lines = map(summary, service.store.all_summaries())
    headers = {"Content-Disposition": f'attachment; filename="conversations.{kind}"'}
    if kind == "csv":
        return StreamingResponse(as_csv(lines), media_type="text/csv", headers=headers)
    return StreamingResponse(as_json(lines), media_type="application/json", headers=headers)


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


# For programs


def link_to(service: Service, request: Request, token: str) -> str:
    """The address of a conversation."""
    base = service.settings.base_url or str(request.base_url)
    return f"{base.rstrip('/')}/c/{token}"


@api.post("/conversations", status_code=201, responses=responses(401, 403))
async def create(
    request: Request, body: schemas.NewConversation, key: IdempotencyKey = None
) -> schemas.Created:
    """Make a link for a refused applicant. In the demonstration no key is needed."""
    service = service_of(request)
    lender = None
    if service.settings.demo and "authorization" not in request.headers:
        service.pace(service.per_stranger, address_of(request))
    else:
        lender = await service.lender(request, "create")
    key_id = lender.id if lender else None
    token = service.forms.derived("link", key_id or "", key) if key else new_token()
    if lender:
        # By its number: what the lender calls the person must not outlive the conversation.
        await service.note(request, lender, "make link", number_of(token))
    token, conversation = await service.conversations.create(
        body.record, reference=body.reference, days=body.days, key_id=key_id, token=token
    )
    return schemas.Created(
        id=conversation.id,
        token=token,
        link=link_to(service, request, token),
        expires_at=conversation.expires_at,
        stage=conversation.stage,
    )


@api.get("/conversations", responses=responses(401, 403))
async def conversations(
    request: Request,
    limit: LimitQuery = 100,
    offset: OffsetQuery = 0,
    stage: Literal["new", "question", "plan", "no_plan", "favourable"] | None = None,
) -> schemas.Page:
    """The conversations, newest first: stage, questions, time, outcome; no one's data."""
    service = service_of(request)
    await service.lender(request, "read", "list")
    rows, total = await service.database.run(
        lambda: service.store.summaries(limit=limit, offset=offset, stage=stage)
    )
    return schemas.Page(
        total=total, conversations=[schemas.Summary(**summary(row)) for row in rows]
    )


@api.get(
    "/conversations/{conversation_id}",
    responses=responses(401, 403),
    response_model=schemas.Summary,
)
async def conversation(
    request: Request, conversation_id: Annotated[str, Path(max_length=64)]
) -> Any:
    """How one conversation goes."""
    service = service_of(request)
    await service.lender(request, "read", "read", conversation_id)
    found = await service.database.run(service.store.by_id, conversation_id)
    if found is None:
        raise ServiceError(404, "There is no such conversation.")
    return summary(found.to_dict())


@api.delete("/conversations/{conversation_id}", status_code=204, responses=responses(401, 403))
async def delete(
    request: Request, conversation_id: Annotated[str, Path(max_length=64)]
) -> Response:
    """Delete a conversation and everything in it."""
    service = service_of(request)
    await service.lender(request, "administer", "delete", conversation_id)
    found = await service.database.run(service.store.by_id, conversation_id)
    if found is None:
        raise ServiceError(404, "There is no such conversation.")
    await service.forget(found)
    return Response(status_code=204)


@api.get("/fairness", responses=responses(401, 403))
async def groups(request: Request) -> schemas.Fairness:
    """Whether there is a plan, its effort and the questions asked, by protected group."""
    service = service_of(request)
    await service.lender(request, "read", "fairness")
    found = await run_in_threadpool(fairness, service.store.all_summaries())
    return schemas.Fairness(
        smallest_group=SMALLEST_GROUP, groups=[schemas.Group(**group) for group in found]
    )


@api.get(
    "/export",
    responses={**responses(401, 403), 200: {"content": {"text/csv": {}, "application/json": {}}}},
    response_model=schemas.Page,
)
async def export(
    request: Request, format: Annotated[Literal["csv", "json"], Query()] = "json"
) -> Any:
    """Every conversation's line, to keep."""
    service = service_of(request)
    await service.lender(request, "read", "export")
    return _every_line(service, format)


@api.get("/corrections", responses=responses(401, 403))
async def corrections(request: Request) -> list[schemas.Correction]:
    """Corrections that people asked for and that the lender has yet to confirm."""
    service = service_of(request)
    await service.lender(request, "administer", "list corrections")
    asked = await service.database.run(service.store.asked)
    return [schemas.Correction(**vars(one)) for one in asked]


@api.post(
    "/conversations/{conversation_id}/correction",
    status_code=204,
    responses=responses(401, 403, 409),
)
async def decide(
    request: Request,
    conversation_id: Annotated[str, Path(max_length=64)],
    body: schemas.Decision,
) -> Response:
    """Confirm or decline a correction to what nobody changes by themselves."""
    service = service_of(request)
    action = "confirm correction" if body.confirm else "decline correction"
    key = await service.lender(request, "administer", action, conversation_id)
    found = await service.database.run(service.store.by_id, conversation_id)
    if found is None or not found.asked:
        raise ServiceError(404, "There is no correction to decide on.")
    await service.conversations.decide(found, confirm=body.confirm, key_id=key.id)
    return Response(status_code=204)


@api.get("/audit", responses=responses(401, 403))
async def log(
    request: Request, limit: LimitQuery = 100, offset: OffsetQuery = 0
) -> list[schemas.LogEntry]:
    """What was done on the lender's side, newest first."""
    service = service_of(request)
    await service.lender(request, "administer", "read log")
    entries = await service.database.run(partial(service.keys.log, limit=limit, offset=offset))
    return [schemas.LogEntry(**entry) for entry in entries]


@api.get("/keys", responses=responses(401, 403))
async def list_keys(request: Request) -> list[schemas.KeyEntry]:
    """Every key's entry, revoked ones too."""
    service = service_of(request)
    await service.lender(request, "administer", "list keys")
    entries = await service.database.run(service.keys.all)
    return [schemas.KeyEntry(**vars(entry)) for entry in entries]


@api.post("/keys", status_code=201, responses=responses(401, 403))
async def add_key(
    request: Request, body: schemas.NewKey, key: IdempotencyKey = None
) -> schemas.CreatedKey:
    """Make a key; it is shown this once."""
    service = service_of(request)
    lender = await service.lender(request, "administer", "make key", body.name)
    again = KEY_PREFIX + service.forms.derived("key", lender.id, key) if key else None
    made, entry = await service.database.run(
        partial(service.keys.add, body.name, again, **body.model_dump(exclude={"name"}))
    )
    return schemas.CreatedKey(key=made, **vars(entry))


@api.delete("/keys/{key_id}", status_code=204, responses=responses(401, 403))
async def revoke_key(request: Request, key_id: Annotated[str, Path(max_length=64)]) -> Response:
    """End a key, and everyone signed in with it, at once."""
    service = service_of(request)
    await service.lender(request, "administer", "revoke key", key_id)
    if not await service.database.run(service.keys.revoke, key_id):
        raise ServiceError(404, "There is no such key, or it was revoked before.")
    return Response(status_code=204)


# Pages


SIGN_IN = "pear_lender"
ROWS = 50


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
        await service.note(request, key, action, target)
    return service, key, subject


def _lender_page(
    service: Service, key: Key, subject: str, template: str, here: str, **context: Any
) -> Response:
    return page(
        template,
        service.texts,
        demo=service.settings.demo,
        csrf=service.forms.token(subject),
        key_name=key.name,
        here=here,
        **context,
    )


@pages.get("")
async def home(request: Request, offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    """The conversations, or the form to sign in."""
    service, key, subject = await signed_in(request)
    if key is None:
        return sign_in_page(service, request, wrong=False)
    allowed(key, "read")
    rows, total = await service.database.run(
        lambda: service.store.summaries(limit=ROWS, offset=offset)
    )
    return _lender_page(
        service,
        key,
        subject,
        "lender_list.html",
        "list",
        rows=[_row(row) for row in rows],
        total=total,
        earlier=offset + ROWS if offset + ROWS < total else None,
        later=max(0, offset - ROWS) if offset else None,
    )


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    line = summary(row)
    made = time.strftime("%Y-%m-%d %H:%M", time.gmtime(line["created_at"]))
    ended = line["expires_at"] <= time.time()
    return {**line, "made": made, "state": "expired" if ended else line["stage"]}


def sign_in_page(service: Service, request: Request, *, wrong: bool) -> Response:
    return sealed(
        service,
        request,
        lambda csrf: page(
            "lender_sign_in.html",
            service.texts,
            status=401 if wrong else 200,
            demo=service.settings.demo,
            csrf=csrf,
            wrong=wrong,
            elsewhere=service.sign_in is not None,
            here="",
        ),
    )


@pages.post("/sign-in")
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
    await service.note(request, key, "sign in" if key else "sign in refused")
    if key is None:
        return sign_in_page(service, request, wrong=True)
    response = RedirectResponse("/lender", 303)
    set_cookie(service, response, SIGN_IN, await service.database.run(service.keys.sign_in, key))
    return response


@pages.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End this sign-in."""
    service, _key, subject = await required(request, "read", "sign out")
    await form_of(service, request, subject)
    await service.database.run(service.keys.sign_out, request.cookies.get(SIGN_IN, ""))
    response = RedirectResponse("/lender", 303)
    response.delete_cookie(SIGN_IN)
    return response


@pages.get("/new")
async def new_page(request: Request) -> Response:
    """The form for a new link."""
    service, key, subject = await required(request, "create")
    return _new(service, key, subject, {}, [])


def _new(
    service: Service,
    key: Key,
    subject: str,
    values: Mapping[str, Any],
    wrong: list[tuple[str, str]],
    link: str = "",
) -> Response:
    fields = entries(service.problem, service.texts, values, wrong)
    response = _lender_page(
        service,
        key,
        subject,
        "lender_new.html",
        "new",
        entries=fields,
        wrong=errors_of(fields),
        link=link,
        reference=str(values.get("reference", "")),
        days=str(values.get("days", "") or service.settings.expiry_days),
    )
    response.status_code = 422 if wrong else 200
    return response


@pages.post("/new")
async def make(request: Request) -> Response:
    """Make a link; it is shown on this one page."""
    service, key, subject = await required(request, "create")
    form, _ = await form_of(service, request, subject)
    record = from_form(service.problem, form)
    _clean, wrong = check_record(service.problem, record)
    if wrong:
        return _new(service, key, subject, form, wrong)
    days = form.get("days", "")
    token = new_token()
    await service.note(request, key, "make link", number_of(token))
    await service.conversations.create(
        record,
        reference="".join(c for c in form.get("reference", "")[:200] if c.isprintable()) or None,
        days=min(366, max(1, int(days))) if days.isdecimal() and len(days) < 5 else None,
        key_id=key.id,
        token=token,
    )
    return _new(service, key, subject, {}, [], link_to(service, request, token))


@pages.post("/delete")
async def delete_on_page(request: Request) -> Response:
    """Delete a conversation."""
    service, key, subject = await required(request, "administer")
    form, _ = await form_of(service, request, subject)
    found = await service.database.run(service.store.by_id, form.get("id", "")[:64])
    if found is not None:
        await service.note(request, key, "delete", found.id)
        await service.forget(found)
    return RedirectResponse("/lender", 303)


@pages.get("/fairness")
async def fairness_page(request: Request) -> Response:
    """Outcomes by protected group."""
    service, key, subject = await required(request, "read", "fairness")
    found = await run_in_threadpool(fairness, service.store.all_summaries())
    for group in found:
        group["label"] = _label(service, group["feature"])
    return _lender_page(
        service,
        key,
        subject,
        "lender_fairness.html",
        "fairness",
        groups=found,
        smallest=SMALLEST_GROUP,
    )


def _label(service: Service, name: str) -> str:
    known = name in service.problem.space.names
    words = service.problem.space[name].words if known else name
    return capital(words)


@pages.get("/download")
async def download(request: Request, format: str = "csv") -> Response:
    """Every conversation's line, as a file."""
    service, _key, _subject = await required(request, "read", "export")
    return _every_line(service, "json" if format == "json" else "csv")
