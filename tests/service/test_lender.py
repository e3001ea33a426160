"""The lender's side: what is shown, what is not, and whether groups fare alike."""

import csv
import io
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.service.helpers import KEY, PERSON, PROBLEM, RICH, Talk, running

from pear.datasets import loan_book_problem
from pear.elicitation.words import Words, catalogue
from pear.service.forms import entries
from pear.service.lender.api import as_csv, summary
from pear.service.lender.fairness import fairness, groups_of, pairs, sentences
from pear.service.lender.pages import _parts
from pear.service.service import day
from pear.service.store.database import Line, Outcome

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


def row(groups, effort, success=True, questions=3):
    """A line of the lender's list, of a conversation that led to this."""
    outcome = Outcome(success=success, effort=effort if success else None)
    facts = {"id": "1", "stage": "plan", "version": 1, "groups": groups, "questions": questions}
    return Line(**facts, created_at=0.0, updated_at=60.0, expires_at=1e9, outcome=outcome)


def test_fairness_by_hand():
    def line_of(group, success, effort, questions):
        return row({"sex": group}, effort, success, questions)

    rows = [line_of("female", True, 10.0, 2)] * 4 + [line_of("female", False, None, 4)]
    rows += [line_of("male", True, 5.0, 1)] * 4 + [line_of("male", None, None, 1)]
    female, male = fairness(rows)
    assert female.model_dump() == {
        "feature": "sex",
        "group": "female",
        "people": 5,
        "validity": pytest.approx(4 / 5),
        "effort": pytest.approx(10.0),
        "questions": pytest.approx((4 * 2 + 4) / 5),
    }
    assert (male.people, male.validity, male.effort) == (4, None, None), "too few"


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
    text = "".join(as_csv([summary(replace(row({}, 1.0), reference="=HYPERLINK(1)"))]))
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
    link = re.search(r'id="link" class="link" readonly value="([^"]+)"', html)[1]
    assert client.get(link).status_code == 200
    assert "A 1" in client.get("/lender").text
    assert client.get("/lender/download?format=csv").text.count("\n") == 2
    assert (
        client.get("/lender/download?format=json").json()["conversations"][0]["reference"] == "A 1"
    )
    assert client.get("/lender/fairness").status_code == 200


def form_token(client, path):
    return re.search(r'name="csrf" value="([^"]+)"', client.get(path).text)[1]


def test_a_case_is_deleted_on_the_page_once_confirmed_with_a_form_of_ours_only(client):
    talk = Talk(client, reference="A 2")
    sign_in(client)
    path = f"/lender/cases/{talk.id}/delete"
    assert f'href="{path}"' in client.get(f"/lender/cases/{talk.id}").text
    asked = client.get(path).text
    assert "Delete this case?" in asked
    assert "A 2" in asked
    assert client.get(talk.path).status_code == 200, "asking deletes nothing"
    assert client.post(path).status_code in (403, 415)
    assert client.post(path, data={"csrf": form_token(client, path)}).status_code == 303
    assert client.get(talk.path).status_code == 404


def test_a_case_shows_what_was_asked_and_said_the_plan_and_how_it_was_checked(client):
    talk = Talk(client, reference="A 3")
    talk.answer(0)
    talk.post("limits", {"kind": "feature", "feature": "job"})
    view = talk.post("accept").json()
    sign_in(client)
    html = client.get(f"/lender/cases/{talk.id}").text
    assert "Chose plan A" in html
    assert "Change your job" in html
    for step in view["result"]["plan"]["steps"]:
        assert step["words"] in html
    assert "Easiest plan for the answers given (proved). After 1 answer we are" in html
    assert talk.token not in html
    plan = client.get(f"/lender/cases/{talk.id}/plan.json").json()
    assert [step["words"] for step in plan["steps"]] == [
        step["words"] for step in view["result"]["plan"]["steps"]
    ]
    assert client.get("/lender/cases/nothing").status_code == 404


def test_a_step_said_to_be_done_is_told_with_its_day_and_as_not_checked(client):
    talk = Talk(client, reference="A 4")
    talk.finish()
    sign_in(client)
    path = f"/lender/cases/{talk.id}"
    assert "Not checked." not in client.get(path).text
    assert "you need not do anything" in client.get(path).text.lower()
    steps = len(talk.read()["result"]["plan"]["steps"])
    talk.post("done", {"steps": steps})
    html = client.get(path).text
    assert (
        html.count(
            f"Reported as done on {day(time.time(), catalogue('en', 'pear.service'))}. Not checked."
        )
        == steps
    )
    assert "ask for proof, then decide" in html
    assert "Please check and decide" in client.get("/lender").text


def test_the_list_says_why_there_is_no_plan(client):
    talk = Talk(client)
    for column in PROBLEM.actions.actionable:
        talk.post("limits", {"kind": "feature", "feature": PROBLEM.space.names[column]})
    assert talk.read()["stage"] == "no_plan"
    sign_in(client)
    assert "no steps are enough" in client.get("/lender").text
    assert "you can see more than a model" in client.get(f"/lender/cases/{talk.id}").text


def test_the_page_of_groups_says_which_cases_are_counted(client):
    for _ in range(5):
        Talk(client).post("accept")
    Talk(client)
    sign_in(client)
    html = client.get("/lender/fairness").text
    assert "Counted here: 5 of 6 cases" in html
    assert '<th scope="rowgroup" colspan="6" class="kind">Age</th>' in html


def test_a_form_has_its_fields_by_what_they_are_about():
    problem = loan_book_problem()
    said = Words(problem, catalogue("en", "pear.service"))
    parts = _parts(said, entries(problem, said.texts, {}))
    assert {part: [entry["name"] for entry in found] for part, found in parts.items()} == {
        "person": [
            "age", "sex", "children", "years_at_bank", "education", "occupation", "contract",
        ],
        "money": ["monthly_income", "savings", "debt_payments", "card_use", "overdue"],
        "loan": ["loan_amount", "loan_term", "guarantor"],
    }  # fmt: skip
    hints = {entry["name"]: entry["hint"] for entry in parts["person"]}
    assert hints["sex"].startswith("Not used in the decision. Only to see")
    assert hints["age"] == "From 18 to 75"


def test_with_a_pin_the_lender_does_not_see_what_was_said(settings):
    with running(settings, pin=True) as client:
        talk = Talk(client)
        client.put(f"{talk.path}/pin", json={"pin": "2846"})
        headers = {"X-PIN": "2846"}
        shown = client.get(talk.path, headers=headers).json()["shown"]
        answer = {"shown": shown, "choice": 0}
        assert client.post(f"{talk.path}/answers", json=answer, headers=headers).status_code == 200
        sign_in(client)
        html = client.get(f"/lender/cases/{talk.id}").text
        assert "Chose plan A" not in html
        assert "you do not see their answers" in html


def test_a_new_link_ends_the_old_one_and_keeps_everything_said(client):
    talk = Talk(client)
    talk.answer(0)
    sign_in(client)
    page = f"/lender/cases/{talk.id}"
    html = client.post(f"{page}/link", data={"csrf": form_token(client, page)}).text
    link = re.search(r'id="link" class="link" readonly value="([^"]+)"', html)[1]
    assert client.get(talk.path).status_code == 404
    token = link.rpartition("/")[2]
    assert client.get(f"/api/v1/links/{token}").json()["progress"]["answered"] == 1


def test_the_list_is_filtered_by_state_and_reference(client):
    Talk(client, reference="Application 12").finish()
    Talk(client, reference="Application 13")
    Talk(client, reference="50%_off")
    sign_in(client)

    def found(**query):
        return re.findall(r"Open the case ([^\"]+)", client.get("/lender", params=query).text)

    assert len(found()) == 3
    assert found(stage="plan") == ["Application 12"]
    assert found(reference="application 13") == ["Application 13"]
    assert found(reference="%_") == ["50%_off"]
    assert "No case fits" in client.get("/lender?reference=nobody").text


def test_each_pair_of_groups_is_compared_once_with_its_baseline():
    rows = [row({"age": "20 to 29"}, 11 + n % 3) for n in range(40)]
    rows += [row({"age": "30 to 39"}, 10 + n % 3) for n in range(50)]
    rows += [row({"age": "40 to 49"}, 10 + n % 3) for n in range(30)]
    young, old = pairs(rows)
    assert (young.group, young.baseline, old.group) == ("20 to 29", "30 to 39", "40 to 49")
    assert young.people == (40, 50)
    assert young.harder.mean == pytest.approx(0.09, abs=0.01)
    assert 0 < young.harder.low < young.harder.mean < young.harder.high
    assert (young.effort_differs, old.effort_differs) == (True, False)
    words = Words(PROBLEM, catalogue("en", "pear.service"))
    assert sentences((young, old), ["age"], words) == [
        "Age 20–29: plans take about 9% more effort than for age 30–39 "
        "(likely range 6% to 12%; 40 and 50 cases).",
        "Age: no difference found in who gets a plan.",
    ]
    assert sentences((old,), ["age"], words) == [
        "Age: no difference found, neither in who gets a plan nor in its effort."
    ]
    assert sentences((), ["age"], words) == ["Age: too few cases to compare."]


def test_fewer_plans_are_told_as_shares():
    rows = [row({"age": "20 to 29"}, 10, success=n % 2 == 0) for n in range(40)]
    rows += [row({"age": "30 to 39"}, 10) for _ in range(50)]
    words = Words(PROBLEM, catalogue("de", "pear.service"))
    said, rest = sentences(pairs(rows), ["age"], words)
    assert rest == "Age: kein Unterschied in der Mühe der Pläne gefunden."
    assert said.startswith("Age 20–29: 50\N{NO-BREAK SPACE}% bekommen einen Plan")


def test_differences_by_chance_alone_are_rarely_told():
    rng = np.random.default_rng(0)
    told = 0
    for _ in range(100):
        rows = [row({"age": str(rng.integers(3))}, float(rng.gamma(4))) for _ in range(60)]
        told += any(pair.effort_differs or pair.validity_differs for pair in pairs(rows))
    assert told <= 10, "at a level of 1 in 20"
