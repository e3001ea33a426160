"""The lender's side: what is shown, what is not, and whether groups fare alike."""

import csv
import io
import re

import pytest
from tests.service.helpers import KEY, PERSON, PROBLEM, RICH, Talk

from pear.service.conversations import groups_of
from pear.service.lender import as_csv, fairness

LENDER = {"Authorization": f"Bearer {KEY}"}


def test_the_list_shows_how_conversations_go_and_nothing_of_their_content(client):
    talk = Talk(client, reference="application 12")
    talk.finish()
    Talk(client, RICH)
    page = client.get("/api/v1/conversations", headers=LENDER).json()
    assert page["total"] == 2
    newest, oldest = page["conversations"]
    assert (newest["stage"], newest["success"]) == ("favourable", None)
    assert oldest["reference"] == "application 12"
    assert (oldest["stage"], oldest["success"]) == ("plan", True)
    assert oldest["questions"] >= 1
    assert oldest["steps"] >= 1
    assert "1500" not in str(page)
    assert talk.token not in str(page)
    only = client.get("/api/v1/conversations?stage=plan&limit=1", headers=LENDER).json()
    assert [line["id"] for line in only["conversations"]] == [talk.id]
    one = client.get(f"/api/v1/conversations/{talk.id}", headers=LENDER).json()
    assert one == oldest


def test_the_lender_can_delete_a_conversation(client):
    talk = Talk(client)
    assert client.delete(f"/api/v1/conversations/{talk.id}", headers=LENDER).status_code == 204
    assert client.delete(f"/api/v1/conversations/{talk.id}", headers=LENDER).status_code == 404
    assert client.get(talk.path).status_code == 404


def test_downloads_hold_every_line(client):
    for _ in range(3):
        Talk(client)
    text = client.get("/api/v1/export?format=csv", headers=LENDER).text
    assert len(list(csv.DictReader(io.StringIO(text)))) == 3
    assert client.get("/api/v1/export", headers=LENDER).json()["total"] == 3
    assert client.get("/api/v1/export?format=xml", headers=LENDER).status_code == 422


def test_fairness_by_hand():
    def row(group, success, effort, questions):
        outcome = {"success": success, "effort": effort}
        return {"groups": {"sex": group}, "outcome": outcome, "questions": questions}

    rows = [row("female", True, 10.0, 2)] * 4 + [row("female", False, None, 4)]
    rows += [row("male", True, 5.0, 1)] * 4 + [{**row("male", True, 5.0, 1), "outcome": None}]
    female, male = fairness(rows)
    assert female == {
        "feature": "sex",
        "group": "female",
        "people": 5,
        "validity": pytest.approx(4 / 5),
        "effort": pytest.approx(10.0),
        "questions": pytest.approx((4 * 2 + 4) / 5),
    }
    assert (male["people"], male["validity"], male["effort"]) == (4, None, None), "too few"


def test_groups_are_of_protected_features_only():
    assert groups_of(PROBLEM, PERSON) == {"age": "40 to 49"}
    assert groups_of(PROBLEM, {**PERSON, "age": 99}) == {"age": "90 to 99"}


def test_the_service_reports_fairness_of_ended_conversations(client):
    for _ in range(5):
        Talk(client).post("accept")
    Talk(client)
    [group] = client.get("/api/v1/fairness", headers=LENDER).json()["groups"]
    assert (group["feature"], group["group"], group["people"]) == ("age", "40 to 49", 5)
    assert group["validity"] == 1.0
    assert group["questions"] == 0.0


def test_a_table_opened_in_a_spreadsheet_runs_nothing():
    text = "".join(as_csv([{"id": "1", "reference": "=HYPERLINK(1)"}]))
    assert "'=HYPERLINK(1)" in text


def sign_in(client, key=KEY):
    html = client.get("/lender").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', html)[1]
    return client.post("/lender/sign-in", data={"csrf": csrf, "key": key})


def test_signing_in_and_out_on_the_page(client):
    assert sign_in(client, "wrong").status_code == 401
    answer = sign_in(client)
    assert (answer.status_code, answer.headers["location"]) == (303, "/lender")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    html = client.get("/lender").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', html)[1]
    assert client.post("/lender/sign-out", data={"csrf": csrf}).status_code == 303
    assert client.get("/lender/new", headers={"Accept": "text/html"}).status_code == 303


def test_a_link_made_on_the_page_opens_the_applicants_conversation(client):
    sign_in(client)
    html = client.get("/lender/new").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', html)[1]
    form = {"csrf": csrf, "reference": "A 1", "days": "5", **{k: str(v) for k, v in PERSON.items()}}
    wrong = client.post("/lender/new", data={**form, "income": "lots"})
    assert wrong.status_code == 422
    assert "Please enter a number" in wrong.text
    html = client.post("/lender/new", data=form).text
    link = re.search(r'id="link" readonly value="([^"]+)"', html)[1]
    assert client.get(link).status_code == 200
    assert "A 1" in client.get("/lender").text
    assert client.get("/lender/download?format=csv").text.count("\n") == 2
    assert (
        client.get("/lender/download?format=json").json()["conversations"][0]["reference"] == "A 1"
    )
    assert client.get("/lender/fairness").status_code == 200


def test_a_conversation_is_deleted_on_the_page_with_a_form_of_ours_only(client):
    talk = Talk(client)
    sign_in(client)
    csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/lender").text)[1]
    assert client.post("/lender/delete", data={"id": talk.id}).status_code == 403
    assert client.post("/lender/delete", data={"id": talk.id, "csrf": csrf}).status_code == 303
    assert client.get(talk.path).status_code == 404
