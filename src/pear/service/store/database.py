"""What has been said in each conversation, safely on disk?

What a person says is one transaction: the event, everything said that was not taken back, and the
record of the request that made it. It happens at one version of the conversation; when someone else
was faster it changes nothing and raises :class:`Conflict`. What follows from it (a question, a
plan) is kept beside it when it has been computed.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    String,
    and_,
    cast,
    delete,
    func,
    insert,
    select,
    text,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError

from pear.elicitation.says import DoneStep
from pear.elicitation.shown import Standing
from pear.errors import PearError
from pear.problem import Plan
from pear.problem.features import Record
from pear.service.engine import News, Notice
from pear.service.operation import Traces
from pear.service.store import tables
from pear.service.store.tables import conversations, events, plans, replies, served

_T = TypeVar("_T")

# Secrets


def new_token() -> str:
    """An unguessable token (256 random bits) for a link or a sign-in."""
    return secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """What is stored in place of a secret. It has 256 random bits: no salt is needed.

    >>> hashed("a") == hashed("a"), len(hashed("a"))
    (True, 64)
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def number_of(token: str) -> str:
    """The number of the conversation behind a token: the lender may know it, and it opens nothing.

    >>> len(number_of("a")), number_of("a") == hashed("a")[:32]
    (32, False)
    """
    return hashed(f"number:{token}")[:32]


# The database


MOST_WAITING = 200
"""Calls that may wait for one of the threads that speak with the database."""


class DatabaseUnavailable(PearError):
    """The database does not answer; whether the last change was stored is not known."""


class Database:
    """An SQLite file or a PostgreSQL database, by its address."""

    def __init__(self, address: str, traces: Traces | None = None) -> None:
        self.engine = tables.open_engine(address)
        self.url = self.engine.url
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._traces = traces or Traces()
        # SQLite has one writer at a time, and those who wait for it look again after ever longer
        # pauses: here they take turns.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()
        self._threads = ThreadPoolExecutor(tables.THREADS, thread_name_prefix="database")
        self._waiting = 0

    async def run(self, function: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
        """Call what speaks with the database, away from the event loop.

        A database that hangs holds up its own threads, and nothing else of the service.
        """
        if self._waiting >= MOST_WAITING:
            raise DatabaseUnavailable("too many requests wait for the database")
        self._waiting += 1
        future = self._threads.submit(function, *arguments, **options)
        future.add_done_callback(self._ended)
        with self._traces.span(f"database {getattr(function, '__name__', 'call')}"):
            try:
                return await asyncio.wait_for(asyncio.wrap_future(future), tables.PATIENCE_SECONDS)
            except TimeoutError:
                raise DatabaseUnavailable("the database does not answer") from None

    def _ended(self, _: object) -> None:
        self._waiting -= 1

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with."""
        with self.engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all of it is on disk when the block ends, or none of it."""
        with self._turn, self.engine.begin() as connection:
            if self.is_sqlite:  # Takes the lock at once: a later upgrade could not wait.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def ping(self) -> None:
        """Raise unless the database can be read and written."""
        with self.writing() as connection:
            mark(connection, "alive", time.time())

    def close(self) -> None:
        """Close every connection."""
        self._threads.shutdown(wait=False)
        self.engine.dispose()


def mark(connection: Connection, name: str, when: float) -> None:
    """Note when something was done last, whoever else does so at once."""
    connection.execute(
        text(
            "INSERT INTO secrets (name, value) VALUES (:name, :value) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        ),
        {"name": name, "value": repr(when)},
    )


# What was said


class ReplayMismatch(PearError):
    """An idempotency key came again with another request; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key was used for another request; send a new key")


class Conflict(PearError):
    """The conversation moved on before this could be stored; nothing was changed."""

    def __init__(self, message: str = "") -> None:
        other = "someone answered in this conversation a moment ago, perhaps you in another window"
        nothing = "nothing was changed: read the conversation again"
        super().__init__(message or f"{other}; {nothing}")


StoredEvent = Mapping[str, Any]
"""What was said, as it is stored: whether it can be read depends on the problem of the day."""


@dataclass(frozen=True)
class Outcome:
    """How a conversation went, as far as the lender sees it: none of the person's data.

    ``success`` says whether there is a plan, None while that is open; ``steps`` and ``effort`` are
    the plan's, ``done`` the steps done before it; ``why`` there is none.
    """

    score: float = 0.0
    questions: int = 0
    success: bool | None = None
    steps: int | None = None
    effort: float | None = None
    done: int = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """What the lender's list says of a conversation."""

    id: str
    reference: str | None = None
    stage: str
    version: int
    created_at: float
    updated_at: float
    expires_at: float
    groups: Mapping[str, str]
    questions: int = 0
    outcome: Outcome = Outcome()


@dataclass(frozen=True, kw_only=True)
class Conversation(Line):
    """One row: what is known of a conversation at its ``version``.

    ``record`` is the one the decision was made with, ``said`` the stored form of everything that
    stands since. ``standing`` is what the person sees, computed for ``standing_version``;
    ``news`` is what happened after it, ``notices`` what they are told. ``asked`` is what of a
    correction the lender has yet to confirm.
    """

    problem_fingerprint: str
    model_fingerprint: str
    seed: int
    record: Record
    said: tuple[StoredEvent, ...] = ()
    news: News = field(default_factory=News)
    notices: tuple[Notice, ...] = ()
    key_id: str | None = None
    request_hash: str | None = None
    standing: Standing | None = None
    standing_version: int | None = None
    asked: Record = field(default_factory=dict)
    pin_hash: str | None = None
    pin_tries: int = 0
    pin_until: float = 0.0

    @property
    def expired(self) -> bool:
        return time.time() >= self.expires_at

    @property
    def worked_out(self) -> bool:
        """Whether what the person sees follows from everything said."""
        return self.standing is not None and self.standing_version == self.version

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return stored_form(vars(self))


def outcome_of(standing: Standing) -> Outcome:
    """How a conversation went so far, from where it stands."""
    outcome = Outcome(standing.score, standing.answered, done=len(standing.done))
    if standing.stage == "plan" and standing.result is not None:
        plan = standing.result.plan
        return replace(outcome, success=True, steps=len(plan.steps), effort=plan.cost)
    none = standing.stage == "no_plan"
    return replace(outcome, success=False, why=standing.why_none) if none else outcome


@dataclass(frozen=True)
class GivenPlan:
    """A plan given, in its stored form with ``honoured_until``, and the version and time it was
    given at."""

    version: int
    at: float
    plan: Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """One thing that happened, in order."""

    number: int
    kind: str
    content: Mapping[str, Any]
    at: float


@dataclass(frozen=True)
class Request:
    """A request that may come twice: its idempotency key and what it asks."""

    key: str
    content: str

    @property
    def key_hash(self) -> str:
        return hashed(self.key)

    @property
    def request_hash(self) -> str:
        return hashed(self.content)


COLUMNS = [conversations.c[column.name] for column in fields(Conversation)]
LINE = [conversations.c[column.name] for column in fields(Line)]
TYPED: dict[str, TypeAdapter[Any]] = {
    "said": TypeAdapter(tuple[StoredEvent, ...]),
    "news": TypeAdapter(News),
    "notices": TypeAdapter(tuple[Notice, ...]),
    "outcome": TypeAdapter(Outcome),
    "standing": TypeAdapter(Standing),
}
"""Columns that hold values of our own types as JSON."""

AT_ONCE = 500
"""Rows read at a time where all are read."""


class Store:
    """Conversations and what happened in them, in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, token: str, **columns: Any) -> Conversation:
        """A new conversation reached by a token, of which only the hash is kept."""
        now = time.time()
        conversation = Conversation(
            id=number_of(token), created_at=now, updated_at=now, version=0, **columns
        )
        row = conversation.to_dict()
        try:
            with self.database.writing() as connection:
                connection.execute(insert(conversations).values(token_hash=hashed(token), **row))
        except IntegrityError as error:
            raise Conflict from error
        return conversation

    def by_token(self, token: str) -> Conversation | None:
        """The conversation a link leads to, expired or not."""
        return self._one(conversations.c.token_hash == hashed(token))

    def by_id(self, conversation_id: str) -> Conversation | None:
        """The conversation with this number in the lender's list."""
        known = conversation_id.isalnum()
        return self._one(conversations.c.id == conversation_id) if known else None

    def _one(self, mine: ColumnElement[bool]) -> Conversation | None:
        with self.database.reading() as connection:
            row = connection.execute(select(*COLUMNS).where(mine)).first()
        return None if row is None else Conversation(**_typed(row))

    def history(self, conversation_id: str) -> list[Event]:
        """Everything that happened, in order."""
        query = (
            select(events.c.number, events.c.kind, events.c.content, events.c.at)
            .where(events.c.conversation_id == conversation_id)
            .order_by(events.c.number)
        )
        with self.database.reading() as connection:
            return [Event(*row) for row in connection.execute(query)]

    def plans(self, conversation_id: str) -> list[GivenPlan]:
        """Every plan given, in order."""
        query = (
            select(plans.c.version, plans.c.at, plans.c.plan)
            .where(plans.c.conversation_id == conversation_id)
            .order_by(plans.c.version)
        )
        with self.database.reading() as connection:
            return [GivenPlan(*row) for row in connection.execute(query)]

    def _promises(
        self, conversation: Conversation, plan: Plan | None, honour_days: int
    ) -> list[Notice]:
        """Until when the plan given now is honoured, and earlier ones of other models that are.

        A promise stands with the plan it was made for: neither a new model nor another setting
        takes it back.
        """
        now, found, known = time.time(), list[Notice](), list[list[tuple[str, Any]]]()
        if plan is not None and plan.steps:
            known.append([(step.feature, step.after) for step in plan.steps])
            if honour_days:
                found.append(Notice("honoured", until=now + 86400 * honour_days))
        for old in reversed(self.plans(conversation.id)):
            until, steps = old.plan.get("honoured_until", 0.0), old.plan["steps"]
            leads = [(step["feature"], step["after"]) for step in steps]
            other = old.plan["model_fingerprint"] != conversation.model_fingerprint
            if other and until > now and leads not in known:
                known.append(leads)
                names = [part.name for part in fields(DoneStep)]
                said = tuple(DoneStep(**{name: step.get(name) for name in names}) for step in steps)
                found.append(Notice("promised", until=until, steps=said))
        return found

    def replayed(self, conversation_id: str, request: Request) -> bool:
        """Whether this very request was done before; a changed one under its key is refused."""
        mine = replies.c.conversation_id == conversation_id
        query = select(replies.c.request_hash).where(
            mine & (replies.c.key_hash == request.key_hash)
        )
        with self.database.reading() as connection:
            known = connection.execute(query).scalar()
        if known is not None and known != request.request_hash:
            raise ReplayMismatch
        return known is not None

    def change(
        self,
        conversation: Conversation,
        event: StoredEvent,
        request: Request | None = None,
        **columns: Any,
    ) -> Conversation:
        """Store one event and what was said up to it, if the conversation has not changed since."""
        moved = {"version": conversation.version + 1, "updated_at": time.time(), **columns}
        content = dict(event)
        try:
            with self.database.writing() as connection:
                _update(connection, conversation, moved)
                connection.execute(
                    insert(events).values(
                        conversation_id=conversation.id,
                        number=moved["version"],
                        kind=content.pop("kind"),
                        content=content,
                        at=moved["updated_at"],
                    )
                )
                if request is not None:
                    connection.execute(
                        insert(replies).values(
                            conversation_id=conversation.id,
                            key_hash=request.key_hash,
                            request_hash=request.request_hash,
                            version=moved["version"],
                            at=moved["updated_at"],
                        )
                    )
        except IntegrityError as error:
            raise Conflict from error
        return replace(conversation, **moved)

    def keep(
        self, conversation: Conversation, plan: Plan | None, honour_days: int, **columns: Any
    ) -> Conversation:
        """Keep what was computed for this version, and the plan given with what is promised."""
        promises = self._promises(conversation, plan, honour_days)
        promise = max((one.until for one in promises if one.code == "honoured"), default=0.0)
        columns["notices"] = (*columns["notices"], *promises)
        kept = {"standing_version": conversation.version, **columns}
        with self.database.writing() as connection:
            _update(connection, conversation, kept)
            if plan is not None:
                number = (conversation.id, conversation.version)
                same = (plans.c.conversation_id == number[0]) & (plans.c.version == number[1])
                if connection.execute(select(plans.c.version).where(same)).first() is None:
                    connection.execute(
                        insert(plans).values(
                            conversation_id=number[0],
                            version=number[1],
                            plan={**plan.to_dict(), "honoured_until": promise},
                            at=time.time(),
                        )
                    )
        return replace(conversation, **kept)

    def asked(self, limit: int = 1000) -> list[dict[str, Any]]:
        """Conversations with corrections that the lender has yet to confirm, oldest first."""
        columns = [conversations.c[name] for name in ("id", "reference", "record", "asked")]
        query = select(*columns).order_by(conversations.c.updated_at)
        pending = cast(conversations.c.asked, String) != "{}"
        with self.database.reading() as connection:
            rows = connection.execute(query.where(pending).limit(limit))
            return [dict(row) for row in rows.mappings()]

    def set_pin(self, conversation_id: str, stored: str) -> bool:
        """Keep the PIN a person chose, once; whether none was chosen before."""
        mine = (conversations.c.id == conversation_id) & conversations.c.pin_hash.is_(None)
        with self.database.writing() as connection:
            kept = connection.execute(update(conversations).where(mine).values(pin_hash=stored))
        return kept.rowcount == 1

    def pin_tried(self, conversation_id: str, tries: int, until: float) -> None:
        """Store how often in a row a wrong PIN was tried."""
        mine = conversations.c.id == conversation_id
        with self.database.writing() as connection:
            connection.execute(
                update(conversations).where(mine).values(pin_tries=tries, pin_until=until)
            )

    def set_end(self, conversation_id: str, until: float, token: str | None = None) -> None:
        """Say when a link ends; with a ``token``, it is another link from now on."""
        columns: dict[str, Any] = {"expires_at": until}
        if token is not None:
            columns["token_hash"] = hashed(token)
        mine = conversations.c.id == conversation_id
        with self.database.writing() as connection:
            connection.execute(update(conversations).where(mine).values(**columns))

    def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and everything in it."""
        if not conversation_id.isalnum():
            return False
        with self.database.writing() as connection:
            gone = connection.execute(
                delete(conversations).where(conversations.c.id == conversation_id)
            )
            mark(connection, "deleted", time.time())
        return gone.rowcount == 1

    def summaries(
        self, *, limit: int = 100, offset: int = 0, stage: str | None = None, reference: str = ""
    ) -> tuple[list[Line], int]:
        """Conversations for the lender, newest first, and how many there are: those of one
        ``stage``, and those whose ``reference`` holds a text, capital letters or not."""
        named = conversations.c.reference.icontains(reference, autoescape=True)
        matching = and_(
            conversations.c.stage == stage if stage else true(), named if reference else true()
        )
        query = select(*LINE).where(matching).order_by(conversations.c.created_at.desc())
        total = select(func.count()).select_from(conversations).where(matching)
        with self.database.reading() as connection:
            rows = connection.execute(query.limit(limit).offset(offset))
            lines = [Line(**_typed(row)) for row in rows]
            return lines, int(connection.execute(total).scalar_one())

    def all_summaries(self) -> Iterator[Line]:
        """Every conversation's line, newest first, a few hundred in memory at a time."""
        when, number = conversations.c.created_at, conversations.c.id
        query = select(*LINE).order_by(when.desc(), number.desc()).limit(AT_ONCE)
        last: Line | None = None
        while True:
            after = query
            if last is not None:
                earlier = (when == last.created_at) & (number < last.id)
                after = query.where((when < last.created_at) | earlier)
            # No connection is held while a slow reader takes these.
            with self.database.reading() as connection:
                rows = [Line(**_typed(row)) for row in connection.execute(after)]
            yield from rows
            if len(rows) < AT_ONCE:
                return
            last = rows[-1]

    def serve(self, problem: str, model: str) -> None:
        """Note that services with this problem and model were started last."""
        same = (served.c.problem_fingerprint == problem) & (served.c.model_fingerprint == model)
        with self.database.writing() as connection:
            # Machines' clocks differ: what is started later counts as later all the same.
            latest = connection.execute(select(func.max(served.c.since))).scalar() or 0.0
            now = max(time.time(), latest + 0.001)
            connection.execute(delete(served).where(same))
            connection.execute(
                insert(served).values(
                    problem_fingerprint=problem, model_fingerprint=model, since=now
                )
            )

    def latest_served(self) -> tuple[str, str] | None:
        """The problem and the model that services were last started with."""
        query = select(served.c.problem_fingerprint, served.c.model_fingerprint).order_by(
            served.c.since.desc()
        )
        with self.database.reading() as connection:
            row = connection.execute(query.limit(1)).first()
        return None if row is None else (row[0], row[1])


def _update(connection: Connection, conversation: Conversation, columns: Mapping[str, Any]) -> None:
    """Write some columns of a conversation that has not changed since it was read."""
    moved = connection.execute(
        update(conversations)
        .where(
            (conversations.c.id == conversation.id)
            & (conversations.c.version == conversation.version)
        )
        .values(**stored_form(columns))
    )
    if moved.rowcount != 1:
        raise Conflict


def _typed(row: Row[Any]) -> dict[str, Any]:
    """The columns of a row in our own types; what is not stored has its default."""
    return {
        name: TYPED[name].validate_python(value) if name in TYPED else value
        for name, value in row._mapping.items()
        if value is not None or name not in TYPED
    }


def stored_form(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as they are stored."""
    return {
        name: TYPED[name].dump_python(value, exclude_defaults=True)
        if name in TYPED and value is not None
        else value
        for name, value in columns.items()
    }
