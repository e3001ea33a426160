"""The tables: from the first version on, on both databases, and started by many at once."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from pear.errors import InvalidSetting
from pear.service.store.database import Database, Store
from pear.service.store.tables import downgrade, metadata, newest_version, open_engine, upgrade

FIRST_VERSION_ROW = """
INSERT INTO conversations (id, token_hash, created_at, updated_at, expires_at, stage, version,
    problem_fingerprint, model_fingerprint, seed, record, limits, session, view, outcome)
VALUES ('c1', 'h1', 1.0, 2.0, 3.0, 'question', 1, 'p', 'm', 7, '{"age": 41}', '[]',
    '{"answers": []}', NULL, NULL)
"""


@pytest.fixture
def database(address):
    database = Database(address)
    yield database
    database.close()


def version_of(database):
    with database.reading() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def test_the_migrations_lead_to_the_tables_the_code_uses(database):
    upgrade(database.engine)
    assert version_of(database) == newest_version()
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_what_the_first_version_stored_is_still_there(database):
    upgrade(database.engine, "0001")
    with database.writing() as connection:
        connection.execute(text(FIRST_VERSION_ROW))
        connection.execute(
            text("INSERT INTO events VALUES ('c1', 1, 'answer', '{\"choice\": 0}', 2.0)")
        )
    upgrade(database.engine)
    store = Store(database)
    kept = store.by_id("c1")
    assert (kept.record, kept.seed, kept.stage) == ({"age": 41}, 7, "question")
    assert (kept.groups, kept.questions, kept.reference, kept.standing) == ({}, 0, None, None)
    assert [(event.kind, event.content) for event in store.history("c1")] == [
        ("answer", {"choice": 0})
    ]


def test_a_version_can_be_taken_back_and_reached_again(database):
    upgrade(database.engine)
    downgrade(database.engine, "0001")
    assert version_of(database) == "0001"
    upgrade(database.engine)
    assert version_of(database) == newest_version()


def test_several_processes_may_start_at_once(address):
    databases = [Database(address) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(upgrade, [database.engine for database in databases]))
    assert {version_of(database) for database in databases} == {newest_version()}
    for database in databases:
        database.close()


def test_sqlite_puts_a_committed_answer_on_disk(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    with database.reading() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
    database.close()


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("mysql://host/name", "SQLite or PostgreSQL"),
        ("no address", "sqlite:///pear.db"),
        ("sqlite://", "must be a file"),
    ],
)
def test_an_address_that_cannot_work_is_refused_with_one_that_can(address, remedy):
    with pytest.raises(InvalidSetting, match=remedy):
        Database(address)


def test_a_process_that_opens_the_file_twice_keeps_its_hold_on_it(tmp_path):
    """Closing any handle of a file drops the locks of its whole process: another process would
    then take itself for the last one, and delete the log that the first still writes to."""
    file = tmp_path / "pear.db"
    first = open_engine(f"sqlite:///{file}")
    upgrade(first)
    with first.connect() as connection:
        connection.exec_driver_sql("create table things (name text)")
        connection.commit()
        open_engine(f"sqlite:///{file}")
        another = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
            "c.execute(\"insert into things values ('a')\"); c.commit(); c.close()"
        )
        subprocess.run([sys.executable, "-c", another, str(file)], check=True)
        assert file.with_name("pear.db-wal").exists()
        assert connection.exec_driver_sql("select count(*) from things").scalar() == 1
