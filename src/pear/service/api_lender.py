"""What can a lender's system do? Make links, see how conversations went, delete them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from pear.service import schemas
from pear.service.api import LimitQuery, OffsetQuery, service_of
from pear.service.errors import ServiceError, responses
from pear.service.lender import SMALLEST_GROUP, as_csv, fairness, summary
from pear.service.service import Service, stranger

router = APIRouter(prefix="/api/v1", tags=["the lender"])

MOST_ROWS = 100_000
"""Most conversations of one download or one fairness table."""


def link_to(service: Service, request: Request, token: str) -> str:
    """The address of a conversation."""
    base = service.settings.base_url or str(request.base_url)
    return f"{base.rstrip('/')}/c/{token}"


@router.post("/conversations", status_code=201, responses=responses(401))
async def create(request: Request, body: schemas.NewConversation) -> schemas.Created:
    """Make a link for a refused applicant. In the demonstration no key is needed."""
    service = service_of(request)
    key_id = None
    if service.settings.demo and "authorization" not in request.headers:
        service.pace(service.per_stranger, stranger(request))
    else:
        key_id = (await service.lender(request)).id
    token, conversation = await service.conversations.create(
        body.record, reference=body.reference, days=body.days, key_id=key_id
    )
    return schemas.Created(
        id=conversation.id,
        token=token,
        link=link_to(service, request, token),
        expires_at=conversation.expires_at,
        stage=conversation.stage,
    )


async def all_rows(service: Service) -> list[dict[str, Any]]:
    """Every conversation's summary row, newest first."""
    rows, _total = await run_in_threadpool(lambda: service.store.summaries(limit=MOST_ROWS))
    return rows


@router.get("/conversations", responses=responses(401))
async def conversations(
    request: Request,
    limit: LimitQuery = 100,
    offset: OffsetQuery = 0,
    stage: Literal["new", "question", "plan", "no_plan", "favourable"] | None = None,
) -> schemas.Page:
    """The conversations, newest first: stage, questions, time, outcome; no one's data."""
    service = service_of(request)
    await service.lender(request)
    rows, total = await run_in_threadpool(
        lambda: service.store.summaries(limit=limit, offset=offset, stage=stage)
    )
    return schemas.Page(
        total=total, conversations=[schemas.Summary(**summary(row)) for row in rows]
    )


@router.get(
    "/conversations/{conversation_id}", responses=responses(401), response_model=schemas.Summary
)
async def conversation(
    request: Request, conversation_id: Annotated[str, Path(max_length=64)]
) -> Any:
    """How one conversation goes."""
    service = service_of(request)
    await service.lender(request)
    found = await run_in_threadpool(service.store.by_id, conversation_id)
    if found is None:
        raise ServiceError(404, "There is no such conversation.")
    return summary(vars(found))


@router.delete("/conversations/{conversation_id}", status_code=204, responses=responses(401))
async def delete(
    request: Request, conversation_id: Annotated[str, Path(max_length=64)]
) -> Response:
    """Delete a conversation and everything in it."""
    service = service_of(request)
    await service.lender(request)
    if not await run_in_threadpool(service.store.delete, conversation_id):
        raise ServiceError(404, "There is no such conversation.")
    return Response(status_code=204)


@router.get("/fairness", responses=responses(401))
async def groups(request: Request) -> schemas.Fairness:
    """Whether there is a plan, its effort and the questions asked, by protected group."""
    service = service_of(request)
    await service.lender(request)
    rows = await all_rows(service)
    found = await run_in_threadpool(fairness, rows)
    return schemas.Fairness(
        smallest_group=SMALLEST_GROUP, groups=[schemas.Group(**group) for group in found]
    )


@router.get(
    "/export",
    responses={**responses(401), 200: {"content": {"text/csv": {}, "application/json": {}}}},
    response_model=schemas.Page,
)
async def export(
    request: Request, format: Annotated[Literal["csv", "json"], Query()] = "json"
) -> Any:
    """Every conversation's line, to keep."""
    service = service_of(request)
    await service.lender(request)
    lines = [summary(row) for row in await all_rows(service)]
    if format == "csv":
        return Response(as_csv(lines), media_type="text/csv")
    return schemas.Page(total=len(lines), conversations=[schemas.Summary(**x) for x in lines])


@router.get("/keys", responses=responses(401))
async def list_keys(request: Request) -> list[schemas.KeyEntry]:
    """Every key's entry, revoked ones too."""
    service = service_of(request)
    await service.lender(request)
    entries = await run_in_threadpool(service.keys.list)
    return [schemas.KeyEntry(**vars(entry)) for entry in entries]


@router.post("/keys", status_code=201, responses=responses(401))
async def add_key(request: Request, body: schemas.NewKey) -> schemas.CreatedKey:
    """Make a key; it is shown this once."""
    service = service_of(request)
    await service.lender(request)
    key, entry = await run_in_threadpool(service.keys.add, body.name)
    return schemas.CreatedKey(key=key, **vars(entry))


@router.delete("/keys/{key_id}", status_code=204, responses=responses(401))
async def revoke_key(request: Request, key_id: Annotated[str, Path(max_length=64)]) -> Response:
    """End a key, and everyone signed in with it, at once."""
    service = service_of(request)
    await service.lender(request)
    if not await run_in_threadpool(service.keys.revoke, key_id):
        raise ServiceError(404, "There is no such key, or it was revoked before.")
    return Response(status_code=204)
