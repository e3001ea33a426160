"""The pages as plain forms, without a browser."""

import json
import re
import time

import pytest
from tests.service.helpers import KEY, PROBLEM, RICH, Talk, running

from pear.problem import Plan
from pear.service.settings import Settings


class Visitor:
    """Someone whose browser follows redirects and sends the forms it is shown."""

    def __init__(self, client, token):
        self.client, self.base = client, f"/c/{token}"
        self.see("")

    def see(self, path):
        answer = self.client.get(self.base + path, follow_redirects=True)
        return self._seen(answer)

    def _seen(self, answer):
        while "refresh" in answer.headers:  # a place in the queue, where the machine is busy
            answer = self.client.get(f"{self.base}/now", follow_redirects=True)
        self.status, self.html = answer.status_code, answer.text
        return self

    def send(self, action, **fields):
        form = re.search(rf'action="{self.base}/{action}".*?</form>', self.html, re.DOTALL)[0]
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
        self.last = {**hidden, **fields}
        return self.again(action)

    def again(self, action):
        answer = self.client.post(f"{self.base}/{action}", data=self.last, follow_redirects=True)
        return self._seen(answer)

    @property
    def title(self):
        return re.search(r"<h1[^>]*>(.*?)</h1>", self.html, re.DOTALL)[1]


@pytest.fixture
def visitor(client):
    return Visitor(client, Talk(client).token)


def test_the_start_tells_the_decision_what_it_used_and_what_happens(visitor):
    assert visitor.title == "Your application was refused"
    assert "3 of 100 points. It needs more than 50" in visitor.html
    assert "€1,500" in visitor.html
    assert "Correct my details" in visitor.html
    assert "Also on file" not in visitor.html, "everything is looked at here"


def test_what_the_model_does_not_look_at_stands_apart(demo):
    people = demo.get("/api/v1/people").json()
    talk = demo.post("/api/v1/conversations", json={"record": people["Ben"]}).json()
    used, _, besides = demo.get(f"/c/{talk['token']}").text.partition("Also on file, not used")
    assert "Net monthly income" in used
    assert "Sex" not in used
    assert "Sex" in besides
    assert "Education" in besides


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
    assert "nearest easier choice" in visitor.html or "It adds" in visitor.html
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
    assert summary.questions == 1


def test_an_answer_in_an_old_window_is_told_where_the_conversation_is(visitor):
    old = visitor.see("/now").html
    visitor.send("answer", choice="0")
    visitor.html = old
    visitor.send("answer", choice="1", key="another")
    assert visitor.status == 409
    assert "another window" in visitor.html
    assert visitor.client.service.store.summaries()[0][0].questions == 1


def test_looking_back_loses_nothing_and_answering_again_starts_from_there(visitor):
    first = visitor.see("/now").html
    visitor.send("answer", choice="1").see("/question/1")
    assert visitor.title == "What you said to question 1"
    assert "You chose plan B." in visitor.html
    visitor.see("/now")
    assert visitor.client.service.store.summaries()[0][0].questions == 1
    visitor.see("/question/1").send("undo")
    cells = re.findall(r'<span class="value">(.*?)</span>', first)
    assert cells
    assert re.findall(r'<span class="value">(.*?)</span>', visitor.html) == cells


def test_a_limit_is_listed_and_taken_back(visitor):
    visitor.see("/now")
    limit = json.dumps({"kind": "feature", "feature": "savings"})
    visitor.send("limit", limit=limit)
    assert "What you can’t do" in visitor.html
    assert "Change your savings" in visitor.html
    visitor.send("lift", id="1")
    assert "Change your savings" not in visitor.html


def test_none_of_these_asks_which_step_is_too_hard(visitor):
    visitor.see("/now")
    assert f'href="{visitor.base}/none"' in visitor.html
    visitor.see("/none")
    assert visitor.title == "Which step is too hard?"
    limits = re.findall(r'action="[^"]*/limit".*?</form>', visitor.html, re.DOTALL)
    assert len(limits) >= 2
    assert "at all" in limits[0]
    visitor.send("answer", choice="none")
    assert visitor.client.service.store.summaries()[0][0].questions == 1
    again = visitor.client.get(f"{visitor.base}/question/1").text
    assert "You said: none of these." in again


def test_a_question_has_an_address_of_its_own(visitor):
    answer = visitor.client.get(f"{visitor.base}/now")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{visitor.base}/question/1"
    visitor.see("/now").send("answer", choice="0")
    assert visitor.client.get(f"{visitor.base}/now").headers["location"].endswith("/question/2")
    assert visitor.see("/question/1").title == "What you said to question 1"
    assert visitor.see("/question/99").title == "Which would you rather do?"


def test_no_plan_names_what_blocks_and_lifting_it_goes_on(visitor):
    for feature in ("savings", "income"):
        visitor.see("/now").send("limit", limit=json.dumps({"kind": "feature", "feature": feature}))
    assert visitor.title == "We found no plan for you"
    assert "not about you" in visitor.html
    assert visitor.html.index("Talk to a person") < visitor.html.index("Could one of these change?")
    suggested = re.findall(r'class="quiet" name="id" value="([\d,]+)"', visitor.html)
    assert 1 <= len(suggested) <= 2
    ids = suggested[0]
    visitor.send("lift", id=ids)
    assert visitor.title != "We found no plan for you"


def test_use_the_best_plan_then_more_questions(visitor):
    visitor.see("/now").send("accept")
    assert visitor.title == "Your plan"
    visitor.send("resume")
    assert visitor.title == "Which would you rather do?"


def test_a_step_done_and_changed_data_lead_to_a_new_plan(visitor):
    visitor.see("/now").send("accept").send("done", steps="1")
    assert "Well done." in visitor.html
    assert visitor.html.count('<li class="done">') == 1
    visitor.see("/data")
    fields = dict(re.findall(r'id="field-(\w+)" name="\w+" value="([^"]*)"', visitor.html))
    assert fields["age"] == "41"
    visitor.send("data", **{**fields, "job": "none", "course": "no", "income": "abc"})
    assert visitor.status == 422
    assert "Please enter a number, for example 1,850.5." in visitor.html
    visitor.send("data", **{**fields, "job": "none", "course": "no", "income": "2 600,50"})
    assert "made your plan again from your new details" in visitor.html
    assert "2,600.5" in visitor.see("").html


def test_steps_done_are_ticked_taken_back_and_lead_to_success(visitor):
    visitor.see("/now").send("accept")
    first = re.findall(r'<p class="words">(.*?)</p>', visitor.html)
    visitor.send("done", steps="1")
    visitor.send("undone")
    assert "We took that back" in visitor.html
    assert re.findall(r'<p class="words">(.*?)</p>', visitor.html) == first
    for _ in range(8):
        if visitor.title == "You did it":
            break
        visitor.send("done", steps="1")
    assert visitor.title == "You did it"
    assert "Apply again." in visitor.html
    assert '<li class="todo">' not in visitor.html
    assert "What you did" in visitor.see("/receipt").html
    visitor.see("/now").send("undone")
    assert visitor.title == "Your plan"


def test_taking_back_what_was_not_done_changes_nothing(visitor):
    service, token = visitor.client.service, visitor.base.removeprefix("/c/")
    shown = visitor.client.get(f"/api/v1/links/{token}").json()["shown"]
    csrf = service.forms.token(token, shown)
    assert visitor.client.post(f"{visitor.base}/undone", data={"csrf": csrf}).status_code == 409
    assert service.store.summaries()[0][0].version == 0


def test_the_link_of_a_plan_lives_a_year_from_its_last_use(visitor):
    days = visitor.client.service.settings
    store = visitor.client.service.store

    def left():
        return (store.summaries()[0][0].expires_at - time.time()) / 86400

    visitor.see("/now")
    assert left() == pytest.approx(days.expiry_days, abs=0.1)
    visitor.send("accept")
    assert left() == pytest.approx(days.plan_days, abs=0.1) == pytest.approx(365, abs=0.1)
    [row] = store.summaries()[0]
    store.set_end(row.id, time.time() + 86400)
    visitor.see("/now")
    assert left() == pytest.approx(365, abs=0.1)
    store.set_end(row.id, time.time() - 1)
    visitor.client.headers["Accept"] = "text/html"
    visitor.see("/now")
    del visitor.client.headers["Accept"]
    assert visitor.status == 410
    assert "Ask the lender for a new link" in visitor.html


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("de-CH,de;q=0.9,en;q=0.5", "Ihr Antrag wurde abgelehnt"),
        ("fr,it;q=0.7,en;q=0.3", "La Sua richiesta è stata respinta"),
        ("es", "Su solicitud fue rechazada"),
        ("fr", "Your application was refused"),
        ("en;q=x,,;", "Your application was refused"),
    ],
)
def test_the_browser_chooses_the_language(visitor, header, title):
    answer = visitor.client.get(visitor.base, headers={"Accept-Language": header})
    assert f"<h1>{title}</h1>" in answer.text


def test_a_visitor_chooses_another_language_and_stays_on_the_page(visitor):
    chosen = visitor.client.get(f"/language/it?back={visitor.base}")
    assert chosen.headers["location"] == visitor.base
    visitor.see("")
    assert visitor.title == "La Sua richiesta è stata respinta"
    assert '<html lang="it" dir="ltr">' in visitor.html
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example"):
        answer = visitor.client.get("/language/en", params={"back": elsewhere})
        assert answer.headers["location"] == "/"
    assert visitor.client.get("/language/xx").status_code == 404


def test_the_lender_sets_the_language(settings):
    with running(settings, language="de") as client:
        visitor = Visitor(client, Talk(client).token)
        assert visitor.title == "Ihr Antrag wurde abgelehnt"


def test_the_reference_shows_every_route_and_needs_nothing_from_elsewhere(client):
    html = client.get("/api").text
    for path, methods in client.get("/api/v1/openapi.json").json()["paths"].items():
        assert f"<code>{path}</code>" in html
        assert all(f">{method.upper()}<" in html for method in methods)
    assert "http" not in re.sub(r"<pre.*?</pre>", "", html, flags=re.DOTALL).replace(
        "http://testserver", ""
    )


def test_someone_favourable_is_told_so(client):
    visitor = Visitor(client, Talk(client, RICH).token)
    assert visitor.title == "The model says yes"
    assert "Start</a>" not in visitor.html


def test_deleting_asks_first_and_then_forgets(visitor):
    visitor.see("/delete")
    assert "You can’t get them back" in visitor.html
    visitor.send("delete")
    assert visitor.title == "Deleted"
    assert visitor.see("/now").status == 404


def test_help_names_the_conversation_and_the_lenders_address(visitor):
    visitor.see("/help")
    [summary] = visitor.client.service.store.summaries()[0]
    assert f"{summary.id[:4]}\N{NO-BREAK SPACE}{summary.id[4:8]}" in visitor.html


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
    assert visitor.client.service.store.summaries()[0][0].version == 0


def test_the_demonstration_opens_for_an_example_person(demo):
    html = demo.get("/").text
    csrf = re.search(r'name="csrf" value="([^"]+)"', html)[1]
    answer = demo.post("/start", data={"csrf": csrf, "person": "Amina"})
    assert answer.status_code == 303
    assert "Your application was refused" in demo.get(answer.headers["location"]).text
    assert demo.post("/start", data={"csrf": csrf, "person": "Nobody"}).status_code == 422
    assert demo.post("/start", data={"csrf": "x", "person": "Amina"}).status_code == 403


def test_the_demonstration_takes_own_data_and_says_what_is_wrong_field_by_field(demo):
    people = demo.get("/api/v1/people").json()
    csrf = re.search(r'name="csrf" value="([^"]+)"', demo.get("/own").text)[1]
    form = {name: str(value) for name, value in people["Ben"].items()}
    answer = demo.post("/start", data={"csrf": csrf, **form, "age": "7", "overdue": "1.5"})
    assert answer.status_code == 422
    assert 'href="#field-age"' in answer.text
    assert "From 18 to 75" in answer.text
    assert "whole number" in answer.text
    assert demo.post("/start", data={"csrf": csrf, **form}).status_code == 303


def test_outside_the_demonstration_only_the_lender_makes_links(client):
    assert client.get("/api/v1/people").status_code == 404
    assert client.get("/own").status_code == 404
    assert client.post("/start", data={"person": "Amina"}).status_code == 404
    assert "Do you have a link?" in client.get("/").text


def test_what_is_called_unused_is_so_for_the_model_whatever_the_file_says(tmp_path):
    """The model looks at income and not at age; the file says that it looks at neither."""
    settings = Settings(
        database=f"sqlite:///{tmp_path / 'pear.db'}", searchers=0, demo_key=KEY, model="m.onnx",
        log_level="error", trusted_hosts=("testserver",), problem=str(tmp_path / "problem.toml"),
    )  # fmt: skip
    with running(settings, problem=PROBLEM.with_unused(["income", "age"])) as client:
        page = client.get(f"/c/{Talk(client).token}").text
    used, besides = page.split("Also on file, not used in this decision")
    assert "€1,500" in used.split("What the model looked at")[1], "a probe shows that it matters"
    assert "41" in besides, "declared, and nothing shows the contrary"
