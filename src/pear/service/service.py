"""What do all routes share? The parts of one running service, put together once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from pear.problem import Problem
from pear.service.catalogue import Catalogue, catalogue
from pear.service.conversations import Conversations
from pear.service.database import Database
from pear.service.errors import ServiceError, retry_later
from pear.service.keys import Key, Keys
from pear.service.metrics import Metrics
from pear.service.present import Presenter
from pear.service.searchers import OneThread, Processes, Searchers
from pear.service.security import FormTokens, RateLimit
from pear.service.settings import Settings
from pear.service.sources import make_engine, problem_of
from pear.service.store import Store


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
    presenter: Presenter
    texts: Catalogue
    metrics: Metrics
    per_link: RateLimit
    per_key: RateLimit
    per_stranger: RateLimit
    forms: FormTokens = field(default_factory=lambda: FormTokens(b""))
    ready: bool = False

    async def start(self) -> None:
        """Bring the tables up to date and start the searchers."""
        await run_in_threadpool(self.database.upgrade)
        self.forms = FormTokens(await run_in_threadpool(self.keys.secret))
        if self.settings.demo_key:
            await run_in_threadpool(self.keys.ensure, "demonstration", self.settings.demo_key)
        await run_in_threadpool(self.searchers.start)
        self.ready = True

    async def stop(self) -> None:
        """End the searchers and the database's connections."""
        self.ready = False
        await run_in_threadpool(self.searchers.stop)
        await run_in_threadpool(self.database.close)

    def pace(self, limit: RateLimit, name: str) -> None:
        """Refuse a request that comes too soon after too many others."""
        seconds = limit.wait(name)
        if seconds:
            raise retry_later(
                429, f"Too many requests; try again in {seconds:.0f} seconds.", seconds
            )

    async def lender(self, request: Request) -> Key:
        """The lender's key of an API request, in ``Authorization: Bearer`` or ``X-API-Key``."""
        header = request.headers.get("authorization", "")
        scheme, _, text = header.partition(" ")
        key = text.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        if key:
            found = await run_in_threadpool(self.keys.find, key)
            if found is not None:
                self.pace(self.per_key, found.id)
                return found
        self.pace(self.per_stranger, stranger(request))
        raise ServiceError(
            401,
            "This needs a lender's key: send it as 'Authorization: Bearer …'.",
            {"WWW-Authenticate": 'Bearer realm="lender"'},
        )

    async def link(self, request: Request, token: str) -> None:
        """Pace the requests of one link, and those of someone who tries links."""
        self.pace(self.per_link, token[:64])


def stranger(request: Request) -> str:
    """Whom a request without link or key is counted for."""
    return request.client.host if request.client else "unknown"


def make_service(
    settings: Settings, make_searchers: Callable[[Settings], Searchers] | None = None
) -> Service:
    """All parts of a service, not started yet."""
    problem = problem_of(settings)
    database = Database(settings.database)
    store, keys = Store(database), Keys(database)
    searchers = (make_searchers or searchers_of)(settings)
    texts = catalogue(settings.language)
    return Service(
        settings=settings,
        problem=problem,
        database=database,
        store=store,
        keys=keys,
        searchers=searchers,
        conversations=Conversations(store, searchers, problem, settings),
        presenter=Presenter(problem, texts, settings.max_questions),
        texts=texts,
        metrics=Metrics(),
        per_link=RateLimit(settings.link_per_minute),
        per_key=RateLimit(settings.key_per_minute),
        per_stranger=RateLimit(settings.stranger_per_minute),
    )


def searchers_of(settings: Settings) -> Searchers:
    """Search processes as set, or one thread when there are to be none."""
    maker: Any = partial(make_engine, settings)
    if settings.searchers == 0:
        return OneThread(maker, most_waiting=settings.waiting_per_searcher)
    return Processes(
        maker,
        settings.searchers,
        seconds=settings.search_seconds,
        most_waiting=settings.waiting_per_searcher,
    )
