"""The pages as plain forms, without a browser."""

import json
import re

import pytest
from tests.service.helpers import RICH, Talk

from pear.problem import Plan


class Visitor:
    """Someone whose browser follows redirects and sends the forms it is shown."""

    def __init__(self, client, token):
        self.client, self.base = client, f"/c/{token}"
        self.see("")

    def see(self, path):
        answer = self.client.get(self.base + path, follow_redirects=True)
        self.status, self.html = answer.status_code, answer.text
        return self

    def send(self, action, **fields):
        form = re.search(rf'action="{self.base}/{action}".*?</form>', self.html, re.DOTALL)[0]
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
        self.last = {**hidden, **fields}
        return self.again(action)

    def again(self, action):
        answer = self.client.post(f"{self.base}/{action}", data=self.last, follow_redirects=True)
        self.status, self.html = answer.status_code, answer.text
        return self

    @property
    def title(self):
        return re.search(r"<h1>(.*?)</h1>", self.html, re.DOTALL)[1]


@pytest.fixture
def visitor(client):
    return Visitor(client, Talk(client).token)


def test_the_start_tells_the_decision_what_it_used_and_what_happens(visitor):
    assert visitor.title == "Your application was not approved"
    assert "3 points out of 100. More than 50 are needed" in visitor.html
    assert "Usually 3 to 5 questions" in visitor.html
    assert "€1,500" in visitor.html
    assert "Correct my data" in visitor.html


def test_the_whole_journey_by_forms(visitor):
    visitor.see("/now")
    assert visitor.title == "Which would you rather do?"
    seen = 0
    while "Which would you" in visitor.title:
        seen += 1
        visitor.send("answer", choice="0")
        assert seen <= 10
    assert visitor.title == "Your plan"
    assert "<svg" in visitor.html
    assert "going by your answers" in visitor.html.lower()
    receipt = visitor.client.get(visitor.base + "/receipt.json")
    assert "attachment" in receipt.headers["content-disposition"]
    assert Plan.from_dict(receipt.json()).success
    assert "pear verify" in visitor.see("/receipt").html


def test_a_form_sent_twice_is_done_once(visitor):
    visitor.see("/now").send("answer", choice="0").again("answer")
    assert visitor.status == 200
    assert "another window" not in visitor.html
    store = visitor.client.service.store
    [summary] = store.summaries()[0]
    assert summary["questions"] == 1


def test_an_answer_in_an_old_window_is_told_where_the_conversation_is(visitor):
    old = visitor.see("/now").html
    visitor.send("answer", choice="0")
    visitor.html = old
    visitor.send("answer", choice="1", key="another")
    assert visitor.status == 409
    assert "another window" in visitor.html
    assert visitor.client.service.store.summaries()[0][0]["questions"] == 1


def test_looking_back_loses_nothing_and_answering_again_starts_from_there(visitor):
    first = visitor.see("/now").html
    visitor.send("answer", choice="1").see("/question/1")
    assert visitor.title == "Your answer to question 1"
    assert "You chose this plan" in visitor.html
    visitor.see("/now")
    assert visitor.client.service.store.summaries()[0][0]["questions"] == 1
    visitor.see("/question/1").send("undo")
    plans = re.findall(r'<span class="words">(.*?)</span>', first)
    assert re.findall(r'<span class="words">(.*?)</span>', visitor.html) == plans


def test_a_limit_is_listed_and_taken_back(visitor):
    visitor.see("/now")
    limit = json.dumps({"kind": "feature", "feature": "savings"})
    visitor.send("limit", limit=limit)
    assert "What you told us you can’t do" in visitor.html
    assert "Change your savings" in visitor.html
    visitor.send("lift", id="1")
    assert "Change your savings" not in visitor.html


def test_no_plan_names_what_blocks_and_lifting_it_goes_on(visitor):
    for feature in ("savings", "income"):
        visitor.see("/now").send("limit", limit=json.dumps({"kind": "feature", "feature": feature}))
    assert visitor.title == "We found no plan for you"
    assert "not about you" in visitor.html
    ids = re.search(r'class="main" name="id" value="([\d,]+)"', visitor.html)[1]
    visitor.send("lift", id=ids)
    assert visitor.title != "We found no plan for you"


def test_use_the_best_plan_then_more_questions(visitor):
    visitor.see("/now").send("accept")
    assert visitor.title == "Your plan"
    visitor.send("resume")
    assert visitor.title == "Which would you rather do?"


def test_a_step_done_and_changed_data_lead_to_a_new_plan(visitor):
    visitor.see("/now").send("accept").send("done", steps="1")
    assert "We checked the rest of your plan" in visitor.html
    visitor.see("/data")
    fields = dict(re.findall(r'id="field-(\w+)" name="\w+" value="([^"]*)"', visitor.html))
    assert fields["age"] == "41"
    visitor.send("data", **{**fields, "job": "none", "course": "no", "income": "abc"})
    assert visitor.status == 422
    assert "Please enter a number, such as 1850." in visitor.html
    visitor.send("data", **{**fields, "job": "none", "course": "no", "income": "2 600,50"})
    assert "worked out again with your new data" in visitor.html
    assert "2,600.5" in visitor.see("").html


def test_someone_favourable_is_told_so(client):
    visitor = Visitor(client, Talk(client, RICH).token)
    assert visitor.title == "The model decides in your favour"
    assert "Begin" not in visitor.html


def test_deleting_asks_first_and_then_forgets(visitor):
    visitor.see("/delete")
    assert "can’t be brought back" in visitor.html
    visitor.send("delete")
    assert visitor.title == "Deleted"
    assert visitor.see("/now").status == 404


def test_help_names_the_conversation_and_the_lenders_address(visitor):
    visitor.see("/help")
    [summary] = visitor.client.service.store.summaries()[0]
    assert summary["id"][:8] in visitor.html


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("answer", {"choice": "9"}),
        ("answer", {"choice": "x"}),
        ("answer", {}),
        ("limit", {"limit": "{"}),
        ("limit", {"limit": "[]"}),
        ("limit", {"limit": '{"kind": "feature", "feature": "age"}'}),
        ("done", {"steps": "-1"}),
        ("undo", {"kept": "many"}),
    ],
)
def test_forms_that_mean_nothing_change_nothing(visitor, action, fields):
    service, token = visitor.client.service, visitor.base.removeprefix("/c/")
    shown = visitor.client.get(f"/api/v1/links/{token}").json()["shown"]
    csrf = service.forms.token(token, shown)
    answer = visitor.client.post(f"{visitor.base}/{action}", data={"csrf": csrf, **fields})
    assert answer.status_code == 422
    assert visitor.client.service.store.summaries()[0][0]["version"] == 0


def test_the_demonstration_opens_for_an_example_person(demo):
    html = demo.get("/").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', html)[1]
    answer = demo.post("/start", data={"csrf": csrf, "person": "Amina"})
    assert answer.status_code == 303
    assert "Your application was not approved" in demo.get(answer.headers["location"]).text
    assert demo.post("/start", data={"csrf": csrf, "person": "Nobody"}).status_code == 422
    assert demo.post("/start", data={"csrf": "x", "person": "Amina"}).status_code == 403


def test_the_demonstration_takes_own_data_and_says_what_is_wrong_field_by_field(demo):
    people = demo.get("/api/v1/people").json()
    csrf = re.search(r'name="csrf" value="([^"]+)"', demo.get("/own").text)[1]
    form = {name: str(value) for name, value in people["Ben"].items()}
    answer = demo.post("/start", data={"csrf": csrf, **form, "age": "7", "overdue": "1.5"})
    assert answer.status_code == 422
    assert 'href="#field-age"' in answer.text
    assert "from 18 to 75" in answer.text
    assert "whole number" in answer.text
    assert demo.post("/start", data={"csrf": csrf, **form}).status_code == 303


def test_outside_the_demonstration_only_the_lender_makes_links(client):
    assert client.get("/api/v1/people").status_code == 404
    assert client.get("/own").status_code == 404
    assert client.post("/start", data={"person": "Amina"}).status_code == 404
    assert "personal link" in client.get("/").text
