"""What do all routes share? The parts of one running service, put together once."""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from pear.errors import PearError
from pear.problem import Problem
from pear.service.access import (
    PIN_TRIES,
    PIN_WAIT_SECONDS,
    FormTokens,
    Key,
    Keys,
    RateLimit,
    pin_fits,
    pin_hash,
)
from pear.service.conversations import Conversations
from pear.service.database import Database
from pear.service.engine import make_engine, stated_problem
from pear.service.operation import Metrics, Traces, note
from pear.service.schemas import ServiceError, retry_later
from pear.service.settings import Settings
from pear.service.store import Conversation, Store
from pear.service.words import Presenter, catalogue, languages
from pear.service.workers import EngineMaker, Searchers

if TYPE_CHECKING:
    from pear.service.staff import SignIn


HOLD_SECONDS, MOST_HELD = 1.0, 200
"""How long a refusal for asking too often is held back, and how many are at once."""


@dataclass
class Service:
    """The parts of a running service."""

    settings: Settings
    problem: Problem
    database: Database
    store: Store
    keys: Keys
    searchers: Searchers
    conversations: Conversations
    presenters: Mapping[str, Presenter]
    metrics: Metrics
    traces: Traces
    per_link: RateLimit
    per_key: RateLimit
    per_stranger: RateLimit
    forms: FormTokens = field(default_factory=lambda: FormTokens(b""))
    sign_in: SignIn | None = None
    ready: bool = False
    _scrubber: asyncio.Task[None] | None = None
    _scrubbed: float = -math.inf
    _held: int = 0

    async def start(self) -> None:
        """Bring the tables up to date and start the searchers."""
        await self.database.run(self.database.upgrade)
        self.forms = FormTokens(await self.database.run(self.keys.secret))
        if self.settings.demo_key:
            await self.database.run(self.keys.ensure, "demonstration", self.settings.demo_key)
        await run_in_threadpool(self.searchers.start)
        await self.database.run(self.store.serve, *self.conversations.serves)
        self.scrub()
        self.ready = True

    async def stop(self) -> None:
        """End the searchers and the database's connections."""
        self.ready = False
        if self._scrubber is not None:  # what is left is done at the next start
            self._scrubber.cancel()
            with suppress(asyncio.CancelledError):
                await self._scrubber
        await run_in_threadpool(self.searchers.stop)
        await run_in_threadpool(self.database.close)
        await run_in_threadpool(self.traces.stop)

    async def forget(self, conversation: Conversation) -> None:
        """Delete a conversation and everything in it, at once."""
        await self.database.run(self.store.delete, conversation.id)
        self.scrub()

    def scrub(self) -> None:
        """Have what was deleted taken off the disk, from now on until that is done."""
        if self._scrubber is None or self._scrubber.done():
            self._scrubber = asyncio.create_task(self._scrub())

    async def _scrub(self) -> None:
        # A database that does not answer is asked again by the next sweep.
        with suppress(PearError, SQLAlchemyError):
            while await self.database.run(self.store.to_scrub) is not None:
                between = 0.0 if self.database.is_sqlite else self.settings.scrub_seconds
                await asyncio.sleep(max(0.0, self._scrubbed + between - time.monotonic()))
                deleted = await self.database.run(self.store.to_scrub)
                done = await run_in_threadpool(self.database.scrub)
                self._scrubbed = time.monotonic()
                if done and deleted is not None:
                    await self.database.run(self.store.scrubbed, deleted)
                else:
                    await asyncio.sleep(1)

    def pace(self, limit: RateLimit, name: str) -> None:
        """Refuse a request that comes too soon after too many others."""
        seconds = limit.wait(name)
        if seconds:
            raise retry_later(
                429, f"Too many requests; try again in {seconds:.0f} seconds.", seconds
            )

    async def hold(self) -> None:
        """Who asks too often waits for the refusal too, so that asking on takes nothing of others.

        A person at a page does not notice; many at once are refused without waiting.
        """
        if self._held < MOST_HELD:
            self._held += 1
            try:
                await asyncio.sleep(HOLD_SECONDS)
            finally:
                self._held -= 1

    async def lender(self, request: Request, role: str, action: str = "", target: str = "") -> Key:
        """The lender's key of an API request, in ``Authorization: Bearer`` or ``X-API-Key``.

        What it is used for is written to the log of the lender's side.
        """
        header = request.headers.get("authorization", "")
        scheme, _, text = header.partition(" ")
        key = text.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        if key:
            found = await self.database.run(self.keys.find, key)
            if found is not None:
                self.pace(self.per_key, found.id)
                allowed(found, role)
                if action:
                    await self.note(request, found, action, target)
                return found
        self.pace(self.per_stranger, address_of(request))
        raise ServiceError(
            401,
            "This needs a lender's key: send it as 'Authorization: Bearer …'.",
            {"WWW-Authenticate": 'Bearer realm="lender"'},
        )

    async def note(self, request: Request, key: Key | None, action: str, target: str = "") -> None:
        """Write down what was done with a key."""
        address = address_of(request)
        await self.database.run(self.keys.note, key, address, action, printable(target))

    async def enter(self, request: Request, token: str) -> Conversation:
        """The conversation of a link, for who knows its PIN, where there are PINs.

        The lender makes the link, and so could act for the person; the PIN is the person's own.
        """
        conversation = await self.behind(request, token)
        if not self.settings.pin:
            return conversation
        if conversation.pin_hash is None:
            raise PinNeeded(chosen=False)
        proof = request.cookies.get(pin_cookie(conversation), "")
        if hmac.compare_digest(proof.encode(), self.pin_proof(conversation).encode()):
            return conversation
        pin = request.headers.get("x-pin", "")
        if not pin or not await self.check_pin(conversation, pin):
            raise PinNeeded(chosen=True)
        return conversation

    async def behind(self, request: Request, token: str) -> Conversation:
        """The conversation of a link, at the pace of one link; who invents links is a stranger."""
        self.pace(self.per_link, token[:64])
        try:
            conversation = await self.conversations.open(token)
        except ServiceError as error:
            if error.status == 404:
                self.pace(self.per_stranger, address_of(request))
            raise
        request.state.facts = {"conversation": conversation.id}
        return conversation

    def pin_proof(self, conversation: Conversation) -> str:
        """What a browser holds that has given the PIN of a conversation."""
        return self.forms.derived("pin", conversation.id, conversation.pin_hash or "")

    async def check_pin(self, conversation: Conversation, pin: str) -> bool:
        """Whether a PIN is the person's; after some wrong ones nobody gets in for a while."""
        wait = conversation.pin_until - time.time()
        if wait > 0:
            raise retry_later(429, "Too many wrong PINs; wait before you try again.", wait)
        right = await run_in_threadpool(pin_fits, pin, conversation.pin_hash or "")
        tries = 0 if right else conversation.pin_tries + 1
        until = time.time() + PIN_WAIT_SECONDS if tries >= PIN_TRIES else 0.0
        if tries or conversation.pin_tries:
            again = 0 if until else tries
            await self.database.run(self.store.pin_tried, conversation.id, again, until)
        return right

    async def choose_pin(self, conversation: Conversation, pin: str) -> Conversation:
        """Keep the PIN a person chose when they first opened their link."""
        if not (pin.isascii() and pin.isdigit() and 4 <= len(pin) <= 12):
            raise ServiceError(422, "A PIN has 4 to 12 digits.", errors=[("pin", "4 to 12 digits")])
        stored = await run_in_threadpool(pin_hash, pin)
        if not await self.database.run(self.store.set_pin, conversation.id, stored):
            raise ServiceError(409, "A PIN was chosen already.")
        return replace(conversation, pin_hash=stored)


class PinNeeded(ServiceError):
    """Only the person's own PIN opens this; ``chosen`` once there is one."""

    def __init__(self, *, chosen: bool) -> None:
        words = "This conversation is opened with the PIN its person chose: send it as 'X-PIN'."
        if not chosen:
            words = "Choose a PIN first, with PUT .../pin; the link alone opens nothing."
        super().__init__(401, words, {"WWW-Authenticate": "PIN"})
        self.chosen = chosen


def pin_cookie(conversation: Conversation) -> str:
    """The name of the cookie that holds the proof of a conversation's PIN."""
    return f"pear_pin_{conversation.id[:12]}"


def allowed(key: Key, role: str) -> Key:
    """The key, where it has a role."""
    if role not in key.roles:
        raise ServiceError(
            403,
            f"This needs a key that may '{role}', and this one may {', '.join(key.roles)}.",
        )
    return key


def printable(text: str) -> str:
    """A text from outside, as it may be stored: without signs that databases refuse."""
    return "".join(sign for sign in text[:200] if sign.isprintable())


def service_of(request: Request) -> Service:
    """The running service."""
    service: Service = request.app.state.service
    return service


def address_of(request: Request) -> str:
    """The address a request comes from."""
    return request.client.host if request.client else "unknown"


def make_service(settings: Settings, maker: EngineMaker | None = None) -> Service:
    """All parts of a service, not started yet; ``maker`` makes the engine of each searcher."""
    problem, traces = stated_problem(settings.problem), Traces(settings.traces)
    database = Database(settings.database, traces)
    store, keys = Store(database), Keys(database)
    searchers = Searchers(
        maker or partial(make_engine, settings),
        settings.searchers,
        seconds=settings.search_seconds,
        most_waiting=settings.most_waiting,
        traces=traces,
    )
    if settings.language:
        catalogue(settings.language)  # refused with those there are
    return Service(
        settings=settings,
        problem=problem,
        database=database,
        store=store,
        keys=keys,
        searchers=searchers,
        conversations=Conversations(store, searchers, problem, settings),
        presenters={
            language: Presenter(problem, catalogue(language), settings.max_questions)
            for language in languages()
        },
        metrics=Metrics(),
        traces=traces,
        per_link=RateLimit(settings.link_per_minute),
        per_key=RateLimit(settings.key_per_minute),
        per_stranger=RateLimit(settings.stranger_per_minute),
    )


# What the service does when nobody asks

MOST_JUMP = 7 * 86400.0
"""Seconds that may lie between two sweeps before the clock is doubted."""


async def keep_up(service: Service) -> None:
    """Forget what is old, and carry open conversations over to a new model, until cancelled."""
    while True:
        for work in (forget_old, recheck_open):
            try:
                await work(service)
            except Exception as error:  # one bad round must not end all later ones
                note("upkeep failed", level=logging.ERROR, exc_info=error)
        await asyncio.sleep(service.settings.sweep_seconds)


async def forget_old(service: Service) -> int:
    """Delete conversations whose link ended longer ago than the retention time."""
    now, settings = time.time(), service.settings
    ahead = now - await service.database.run(service.store.swept, now)
    if ahead > MOST_JUMP + 2 * settings.sweep_seconds and not settings.accept_clock:
        note(
            "nothing deleted: the clock is ahead of the last sweep by more than a week; if it is "
            "right, start once with --accept-clock",
            level=logging.ERROR,
            days=round(ahead / 86400),
        )
        return 0
    before = now - 86400 * settings.retention_days
    gone = await service.database.run(service.store.delete_old, before, now)
    if gone:
        note("forgotten", conversations=gone)
    service.scrub()
    return gone


async def recheck_open(service: Service) -> int:
    """After a change of model or problem: work out every open conversation again."""
    checked = 0
    stale = await service.database.run(
        service.store.under_other_model, *service.conversations.serves
    )
    for number in stale:
        conversation = await service.database.run(service.store.by_id, number)
        if conversation is None:
            continue
        try:
            await service.conversations.look(conversation, used=False)
            checked += 1
        except (PearError, ServiceError) as error:
            note("recheck failed", level=logging.WARNING, conversation=number, exc_info=error)
        await asyncio.sleep(0.05)  # people who wait for a question come first
    if checked:
        note("rechecked", conversations=checked)
    return checked
