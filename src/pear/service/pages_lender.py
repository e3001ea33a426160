"""What does the lender see in the browser? How conversations go, and nothing of their content."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse

from pear.service.api import service_of
from pear.service.api_lender import all_rows, link_to
from pear.service.errors import ServiceError
from pear.service.forms import cookie_subject, form_of, sealed, set_cookie
from pear.service.keys import Key
from pear.service.lender import SMALLEST_GROUP, as_csv, fairness, summary
from pear.service.records import check_record, from_form
from pear.service.rendering import entries, page
from pear.service.service import Service, stranger

router = APIRouter(prefix="/lender")

SIGN_IN = "pear_lender"
ROWS = 50


async def signed_in(request: Request) -> tuple[Service, Key | None, str]:
    """The service, the key someone signed in with, and what their forms belong to."""
    service = service_of(request)
    token = request.cookies.get(SIGN_IN, "")
    key = await run_in_threadpool(service.keys.signed_in, token) if token else None
    if key is not None:
        service.pace(service.per_key, key.id)
    return service, key, f"lender:{token}"


async def required(request: Request) -> tuple[Service, Key, str]:
    """The same, for someone who must be signed in."""
    service, key, subject = await signed_in(request)
    if key is None:
        raise ServiceError(401, "Sign in with a key first.")
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


@router.get("")
async def home(request: Request, offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    """The conversations, or the form to sign in."""
    service, key, subject = await signed_in(request)
    if key is None:
        return _sign_in_page(service, request, wrong=False)
    rows, total = await run_in_threadpool(
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


def _sign_in_page(service: Service, request: Request, *, wrong: bool) -> Response:
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
            here="",
        ),
    )


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Sign in with a key."""
    service = service_of(request)
    service.pace(service.per_stranger, stranger(request))
    form = await form_of(service, request, cookie_subject(request))
    key = await run_in_threadpool(service.keys.find, form.get("key", "").strip())
    if key is None:
        return _sign_in_page(service, request, wrong=True)
    response = RedirectResponse("/lender", 303)
    set_cookie(service, response, SIGN_IN, await run_in_threadpool(service.keys.sign_in, key))
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End this sign-in."""
    service, _key, subject = await required(request)
    await form_of(service, request, subject)
    await run_in_threadpool(service.keys.sign_out, request.cookies.get(SIGN_IN, ""))
    response = RedirectResponse("/lender", 303)
    response.delete_cookie(SIGN_IN)
    return response


@router.get("/new")
async def new(request: Request) -> Response:
    """The form for a new link."""
    service, key, subject = await required(request)
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
        wrong=[
            {"name": e["name"], "label": e["label"], "message": e["error"]}
            for e in fields
            if e["error"]
        ],
        link=link,
        reference=str(values.get("reference", "")),
        days=str(values.get("days", "") or service.settings.expiry_days),
    )
    response.status_code = 422 if wrong else 200
    return response


@router.post("/new")
async def make(request: Request) -> Response:
    """Make a link; it is shown on this one page."""
    service, key, subject = await required(request)
    form = await form_of(service, request, subject)
    record = from_form(service.problem, form)
    _clean, wrong = check_record(service.problem, record)
    if wrong:
        return _new(service, key, subject, form, wrong)
    days = form.get("days", "")
    token, _conversation = await service.conversations.create(
        record,
        reference="".join(c for c in form.get("reference", "")[:200] if c.isprintable()) or None,
        days=min(366, max(1, int(days))) if days.isdecimal() and len(days) < 5 else None,
        key_id=key.id,
    )
    return _new(service, key, subject, {}, [], link_to(service, request, token))


@router.post("/delete")
async def delete(request: Request) -> Response:
    """Delete a conversation."""
    service, _key, subject = await required(request)
    form = await form_of(service, request, subject)
    await run_in_threadpool(service.store.delete, form.get("id", "")[:64])
    return RedirectResponse("/lender", 303)


@router.get("/fairness")
async def groups(request: Request) -> Response:
    """Outcomes by protected group."""
    service, key, subject = await required(request)
    found = await run_in_threadpool(fairness, await all_rows(service))
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
    return words[:1].upper() + words[1:]


@router.get("/download")
async def download(request: Request, format: str = "csv") -> Response:
    """Every conversation's line, as a file."""
    service, _key, _subject = await required(request)
    lines = [summary(row) for row in await all_rows(service)]
    kind = "json" if format == "json" else "csv"
    headers = {"Content-Disposition": f'attachment; filename="conversations.{kind}"'}
    if kind == "json":
        return JSONResponse(lines, headers=headers)
    return Response(as_csv(lines), media_type="text/csv", headers=headers)
