"""Who may do what: roles of keys, the log, the person's own PIN, corrections to confirm."""

import re
import time

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DBAPIError
from tests.service.helpers import KEY, PERSON, Talk, running

from pear.service.lender import staff as key_rules
from pear.service.store.tables import audit, keys

LENDER = {"Authorization": f"Bearer {KEY}"}


def bearer(client, *roles, **options):
    key, _ = client.service.keys.add(" and ".join(roles), roles=roles, **options)
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("POST", "conversations", "create"),
        ("GET", "conversations", "read"),
        ("GET", "conversations/x", "read"),
        ("DELETE", "conversations/x", "administer"),
        ("GET", "fairness", "read"),
        ("GET", "export", "read"),
        ("GET", "keys", "administer"),
        ("POST", "keys", "administer"),
        ("DELETE", "keys/x", "administer"),
        ("GET", "audit", "administer"),
        ("GET", "corrections", "administer"),
        ("POST", "conversations/x/correction", "administer"),
    ],
)
def test_a_key_does_what_its_roles_say_and_nothing_else(client, method, path, role):
    body = {"conversations": {"record": PERSON}, "keys": {"name": "n"}}.get(path, {"confirm": True})
    options = {"json": body} if method == "POST" else {}
    for other in key_rules.ROLES:
        headers = bearer(client, other)
        answer = client.request(method, f"/api/v1/{path}", headers=headers, **options)
        assert (answer.status_code == 403) == (other != role), (other, answer.text)


def test_a_key_ends_on_its_day(client):
    headers = bearer(client, "read", days=1)
    assert client.get("/api/v1/conversations", headers=headers).status_code == 200
    with client.service.database.writing() as connection:
        connection.execute(
            update(keys).where(keys.c.name == "read").values(expires_at=time.time() - 1)
        )
    assert client.get("/api/v1/conversations", headers=headers).status_code == 401


def test_every_use_of_a_key_is_in_the_log_and_nothing_takes_it_out(client):
    talk = Talk(client)
    client.delete(f"/api/v1/conversations/{talk.id}", headers=LENDER)
    log = client.get("/api/v1/audit", headers=LENDER).json()
    assert [entry["action"] for entry in log[:3]] == ["read log", "delete", "make link"]
    assert log[1]["target"] == talk.id
    assert log[1]["key_name"] == "tests"
    assert log[1]["address"] == "testclient"
    database = client.service.database
    for change in (delete(audit), update(audit).values(action="nothing")):
        with pytest.raises(DBAPIError), database.writing() as connection:
            connection.execute(change)
    assert client.get("/api/v1/audit", headers=LENDER).json()[2]["action"] == "delete"


def test_someone_who_guesses_keys_locks_nobody_else_out(settings):
    with running(settings, stranger_per_minute=2) as client:

        def sign_in(key):
            csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/lender").text)[1]
            return client.post("/lender/sign-in", data={"csrf": csrf, "key": key}).status_code

        assert [sign_in("wrong") for _ in range(4)][-1] == 429
        assert sign_in(KEY) == 303, "from the same address, with the right key"
        log = client.get("/api/v1/audit", headers={"Authorization": f"Bearer {KEY}"}).json()
        refused = [entry for entry in log if entry["action"] == "sign in refused"]
        assert len(refused) == 2, "a log that nobody can shorten is not for guessers to fill"


def test_someone_who_invents_links_is_a_stranger_and_slows_down_nobody_else(settings):
    with running(settings, stranger_per_minute=3) as client:
        talk = Talk(client)
        invented = [client.get(f"/c/{i:0>43}", headers={"Accept": "a/b"}) for i in range(5)]
        assert [answer.status_code for answer in invented] == [404, 404, 404, 429, 429]
        assert talk.read()["stage"] == "question"


def test_cookies_stay_on_https_where_the_service_is_reached_by_it(settings):
    with running(settings, base_url="https://bank.example", trusted_hosts=("*",)) as client:
        assert "secure" in client.get("/lender").headers["set-cookie"].lower()


# The person's own PIN


@pytest.fixture
def locked(settings):
    with running(settings, pin=True) as client:
        yield client, Talk(client)


def test_a_link_alone_opens_nothing_where_the_person_has_a_pin(locked):
    client, talk = locked
    assert client.get(talk.path).status_code == 401
    assert client.put(f"{talk.path}/pin", json={"pin": "2846"}).status_code == 204
    assert client.put(f"{talk.path}/pin", json={"pin": "1111"}).status_code == 409
    for path in ("", "/receipt", "/everything"):
        assert client.get(talk.path + path).status_code == 401
    assert client.delete(talk.path).status_code == 401
    assert client.post(f"{talk.path}/accept", json={"shown": "0."}).status_code == 401
    view = client.get(talk.path, headers={"X-PIN": "2846"}).json()
    assert view["stage"] == "question"


def test_wrong_pins_are_counted(locked):
    client, talk = locked
    client.put(f"{talk.path}/pin", json={"pin": "2846"})
    for _ in range(5):
        assert client.get(talk.path, headers={"X-PIN": "0000"}).status_code == 401
    answer = client.get(talk.path, headers={"X-PIN": "2846"})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 60


def test_on_the_page_the_pin_is_chosen_once_and_remembered_by_this_browser(locked):
    client, talk = locked
    page = client.get(f"/c/{talk.token}", headers={"Accept": "text/html"})
    assert page.status_code == 401
    assert "Choose a PIN" in page.text
    csrf = re.search(r'name="csrf" value="([^"]+)"', page.text)[1]

    def give(pin):
        return client.post(f"/c/{talk.token}/pin", data={"csrf": csrf, "pin": pin})

    assert give("12").status_code == 422
    assert give("2846").status_code == 303
    assert client.get(f"/c/{talk.token}").status_code == 200
    client.cookies.clear()
    page = client.get(f"/c/{talk.token}/now", headers={"Accept": "text/html"})
    assert "Enter your PIN" in page.text
    assert give("0000").status_code == 401
    assert give("2846").status_code == 303
    assert client.get(f"/c/{talk.token}").status_code == 200


# Corrections


def test_what_nobody_changes_by_themselves_waits_for_the_lender(talk):
    client = talk.client
    before = talk.read()
    view = talk.correct({**PERSON, "age": 30, "income": 1700.0}).json()
    assert any("only the lender can change" in notice for notice in view["notices"])
    talk.post("accept")
    start = client.get(f"{talk.path}/receipt").json()["start"]
    assert (start["age"], start["income"]) == (41, 1700.0)
    [asked] = client.get("/api/v1/corrections", headers=LENDER).json()
    assert (asked["id"], asked["asked"]) == (talk.id, {"age": 30})
    decide = f"/api/v1/conversations/{talk.id}/correction"
    assert client.post(decide, json={"confirm": True}, headers=LENDER).status_code == 204
    view = talk.read()
    assert any("agreed to your correction" in notice for notice in view["notices"])
    assert client.get(f"{talk.path}/receipt").json()["start"]["age"] == 30
    assert client.get("/api/v1/corrections", headers=LENDER).json() == []
    assert client.post(decide, json={"confirm": True}, headers=LENDER).status_code == 404
    assert view["version"] > before["version"]


def test_a_correction_the_lender_declines_is_said_to_be(talk):
    talk.correct({**PERSON, "age": 30})
    decide = f"/api/v1/conversations/{talk.id}/correction"
    talk.client.post(decide, json={"confirm": False}, headers=LENDER)
    assert any("did not agree" in notice for notice in talk.read()["notices"])
    kinds = [event.kind for event in talk.client.service.store.history(talk.id)]
    assert kinds == ["correct", "declined"]


def test_scores_are_whole_points_and_the_model_cannot_be_asked_about_everyone(talk, monkeypatch):
    from pear.service import conversations

    monkeypatch.setattr(conversations, "MOST_CORRECTIONS", 3)
    for number in range(3):
        view = talk.correct({**PERSON, "income": 1600.0 + number}).json()
        assert view["score"] == round(view["score"], 2)
    assert talk.correct({**PERSON, "income": 1700.0}).status_code == 409
