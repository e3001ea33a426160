"""What does a participant see, and where is what they say kept?

The pages stand beside those of the service, under ``/study``: its searchers, tokens of forms,
limits and errors are theirs too. Everything that happens is a line of one file, written before the
next page is shown; a study that was stopped goes on from it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from jinja2 import ChoiceLoader, PackageLoader
from starlette.responses import HTMLResponse, RedirectResponse

from pear.elicitation.says import check_record
from pear.elicitation.shown import tell
from pear.elicitation.words import Catalogue, Words, catalogue
from pear.errors import ConversationError, InvalidData
from pear.service.app import create_app
from pear.service.engine import EngineMaker
from pear.service.forms import entries, errors_of, facts, from_form
from pear.service.schemas import ServiceError
from pear.service.service import (
    ENVIRONMENT,
    Service,
    address_of,
    cookie_subject,
    form_of,
    make_service,
    page,
    sealed,
    service_of,
)
from pear.service.settings import Settings
from pear.service.store.database import hashed, new_token
from pear.study.design import AFTER_TASK, AT_THE_END, OWN, POINTS, Page, Participant, Study
from pear.study.engine import make_study_engine

TEMPLATES = ENVIRONMENT.overlay(
    loader=ChoiceLoader(
        [PackageLoader("pear.study", "templates"), PackageLoader("pear.service", "templates")]
    )
)

router = APIRouter(prefix="/study")


# What is kept


@dataclass
class Records:
    """The participants of a study in one file: a line for each event, in order.

    A link is kept as a hash of its token. A last line that was cut off by a crash was never
    acknowledged, and is dropped.
    """

    study: Study
    path: Path
    links: dict[str, int] = field(default_factory=dict)
    participants: list[Participant] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            if self.path.exists():
                self._read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidData(
                f"'{self.path}' cannot be read ({error}); give the file that 'pear study' wrote"
            ) from None

    def _read(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        whole, _, cut = text.rpartition("\n")
        if cut:
            self.path.write_text(whole + "\n" if whole else "", encoding="utf-8")
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                event = json.loads(line)
                self._keep(event)
            except (ValueError, KeyError, IndexError, TypeError):
                raise InvalidData(
                    f"line {number} of '{self.path}' is not an event of a study; give the file "
                    "that 'pear study' wrote"
                ) from None

    def _keep(self, event: dict[str, Any]) -> None:
        if event["kind"] == "joined":
            self.links[event["link"]] = len(self.participants)
            self.participants.append(self.study.participant(len(self.participants)))
            return
        number = int(event.pop("participant"))
        one = self.participants[number]
        if event["kind"] == "withdrawn":
            one = replace(one, events=())
        self.participants[number] = replace(one, events=(*one.events, event))

    def add(self, *events: Mapping[str, Any]) -> None:
        """Write events, with the time, and take them in once they are on disk."""
        stamped = [{**event, "at": round(time.time(), 1)} for event in events]
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in stamped)
            file.flush()
            os.fsync(file.fileno())
        for event in stamped:
            self._keep(event)
        if any(event["kind"] == "withdrawn" for event in stamped):
            self._forget()

    def _forget(self) -> None:
        """Rewrite the file without what the people said who withdrew."""
        lines = [json.dumps({"kind": "joined", "link": link}) for link in self.links]
        for one in self.participants:
            lines += [json.dumps({**event, "participant": one.number}) for event in one.events]
        fresh = self.path.with_suffix(".part")
        fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        fresh.replace(self.path)

    def join(self) -> str:
        """A new participant; the token of their link."""
        token = new_token()
        self.add({"kind": "joined", "link": hashed(token)})
        return token

    def of(self, token: str) -> Participant:
        """The participant of a link."""
        number = self.links.get(hashed(token))
        if number is None:
            raise ServiceError(404, "There is no such link.")
        return self.participants[number]


@dataclass
class Running:
    """A study that runs: what is kept, its texts, and one thing said at a time."""

    study: Study
    records: Records
    texts: Catalogue
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


def study_app(
    study: Study, path: Path, settings: Settings, maker: EngineMaker | None = None
) -> FastAPI:
    """The service with the pages of a study, which are kept in a file."""
    from functools import partial

    service = make_service(settings, maker or partial(make_study_engine, settings))
    app = create_app(settings, service)
    texts = catalogue(settings.language or "en", "pear.study")
    app.state.study = Running(study, Records(study, path), texts)
    app.include_router(router, include_in_schema=False)
    return app


# What a participant sees


def _running(request: Request) -> tuple[Service, Running]:
    return service_of(request), request.app.state.study


@router.get("")
async def door(request: Request) -> Response:
    """Where everybody comes in: what the study is, and a button to begin."""
    return sealed(_running(request)[0], request, lambda csrf: _page(request, "door", csrf=csrf))


@router.post("")
async def join(request: Request) -> Response:
    """A new participant, with a link of their own."""
    service, running = _running(request)
    service.pace(service.per_stranger, address_of(request))
    await form_of(service, request, cookie_subject(request))
    async with running.turn:
        token = running.records.join()
    return RedirectResponse(f"/study/{token}", 303)


@router.get("/{token}")
async def now(request: Request, token: str) -> Response:
    """Wherever a participant is."""
    service, running = _running(request)
    service.pace(service.per_link, token[:64])
    one = running.records.of(token)
    here = running.study.next(one)
    return _now(request, token, one, here, await _shown(request, one, here))


@router.post("/{token}")
async def say(request: Request, token: str) -> Response:
    """Take in what a participant said about the page they saw; nothing twice."""
    service, running = _running(request)
    service.pace(service.per_link, token[:64])
    form, seen = await form_of(service, request, f"study:{token}")
    async with running.turn:
        one = running.records.of(token)
        here = running.study.next(one)
        if seen != str(len(one.events)):
            return RedirectResponse(f"/study/{token}", 303)
        shown = await _shown(request, one, here)
        said = _read(service, form)
        if here.kind == "person" and one.tasks[here.task] == OWN and "withdraw" not in said:
            record = from_form(service.problem, form, running.texts.language)
            clean, wrong = check_record(service.problem, record)
            if wrong:
                return _now(request, token, one, here, shown, values=form, wrong=wrong)
            said["record"] = clean
        try:
            events = running.study.take(one, said, shown)
        except ConversationError as error:
            return _now(request, token, one, here, shown, error=str(error))
        running.records.add(*({**event, "participant": one.number} for event in events))
    return RedirectResponse(f"/study/{token}", 303)


def _read(service: Service, form: Mapping[str, str]) -> dict[str, Any]:
    """A form as what was said."""
    said: dict[str, Any] = dict(form)
    choice = said.get("choice", "")
    if choice.isascii() and choice.isdigit() and len(choice) < 3:
        said["choice"] = int(choice)
    if "limit" in said:
        try:
            said["limit"] = json.loads(said["limit"])
        except ValueError:
            raise ServiceError(422, "The form's 'limit' cannot be read.") from None
    return said


async def _shown(request: Request, one: Participant, here: Page) -> Any:
    """What a page with plans shows; nothing for others."""
    if here.kind != "plans":
        return None
    service, running = _running(request)
    case = running.study.case(one, here.task)
    if one.arm == "list":
        return await service.searchers.run(case.id, "ways", case, address=address_of(request))
    seen = await service.searchers.run(case.id, "look", case, address=address_of(request))
    return seen.standing


def _now(
    request: Request,
    token: str,
    one: Participant,
    here: Page,
    shown: Any,
    *,
    values: Mapping[str, Any] | None = None,
    wrong: list[tuple[str, str]] | None = None,
    error: str = "",
) -> Response:
    service, running = _running(request)
    words = _words(request)
    own = here.task >= 0 and one.tasks[here.task] == OWN
    content: dict[str, Any] = {
        "csrf": service.forms.token(f"study:{token}", str(len(one.events))),
        "error": error,
        "task": here.task + 1,
        "tasks": len(one.tasks),
        "own": own,
    }
    if here.kind != "gone":
        content["can_withdraw"] = True
    if here.kind == "person":
        fields = entries(words.problem, words.texts, values or {}, wrong or ()) if own else []
        content |= {
            "facts": [] if own else facts(words.problem, running.study.record(one, here.task)),
            "person": one.tasks[here.task],
            "entries": fields,
            "wrong": errors_of(fields),
        }
    elif here.kind == "plans":
        content["ways"] = (
            [[words.step(step) for step in plan.steps] for plan in shown]
            if one.arm == "list"
            else None
        )
        content["told"] = None if one.arm == "list" else tell(shown, words)
    elif here.kind in ("items", "end"):
        content["items"] = AFTER_TASK if here.kind == "items" else AT_THE_END
        content["points"] = POINTS
    return _page(request, here.kind, status=422 if wrong or error else 200, **content)


def _words(request: Request) -> Words:
    """The words of the study's one language, whatever a browser asks for."""
    service, running = _running(request)
    return service.words[running.texts.language]


def _page(request: Request, name: str, status: int = 200, **content: Any) -> HTMLResponse:
    return page(
        request,
        f"{name}.html",
        status,
        environment=TEMPLATES,
        words=_words(request),
        s=_running(request)[1].texts,
        languages={},
        demo=False,
        **content,
    )
