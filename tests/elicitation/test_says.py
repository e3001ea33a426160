"""What a person can say: stored, read again, checked, and what it leads to."""

import json

import numpy as np
import pytest

from pear.elicitation import Limit, Session, Standing
from pear.elicitation.says import (
    Accepted,
    Allowed,
    Corrected,
    Excluded,
    Resumed,
    Undone,
    read_said,
    read_stored,
    steps_done,
)
from pear.errors import ConversationError, FingerprintMismatch, InvalidSetting
from tests.elicitation.small_lender import PERSON, lender, prior

RICHER = {**PERSON, "income": 12.0}


def start(**changes):
    settings = {"min_gain": 0.0, "n_particles": 300, "draws": 12, **changes}
    return Session(lender(), PERSON, prior(), **settings)


def everything_said():
    session = start()
    session.answer(0)
    session.say(Excluded((Limit("beyond", "income", 16.0, "up"), Limit("value", "debt", 0.0))))
    session.answer("same") if session.ask() else None
    session.say(Allowed((Limit("value", "debt", 0.0),)))
    session.correct(RICHER)
    session.accept()
    session.say(Resumed())
    session.accept()
    session.done(1)
    return session


def test_everything_said_is_read_back_as_it_was_said():
    session = everything_said()
    for event in session.events:
        stored = json.loads(json.dumps(event.to_dict()))
        assert read_said(stored, session.planner.problem) == event
    again = Session.from_json(session.to_json(), session.planner, session.prior)
    assert again.to_json() == session.to_json()
    assert again.position.limits == session.position.limits
    assert np.array_equal(again.start, session.start)
    assert again.result().plan.moves == session.result().plan.moves


def test_the_first_record_is_kept_when_the_data_are_corrected():
    session = everything_said()
    assert session.to_dict()["person"] == PERSON
    read = read_stored(session.to_dict(), session.planner.problem)
    assert read.person == PERSON
    assert [event.kind for event in read.events][-1] == "done"


def test_a_correction_keeps_the_answers_and_plans_from_there():
    session = start()
    session.answer(0)
    session.correct(RICHER)
    assert session.n_answers == 1
    assert session.recommend().plan.start == RICHER
    session.undo()
    assert session.recommend().plan.start == PERSON


def test_a_step_done_is_in_the_data_and_can_be_taken_back():
    session = start()
    plan = session.accept()
    session.done(1)
    assert session.position.done[0].feature == plan.steps[0].feature
    after = dict(PERSON) | {plan.steps[0].feature: plan.steps[0].after}
    assert session.planner.problem.space.decode(session.start)[0] == after
    assert session.finished
    session.undo()
    assert session.accepted().moves == plan.moves
    with pytest.raises(ConversationError, match="between 1 and"):
        steps_done(plan, plan.length + 1)


def test_taking_back_answers_keeps_the_limits():
    session = start()
    session.answer(0)
    session.exclude(feature="savings")
    session.say(Undone(0))
    assert session.n_answers == 0
    assert session.limits.features == ("savings",)
    with pytest.raises(ConversationError, match="no answer to take back"):
        session.say(Undone(0))


def test_limits_are_numbered_and_the_same_one_is_kept_once():
    session = start()
    one, two = Limit("feature", "savings"), Limit("action", action="settle")
    session.say(Excluded((one,)))
    session.say(Excluded((two, one)))
    assert [(limit.id, limit.kind) for limit in session.position.limits] == [
        ("1", "feature"),
        ("2", "action"),
    ]
    session.say(Allowed((one,)))
    assert session.position.limits == (two,)
    with pytest.raises(ConversationError, match="no such limit"):
        session.say(Allowed((one,)))


def test_a_limit_without_meaning_here_is_refused():
    problem = lender().problem
    for limit, message in (
        ({"kind": "never"}, "'kind'"),
        ({"kind": "feature", "feature": "height"}, "some step changes"),
        ({"kind": "action", "action": "fly"}, "no action 'fly'"),
        ({"kind": "beyond", "feature": "job", "value": "permanent"}, "is not a number"),
        ({"kind": "beyond", "feature": "income", "value": 3.0}, "'direction'"),
        ({"kind": "feature", "feature": "income", "why": "so"}, "no 'why'"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            read_said({"kind": "exclude", "limits": [limit]}, problem)


def test_where_a_conversation_stands_is_stored_and_read_again():
    session = start()
    asked = session.standing()
    assert asked.stage == "question"
    assert len(asked.question.efforts) == 2
    assert min(asked.question.efforts) == pytest.approx(1.0)
    assert max(asked.question.efforts) > 1.0
    session.say(Accepted())
    planned = session.standing()
    assert planned.stage == "plan"
    assert len(planned.result.reasons) == planned.result.plan.length
    for name in ("income", "debt", "job"):
        session.exclude(feature=name)
    blocked = session.standing()
    assert blocked.stage == "no_plan"
    assert blocked.result.loosenings
    for standing in (asked, planned, blocked):
        again = Standing.from_dict(json.loads(json.dumps(standing.to_dict())))
        assert again.to_dict() == standing.to_dict()
        assert again.limits == standing.limits
        assert [limit.id for limit in again.limits] == [limit.id for limit in standing.limits]
    assert Standing.from_dict(asked.to_dict()).question.id == asked.question.id


def test_a_question_is_known_by_what_it_shows():
    session = start()
    first = session.ask()
    assert session.ask().id == first.id
    session.exclude(feature="savings")
    second = session.ask()
    assert second is None or second.id != first.id


def test_a_refused_plan_is_named_as_such():
    session = start(max_questions=1)
    session.answer("none")
    standing = session.standing()
    refused = standing.result.plan.moves in session.position.answers[0].plans
    assert standing.refused_before == refused


def test_under_another_model_everything_said_is_carried_over():
    session = everything_said()
    stored = {**session.to_dict(), "model_fingerprint": "older"}
    with pytest.raises(FingerprintMismatch):
        Session.from_dict(stored, session.planner, session.prior)
    carried, lost = Session.carried_over(stored, session.planner, session.prior)
    assert lost == ()
    assert carried.to_dict() == session.to_dict()


def test_under_another_problem_answers_are_lost_and_limits_kept():
    session = start()
    session.answer(0)
    session.exclude(feature="savings")
    stored = {**session.to_dict(), "problem_fingerprint": "older"}
    stored["events"].append({"kind": "exclude", "limits": [{"kind": "action", "action": "gone"}]})
    carried, lost = Session.carried_over(stored, session.planner, session.prior)
    assert [event["kind"] for event in lost] == ["answer", "exclude"]
    assert carried.n_answers == 0
    assert carried.limits.features == ("savings",)
    stored["person"] = {**PERSON, "pension": 3}
    del stored["person"]["income"]
    with pytest.raises(ConversationError, match="income"):
        Session.carried_over(stored, session.planner, session.prior)


def test_a_correction_of_nonsense_changes_nothing():
    session = start()
    before = session.to_json()
    with pytest.raises(Exception, match="income"):
        session.say(Corrected({**PERSON, "income": "much"}))
    assert session.to_json() == before
