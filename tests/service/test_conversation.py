"""A whole conversation through the API: every test on SQLite and on PostgreSQL."""

import pytest
from tests.service.helpers import PERSON, PROBLEM, RICH, Score, Talk

from pear.decision import BlackBox
from pear.planning.verify import verify
from pear.problem import Plan


def words(view):
    return [[step["words"] for step in plan["steps"]] for plan in view["question"]["plans"]]


def test_questions_lead_to_a_plan_that_turns_the_decision(talk):
    view = talk.read()
    assert view["stage"] == "question"
    assert view["progress"] == {"answered": 0, "left": view["progress"]["left"], "most": 10}
    assert view["score"] < view["bar"]
    assert len({tuple(steps) for steps in words(view)}) == len(view["question"]["plans"]) >= 2
    question = view["question"]
    columns = len(question["plans"])
    assert question["lines"]
    assert all(len(line["cells"]) == columns for line in question["facts"] + question["lines"])
    assert all(len(set(line["cells"])) > 1 for line in question["lines"])
    view = talk.finish()
    assert view["stage"] == "plan"
    steps = view["result"]["plan"]["steps"]
    assert steps[0]["score_before"] == pytest.approx(view["score"])
    assert steps[-1]["score_after"] > view["bar"] >= steps[-1]["score_before"]
    assert all(step["reason"] for step in steps)
    assert "going by your answers" in view["result"]["certificate_words"].lower()
    assert "the lender’s model as it is today" in view["result"]["certificate_words"]


def test_the_question_stays_the_same_until_it_is_answered(talk):
    assert talk.read()["question"] == talk.read()["question"]


def test_each_kind_of_answer_is_taken(client):
    for choice in (0, 1, "same", "none"):
        talk = Talk(client)
        answer = talk.answer(choice)
        assert answer.status_code == 200
        assert answer.json()["progress"]["answered"] == 1
        assert answer.json()["version"] == 1


def test_someone_who_refused_the_plan_is_told_when_no_easier_one_is_known(talk):
    asked = words(talk.read())
    view = talk.answer("none").json()
    if view["stage"] == "plan":
        steps = [step["words"] for step in view["result"]["plan"]["steps"]]
        assert bool(view["notices"]) == (steps in asked)


def test_undo_asks_the_same_question_again_and_the_same_answer_leads_to_the_same_place(talk):
    first = talk.read()
    second = talk.answer(0).json()
    back = talk.post("undo").json()
    assert back["question"] == first["question"]
    assert back["progress"]["answered"] == 0
    assert talk.answer(0).json()["question"] == second["question"]


def test_undo_with_nothing_answered_is_a_conflict(talk):
    talk.read()
    assert talk.post("undo").status_code == 409


def test_a_limit_is_never_proposed_and_can_be_lifted(talk):
    view = talk.read()
    feature = view["question"]["plans"][0]["steps"][0]["feature"]
    view = talk.post("limits", {"kind": "feature", "feature": feature}).json()
    assert [limit["feature"] for limit in view["limits"]] == [feature]
    plans = view["question"]["plans"] if view["question"] else [view["result"]["plan"]]
    assert all(step["feature"] != feature for plan in plans for step in plan["steps"])
    lifted = talk.lift(view["limits"][0]["id"]).json()
    assert lifted["limits"] == []
    assert lifted["question"] is not None


def test_a_limit_given_during_the_questions_keeps_the_answers(talk):
    talk.answer(0)
    view = talk.post("limits", {"kind": "value", "feature": "job", "value": "full"}).json()
    assert view["progress"]["answered"] == 1
    assert talk.post("undo").json()["limits"] == view["limits"]


def test_beyond_excludes_that_value_and_everything_further(client):
    talk = Talk(client)
    limit = {"kind": "beyond", "feature": "savings", "value": 2200, "direction": "up"}
    talk.post("limits", limit)
    view = talk.finish()
    plans = [view["result"]["plan"], *(other["plan"] for other in view["result"]["alternatives"])]
    reached = [s["after"] for plan in plans for s in plan["steps"] if s["feature"] == "savings"]
    assert all(value < 2200 for value in reached)


@pytest.mark.parametrize(
    "limit",
    [
        {"kind": "feature", "feature": "age"},
        {"kind": "feature", "feature": "nothing"},
        {"kind": "feature"},
        {"kind": "value", "feature": "job", "value": "king"},
        {"kind": "beyond", "feature": "job", "value": "part", "direction": "up"},
        {"kind": "beyond", "feature": "income", "value": 1e308, "direction": "up"},
        {"kind": "beyond", "feature": "income", "value": 2000},
        {"kind": "action", "action": "fly"},
        {"kind": "other"},
    ],
)
def test_a_limit_that_means_nothing_changes_nothing(talk, limit):
    before = talk.read()
    assert talk.post("limits", limit).status_code == 422
    assert talk.read() == before


def test_lifting_a_limit_that_is_not_there_is_not_found(talk):
    assert talk.lift("7").status_code == 404


def test_no_plan_says_which_limits_block_and_what_lifting_each_would_give(talk):
    for feature in ("income", "savings", "job"):
        view = talk.post("limits", {"kind": "feature", "feature": feature}).json()
    assert view["stage"] == "no_plan"
    assert view["no_plan"]["verdict"] == "infeasible"
    blocking = view["no_plan"]["loosenings"]
    assert blocking
    for item in blocking:
        assert item["words"]
        assert item["plan"]["score"] > view["bar"]
    view = talk.lift(",".join(blocking[0]["limits"])).json()
    assert view["stage"] != "no_plan"


def test_the_best_plan_so_far_is_always_there_and_questions_can_go_on(talk):
    view = talk.post("accept").json()
    assert view["stage"] == "plan"
    assert view["progress"]["answered"] == 0
    view = talk.post("resume").json()
    assert view["stage"] == "question"
    assert view["question"]["number"] == 1


def test_a_step_that_is_done_is_in_the_data_and_the_rest_is_planned_from_there(talk):
    view = talk.finish(1)
    steps = view["result"]["plan"]["steps"]
    assert len(steps) > 1
    after = talk.post("done", {"steps": 1}).json()
    assert after["stage"] == "plan"
    assert after["score"] == pytest.approx(steps[0]["score_after"])
    rest = after["result"]["plan"]["steps"]
    same = [step["words"] for step in rest] == [step["words"] for step in steps[1:]]
    [notice] = after["notices"]
    assert ("they still work." if same else "From where you are now") in notice
    assert rest[-1]["score_after"] > after["bar"]
    last = talk.post("done", {"steps": len(rest)}).json()
    assert last["result"]["plan"]["steps"] == []
    assert any("the lender’s model says yes" in notice for notice in last["notices"])


def test_more_steps_than_the_plan_has_cannot_be_done(talk):
    view = talk.finish()
    many = len(view["result"]["plan"]["steps"]) + 1
    assert talk.post("done", {"steps": many}).status_code == 409
    assert talk.read()["version"] == view["version"]


def test_changed_data_lead_to_another_plan_and_keep_the_answers(talk):
    answered = talk.finish()["progress"]["answered"]
    changed = {**PERSON, "income": 2600.0}
    view = talk.correct(changed).json()
    assert view["stage"] == "plan"
    assert view["progress"]["answered"] == answered
    assert talk.client.get(f"{talk.path}/receipt").json()["start"]["income"] == 2600.0


def test_data_that_do_not_fit_are_named_and_change_nothing(talk):
    before = talk.read()
    answer = talk.correct({**PERSON, "income": "much", "age": 3})
    assert answer.status_code == 422
    assert {error["field"] for error in answer.json()["errors"]} == {"record.income", "record.age"}
    assert talk.read() == before


def test_the_receipt_is_a_plan_that_can_be_checked_against_model_and_problem(talk):
    assert talk.client.get(f"{talk.path}/receipt").status_code == 409
    view = talk.finish()
    plan = Plan.from_dict(talk.client.get(f"{talk.path}/receipt").json())
    assert plan.problem_fingerprint == view["problem_fingerprint"] == PROBLEM.fingerprint
    assert plan.model_fingerprint == view["model_fingerprint"]
    end = PROBLEM.state(plan.start)
    for move in plan.moves:
        assert PROBLEM.actions.allowed(end[None])[0, move]
        [end] = PROBLEM.actions.apply(end[None], [move])
    assert Score()(end[None])[0] == pytest.approx(plan.score)
    assert plan.score > 0.5
    model = BlackBox(Score(), PROBLEM.space, PROBLEM.goal)
    assert verify(plan, PROBLEM, model).confirmed


def test_a_favourable_person_is_told_so_and_asked_nothing(client):
    talk = Talk(client, RICH)
    assert talk.created["stage"] == "favourable"
    view = talk.read()
    assert (view["stage"], view["question"], view["result"]) == ("favourable", None, None)


def test_deleting_forgets_everything(talk):
    talk.answer(0)
    assert talk.client.delete(talk.path).status_code == 204
    assert talk.client.get(talk.path).status_code == 404
    store = talk.client.service.store
    assert store.by_id(talk.id) is None
    assert store.history(talk.id) == []


def test_the_problem_is_described_with_what_can_be_changed(client):
    facts = client.get("/api/v1/problem").json()
    by_name = {feature["name"]: feature for feature in facts["features"]}
    assert by_name["age"]["protected"]
    assert not by_name["age"]["changeable"]
    assert by_name["job"]["categories"] == ["none", "part", "full"]
