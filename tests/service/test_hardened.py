"""What went wrong under attack, under load, or on a bad day, and must not again."""

import asyncio
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import uvicorn
from sqlalchemy import delete, text, update
from sqlalchemy.exc import OperationalError
from tests.service.helpers import KEY, PERSON, PROBLEM, Talk, running

from pear.errors import InvalidSetting, WorkerFailed
from pear.problem import Feature, FeatureSpace
from pear.service import conversations as talks
from pear.service import operation
from pear.service.store import database as store
from pear.service.store.database import Database
from pear.service.store.tables import conversations, secrets, upgrade
from pear.service.store.upkeep import MOST_JUMP, forget_old, to_scrub

LENDER = {"Authorization": f"Bearer {KEY}"}


# What was said is what was shown


@pytest.mark.parametrize("what", ["answers", "undo", "accept", "resume", "limits", "done"])
def test_whatever_is_said_about_something_that_no_longer_stands_changes_nothing(talk, what):
    shown = talk.read()["shown"]
    present = talk.answer(0, shown).json()
    body = {
        "answers": {"choice": 0},
        "limits": {"kind": "feature", "feature": "job"},
        "done": {"steps": 1},
    }.get(what)
    answer = talk.post(what, body, shown=shown)
    assert answer.status_code == 409
    assert answer.json()["present"] == present
    assert talk.client.service.store.by_id(talk.id).version == 1


def test_a_question_of_the_same_number_from_another_model_is_not_answered(settings):
    with running(settings) as client:
        talk = Talk(client)
        old = talk.read()
        _, _, question = old["shown"].partition(".")
    with running(settings, shift=-0.4) as client:
        talk.client = client
        new = talk.read()
        assert new["question"]["number"] == old["question"]["number"]
        assert talk.answer(0, old["shown"]).status_code == 409
        forged = f"{new['version']}.{question}"
        assert talk.answer(0, forged).status_code == 409, "the version alone is not enough"
        assert talk.read()["progress"]["answered"] == 0


def test_a_step_done_in_an_old_window_does_not_mark_the_next_one(talk):
    view = talk.finish(1)
    assert talk.post("done", {"steps": 1}, shown=view["shown"]).status_code == 200
    assert talk.post("done", {"steps": 1}, shown=view["shown"]).status_code == 409
    events = talk.client.service.store.history(talk.id)
    assert [event.kind for event in events].count("done") == 1


def test_a_pair_of_limits_is_lifted_together(talk):
    for feature in ("income", "savings", "job"):
        view = talk.post("limits", {"kind": "feature", "feature": feature}).json()
    pair = next((x["limits"] for x in view["no_plan"]["loosenings"] if len(x["limits"]) > 1), None)
    ids = ",".join(pair or [view["limits"][0]["id"], view["limits"][1]["id"]])
    answer = talk.lift(ids)
    assert answer.status_code == 200
    assert len(answer.json()["limits"]) == 1


def test_effort_is_relative_to_the_best_plan(client):
    efforts = []
    for income in (1500.0, 1700.0, 1900.0):
        question = Talk(client, {**PERSON, "income": income}).read()["question"]
        efforts += [plan["effort"] for plan in question["plans"]]
    assert all(effort >= 0.99 for effort in efforts)
    assert any(effort > 1.01 for effort in efforts)


def test_links_and_keys_asked_for_twice_are_made_once(client):
    headers = {**LENDER, "Idempotency-Key": "one"}
    body = {"record": PERSON, "reference": "A 1"}
    first = client.post("/api/v1/conversations", json=body, headers=headers).json()
    again = client.post("/api/v1/conversations", json=body, headers=headers).json()
    assert first == again
    assert client.service.store.summaries()[1] == 1
    other = {**body, "reference": "A 2"}
    answer = client.post("/api/v1/conversations", json=other, headers=headers)
    assert answer.status_code == 422
    keys = [
        client.post("/api/v1/keys", json={"name": "office"}, headers=headers).json()
        for _ in range(2)
    ]
    assert keys[0] == keys[1]
    answer = client.post("/api/v1/keys", json={"name": "other"}, headers=headers)
    assert answer.status_code == 422


# Hosts, sizes and times


def test_a_name_that_is_not_ours_is_not_answered_or_led_anywhere(client):
    for path in ("/", "/lender", "/api/v1/problem", "/static"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert answer.status_code == 400
        assert "evil" not in str(answer.headers)
    assert client.get("/healthz", headers={"Host": "10.0.0.7:8000"}).status_code == 200


def test_the_number_a_proxy_gave_a_request_is_kept_and_anything_else_is_not(client):
    kept = client.get("/healthz", headers={"X-Request-ID": "proxy-4711-abc"})
    assert kept.headers["X-Request-ID"] == "proxy-4711-abc"
    for odd in ("short", "with space and more", '{"level": "error"}'):
        answer = client.get("/healthz", headers={"X-Request-ID": odd})
        assert answer.headers["X-Request-ID"] != odd


async def _answer(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = b"ok" if scope["path"] == "/" else bytes(20_000_000)
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def guarded(monkeypatch):
    """A server with room for ten connections, each with half a second for its request."""
    limits = operation.Limits()
    limits.header_seconds, limits.most_connections = 0.5, 10
    limits.body_seconds = 0.5
    monkeypatch.setattr(operation, "LIMITS", limits)
    config = uvicorn.Config(
        _answer,
        port=0,
        http=operation.GuardedConnection,
        lifespan="off",
        log_level="error",
        ws="none",
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield running.servers[0].sockets[0].getsockname()
    running.should_exit = True
    thread.join()


def _ask(address):
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return connection.recv(1000)


def test_connections_that_say_nothing_never_keep_others_out(guarded):
    silent = [socket.create_connection(guarded, timeout=5) for _ in range(60)]
    assert b"200 OK" in _ask(guarded)
    for connection in silent:
        connection.close()


def test_a_request_that_never_ends_is_ended(guarded):
    with socket.create_connection(guarded, timeout=5) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 4 and slow.send(b"X: y\r\n"):
                time.sleep(0.1)
        assert time.monotonic() - began < 4


def test_who_takes_nothing_of_an_answer_is_ended_and_who_takes_it_slowly_is_not(guarded):
    ask = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with socket.create_connection(guarded, timeout=5) as deaf:
        deaf.sendall(ask)
        _until(lambda: not operation.LIMITS.open)
    with socket.create_connection(guarded, timeout=5) as slow:
        slow.sendall(ask)
        taken = 0
        while some := slow.recv(1_000_000):
            taken += len(some)
            time.sleep(0.02)
    assert taken > 20_000_000


# Gone means gone


def _files_of(database):
    if database.is_sqlite:
        return list(Path(database.url.database).parent.glob("*"))
    with database.writing() as connection:
        connection.execute(text("CHECKPOINT"))
        folder = connection.execute(text("SHOW data_directory")).scalar_one()
    return list((Path(folder) / "base").rglob("*"))


def _copies(database, secret):
    files = [file for file in _files_of(database) if file.is_file()]
    return sum(secret in _content(file) for file in files)


def _content(file):
    try:
        return file.read_bytes()
    except FileNotFoundError:
        # PostgreSQL removes files of its own at any time.
        return b""


@pytest.mark.parametrize("how", ["the person", "age"])
def test_what_is_deleted_is_not_on_the_disk_any_more(client, how):
    name = f"marked-{how.replace(' ', '-')}-{time.time_ns()}"
    talk = Talk(client, reference=name)
    talk.answer(0)
    talk.finish()
    database = client.service.database
    assert _copies(database, name.encode()) > 0
    if how == "the person":
        client.delete(talk.path)
    else:
        with database.writing() as connection:
            connection.execute(update(conversations).values(expires_at=1.0))
        client.portal.call(forget_old, client.service)
    _until(lambda: _copies(database, name.encode()) == 0)
    _until(lambda: to_scrub(client.service.database) is None)


def _until(holds, seconds=20.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.05)


def test_what_could_not_be_overwritten_at_once_is_later_and_after_a_restart(settings, monkeypatch):
    name = f"marked-later-{time.time_ns()}"
    with running(settings) as client:
        talk = Talk(client, reference=name)
        with monkeypatch.context() as patched:
            patched.setattr("pear.service.store.upkeep._scrub", lambda database: False)
            assert client.delete(talk.path).status_code == 204
            assert to_scrub(client.service.database) is not None
    with running(settings) as client:
        _until(lambda: to_scrub(client.service.database) is None)
        assert _copies(client.service.database, name.encode()) == 0


def test_what_the_lender_calls_a_person_does_not_outlive_the_conversation(client):
    talk = Talk(client, reference="application 4711")
    client.delete(talk.path)
    log = client.get("/api/v1/audit", headers=LENDER).json()
    made = next(entry for entry in log if entry["action"] == "make link")
    assert made["target"] == talk.id
    assert "4711" not in str([entry for entry in log if entry["number"] >= made["number"]])


def test_a_clock_that_jumped_ahead_deletes_nothing_and_says_so(settings, monkeypatch, caplog):
    with running(settings) as client:
        talk, service = Talk(client), client.service
        assert asyncio.run(forget_old(service)) == 0
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 121 * 86400)
        assert now + 121 * 86400 - now > MOST_JUMP
        assert asyncio.run(forget_old(service)) == 0
        assert service.store.by_id(talk.id) is not None
        service.settings = service.settings.model_copy(update={"accept_clock": True})
        assert asyncio.run(forget_old(service)) == 1


def test_a_clock_that_is_ahead_at_the_first_sweep_of_all_deletes_nothing(settings, monkeypatch):
    with running(settings) as client:
        talk, service = Talk(client), client.service
        with service.database.writing() as connection:
            connection.execute(delete(secrets).where(secrets.c.name == "swept"))
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 121 * 86400)
        assert client.portal.call(forget_old, service) == 0
        assert service.store.by_id(talk.id) is not None


# Ready means ready


def test_a_service_that_a_newer_one_took_over_from_is_not_ready(settings, monkeypatch):
    with running(settings) as old:
        assert old.get("/readyz").status_code == 200
        behind = time.time() - 3600
        monkeypatch.setattr(time, "time", lambda: behind)
        with running(settings, shift=0.1) as new:
            assert new.get("/readyz").status_code == 200, "although its clock is behind"
            assert old.get("/readyz").status_code == 503


def test_two_probes_at_once_are_both_answered(settings):
    with running(settings) as client, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.get("/readyz").status_code, range(24)))
    assert set(answers) == {200}


def test_not_ready_where_the_database_cannot_be_written_or_no_searcher_answers(client, monkeypatch):
    assert client.get("/readyz").status_code == 200

    async def fail(*_arguments, **_options):
        raise WorkerFailed("lost")

    with monkeypatch.context() as patched:
        patched.setattr(client.service.searchers, "run", fail)
        assert client.get("/readyz").status_code == 503


def test_a_database_that_fails_is_a_503_that_claims_nothing(talk, monkeypatch):
    shown = talk.read()["shown"]

    def fail(*_arguments, **_columns):
        raise OperationalError("UPDATE", {}, Exception("server closed the connection: 1500"))

    with monkeypatch.context() as patched:
        patched.setattr(talk.client.service.store, "change", fail)
        answer = talk.answer(0, shown)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "not known" in answer.json()["detail"]
    assert "1500" not in answer.text
    assert talk.answer(0, shown).status_code == 200


def test_a_database_that_hangs_holds_up_nobody_else(talk, monkeypatch):
    from pear.service.store import tables

    monkeypatch.setattr(tables, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(talk.client.service.store, "by_token", lambda _: time.sleep(0.6))
    assert talk.client.get(talk.path).status_code == 503
    assert talk.client.get("/healthz").status_code == 200


def test_metrics_need_no_database(client, monkeypatch):
    monkeypatch.setattr(client.service, "database", None)
    assert client.get("/metrics").status_code == 200


# Small things that were not


def test_a_zero_in_an_address_is_not_found(client):
    for path in ("conversations/%00", "conversations/a%00b", "links/%00", f"links/{'%00' * 43}"):
        assert client.get(f"/api/v1/{path}", headers=LENDER).status_code == 404
    for path in ("conversations/%00", "keys/%00"):
        assert client.delete(f"/api/v1/{path}", headers=LENDER).status_code == 404


def test_downloads_hold_every_line_however_many(client, monkeypatch):
    monkeypatch.setattr(store, "AT_ONCE", 2)
    for number in range(5):
        Talk(client, reference=f"A {number}")
    lines = client.get("/api/v1/export", headers=LENDER).json()
    assert [x["reference"] for x in lines["conversations"]] == [f"A {4 - i}" for i in range(5)]
    assert lines["total"] == 5


def test_groups_of_a_number_without_a_scale_are_by_tens():
    features = (Feature("age", "integer", 18, 99, immutable=True, protected=True),)
    problem = type("P", (), {"space": FeatureSpace(features)})
    assert talks.groups_of(problem, {"age": 41}) == {"age": "40 to 49"}
    bare = (Feature("age", "integer", immutable=True, protected=True),)
    problem = type("P", (), {"space": FeatureSpace(bare)})
    assert talks.groups_of(problem, {"age": 41}) == {"age": "40 to 49"}
    assert PROBLEM.space["age"].scale == (18, 99)


def test_only_its_owner_reads_the_database(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'a' / 'pear.db'}")
    upgrade(database.engine)
    for file in (tmp_path / "a").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    database.close()


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be used"),
        ("sqlite:////proc/none/pear.db", "cannot be opened"),
    ],
)
def test_a_database_out_of_reach_is_told_in_one_line(address, told):
    with pytest.raises(InvalidSetting, match=told) as caught:
        upgrade(Database(address).engine)
    assert "\n" not in str(caught.value)


def test_a_database_of_a_newer_version_is_told_in_one_line(address):
    database = Database(address)
    upgrade(database.engine)
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InvalidSetting, match="newer version of pear") as caught:
        upgrade(database.engine)
    assert "\n" not in str(caught.value)
    database.close()
