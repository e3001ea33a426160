"""What can a program do? Everything the page can, as JSON under ``/api/v1``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from pear.service import schemas
from pear.service.errors import ServiceError, responses
from pear.service.receipt import receipt_of
from pear.service.service import Service, stranger

router = APIRouter(prefix="/api/v1")

Token = Annotated[str, Path(description="The secret of a conversation's link.", max_length=200)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Sent again with the same request, the request is done once.",
    ),
]
Viewed = schemas.ConversationView
PERSON: list[str | Enum] = ["the person"]


def service_of(request: Request) -> Service:
    """The running service."""
    service: Service = request.app.state.service
    return service


@router.get("/problem", tags=["everyone"], responses=responses())
async def problem(request: Request) -> schemas.ProblemFacts:
    """What the decision looks at, and in which form a record gives it."""
    service = service_of(request)
    service.pace(service.per_stranger, stranger(request))
    changeable = set(service.problem.actions.actionable)
    return schemas.ProblemFacts(
        name=service.problem.name,
        problem_fingerprint=service.problem.fingerprint,
        model_fingerprint=service.conversations.model_fingerprint,
        bar=service.problem.goal.bar(),
        features=[
            schemas.FeatureFacts(
                name=feature.name,
                label=feature.words,
                kind=feature.kind,
                unit=feature.unit,
                lower=feature.lower,
                upper=feature.upper,
                categories=list(feature.categories),
                changeable=column in changeable,
                protected=feature.protected,
            )
            for column, feature in enumerate(service.problem.space.features)
        ],
    )


async def _view(request: Request, token: str) -> dict[str, Any]:
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.current(token)
    _note(request, conversation.id)
    return service.presenter.conversation(conversation)


async def _act(
    request: Request, token: str, kind: str, content: dict[str, Any], key: str | None = None
) -> dict[str, Any]:
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.act(token, kind, content, key=key)
    _note(request, conversation.id)
    return service.presenter.conversation(conversation)


def _note(request: Request, conversation_id: str) -> None:
    request.state.facts = {"conversation": conversation_id}


@router.get("/links/{token}", tags=PERSON, responses=responses(410), response_model=Viewed)
async def read(request: Request, token: Token) -> Any:
    """Where the conversation is: a question, a plan, or why there is none."""
    return await _view(request, token)


@router.post(
    "/links/{token}/answers", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def answer(
    request: Request, token: Token, body: schemas.Answer, key: IdempotencyKey = None
) -> Any:
    """Answer the open question. The answer is on disk when this returns."""
    return await _act(request, token, "answer", body.model_dump(), key)


@router.post(
    "/links/{token}/undo", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def undo(request: Request, token: Token, key: IdempotencyKey = None) -> Any:
    """Take back the last answer."""
    return await _act(request, token, "undo", {}, key)


@router.post(
    "/links/{token}/limits", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def limit(
    request: Request, token: Token, body: schemas.NewLimit, key: IdempotencyKey = None
) -> Any:
    """Say what you cannot do; it is never proposed again until lifted."""
    return await _act(request, token, "limit", body.model_dump(exclude_none=True), key)


@router.delete(
    "/links/{token}/limits/{limit_id}",
    tags=PERSON,
    responses=responses(409, 410),
    response_model=Viewed,
)
async def lift(
    request: Request, token: Token, limit_id: Annotated[str, Path(max_length=20)]
) -> Any:
    """Lift a limit again."""
    return await _act(request, token, "lift", {"id": limit_id})


@router.post(
    "/links/{token}/accept", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def accept(request: Request, token: Token, key: IdempotencyKey = None) -> Any:
    """Use the best plan so far."""
    return await _act(request, token, "accept", {}, key)


@router.post(
    "/links/{token}/resume", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def resume(request: Request, token: Token, key: IdempotencyKey = None) -> Any:
    """Go on with questions after having taken a plan."""
    return await _act(request, token, "resume", {}, key)


@router.post(
    "/links/{token}/done", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def done(
    request: Request, token: Token, body: schemas.StepsDone, key: IdempotencyKey = None
) -> Any:
    """Say that the plan's first steps are done; the rest is checked and planned again."""
    return await _act(request, token, "done", body.model_dump(), key)


@router.put(
    "/links/{token}/record", tags=PERSON, responses=responses(409, 410), response_model=Viewed
)
async def change_record(
    request: Request, token: Token, body: schemas.ChangedRecord, key: IdempotencyKey = None
) -> Any:
    """Say that your data changed; the plan is made again from there."""
    return await _act(request, token, "record", body.model_dump(), key)


@router.get("/links/{token}/receipt", tags=PERSON, responses=responses(409, 410))
async def receipt(request: Request, token: Token) -> dict[str, Any]:
    """The plan with the fingerprints of model and problem, for ``pear verify``."""
    service = service_of(request)
    await service.link(request, token)
    conversation = await service.conversations.current(token)
    found = receipt_of(conversation)
    if found is None:
        raise ServiceError(409, "There is no plan yet; answer the questions or accept one first.")
    return found


@router.delete("/links/{token}", tags=PERSON, status_code=204, responses=responses(410))
async def forget(request: Request, token: Token) -> Response:
    """Delete this conversation and everything in it."""
    service = service_of(request)
    await service.link(request, token)
    await service.conversations.delete(await service.conversations.open(token))
    return Response(status_code=204)


@router.get("/people", tags=["demonstration"], responses=responses())
async def people(request: Request) -> dict[str, dict[str, Any]]:
    """Invented people to try the demonstration with; 404 outside it."""
    service = service_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "There are example people in the demonstration only.")
    from pear.service.sources import example_people

    return await run_in_threadpool(example_people, service.settings)


LimitQuery = Annotated[int, Query(ge=1, le=1000)]
OffsetQuery = Annotated[int, Query(ge=0, le=1_000_000)]
