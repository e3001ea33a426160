"""Who sees what: links, keys, forms, headers, and what is written down."""

import json
import logging
import re
import time

import pytest
from sqlalchemy import select, update
from tests.service.helpers import KEY, PERSON, Talk

from pear.service import operation
from pear.service.lender.staff import KEY_PREFIX, Keys, new_key
from pear.service.service import RateLimit
from pear.service.store.database import hashed, new_token
from pear.service.store.tables import conversations, keys, sign_ins

LENDER = {"Authorization": f"Bearer {KEY}"}


def test_tokens_and_keys_are_long_random_and_stored_as_hashes(talk):
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) == 43
    assert new_key().startswith(KEY_PREFIX)
    with talk.client.service.database.reading() as connection:
        stored = str(connection.execute(select(conversations)).mappings().all())
        stored += str(connection.execute(select(keys)).mappings().all())
    assert talk.token not in stored
    assert KEY not in stored
    assert hashed(talk.token) in stored


def test_a_wrong_link_says_no_more_than_that_there_is_none(talk):
    wrong = [new_token(), talk.token[:-1], talk.token.swapcase(), "x", "a" * 150, talk.id]
    answers = [talk.client.get(f"/api/v1/links/{token}") for token in wrong]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.json()["detail"] for answer in answers}) == 1


def test_one_person_never_reaches_another(client):
    one, two = Talk(client), Talk(client, {**PERSON, "income": 1700.0})
    one.post("limits", {"kind": "feature", "feature": "job"})
    assert two.read()["limits"] == []
    assert two.lift("1").status_code == 404
    client.delete(two.path)
    assert one.read()["limits"] != []


def test_an_ended_link_is_gone_and_takes_no_answer(talk):
    with talk.client.service.database.writing() as connection:
        connection.execute(update(conversations).values(expires_at=time.time() - 1))
    assert talk.client.get(talk.path).status_code == 410
    assert talk.post("answers", {"choice": 0}, shown="0.").status_code == 410
    assert talk.client.service.store.by_id(talk.id).version == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/conversations"),
        ("POST", "/api/v1/conversations"),
        ("GET", "/api/v1/conversations/x"),
        ("DELETE", "/api/v1/conversations/x"),
        ("GET", "/api/v1/fairness"),
        ("GET", "/api/v1/export"),
        ("GET", "/api/v1/keys"),
        ("POST", "/api/v1/keys"),
        ("DELETE", "/api/v1/keys/x"),
    ],
)
def test_the_lenders_side_needs_a_key(client, method, path):
    body = {"record": PERSON} if path.endswith("conversations") else {"name": "n"}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEY}"}):
        answer = client.request(
            method, path, headers=headers, json=body if method == "POST" else None
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_key_ends_at_once_with_everyone_signed_in(client):
    made = client.post("/api/v1/keys", json={"name": "office"}, headers=LENDER).json()
    other = {"Authorization": f"Bearer {made['key']}"}
    assert client.get("/api/v1/conversations", headers=other).status_code == 200
    service_keys = Keys(client.service.database)
    token = service_keys.sign_in(service_keys.find(made["key"]))
    assert service_keys.signed_in(token) is not None
    assert client.delete(f"/api/v1/keys/{made['id']}", headers=LENDER).status_code == 204
    assert client.get("/api/v1/conversations", headers=other).status_code == 401
    assert service_keys.signed_in(token) is None
    assert client.delete(f"/api/v1/keys/{made['id']}", headers=LENDER).status_code == 404
    entries = client.get("/api/v1/keys", headers=LENDER).json()
    assert [bool(entry["revoked_at"]) for entry in entries if entry["name"] == "office"] == [True]
    assert "key" not in entries[0]


def test_a_sign_in_is_stored_as_a_hash_and_ends(client):
    service_keys = client.service.keys
    token = service_keys.sign_in(service_keys.find(KEY))
    with client.service.database.writing() as connection:
        assert connection.execute(select(sign_ins.c.token_hash)).scalar_one() == hashed(token)
        connection.execute(update(sign_ins).values(expires_at=time.time() - 1))
    assert service_keys.signed_in(token) is None


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({}, 403),
        ({"csrf": "0" * 64}, 403),
        ({"csrf": "ü"}, 403),
    ],
)
def test_a_form_that_is_not_ours_changes_nothing(talk, form, status):
    talk.read()
    path = f"/c/{talk.token}/answer"
    answer = talk.client.post(path, data={**form, "question": "1", "choice": "0"})
    assert answer.status_code == status
    assert talk.read()["version"] == 0


def test_the_token_of_one_conversations_form_is_no_use_in_another(client):
    one, two = Talk(client), Talk(client)
    two.read()
    form = {"csrf": client.service.forms.token(one.token, two.read()["shown"]), "choice": "0"}
    assert client.post(f"/c/{two.token}/answer", data=form).status_code == 403
    assert two.read()["version"] == 0


def test_forms_must_be_forms(talk):
    path = f"/c/{talk.token}/accept"
    assert talk.client.post(path, json={"csrf": "x"}).status_code == 415


@pytest.mark.parametrize(
    "path", ["/", "/lender", "/api/v1/problem", "/nothing", "/static/page.css"]
)
def test_every_answer_carries_safe_headers(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("https", "")
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


def test_pages_with_personal_data_are_not_kept_by_anyone(talk):
    for path in (f"/c/{talk.token}", f"/c/{talk.token}/now", talk.path):
        assert talk.client.get(path).headers["cache-control"] == "no-store"


def test_style_and_scripts_may_be_kept_since_their_address_carries_the_version(client):
    assert "max-age" in client.get("/static/page.css").headers["cache-control"]
    assert client.get("/static/none.css").headers["cache-control"] == "no-store"
    assert "/static/page.css?v=" in client.get("/").text


def test_pages_hold_no_inline_script_or_style_and_point_nowhere_else(talk):
    talk.read()
    for path in ("", "/now", "/data", "/help", "/delete"):
        html = talk.client.get(f"/c/{talk.token}{path}").text
        assert not re.search(r"<script(?![^>]*\bsrc=)", html)
        assert not re.search(r"\sstyle=|<style|\son\w+=", html)
        assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", html)


def test_texts_from_outside_are_shown_as_texts(client):
    talk = Talk(client, reference="<script>alert(1)</script>")
    token = client.service.keys.sign_in(client.service.keys.find(KEY))
    client.cookies.set("pear_lender", token)
    html = client.get("/lender").text
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html
    client.delete(talk.path)


def test_the_log_names_routes_but_no_link_and_no_ones_data(talk, caplog):
    operation.LOGGER.propagate = True
    with caplog.at_level(logging.INFO, logger="pear.service"):
        operation.LOGGER.setLevel("INFO")
        talk.read()
        talk.answer(0)
        talk.client.get(f"/c/{talk.token}/now")
        talk.client.get(f"/api/v1/links/{new_token()}")
    operation.LOGGER.propagate = False
    formatter = operation.JsonLines()
    lines = [json.loads(formatter.format(record)) for record in caplog.records]
    requests = [line for line in lines if line["event"] == "request"]
    assert {line["route"] for line in requests} >= {
        "/api/v1/links/{token}",
        "/api/v1/links/{token}/answers",
        "/c/{token}/now",
    }
    assert requests[0]["conversation"] == talk.id
    text = json.dumps(lines)
    assert talk.token not in text
    assert "1500" not in text
    assert "income" not in text


def test_the_pace_recovers_with_time():
    now = [0.0]
    limit = RateLimit(2, clock=lambda: now[0])
    assert [limit.wait("a") for _ in range(3)] == [0.0, 0.0, 30.0]
    assert limit.wait("b") == 0.0
    now[0] = 30.0
    assert limit.wait("a") == 0.0
    assert limit.wait("a") > 0


def test_the_pace_forgets_the_names_seen_longest_ago():
    limit = RateLimit(1, most_names=2, clock=lambda: 0.0)
    for name in ("a", "b", "c"):
        assert limit.wait(name) == 0.0
    assert limit.wait("a") == 0.0, "forgotten, so it starts anew"
    assert limit.wait("c") > 0
