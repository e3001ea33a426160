"""Where is everything kept, under which names, and how is it brought to the current version?

SQLite runs with a write-ahead log and full synchronisation, so a committed answer is on the disk;
PostgreSQL does that by default. Times are seconds since 1970 (UTC). Links, keys and sign-ins are
stored as hashes only.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from pear.errors import InvalidSetting, PearError
from pear.service.operation import Traces

metadata = MetaData()

conversations = Table(
    "conversations",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("request_hash", String(64)),
    Column("reference", String(200)),
    Column("key_id", String(32)),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("stage", String(20), nullable=False),
    Column("version", Integer, nullable=False),
    Column("problem_fingerprint", String(64), nullable=False),
    Column("model_fingerprint", String(64), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("record", JSON, nullable=False),
    Column("groups", JSON, nullable=False),
    Column("said", JSON, nullable=False),
    Column("questions", Integer, nullable=False),
    Column("news", JSON, nullable=False),
    Column("notices", JSON, nullable=False),
    Column("standing", JSON),
    Column("standing_version", Integer),
    Column("outcome", JSON),
    Column("asked", JSON, nullable=False),
    Column("pin_hash", String(200)),
    Column("pin_tries", Integer, nullable=False),
    Column("pin_until", Float, nullable=False),
    Index("conversations_by_time", "created_at"),
    Index("conversations_by_expiry", "expires_at"),
)
"""``record`` is the one the decision was made with; it is never written again. ``said`` is what
stands of everything said, ``standing`` what the person sees of ``standing_version``, ``asked`` the
corrections the lender has yet to confirm."""


def _of_a_conversation() -> Column[str]:
    whole = ForeignKey("conversations.id", ondelete="CASCADE")
    return Column("conversation_id", String(32), whole, nullable=False)


events = Table(
    "events",
    metadata,
    _of_a_conversation(),
    Column("number", Integer, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("content", JSON, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("conversation_id", "number"),
)
"""Everything that happened, in order; nothing is ever changed or taken out."""

plans = Table(
    "plans",
    metadata,
    _of_a_conversation(),
    Column("version", Integer, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("conversation_id", "version"),
)
"""Every plan given, with the version of the conversation it was given at."""

replies = Table(
    "replies",
    metadata,
    _of_a_conversation(),
    Column("key_hash", String(64), nullable=False),
    Column("request_hash", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("conversation_id", "key_hash"),
)

served = Table(
    "served",
    metadata,
    Column("problem_fingerprint", String(64), nullable=False),
    Column("model_fingerprint", String(64), nullable=False),
    Column("since", Float, nullable=False),
    PrimaryKeyConstraint("problem_fingerprint", "model_fingerprint"),
)
"""Which problem and model services were last started with; the latest serves everyone."""

keys = Table(
    "keys",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    Column("revoked_at", Float),
    Column("roles", String(60), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("expires_at", Float),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("key_id", String(32), nullable=False),
    Column("key_name", String(200), nullable=False),
    Column("address", String(100), nullable=False),
    Column("action", String(40), nullable=False),
    Column("target", String(200), nullable=False),
)
"""What was done with which key, from which address; triggers keep it from being changed."""

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("key_id", String(32), ForeignKey("keys.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", Float, nullable=False),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", String(200), nullable=False),
)


# The database


BUSY_SECONDS = 5
"""How long anyone waits for the database before they are told to come back."""

PATIENCE_SECONDS = 3 * BUSY_SECONDS

THREADS, MOST_WAITING = 20, 200
"""Threads that speak with the database, and how many more may wait for one of them."""

MIGRATION_LOCK = 7_305_221
"""Number of the PostgreSQL advisory lock held while the tables are brought up to date."""


Found = TypeVar("Found")


class DatabaseUnavailable(PearError):
    """The database does not answer; whether the last change was stored is not known."""


class Database:
    """An SQLite file or a PostgreSQL database, by its address."""

    def __init__(self, address: str, traces: Traces | None = None) -> None:
        self.url = _checked(address)
        self._traces = traces or Traces()
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and self.url.database:
            _make_private(Path(self.url.database))
        options: dict[str, Any] = {"pool_size": THREADS, "max_overflow": 5}
        options["pool_timeout"] = BUSY_SECONDS
        if self.is_sqlite:
            options |= {"connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
        else:
            waits = f"-c statement_timeout={1000 * PATIENCE_SECONDS} -c lock_timeout={5000}"
            reach = {"connect_timeout": BUSY_SECONDS, "tcp_user_timeout": 1000 * BUSY_SECONDS}
            options |= {"connect_args": {**reach, "options": waits}, "pool_pre_ping": True}
        self.engine: Engine = create_engine(self.url, **options)
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._writing = self.engine.execution_options(write=True)
        # SQLite has one writer at a time, and those who wait for it look again after ever longer
        # pauses: here they take turns.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="database")
        self._waiting = 0

    async def run(self, function: Callable[..., Found], *arguments: Any, **options: Any) -> Found:
        """Call what speaks with the database, away from the event loop.

        A database that hangs holds up its own threads, and nothing else of the service.
        """
        if self._waiting >= MOST_WAITING:
            raise DatabaseUnavailable("too many requests wait for the database")
        self._waiting += 1
        future = self._threads.submit(function, *arguments, **options)
        future.add_done_callback(self._one_less)
        with self._traces.span(f"database {getattr(function, '__name__', 'call')}"):
            try:
                return await asyncio.wait_for(asyncio.wrap_future(future), PATIENCE_SECONDS)
            except TimeoutError:
                raise DatabaseUnavailable("the database does not answer") from None

    def _one_less(self, _: object) -> None:
        self._waiting -= 1

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all of it is on disk when the block ends, or none of it."""
        with self._turn, self._writing.begin() as connection:
            yield connection

    def ping(self) -> None:
        """Raise unless the database can be read and written."""
        with self.writing() as connection:
            mark(connection, "alive", time.time())

    def scrub(self) -> bool:
        """Take what was deleted off the disk; whether that was possible just now. May take long.

        SQLite overwrites what is deleted, here its log is emptied as well. PostgreSQL writes the
        tables anew; its own log and any backup keep what they hold for as long as they are kept.
        """
        if self.is_sqlite:
            try:
                with self.engine.connect() as connection:
                    raw = _driver(connection)
                    return not raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except (SQLAlchemyError, sqlite3.Error):
                return False
        try:
            with self.engine.connect() as connection:
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

    def upgrade(self, revision: str = "head") -> None:
        """Bring the tables to a version; safe when several processes start at once."""
        shown = self.url.render_as_string(hide_password=True)
        try:
            with self._migrating() as connection:
                command.upgrade(_alembic(connection), revision)
        except CommandError:
            raise InvalidSetting(
                f"the database '{shown}' was written by a newer version of pear; "
                "install that version, or restore the backup made before it"
            ) from None
        except (SQLAlchemyError, sqlite3.Error) as error:
            why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise InvalidSetting(f"the database '{shown}' cannot be used ({why})") from None

    def downgrade(self, revision: str) -> None:
        """Bring the tables back to an earlier version."""
        with self._migrating() as connection:
            command.downgrade(_alembic(connection), revision)

    @contextmanager
    def _migrating(self) -> Iterator[Connection]:
        """One transaction for all versions, while no other process does the same.

        SQLite alters a table by copying and dropping it; with foreign keys enforced, the
        drop would delete every row that refers to it.
        """
        with self._writing.connect() as connection:
            if self.is_sqlite:
                _driver(connection).execute("PRAGMA foreign_keys=OFF")
            with connection.begin():
                if not self.is_sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
                yield connection
            if self.is_sqlite:
                _driver(connection).execute("PRAGMA foreign_keys=ON")

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


def newest_version() -> str:
    """The version of the tables that this package knows."""
    head = ScriptDirectory.from_config(_alembic(None)).get_current_head()
    assert head is not None
    return head


def _checked(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError:
        raise InvalidSetting(
            "'database' must be an address such as sqlite:///pear.db or "
            f"postgresql+psycopg://user@host/name (got {address!r})"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise InvalidSetting(
            f"'database' must be SQLite or PostgreSQL (got {url.drivername!r}); "
            "use sqlite:///FILE or postgresql+psycopg://…"
        )
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidSetting(
            "'database' must be a file: several processes share it; use sqlite:///pear.db"
        )
    return url


def _make_private(file: Path) -> None:
    """Have a file that only its owner reads; its log takes over the same rights."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InvalidSetting(
            f"the database '{file}' cannot be opened ({error.strerror or error})"
        ) from None


def _alembic(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that will write takes its lock at once: a later upgrade could not wait.
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
