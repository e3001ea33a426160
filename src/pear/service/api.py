"""What can a program do? Everything the page can, as JSON under ``/api/v1``, described at ``/api``.

The description is a page made from the same source as OpenAPI; nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from pear.elicitation import Question, Result
from pear.elicitation.shown import Line, Told, ToldPlan, ToldQuestion, ToldResult, tell
from pear.elicitation.words import points
from pear.problem import Feature, Plan
from pear.service import conversations, schemas
from pear.service.conversations import Says, View
from pear.service.engine import example_people
from pear.service.schemas import ServiceError, responses
from pear.service.service import Service, address_of, notices, page, service_of, words_of
from pear.service.store.database import Request

router = APIRouter(prefix="/api/v1")

Token = Annotated[str, Path(description="The secret of a conversation's link.", max_length=200)]
Shown = Annotated[str, Query(description="What you were shown, as you read it.", max_length=60)]
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
PERSON: list[str | Enum] = ["the applicant"]
WAITING = {"Retry-After": "1"}


@router.get("/problem", tags=["facts"], responses=responses())
async def problem(request: HttpRequest) -> schemas.ProblemFacts:
    """What the decision looks at, and in which form a record gives it."""
    service = service_of(request)
    service.pace(service.per_stranger, address_of(request))
    changeable = set(service.problem.actions.actionable)
    return schemas.ProblemFacts(
        name=service.problem.name,
        problem_fingerprint=service.problem.fingerprint,
        model_fingerprint=service.conversations.serves[1],
        bar=service.problem.goal.required(),
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


def shown(request: HttpRequest, view: View) -> Response:
    """What a person sees, as JSON."""
    content = conversation(request, view)
    headers = WAITING if view.standing is None else None
    return Response(content.model_dump_json(), 200, headers, "application/json")


async def _view(request: HttpRequest, token: str) -> View:
    service = service_of(request)
    conversation = await service.enter(request, token)
    return await service.conversations.look(conversation, address_of(request))


class _SayOnce:
    """A person says one thing; with a key once, however often the same is sent."""

    def __init__(self, request: HttpRequest, token: Token, key: IdempotencyKey = None) -> None:
        self.request, self.token, self.key = request, token, key

    async def __call__(self, what: Says, body: schemas.Act) -> Response:
        request, service = self.request, service_of(self.request)
        conversation = await service.enter(request, self.token)
        name = request.scope["route"].name
        content = json.dumps([name, body.model_dump()], sort_keys=True)
        service.metrics.happened(name)
        view = await service.conversations.say(
            conversation,
            what,
            shown=body.shown,
            request=Request(self.key, content) if self.key else None,
            address=address_of(request),
        )
        return shown(request, view)


Saying = Annotated[_SayOnce, Depends()]
SAYS: dict[str, Any] = {"tags": PERSON, "responses": responses(409, 410), "response_model": Viewed}


@router.get("/links/{token}", tags=PERSON, responses=responses(410), response_model=Viewed)
async def read(request: HttpRequest, token: Token) -> Any:
    """Where the conversation is: a question, a plan, or why there is none."""
    return shown(request, await _view(request, token))


@router.post("/links/{token}/answers", **SAYS)
async def answer(say: Saying, body: schemas.Answer) -> Any:
    """Answer the question shown. The answer is on disk when this returns."""
    return await say(conversations.answer(body.choice), body)


@router.post("/links/{token}/undo", **SAYS)
async def undo(say: Saying, body: schemas.Undo) -> Any:
    """Take back the last answer."""
    return await say(conversations.undo(body.kept), body)


@router.post("/links/{token}/limits", **SAYS)
async def limit(say: Saying, body: schemas.NewLimit) -> Any:
    """Say what you cannot do; it is never proposed again until lifted."""
    stated = body.model_dump(exclude={"shown"}, exclude_none=True)
    said = conversations.limit(stated, service_of(say.request).problem)
    return await say(said, body)


@router.delete("/links/{token}/limits/{limit_id}", **SAYS)
async def lift(
    say: Saying,
    limit_id: Annotated[str, Path(max_length=200, description="One, or several with commas.")],
    shown: Shown,
) -> Any:
    """Lift a limit again, or several together."""
    body = schemas.Lift(shown=shown, ids=limit_id)
    return await say(conversations.lift(limit_id.split(",")), body)


@router.post("/links/{token}/accept", **SAYS)
async def accept(say: Saying, body: schemas.Act) -> Any:
    """Use the best plan so far."""
    return await say(conversations.accept, body)


@router.post("/links/{token}/resume", **SAYS)
async def resume(say: Saying, body: schemas.Act) -> Any:
    """Go on with questions after having taken a plan."""
    return await say(conversations.resume, body)


@router.post("/links/{token}/done", **SAYS)
async def done(say: Saying, body: schemas.StepsDone) -> Any:
    """Say that the plan's first steps are done; the rest is checked and planned again."""
    return await say(conversations.done(body.steps), body)


@router.put("/links/{token}/record", **SAYS)
async def change_record(say: Saying, body: schemas.ChangedRecord) -> Any:
    """Say that your data changed; the plan is made again from there."""
    clean = service_of(say.request).conversations.record(body.record)
    return await say(conversations.correct(clean), body)


@router.get("/links/{token}/receipt", tags=PERSON, responses=responses(409, 410))
async def receipt(request: HttpRequest, token: Token) -> dict[str, Any]:
    """The plan with the fingerprints of model and problem, for ``pear verify``."""
    found = receipt_of(await _view(request, token))
    if found is None:
        raise ServiceError(409, "There is no plan yet; answer the questions or accept one first.")
    return found


def receipt_of(view: View) -> dict[str, Any] | None:
    """The plan a person can keep; None while there is none."""
    result = view.standing.result if view.standing else None
    return result.plan.to_dict() if result is not None and result.plan.success else None


@router.get("/links/{token}/everything", tags=PERSON, responses=responses(410))
async def everything(request: HttpRequest, token: Token) -> Response:
    """All that is stored about you: every event, every plan given, in order."""
    service = service_of(request)
    conversation = await service.enter(request, token)
    return JSONResponse(await service.conversations.everything(conversation))


@router.put("/links/{token}/pin", tags=PERSON, status_code=204, responses=responses(409, 410))
async def choose_pin(request: HttpRequest, token: Token, body: schemas.Pin) -> Response:
    """Choose the PIN that opens this conversation, once; where the service asks for one."""
    service = service_of(request)
    if not service.settings.pin:
        raise ServiceError(404, "This service asks for no PIN.")
    await service.choose_pin(await service.behind(request, token), body.pin)
    return Response(status_code=204)


@router.delete("/links/{token}", tags=PERSON, status_code=204, responses=responses(410))
async def forget(request: HttpRequest, token: Token) -> Response:
    """Delete this conversation and everything in it."""
    service = service_of(request)
    await service.forget(await service.enter(request, token))
    return Response(status_code=204)


@router.get("/people", tags=["demonstration"], responses=responses())
async def people(request: HttpRequest) -> dict[str, dict[str, Any]]:
    """Invented people to try the demonstration with; 404 outside it."""
    service = service_of(request)
    if not service.settings.demo:
        raise ServiceError(404, "There are example people in the demonstration only.")
    return await run_in_threadpool(example_people, service.settings)


# What a person sees


def conversation(request: HttpRequest, view: View) -> schemas.ConversationView:
    """A conversation with its values and its words."""
    service, words = service_of(request), words_of(request)
    found, standing = view.conversation, view.standing
    bar = service.problem.goal.required()
    whole = schemas.ConversationView(
        stage=standing.stage if standing else "waiting",
        version=found.version,
        shown=view.shown,
        place=view.place,
        score=points(standing.score if standing else found.outcome.score, bar) / 100,
        bar=bar,
        expires_at=found.expires_at,
        problem_fingerprint=found.problem_fingerprint,
        model_fingerprint=found.model_fingerprint,
        progress=schemas.Progress(
            answered=found.questions, left=None, most=service.settings.max_questions
        ),
        limits=[
            schemas.Limit(id=limit.id, words=words.limit(limit), **limit.to_dict())
            for limit in (standing.limits if standing else ())
        ],
        notices=notices(view, words),
    )
    if standing is None:
        return whole
    told, question, result = tell(standing, words), standing.question, standing.result
    if question is not None and told.question is not None:
        whole.progress.left = question.questions_left
        whole.question = _question(question, told.question)
    if result is not None and told.result is not None:
        whole.result = _result(result, told.result, found.updated_at)
    elif result is not None:
        why = words.texts(f"no_plan.{told.why_none}")
        whole.no_plan = _no_plan(result, told, why)
    return whole


def _question(question: Question, told: ToldQuestion) -> schemas.Question:
    efforts = question.efforts or (1.0,) * len(question.plans)
    cards = zip(question.plans, told.plans, efforts, strict=True)
    return schemas.Question(
        id=question.id,
        number=question.number,
        progress=told.progress,
        plans=[_card(plan, said, effort) for plan, said, effort in cards],
        facts=_lines(told.facts),
        lines=_lines(told.lines),
        shared=_lines(told.shared),
    )


def _lines(lines: Sequence[Line]) -> list[schemas.Line]:
    return [
        schemas.Line(label=line.label, now=line.now, cells=[cell.value for cell in line.cells])
        for line in lines
    ]


def _card(plan: Plan, told: ToldPlan, effort: float = 1.0) -> schemas.PlanCard:
    return schemas.PlanCard(
        steps=[
            schemas.Step(
                words=said.words,
                feature=step.feature,
                before=step.before,
                after=step.after,
                score_before=said.before / 100,
                score_after=said.after / 100,
                weeks=step.weeks,
                once=step.once,
                monthly=step.monthly,
                takes=said.takes,
                reason=said.reason,
                refusals=[refusal.limit.to_dict() for refusal in said.refusals],
            )
            for step, said in zip(plan.steps, told.steps, strict=True)
        ],
        score=told.points / 100,
        effort=effort,
        time=told.time,
        money=told.money,
        loan=told.loan,
        loan_in_all=told.loan_in_all,
        thin=told.thin,
    )


def _result(result: Result, told: ToldResult, made_at: float) -> schemas.Result:
    plan = result.plan
    known = bool(plan.steps) and result.confidence >= 0
    others = zip(result.alternatives, told.alternatives, strict=True)
    return schemas.Result(
        plan=_card(plan, told.plan),
        confidence=result.confidence if known else None,
        confidence_words=told.certainty if known else "",
        certificate_words=told.proof,
        verdict=plan.certificate.verdict,
        made_at=made_at,
        more=told.more,
        alternatives=[
            schemas.Alternative(steps=other.length, plan=_card(other, said, other.cost / plan.cost))
            for other, said in others
        ],
    )


def _no_plan(result: Result, told: Told, why: str) -> schemas.NoPlan:
    # Of many ways to loosen limits, few are suggested.
    suggested = zip(result.loosenings, told.suggestions, strict=False)
    return schemas.NoPlan(
        verdict=result.plan.certificate.verdict,
        words=why,
        loosenings=[
            schemas.Loosening(
                limits=said.ids.split(","), words=said.words, plan=_card(item.plan, said.plan)
            )
            for item, said in suggested
        ],
    )


# The description


description = APIRouter()

Schema = Mapping[str, Any]

MAKE_A_LINK = "post-api-v1-conversations"

ORDER = ("the applicant", "the lender", "facts", "demonstration", "running the service")
"""Kinds of routes, in the order of the page."""


@description.get("/api")
async def reference(request: HttpRequest) -> Response:
    """The API for people who write programs."""
    whole = request.app.openapi()
    groups = _groups(whole)
    shapes = _shapes(whole, groups)
    record = await run_in_threadpool(_sample_record, service_of(request))
    return page(
        request,
        "reference.html",
        groups=groups,
        shapes=shapes,
        named={shape["name"] for shape in shapes},
        errors=_fields(whole, {"$ref": "#/components/schemas/ProblemDetails"}),
        base=str(request.base_url).rstrip("/"),
        record=record,
        made=next(
            route["sample"]
            for group in groups
            for route in group["routes"]
            if route["id"] == MAKE_A_LINK
        ),
    )


def _sample_record(service: Service) -> str:
    """Somebody whose link a first request can make, as JSON."""
    if service.settings.demo:
        record: Any = next(iter(example_people(service.settings).values()))
    else:
        record = {feature.name: _usable(feature) for feature in service.problem.space.features}
    return json.dumps(record, ensure_ascii=False)


def _usable(feature: Feature) -> Any:
    """Some value that a feature can have."""
    if feature.categories:
        return feature.categories[0]
    if feature.kind == "boolean":
        return False
    known = (end for end in (feature.lower, feature.upper, 0) if end is not None)
    return int(next(known)) if feature.kind == "integer" else next(known)


def _groups(description: Schema) -> list[dict[str, Any]]:
    """The routes by their kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            kind = (route.get("tags") or ["facts"])[0]
            found.setdefault(kind, []).append(_route(description, path, method, route))
    return [{"name": kind, "routes": found[kind]} for kind in ORDER if kind in found]


def _route(description: Schema, path: str, method: str, route: Schema) -> dict[str, Any]:
    body = _content(route.get("requestBody", {}))
    answers = {status: _content(answer) for status, answer in route["responses"].items()}
    status, answer = next(
        ((status, content) for status, content in answers.items() if status.startswith("2")),
        ("200", None),
    )
    return {
        "id": f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        "path": path,
        "method": method.upper(),
        "summary": route.get("description") or route.get("summary", ""),
        "key": bool(route.get("security")),
        "parameters": [
            {
                "name": parameter["name"],
                "parts": [_type(parameter.get("schema", {})).removesuffix(" | null")],
                "required": parameter.get("required", False),
                "about": parameter.get("description", ""),
            }
            for parameter in route.get("parameters", ())
        ],
        "body": list(_fields(description, body)) if body else [],
        "example": json.dumps(_example(description, body), indent=2, ensure_ascii=False)
        if body
        else "",
        "status": status,
        "sample": json.dumps(_example(description, answer), indent=2, ensure_ascii=False)
        if answer
        else "",
        "answer": list(_fields(description, answer)) if answer else [],
        "statuses": [status for status in answers if not status.startswith("2")],
    }


def _shapes(description: Schema, groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The objects that the fields of routes name, and those that these name, in that order."""
    fields = [f for g in groups for r in g["routes"] for f in (*r["body"], *r["answer"])]
    found: dict[str, dict[str, Any]] = {}
    while fields:
        for part in fields.pop(0)["parts"]:
            whole = description["components"]["schemas"].get(part, {})
            if "properties" not in whole or part in found:
                continue
            inner = list(_fields(description, whole))
            found[part] = {"name": part, "about": whole.get("description", ""), "fields": inner}
            fields += inner
    return list(found.values())


def _content(part: Schema) -> Schema | None:
    """The schema of a request's or an answer's JSON."""
    schema: Schema | None = part.get("content", {}).get("application/json", {}).get("schema")
    return schema


def _named(description: Schema, schema: Schema) -> Schema:
    """A schema itself where only its name is given."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Schema = description["components"]["schemas"][name] if name else schema
    return found


def _fields(description: Schema, schema: Schema) -> Iterator[dict[str, Any]]:
    """The fields of an object, with what each holds."""
    whole = _named(description, schema)
    if whole.get("type") == "array":
        whole = _named(description, whole["items"])
    needed = whole.get("required", ())
    for name, field in whole.get("properties", {}).items():
        yield {
            "name": name,
            "parts": re.findall(r"\w+|\W+", _type(field)),
            "required": name in needed,
            "about": field.get("description", ""),
        }


def _type(schema: Schema) -> str:
    """What a value is, in a word or two."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return str(name)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(_type(option) for option in options))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    return str(schema.get("type", "any"))


def _example(description: Schema, schema: Schema) -> Any:
    """A request as it may look."""
    whole = _named(description, schema)
    return {
        name: field["examples"][0]
        for name, field in whole.get("properties", {}).items()
        if field.get("examples")
    }
