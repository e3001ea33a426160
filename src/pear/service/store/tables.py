"""Where is everything kept, under which names, and how is it brought to the current version?

SQLite runs with a write-ahead log and full synchronisation, so a committed answer is on the disk;
PostgreSQL does that by default. Times are seconds since 1970 (UTC). Links, keys and sign-ins are
stored as hashes only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from pear.errors import InvalidSetting

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


# Reaching it


BUSY_SECONDS = 5
"""How long anyone waits for the database before they are told to come back."""

PATIENCE_SECONDS = 3 * BUSY_SECONDS

THREADS = 20
"""Threads that speak with the database."""


def open_engine(address: str) -> Engine:
    """SQLAlchemy's engine for an SQLite file or a PostgreSQL database."""
    url = _checked(address)
    options: dict[str, Any] = {"pool_size": THREADS, "max_overflow": 5}
    options["pool_timeout"] = BUSY_SECONDS
    if url.get_backend_name() == "sqlite":
        _make_private(Path(str(url.database)))
        options |= {"connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
        engine = create_engine(url, **options)
        event.listen(engine, "connect", _prepare_sqlite)
        return engine
    waits = f"-c statement_timeout={1000 * PATIENCE_SECONDS} -c lock_timeout={5000}"
    reach = {"connect_timeout": BUSY_SECONDS, "tcp_user_timeout": 1000 * BUSY_SECONDS}
    options |= {"connect_args": {**reach, "options": waits}, "pool_pre_ping": True}
    return create_engine(url, **options)


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
        if file.is_file() and os.access(file, os.R_OK | os.W_OK):
            return  # Closing a handle would drop every lock that this process has on the file.
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InvalidSetting(
            f"the database '{file}' cannot be opened ({error.strerror or error})"
        ) from None


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver begins nothing by itself: who reads and who writes begins as they need it.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


# Versions


MIGRATION_LOCK = 7_305_221
"""Number of the PostgreSQL advisory lock held while the tables are brought up to date."""


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the tables to a version; safe when several processes start at once."""
    shown = engine.url.render_as_string(hide_password=True)
    try:
        with _migrating(engine) as connection:
            command.upgrade(_migrations(connection), revision)
    except CommandError:
        raise InvalidSetting(
            f"the database '{shown}' was written by a newer version of pear; "
            "install that version, or restore the backup made before it"
        ) from None
    except (SQLAlchemyError, sqlite3.Error) as error:
        why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise InvalidSetting(f"the database '{shown}' cannot be used ({why})") from None


def downgrade(engine: Engine, revision: str) -> None:
    """Bring the tables back to an earlier version."""
    with _migrating(engine) as connection:
        command.downgrade(_migrations(connection), revision)


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """One transaction for all versions, while no other process does the same.

    SQLite alters a table by copying and dropping it; with foreign keys enforced, the
    drop would delete every row that refers to it.
    """
    sqlite = engine.dialect.name == "sqlite"
    lock = "BEGIN IMMEDIATE" if sqlite else f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
    with engine.connect() as connection:
        if sqlite:
            driver(connection).execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            connection.exec_driver_sql(lock)
            yield connection
        if sqlite:
            driver(connection).execute("PRAGMA foreign_keys=ON")


def driver(connection: Connection) -> Any:
    """The driver's own connection."""
    return connection.connection.dbapi_connection


def newest_version() -> str:
    """The version of the tables that this package knows."""
    head = ScriptDirectory.from_config(_migrations(None)).get_current_head()
    assert head is not None
    return head


def _migrations(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config
