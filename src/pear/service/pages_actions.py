"""What can a person do in the browser? Each form changes one thing and leads back to a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from pear.service.api import service_of
from pear.service.errors import ServiceError
from pear.service.forms import form_of
from pear.service.pages import data_page
from pear.service.records import check_record, from_form
from pear.service.rendering import page
from pear.service.store import Conflict

router = APIRouter()


async def _change(
    request: Request, token: str, kind: str, content: Mapping[str, Any], said: str = ""
) -> Response:
    service = service_of(request)
    form = await form_of(service, request, token)
    try:
        conversation = await service.conversations.act(
            token, kind, content, key=form.get("key") or None
        )
        request.state.facts = {"conversation": conversation.id}
    except Conflict:
        said = "conflict"
    return RedirectResponse(f"/c/{token}/now" + (f"?said={said}" if said else ""), 303)


async def _form(request: Request, token: str) -> dict[str, str]:
    service = service_of(request)
    await service.link(request, token)
    return await form_of(service, request, token)


@router.post("/c/{token}/answer")
async def answer(request: Request, token: str) -> Response:
    """Answer the open question."""
    form = await _form(request, token)
    choice: int | str = form.get("choice", "")
    if choice not in ("same", "none"):
        choice = _number(form, "choice")
    content = {"question": _number(form, "question"), "choice": choice}
    return await _change(request, token, "answer", content)


@router.post("/c/{token}/undo")
async def undo(request: Request, token: str) -> Response:
    """Take back the last answer, or all from an earlier one on."""
    form = await _form(request, token)
    content = {"kept": _number(form, "kept")} if "kept" in form else {}
    return await _change(request, token, "undo", content, "undone")


@router.post("/c/{token}/limit")
async def limit(request: Request, token: str) -> Response:
    """ "I can't do this step"."""
    form = await _form(request, token)
    try:
        content = json.loads(form.get("limit", ""))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ServiceError(422, "The form does not say which limit to set.")
    return await _change(request, token, "limit", content, "limit")


@router.post("/c/{token}/lift")
async def lift(request: Request, token: str) -> Response:
    """Take a limit back."""
    form = await _form(request, token)
    return await _change(request, token, "lift", {"id": form.get("id", "")}, "lifted")


@router.post("/c/{token}/accept")
async def accept(request: Request, token: str) -> Response:
    """Use the best plan so far."""
    await _form(request, token)
    return await _change(request, token, "accept", {})


@router.post("/c/{token}/resume")
async def resume(request: Request, token: str) -> Response:
    """Go on with questions."""
    await _form(request, token)
    return await _change(request, token, "resume", {})


@router.post("/c/{token}/done")
async def done(request: Request, token: str) -> Response:
    """ "I have done this step"."""
    form = await _form(request, token)
    return await _change(request, token, "done", {"steps": _number(form, "steps")}, "checked")


@router.post("/c/{token}/data")
async def change_data(request: Request, token: str) -> Response:
    """ "My data changed": the plan is made again from there."""
    form = await _form(request, token)
    service = service_of(request)
    record = from_form(service.problem, form)
    _clean, wrong = check_record(service.problem, record)
    if wrong:
        return data_page(request, token, form, wrong)
    return await _change(request, token, "record", {"record": record}, "updated")


@router.post("/c/{token}/delete")
async def delete(request: Request, token: str) -> Response:
    """Delete everything in the conversation."""
    await _form(request, token)
    service = service_of(request)
    await service.conversations.delete(await service.conversations.open(token))
    return page("delete.html", service.texts, demo=service.settings.demo, done=True)


def _number(form: Mapping[str, str], name: str) -> int:
    text = form.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ServiceError(422, f"The form's '{name}' must be a whole number.")
    return int(text)
