"""Where is everything kept, and how is it brought to the current version of the tables?

SQLite runs with a write-ahead log and full synchronisation, so a committed answer is on
the disk; PostgreSQL does that by default.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from pear.errors import InvalidSetting
from pear.service.tables import conversations

BUSY_SECONDS = 30
"""How long a writer waits for another one before it gives up."""

MIGRATION_LOCK = 7_305_221
"""Number of the PostgreSQL advisory lock held while the tables are brought up to date."""


class Database:
    """An SQLite file or a PostgreSQL database, by its address."""

    def __init__(self, address: str) -> None:
        self.url = _checked(address)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and self.url.database:
            Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {"pool_size": 20, "max_overflow": 20, "pool_pre_ping": True}
        if self.is_sqlite:
            options |= {"connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
            options.pop("pool_pre_ping")
        self.engine: Engine = create_engine(self.url, **options)
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._writing = self.engine.execution_options(write=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all of it is on disk when the block ends, or none of it."""
        with self._writing.begin() as connection:
            yield connection

    def ping(self) -> None:
        """Raise unless the database answers."""
        with self.reading() as connection:
            connection.execute(text("SELECT 1"))

    def upgrade(self, revision: str = "head") -> None:
        """Bring the tables to a version; safe when several processes start at once."""
        with self._migrating() as connection:
            command.upgrade(_alembic(connection), revision)

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
        self.engine.dispose()


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


def _alembic(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that will write takes its lock at once: a later upgrade could not wait.
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
