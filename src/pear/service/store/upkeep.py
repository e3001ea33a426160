"""Which upkeep does the store need, and what can an operator do with it?

Old conversations are forgotten, what was deleted is taken off the disk, open conversations are
carried over to a new model, and what people answered is written to a file: to fit a prior, to
audit. The lender never sees answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import RowMapping, delete, func, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from pear.elicitation.says import FORMAT
from pear.elicitation.settings import Settings as SessionSettings
from pear.errors import InvalidSetting, PearError
from pear.problem import NO_LIMITS, Problem
from pear.service.operation import note
from pear.service.schemas import ServiceError
from pear.service.store.database import Database, mark
from pear.service.store.tables import conversations, driver, secrets
from pear.writing import replacing

if TYPE_CHECKING:
    from pear.service.service import Service


# When nobody asks

MOST_JUMP = 7 * 86400.0
"""Seconds that may lie between two sweeps before the clock is doubted."""


async def run_upkeep(service: Service) -> None:
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
    ahead = now - await service.database.run(_last_sweep, service.database, now)
    if ahead > MOST_JUMP + 2 * settings.sweep_seconds and not settings.accept_clock:
        note(
            "nothing deleted: the clock is ahead of the last sweep by more than a week; if it is "
            "right, start once with --accept-clock",
            level=logging.ERROR,
            days=round(ahead / 86400),
        )
        return 0
    before = now - 86400 * settings.retention_days
    gone = await service.database.run(_delete_old, service.database, before, now)
    if gone:
        note("forgotten", conversations=gone)
    service.scrubber.start()
    return gone


def _last_sweep(database: Database, now: float) -> float:
    """When the database was last swept; where it never was, when it was last written."""
    query = select(secrets.c.value).where(secrets.c.name == "swept")
    with database.writing() as connection:
        last = connection.execute(query).scalar()
        if last is None:
            written = connection.execute(select(func.max(conversations.c.updated_at))).scalar()
            last = now if written is None else min(now, written)
            mark(connection, "swept", last)
    return float(last)


def _delete_old(database: Database, before: float, now: float) -> int:
    """Forget every conversation whose link ended before a time, and note when that was."""
    with database.writing() as connection:
        gone = connection.execute(delete(conversations).where(conversations.c.expires_at < before))
        mark(connection, "swept", now)
        if gone.rowcount:
            mark(connection, "deleted", now)
    return gone.rowcount


async def recheck_open(service: Service) -> int:
    """After a change of model or problem: compute every open conversation again."""
    checked = 0
    serves = service.conversations.serves
    stale = await service.database.run(under_other_model, service.database, *serves)
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


def under_other_model(database: Database, problem: str, model: str, limit: int = 1000) -> list[str]:
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
    with database.reading() as connection:
        return list(connection.execute(query).scalars())


# Off the disk


class Scrubber:
    """Removes deleted data from the disk in the background, until that is done.

    PostgreSQL's tables are written anew for it, at most every so many seconds.
    """

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = 0.0 if database.is_sqlite else seconds
        self._last = -math.inf
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, unless it is at work."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """End; what is left is done after the next start."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        run = self._database.run
        # A database that does not answer is asked again by the next sweep.
        with suppress(PearError, SQLAlchemyError):
            while await run(to_scrub, self._database) is not None:
                await asyncio.sleep(max(0.0, self._last + self._seconds - time.monotonic()))
                deleted = await run(to_scrub, self._database)
                done = await run_in_threadpool(_scrub, self._database)
                self._last = time.monotonic()
                if done and deleted is not None:
                    await run(_scrubbed, self._database, deleted)
                else:
                    await asyncio.sleep(1)


def to_scrub(database: Database) -> str | None:
    """The mark of deleted data that may still be on the disk; None where there is none."""
    with database.reading() as connection:
        query = select(secrets.c.value).where(secrets.c.name == "deleted")
        value: str | None = connection.execute(query).scalar()
    return value


def _scrubbed(database: Database, deleted: str) -> None:
    """Note that data deleted up to a mark is off the disk."""
    mine = (secrets.c.name == "deleted") & (secrets.c.value == deleted)
    with database.writing() as connection:
        connection.execute(delete(secrets).where(mine))


def _scrub(database: Database) -> bool:
    """Remove deleted data from the disk; return whether that was possible just now. May take long.

    SQLite overwrites what is deleted, here its log is emptied as well. PostgreSQL writes the
    tables anew; its own log and any backup keep what they hold for as long as they are kept.
    """
    if database.is_sqlite:
        try:
            with database.engine.connect() as connection:
                raw = driver(connection)
                return not raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except (SQLAlchemyError, sqlite3.Error):
            return False
    try:
        with database.engine.connect() as connection:
            free = connection.execution_options(isolation_level="AUTOCOMMIT")
            free.execute(text("SET statement_timeout = 0"))
            try:
                for name in ("conversations", "events", "plans", "replies"):
                    free.execute(text(f"VACUUM FULL {name}"))
            finally:
                free.execute(text("RESET statement_timeout"))
    except SQLAlchemyError:
        return False
    return True


# For whoever runs the service


def existing_database(address: str) -> Database:
    """The database of a service at an address; where there is none, none is made."""
    try:
        url = make_url(address)
    except ArgumentError:
        return Database(address)
    file = url.database if url.get_backend_name() == "sqlite" else None
    if file and not Path(file).is_file():
        raise InvalidSetting(
            f"there is no database '{file}'; give the one of the service with --database"
        )
    database = Database(address)
    try:
        with database.reading() as connection:
            served = inspect(connection).has_table(conversations.name)
    except (SQLAlchemyError, sqlite3.Error) as error:
        database.close()
        raise InvalidSetting(
            f"the database '{file or url}' cannot be read ({getattr(error, 'orig', error)}); give "
            "the one of the service with --database"
        ) from None
    if not served:
        database.close()
        raise InvalidSetting(
            f"'{file or url}' is no database of 'pear serve': it has no conversations; give the "
            "one of the service with --database"
        )
    return database


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
