"""What has been said in each conversation, safely on disk?

A change is one transaction: the event, the new state of the conversation and the record of
the request that made it. It happens at one version of the conversation; when someone else
was faster it changes nothing and raises :class:`Conflict`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from pear.errors import PearError
from pear.service.database import Database
from pear.service.security import hashed
from pear.service.tables import conversations, events, replies


class Conflict(PearError):
    """The conversation moved on before this change could be stored; nothing was changed."""


class ReplayMismatch(PearError):
    """An idempotency key came again with another request; nothing was changed."""


@dataclass(frozen=True)
class Conversation:
    """One row: what is known of a conversation at its ``version``.

    ``view`` is what the person sees (a question, a plan, or why there is none), derived
    from ``session``; None when it has to be worked out.
    """

    id: str
    created_at: float
    updated_at: float
    expires_at: float
    stage: str
    version: int
    language: str
    problem_fingerprint: str
    model_fingerprint: str
    seed: int
    record: Mapping[str, Any]
    groups: Mapping[str, str]
    limits: Sequence[Mapping[str, Any]]
    questions: int
    reference: str | None = None
    key_id: str | None = None
    session: Mapping[str, Any] | None = None
    view: Mapping[str, Any] | None = None
    outcome: Mapping[str, Any] | None = None

    @property
    def expired(self) -> bool:
        return time.time() >= self.expires_at


@dataclass(frozen=True)
class Event:
    """One thing a person did, in order."""

    number: int
    kind: str
    content: Mapping[str, Any]
    at: float


@dataclass(frozen=True)
class Request:
    """A request that may come twice: its idempotency key and a hash of what it asks."""

    key: str
    content: str

    @property
    def key_hash(self) -> str:
        return hashed(self.key)

    @property
    def request_hash(self) -> str:
        return hashed(self.content)


@dataclass(frozen=True)
class Change:
    """An event and the columns it changes."""

    kind: str
    content: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)


COLUMNS = [conversations.c[column.name] for column in fields(Conversation)]
SUMMARY = [c for c in COLUMNS if c.name not in ("session", "view", "record", "limits")]


class Store:
    """Conversations and their events in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create(self, token: str, columns: Mapping[str, Any]) -> Conversation:
        """A new conversation reached by a token, of which only the hash is kept."""
        now = time.time()
        row = {
            "id": uuid.uuid4().hex,
            "created_at": now,
            "updated_at": now,
            "version": 0,
            "limits": [],
            "questions": 0,
            **columns,
        }
        with self.database.writing() as connection:
            connection.execute(insert(conversations).values(token_hash=hashed(token), **row))
        return Conversation(**row)

    def by_token(self, token: str) -> Conversation | None:
        """The conversation a link leads to, expired or not."""
        with self.database.reading() as connection:
            query = select(*COLUMNS).where(conversations.c.token_hash == hashed(token))
            return _conversation(connection.execute(query).first())

    def by_id(self, conversation_id: str) -> Conversation | None:
        """The conversation with this number in the lender's list."""
        with self.database.reading() as connection:
            query = select(*COLUMNS).where(conversations.c.id == conversation_id)
            return _conversation(connection.execute(query).first())

    def history(self, conversation_id: str) -> list[Event]:
        """Everything the person did, in order."""
        query = (
            select(events.c.number, events.c.kind, events.c.content, events.c.at)
            .where(events.c.conversation_id == conversation_id)
            .order_by(events.c.number)
        )
        with self.database.reading() as connection:
            return [Event(*row) for row in connection.execute(query)]

    def replayed(self, conversation_id: str, request: Request) -> bool:
        """Whether this very request was done before; a changed one under its key is refused."""
        query = select(replies.c.request_hash).where(
            (replies.c.conversation_id == conversation_id)
            & (replies.c.key_hash == request.key_hash)
        )
        with self.database.reading() as connection:
            known = connection.execute(query).scalar()
        if known is not None and known != request.request_hash:
            raise ReplayMismatch(
                "this Idempotency-Key was used for another request; send a new key with it"
            )
        return known is not None

    def change(
        self, conversation: Conversation, change: Change, request: Request | None = None
    ) -> None:
        """Store one event and what follows from it, if the conversation is still as read."""
        try:
            with self.database.writing() as connection:
                self._move_on(connection, conversation, change)
                connection.execute(
                    insert(events).values(
                        conversation_id=conversation.id,
                        number=conversation.version + 1,
                        kind=change.kind,
                        content=change.content,
                        at=time.time(),
                    )
                )
                if request is not None:
                    connection.execute(
                        insert(replies).values(
                            conversation_id=conversation.id,
                            key_hash=request.key_hash,
                            request_hash=request.request_hash,
                            version=conversation.version + 1,
                            at=time.time(),
                        )
                    )
        except IntegrityError as error:
            raise Conflict(_CONFLICT) from error

    def _move_on(self, connection: Connection, conversation: Conversation, change: Change) -> None:
        moved = connection.execute(
            update(conversations)
            .where(
                (conversations.c.id == conversation.id)
                & (conversations.c.version == conversation.version)
            )
            .values(version=conversation.version + 1, updated_at=time.time(), **change.columns)
        )
        if moved.rowcount != 1:
            raise Conflict(_CONFLICT)

    def keep_view(self, conversation: Conversation, columns: Mapping[str, Any]) -> bool:
        """Keep what was worked out for this version; not a change, and no event."""
        with self.database.writing() as connection:
            kept = connection.execute(
                update(conversations)
                .where(
                    (conversations.c.id == conversation.id)
                    & (conversations.c.version == conversation.version)
                )
                .values(**columns)
            )
        return kept.rowcount == 1

    def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and everything in it."""
        with self.database.writing() as connection:
            gone = connection.execute(
                delete(conversations).where(conversations.c.id == conversation_id)
            )
        return gone.rowcount == 1

    def delete_old(self, before: float) -> int:
        """Forget every conversation whose link ended before a time."""
        with self.database.writing() as connection:
            gone = connection.execute(
                delete(conversations).where(conversations.c.expires_at < before)
            )
        return gone.rowcount

    def summaries(
        self, *, limit: int = 100, offset: int = 0, stage: str | None = None
    ) -> tuple[list[dict[str, Any]], int]:
        """Conversations for the lender, newest first, and how many there are; no one's data."""
        matching = conversations.c.stage == stage if stage else conversations.c.id.is_not(None)
        query = select(*SUMMARY).where(matching).order_by(conversations.c.created_at.desc())
        total = select(func.count()).select_from(conversations).where(matching)
        with self.database.reading() as connection:
            rows = connection.execute(query.limit(limit).offset(offset)).mappings()
            return [dict(row) for row in rows], int(connection.execute(total).scalar_one())

    def stages(self) -> dict[str, int]:
        """How many conversations are in each stage."""
        query = select(conversations.c.stage, func.count()).group_by(conversations.c.stage)
        with self.database.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def under_other_model(self, problem: str, model: str, limit: int = 1000) -> list[str]:
        """Open conversations last worked out for another problem or model."""
        query = (
            select(conversations.c.id)
            .where(
                (conversations.c.expires_at > time.time())
                & (
                    (conversations.c.model_fingerprint != model)
                    | (conversations.c.problem_fingerprint != problem)
                )
            )
            .limit(limit)
        )
        with self.database.reading() as connection:
            return list(connection.execute(query).scalars())


_CONFLICT = (
    "someone answered in this conversation a moment ago, perhaps you in another window; "
    "nothing was changed: read the conversation again"
)


def _conversation(row: Row[Any] | None) -> Conversation | None:
    return None if row is None else Conversation(**row._mapping)
