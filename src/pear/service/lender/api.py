"""What may the lender see and do as JSON? Make links, see how conversations went, and whether all
groups fared alike.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from pear.service import schemas
from pear.service.api import IdempotencyKey
from pear.service.lender.fairness import SMALLEST_GROUP, fairness
from pear.service.lender.staff import KEY_PREFIX, Key
from pear.service.schemas import ServiceError, responses
from pear.service.service import Service, address_of, service_of
from pear.service.store.database import Conversation, Line, new_token, number_of

router = APIRouter(prefix="/api/v1", tags=["the lender"])

LimitQuery = Annotated[int, Query(ge=1, le=1000)]
OffsetQuery = Annotated[int, Query(ge=0, le=1_000_000)]


def summary(line: Line) -> schemas.Summary:
    """One line of the lender's list."""
    return schemas.Summary(
        id=line.id,
        reference=line.reference,
        stage=line.stage,
        created_at=line.created_at,
        updated_at=line.updated_at,
        expires_at=line.expires_at,
        questions=line.questions,
        minutes=round((line.updated_at - line.created_at) / 60, 2),
        success=line.outcome.success,
        steps=line.outcome.steps,
        done=line.outcome.done,
        effort=line.outcome.effort,
    )


def as_csv(rows: Iterable[schemas.Summary]) -> Iterator[str]:
    """The lender's list as a table; a text that a spreadsheet would run is made harmless."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(schemas.Summary.model_fields))
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _without_formulas(value) for name, value in row})
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def as_json(rows: Iterable[schemas.Summary]) -> Iterator[str]:
    """The lender's list as one JSON object."""
    yield '{"conversations": ['
    total = 0
    for row in rows:
        yield (", " if total else "") + row.model_dump_json()
        total += 1
    yield f'], "total": {total}}}'


def every_line(service: Service, kind: str) -> Response:
    """Every conversation's line as a file, sent as it is read."""
    lines = map(summary, service.store.all_summaries())
    headers = {"Content-Disposition": f'attachment; filename="conversations.{kind}"'}
    if kind == "csv":
        return StreamingResponse(as_csv(lines), media_type="text/csv", headers=headers)
    return StreamingResponse(as_json(lines), media_type="application/json", headers=headers)


def _without_formulas(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


# For programs


async def with_key(
    request: Request, role: str, action: str = "", target: str = ""
) -> tuple[Service, Key]:
    """The service, and the key of a request, in ``Authorization: Bearer`` or ``X-API-Key``.

    What it is used for is written to the log of the lender's side.
    """
    service = service_of(request)
    header = request.headers.get("authorization", "")
    scheme, _, text = header.partition(" ")
    stated = text.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
    key = await service.database.run(service.keys.find, stated) if stated else None
    if key is None:
        service.pace(service.per_stranger, address_of(request))
        raise ServiceError(
            401,
            "This needs a lender's key: send it as 'Authorization: Bearer …'.",
            {"WWW-Authenticate": 'Bearer realm="lender"'},
        )
    service.pace(service.per_key, key.id)
    allowed(key, role)
    if action:
        await write_down(request, key, action, target)
    return service, key


def allowed(key: Key, role: str) -> None:
    """Refuse what a key has no role for."""
    if role not in key.roles:
        raise ServiceError(
            403,
            f"This needs a key that may '{role}', and this one may {', '.join(key.roles)}.",
        )


async def write_down(request: Request, key: Key | None, action: str, target: str = "") -> None:
    """Write down what was done with a key."""
    service, address = service_of(request), address_of(request)
    await service.database.run(service.keys.note, key, address, action, printable(target))


def printable(text: str) -> str:
    """A text from outside, as it may be stored: without signs that databases refuse."""
    return "".join(sign for sign in text[:200] if sign.isprintable())


def link_to(service: Service, request: Request, token: str) -> str:
    """The address of a conversation."""
    base = service.settings.base_url or str(request.base_url)
    return f"{base.rstrip('/')}/c/{token}"


@router.post("/conversations", status_code=201, responses=responses(401, 403))
async def create(
    request: Request, body: schemas.NewConversation, key: IdempotencyKey = None
) -> schemas.Created:
    """Make a link for a refused applicant. In the demonstration no key is needed."""
    service = service_of(request)
    lender = None
    if service.settings.demo and "authorization" not in request.headers:
        service.pace(service.per_stranger, address_of(request))
    else:
        _service, lender = await with_key(request, "create")
    key_id = lender.id if lender else None
    token = service.forms.derived("link", key_id or "", key) if key else new_token()
    if lender:
        # By its number: what the lender calls the person must not outlive the conversation.
        await write_down(request, lender, "make link", number_of(token))
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


@router.get("/conversations", responses=responses(401, 403))
async def conversations(
    request: Request,
    limit: LimitQuery = 100,
    offset: OffsetQuery = 0,
    stage: Literal["new", "question", "plan", "no_plan", "favourable"] | None = None,
) -> schemas.Page:
    """The conversations, newest first: stage, questions, time, outcome; no one's data."""
    service, _key = await with_key(request, "read", "list")
    rows, total = await service.database.run(
        lambda: service.store.summaries(limit=limit, offset=offset, stage=stage)
    )
    return schemas.Page(total=total, conversations=[summary(row) for row in rows])


async def _found(service: Service, number: str) -> Conversation:
    found = await service.database.run(service.store.by_id, number)
    if found is None:
        raise ServiceError(404, "There is no such conversation.")
    return found


@router.get("/conversations/{conversation_id}", responses=responses(401, 403))
async def conversation(
    request: Request, conversation_id: Annotated[str, Path(max_length=64)]
) -> schemas.Summary:
    """How one conversation goes."""
    service, _key = await with_key(request, "read", "read", conversation_id)
    found = await _found(service, conversation_id)
    return summary(found)


@router.delete("/conversations/{conversation_id}", status_code=204, responses=responses(401, 403))
async def delete(
    request: Request, conversation_id: Annotated[str, Path(max_length=64)]
) -> Response:
    """Delete a conversation and everything in it."""
    service, _key = await with_key(request, "administer", "delete", conversation_id)
    found = await _found(service, conversation_id)
    await service.forget(found)
    return Response(status_code=204)


@router.get("/fairness", responses=responses(401, 403))
async def groups(request: Request) -> schemas.Fairness:
    """Whether there is a plan, its effort and the questions asked, by protected group."""
    service, _key = await with_key(request, "read", "fairness")
    found = await run_in_threadpool(fairness, service.store.all_summaries())
    return schemas.Fairness(smallest_group=SMALLEST_GROUP, groups=[*found])


@router.get(
    "/export",
    responses={**responses(401, 403), 200: {"content": {"text/csv": {}, "application/json": {}}}},
    response_model=schemas.Page,
)
async def export(
    request: Request, format: Annotated[Literal["csv", "json"], Query()] = "json"
) -> Any:
    """Every conversation's line, to keep."""
    service, _key = await with_key(request, "read", "export")
    return every_line(service, format)


@router.get("/corrections", responses=responses(401, 403))
async def corrections(request: Request) -> list[schemas.Correction]:
    """Corrections that people asked for and that the lender has yet to confirm."""
    service, _key = await with_key(request, "administer", "list corrections")
    asked = await service.database.run(service.store.asked)
    return [schemas.Correction(**one) for one in asked]


@router.post(
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
    action = "confirm correction" if body.confirm else "decline correction"
    service, key = await with_key(request, "administer", action, conversation_id)
    found = await service.database.run(service.store.by_id, conversation_id)
    if found is None or not found.asked:
        raise ServiceError(404, "There is no correction to decide on.")
    await service.conversations.decide(found, confirm=body.confirm, key_id=key.id)
    return Response(status_code=204)


@router.get("/audit", responses=responses(401, 403))
async def log(
    request: Request, limit: LimitQuery = 100, offset: OffsetQuery = 0
) -> list[schemas.LogEntry]:
    """What was done on the lender's side, newest first."""
    service, _key = await with_key(request, "administer", "read log")
    entries = await service.database.run(partial(service.keys.log, limit=limit, offset=offset))
    return [schemas.LogEntry(**entry) for entry in entries]


@router.get("/keys", responses=responses(401, 403))
async def list_keys(request: Request) -> list[schemas.KeyEntry]:
    """Every key's entry, revoked ones too."""
    service, _key = await with_key(request, "administer", "list keys")
    entries = await service.database.run(service.keys.all)
    return [schemas.KeyEntry(**vars(entry)) for entry in entries]


@router.post("/keys", status_code=201, responses=responses(401, 403))
async def add_key(
    request: Request, body: schemas.NewKey, key: IdempotencyKey = None
) -> schemas.CreatedKey:
    """Make a key; it is shown this once."""
    service, lender = await with_key(request, "administer", "make key", body.name)
    again = KEY_PREFIX + service.forms.derived("key", lender.id, key) if key else None
    made, entry = await service.database.run(
        partial(service.keys.add, body.name, again, **body.model_dump(exclude={"name"}))
    )
    return schemas.CreatedKey(key=made, **vars(entry))


@router.delete("/keys/{key_id}", status_code=204, responses=responses(401, 403))
async def revoke_key(request: Request, key_id: Annotated[str, Path(max_length=64)]) -> Response:
    """End a key, and everyone signed in with it, at once."""
    service, _key = await with_key(request, "administer", "revoke key", key_id)
    if not await service.database.run(service.keys.revoke, key_id):
        raise ServiceError(404, "There is no such key, or it was revoked before.")
    return Response(status_code=204)
