"""What has been said in each conversation, safely on disk?

What a person says is one transaction: the event, what stands of everything said, and the record of
the request that made it. It happens at one version of the conversation; when someone else was
faster it changes nothing and raises :class:`Conflict`. What follows from it (a question, a plan) is
kept beside it when it has been computed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    Connection,
    Row,
    RowMapping,
    String,
    and_,
    cast,
    delete,
    func,
    insert,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError

from pear.elicitation.says import FORMAT
from pear.elicitation.settings import Settings as SessionSettings
from pear.elicitation.shown import Standing
from pear.errors import InvalidSetting, PearError
from pear.problem import NO_LIMITS, Plan, Problem
from pear.problem.features import Record
from pear.service.access import REPLAY_MISMATCH, ReplayMismatch, hashed, number_of
from pear.service.database import (
    Database,
    conversations,
    events,
    mark,
    plans,
    replies,
    secrets,
    served,
)
from pear.service.engine import News, Notice
from pear.service.fairness import Line, Outcome
from pear.writing import replacing


class Conflict(PearError):
    """The conversation moved on before this could be stored; nothing was changed."""


StoredEvent = Mapping[str, Any]
"""What was said, as it is stored: whether it can be read depends on the problem of the day."""


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
    outcome = Outcome(standing.score, standing.answered)
    if standing.stage == "plan" and standing.result is not None:
        plan = standing.result.plan
        return replace(outcome, success=True, steps=len(plan.steps), effort=plan.cost)
    return replace(outcome, success=False) if standing.stage == "no_plan" else outcome


@dataclass(frozen=True)
class Asked:
    """A correction that a person asked for and that the lender has yet to confirm."""

    id: str
    reference: str | None
    record: Record
    asked: Record


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
            raise Conflict(CONFLICT) from error
        return conversation

    def by_token(self, token: str) -> Conversation | None:
        """The conversation a link leads to, expired or not."""
        with self.database.reading() as connection:
            query = select(*COLUMNS).where(conversations.c.token_hash == hashed(token))
            return _conversation(connection.execute(query).first())

    def by_id(self, conversation_id: str) -> Conversation | None:
        """The conversation with this number in the lender's list."""
        if not conversation_id.isalnum():
            return None
        with self.database.reading() as connection:
            query = select(*COLUMNS).where(conversations.c.id == conversation_id)
            return _conversation(connection.execute(query).first())

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
                words = "; ".join(step["words"] for step in steps)
                found.append(Notice("promised", until=until, steps=words))
        return found

    def replayed(self, conversation_id: str, request: Request) -> bool:
        """Whether this very request was done before; a changed one under its key is refused."""
        query = select(replies.c.request_hash).where(
            (replies.c.conversation_id == conversation_id)
            & (replies.c.key_hash == request.key_hash)
        )
        with self.database.reading() as connection:
            known = connection.execute(query).scalar()
        if known is not None and known != request.request_hash:
            raise ReplayMismatch(REPLAY_MISMATCH)
        return known is not None

    def change(
        self,
        conversation: Conversation,
        event: StoredEvent,
        request: Request | None = None,
        **columns: Any,
    ) -> Conversation:
        """Store one event and what stands after it, if the conversation is still as read."""
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
            raise Conflict(CONFLICT) from error
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

    def asked(self, limit: int = 1000) -> list[Asked]:
        """Conversations with corrections that the lender has yet to confirm, oldest first."""
        columns = [conversations.c[column.name] for column in fields(Asked)]
        query = select(*columns).order_by(conversations.c.updated_at)
        pending = cast(conversations.c.asked, String) != "{}"
        with self.database.reading() as connection:
            return [Asked(*row) for row in connection.execute(query.where(pending).limit(limit))]

    def set_pin(self, conversation_id: str, stored: str) -> bool:
        """Keep the PIN a person chose, once; whether none was chosen before."""
        mine = (conversations.c.id == conversation_id) & conversations.c.pin_hash.is_(None)
        with self.database.writing() as connection:
            kept = connection.execute(update(conversations).where(mine).values(pin_hash=stored))
        return kept.rowcount == 1

    def pin_tried(self, conversation_id: str, tries: int, until: float) -> None:
        """Keep how often in a row a wrong PIN was tried."""
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

    def to_scrub(self) -> str | None:
        """The mark of what was deleted and may still be on the disk; None where nothing is."""
        with self.database.reading() as connection:
            query = select(secrets.c.value).where(secrets.c.name == "deleted")
            value: str | None = connection.execute(query).scalar()
        return value

    def scrubbed(self, deleted: str) -> None:
        """Note that what was deleted up to a mark is off the disk."""
        mine = (secrets.c.name == "deleted") & (secrets.c.value == deleted)
        with self.database.writing() as connection:
            connection.execute(delete(secrets).where(mine))

    def swept(self, now: float) -> float:
        """When the database was last swept; where it never was, when it was last written."""
        query = select(secrets.c.value).where(secrets.c.name == "swept")
        with self.database.writing() as connection:
            last = connection.execute(query).scalar()
            if last is None:
                written = connection.execute(select(func.max(conversations.c.updated_at))).scalar()
                last = now if written is None else min(now, written)
                mark(connection, "swept", last)
        return float(last)

    def delete_old(self, before: float, now: float) -> int:
        """Forget every conversation whose link ended before a time, and note when that was."""
        with self.database.writing() as connection:
            gone = connection.execute(
                delete(conversations).where(conversations.c.expires_at < before)
            )
            mark(connection, "swept", now)
            if gone.rowcount:
                mark(connection, "deleted", now)
        return gone.rowcount

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

    def under_other_model(self, problem: str, model: str, limit: int = 1000) -> list[str]:
        """Open conversations last computed for another problem or model."""
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


def _update(connection: Connection, conversation: Conversation, columns: Mapping[str, Any]) -> None:
    """Write some columns of a conversation that is still as read."""
    moved = connection.execute(
        update(conversations)
        .where(
            (conversations.c.id == conversation.id)
            & (conversations.c.version == conversation.version)
        )
        .values(**stored_form(columns))
    )
    if moved.rowcount != 1:
        raise Conflict(CONFLICT)


CONFLICT = (
    "someone answered in this conversation a moment ago, perhaps you in another window; "
    "nothing was changed: read the conversation again"
)


def _conversation(row: Row[Any] | None) -> Conversation | None:
    return None if row is None else Conversation(**_typed(row))


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


# For whoever runs the service: to fit a prior, to audit it. The lender never sees answers.


TALKED = ("question", "plan", "no_plan")
"""Stages of those who had something to say."""

NEEDED = ("id", "reference", "stage", "record", "said", "problem_fingerprint")


def stored_answers(database: Database, problem: Problem) -> Iterator[str]:
    """Conversations about a problem, oldest first, each a line of JSON as ``pear fit-prior``,
    ``pear plan`` and ``pear audit`` read them, with the limits that stand at its end.

    People who were asked something and have not answered are there too: they count among
    those who did not come to a plan. Links never opened, and people who need no plan, do not.
    """
    columns = [conversations.c[name] for name in NEEDED]
    query = (
        select(*columns)
        .where(
            (conversations.c.problem_fingerprint == problem.fingerprint)
            & conversations.c.stage.in_(TALKED)
        )
        .order_by(conversations.c.created_at, conversations.c.id)
    )
    with database.reading() as connection:
        for row in connection.execution_options(yield_per=500).execute(query).mappings():
            yield json.dumps(_line(row), ensure_ascii=False)


def _line(row: RowMapping) -> dict[str, Any]:
    events = list(row["said"])
    if row["stage"] == "plan":
        events.append({"kind": "accept", "moves": []})
    return {
        "format": FORMAT,
        "id": row["reference"] or row["id"],
        "person": row["record"],
        "limits": NO_LIMITS.to_dict(),
        "events": events,
        "settings": {"response": SessionSettings().response.to_dict()},
        "problem_fingerprint": row["problem_fingerprint"],
    }


def write_answers(database: Database, problem: Problem, path: Path) -> int:
    """The lines in a file that only its owner may read; how many there are."""
    count = 0
    try:
        with replacing(path) as part:
            part.touch(0o600)
            with part.open("w", encoding="utf-8") as stream:
                for line in stored_answers(database, problem):
                    stream.write(line + "\n")
                    count += 1
    except OSError as error:
        raise InvalidSetting(f"'{path}' cannot be written ({error.strerror or error})") from error
    return count
