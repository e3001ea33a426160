"""One shape of errors on every route, and nothing changed by any of them."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.service.helpers import KEY, PERSON, Talk, running

from pear.errors import ModelOutput
from pear.service import service

LENDER = {"Authorization": f"Bearer {KEY}"}
SHAPE = {"type", "title", "status", "detail", "request_id", "errors"}


def check(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == SHAPE
    assert body["status"] == status
    assert body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    return body


def test_an_address_that_is_none(client):
    check(client.get("/api/v1/nothing"), 404)
    check(client.get("/nothing"), 404)


def test_a_method_that_is_none(client):
    body = client.patch("/api/v1/conversations")
    check(body, 405)
    assert "POST" in body.headers["allow"]


@pytest.mark.parametrize("path", ["/api/v1/problem", "/healthz", "/", "/lender/new"])
def test_every_other_method_has_the_same_shape(client, path):
    check(client.put(path), 405)


def test_a_body_that_is_too_large(client):
    body = b'{"record": "' + b"x" * client.service.settings.max_body + b'"}'
    check(client.post("/api/v1/conversations", content=body, headers=LENDER), 413)


def test_a_body_that_is_too_large_without_saying_so(client):
    pieces = (b"x" * 10_000 for _ in range(client.service.settings.max_body // 10_000 + 2))
    check(client.post("/api/v1/conversations", content=pieces, headers=LENDER), 413)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"record": []}',
        b'{"record": {}}',
        b'{"record": {"age": NaN}}',
        b'{"record": {"age": [1]}}',
        b'{"record": {"unknown": 1}}',
        b'{"unknown": 1, "record": {}}',
        b'{"record": {}, "days": 0}',
        b'{"record": {}, "reference": "a\\u0000b"}',
        b"\xff\xfe",
        b'{"record": {"age": 1e999}}',
        b'{"record": {"age": ' + b"9" * 400 + b"}}",
    ],
)
def test_bodies_that_mean_nothing(client, body):
    headers = {**LENDER, "Content-Type": "application/json"}
    check(client.post("/api/v1/conversations", content=body, headers=headers), 422)
    assert client.service.store.summaries()[1] == 0


def test_a_body_too_deep_to_read(client):
    headers = {**LENDER, "Content-Type": "application/json"}
    check(client.post("/api/v1/conversations", content=b"[" * 60_000, headers=headers), 400)


def test_a_record_is_refused_field_by_field(client):
    body = check(
        client.post(
            "/api/v1/conversations",
            json={"record": {**PERSON, "income": -1, "job": 3}},
            headers=LENDER,
        ),
        422,
    )
    assert {error["field"] for error in body["errors"]} == {"record.income", "record.job"}


@pytest.mark.parametrize(
    "body",
    [
        {"choice": 9},
        {"choice": -1},
        {"choice": "both"},
        {"shown": 1, "choice": 0},
        {},
        {"choice": True},
        {"choice": 0.5},
    ],
)
def test_answers_that_mean_nothing(talk, body):
    before = talk.read()
    check(talk.post("answers", body), 422)
    assert talk.read() == before


def test_a_failure_of_ours_says_nothing_about_its_cause(client, monkeypatch):
    def fail(*_arguments):
        raise RuntimeError("income was 1500")

    monkeypatch.setattr(client.service.store, "by_token", fail)
    body = check(client.get("/api/v1/links/" + "x" * 43), 500)
    assert "1500" not in str(body)


def test_a_model_that_fails_loses_no_answer_and_says_no_value(talk, monkeypatch):
    shown = talk.read()["shown"]

    async def fail(*_arguments, **_options):
        raise ModelOutput("model returned nonsense for income 1500")

    monkeypatch.setattr(talk.client.service.searchers, "run", fail)
    answer = talk.answer(0, shown)
    assert (answer.status_code, answer.json()["stage"]) == (200, "waiting")
    body = check(talk.client.get(talk.path), 500)
    assert "1500" not in str(body)
    monkeypatch.undo()
    assert talk.read()["progress"]["answered"] == 1


def test_a_browser_gets_a_page_in_plain_words(client):
    answer = client.get("/nothing", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "does not exist" in answer.text


def test_who_asks_too_often_waits_for_the_refusal_and_nobody_else_does(settings, monkeypatch):
    monkeypatch.setattr(service, "HOLD_SECONDS", 4.0)
    monkeypatch.setattr(service, "MOST_HELD", 3)
    with running(settings, link_per_minute=2) as client, ThreadPoolExecutor(3) as threads:
        talk, other = Talk(client), Talk(client)
        for _ in range(2):
            assert client.get(talk.path).status_code == 200
        held = [threads.submit(client.get, talk.path) for _ in range(3)]
        while client.service._held < 3:
            time.sleep(0.01)
        assert client.get(other.path).status_code == 200
        assert client.get(talk.path).status_code == 429, "no more are held than that"
        assert not any(one.done() for one in held)
        assert {one.result().status_code for one in held} == {429}


def test_too_many_requests_of_one_link(settings):
    with running(settings, link_per_minute=3) as client:
        talk = Talk(client)
        answers = [client.get(talk.path) for _ in range(4)]
        assert [answer.status_code for answer in answers[:3]] == [200] * 3
        check(answers[3], 429)
        assert int(answers[3].headers["Retry-After"]) >= 1
        assert Talk(client).read()["stage"] == "question", "another link is not slowed down"


def test_too_many_requests_of_one_key_or_of_a_stranger(settings):
    with running(settings, key_per_minute=2, stranger_per_minute=2) as client:
        statuses = [
            client.get("/api/v1/conversations", headers=LENDER).status_code for _ in range(3)
        ]
        assert statuses == [200, 200, 429]
        wrong = {"Authorization": "Bearer wrong"}
        statuses = [
            client.get("/api/v1/conversations", headers=wrong).status_code for _ in range(3)
        ]
        assert statuses == [401, 401, 429]
