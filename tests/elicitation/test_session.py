"""The conversation: what can be said, what it leads to, and that it resumes exactly."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.decision import BlackBox
from pear.elicitation import Session, SimulatedPerson
from pear.elicitation.simulation import converse, question_of
from pear.errors import (
    ConversationError,
    FingerprintMismatch,
    InvalidProblem,
    InvalidSetting,
    ModelOutput,
)
from pear.planning.exact import ExactPlanner
from pear.preferences import Logistic, Noiseless, UnknownSharpness
from pear.problem import Limits
from tests.elicitation.small_lender import PERSON, lender, prior, score

SAID = ["answer_0", "answer_1", "same", "none", "exclude", "undo"]


def start(**settings):
    settings = {"min_gain": 0.0, "n_particles": 300, "draws": 12, **settings}
    return Session(lender(), PERSON, prior(), **settings)


def say(session, what):
    if what == "undo":
        if session.events:
            session.undo()
    elif what == "exclude":
        if "savings" not in session.limits.features:
            session.exclude(feature="savings")
    elif session.ask() is not None:
        choice = {"answer_0": 0, "answer_1": 1}.get(what, what)
        session.answer(choice)


def same_question(first, second):
    if first is None or second is None:
        return first is second
    return [p.moves for p in first.plans] == [p.moves for p in second.plans]


def test_a_question_stays_until_it_is_answered():
    session = start()
    assert same_question(session.ask(), session.ask())
    before = session.ask()
    session.answer(0)
    assert session.n_answers == 1
    assert session.ask() is None or session.ask().number == 2
    assert before.number == 1


@pytest.mark.parametrize("k", [2, 3])
def test_no_question_is_asked_twice(k):
    # Somebody careful of whom that is not known: one answer leaves doubt about the same plans.
    for seed in range(8):
        rng = np.random.default_rng(seed)
        session, asked = start(k=k, seed=seed), []
        person = SimulatedPerson(prior().sample(1, rng)[0][0], Noiseless())
        while (question := session.ask()) is not None:
            asked.append(frozenset(plan.moves for plan in question.plans))
            session.answer(person.choose(question_of(session, question.plans), rng))
        assert len(set(asked)) == len(asked) > 2


def test_the_recommended_plan_of_a_question_stands_at_each_place_in_turn():
    places = []
    for seed in range(24):
        session = start(k=2, seed=seed)
        for _ in range(2):
            if (question := session.ask()) is None:
                break
            best = session.best().moves
            places.append([plan.moves for plan in question.plans].index(best))
            again = Session.from_json(session.to_json(), session.planner, prior())
            assert same_question(question, again.ask())
            session.answer(0)
    assert 0.3 < np.mean(places) < 0.7
    assert len(places) > 30


def test_every_plan_of_a_question_reaches_the_goal_and_differs():
    question = start(k=3).ask()
    assert len({plan.moves for plan in question.plans}) == len(question.plans) == 3
    assert all(plan.success for plan in question.plans)
    assert len(set(question.differences)) == 3


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(SAID), max_size=6))
def test_a_session_resumes_exactly_from_its_json(said):
    session = start()
    for what in said:
        say(session, what)
    again = Session.from_json(session.to_json(), session.planner, session.prior)
    assert again.to_json() == session.to_json()
    assert same_question(again.ask(), session.ask())
    assert np.array_equal(again.posterior.samples, session.posterior.samples)
    first, second = session.recommend(), again.recommend()
    assert first.plan.moves == second.plan.moves
    assert first.confidence == second.confidence


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(SAID[:-1]), min_size=1, max_size=4))
def test_undo_and_the_same_again_lead_to_the_same_place(said):
    session = start()
    for what in said:
        say(session, what)
    if not session.events:
        return
    stored, question = session.to_json(), session.ask()
    last = session.events[-1]
    session.undo()
    session.say(last)
    assert session.to_json() == stored
    assert same_question(session.ask(), question)


def test_answers_lead_to_the_person_s_own_best_plan():
    planner = lender()
    rng = np.random.default_rng(3)
    for kind in (0, 1):
        weights = prior().means[kind]
        session = Session(planner, PERSON, prior(), response=Noiseless(), min_gain=0.0)
        plans = list(converse(session, SimulatedPerson(weights, Noiseless()), 6, rng))
        costs = [
            planner.problem.costs.sequence_cost(
                session.start, planner.problem.actions, plan.moves, weights
            )
            for plan in plans
        ]
        best = planner.plan(session.start, weights).cost
        assert costs[-1] <= costs[0] + 1e-9
        assert costs[-1] <= 1.02 * best


def test_what_a_person_cannot_do_is_never_proposed_again():
    session = start(k=3)
    session.exclude(feature="income")
    session.exclude(action="settle")
    session.exclude(value=("debt", 0.0))
    for _ in range(4):
        question = session.ask()
        if question is None:
            break
        for plan in question.plans:
            assert all(step.feature != "income" for step in plan.steps)
            assert all((step.feature, step.after) != ("debt", 0.0) for step in plan.steps)
            assert all(step.action != "settle" for step in plan.steps)
        session.answer(0)
    assert all(step.feature != "income" for step in session.recommend().plan.steps)
    session.allow(feature="income")
    assert session.limits.features == ()


def test_limits_that_leave_nothing_are_named():
    session = start()
    session.set_limits(Limits(features=("income", "debt", "job")))
    assert session.ask() is None
    recommendation = session.recommend()
    assert not recommendation.plan.success
    assert recommendation.plan.certificate.verdict == "infeasible"
    assert recommendation.plan.certificate.blocking


def test_where_a_person_stands_is_known_without_a_search():
    session = start()
    asked = session.planner.black_box.rows
    session.ask()
    first = session.planner.black_box.rows
    standing = session.so_far()
    assert session.planner.black_box.rows == first > asked
    assert standing.plan.success
    assert 0 <= standing.confidence <= 1
    assert 1 <= standing.questions_left <= 10
    session.set_limits(Limits(features=("income", "debt", "job")))
    assert session.so_far() is None


def test_none_of_these_is_not_asked_twice():
    session = start()
    first = {plan.moves for plan in session.ask().plans}
    session.answer("none")
    question = session.ask()
    assert question is None or not first & {plan.moves for plan in question.plans}


def test_asking_stops_when_a_question_is_worth_less_than_the_threshold():
    assert start(min_gain=1e6).ask() is None
    session = start(max_questions=1)
    session.answer(0)
    assert session.ask() is None
    assert session.recommend().questions_left == 0


def test_the_paper_s_advance_asks_from_the_state_after_the_first_step():
    session = start(advance=True)
    question = session.ask()
    session.answer(0)
    first = question.plans[0].moves[0]
    planner = session.planner
    after = planner.problem.actions.apply(session.start[None], np.array([first]))[0]
    if planner.black_box.favourable(after[None])[0]:
        after = session.start
    assert np.array_equal(session.question_state(), after)
    assert np.array_equal(session.events[0].state, session.start)
    # Likelihoods stay at the state the question was asked in, and the recommendation at the start.
    plan = session.recommend().plan
    assert plan.start == planner.problem.space.decode(session.start)[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"posterior": "slices"},
        {"pool": "mean"},
        {"response": UnknownSharpness()},
        {"response": Logistic(0.05)},
        {"k": 4},
    ],
)
def test_every_setting_holds_a_conversation_and_round_trips(settings):
    session = start(**settings)
    for _ in range(2):
        if session.ask() is not None:
            session.answer(0)
    assert session.recommend().plan.success
    again = Session.from_dict(json.loads(session.to_json()), session.planner, session.prior)
    assert again.settings == session.settings


def test_accept_ends_the_conversation():
    session = start()
    plan = session.accept(1)
    assert plan.success
    assert session.finished
    assert session.ask() is None
    with pytest.raises(ConversationError, match="no question is open"):
        session.answer(0)
    with pytest.raises(ConversationError, match="accepted already"):
        session.accept()
    session.undo()
    assert not session.finished


def test_an_accepted_plan_follows_what_is_said_about_it_later():
    session = start()
    first = session.accept().steps[0].feature
    session.exclude(feature=first)
    assert session.finished
    assert all(step.feature != first for step in session.accepted().steps)
    session.undo()
    session.undo()
    assert not session.finished


def test_contradictory_answers_do_not_end_it():
    session = start(response=Noiseless())
    person, rng = SimulatedPerson(-prior().means[0], Noiseless()), np.random.default_rng(0)
    for _ in range(6):
        question = session.ask()
        if question is None:
            break
        session.answer(person.choose(question_of(session, question.plans), rng))
    assert np.isclose(session.posterior.weights.sum(), 1.0)
    assert session.recommend().plan.success


@pytest.mark.parametrize("choice", [2, -1, True, "yes", None, 1.5])
def test_an_answer_that_is_none_is_refused_and_changes_nothing(choice):
    session = start()
    with pytest.raises(ConversationError, match="'same' or 'none'"):
        session.answer(choice)
    assert session.events == ()


def test_wrong_things_said_are_refused():
    session = start()
    with pytest.raises(ConversationError, match="take back"):
        session.undo()
    with pytest.raises(InvalidProblem, match="no feature 'height'"):
        session.exclude(feature="height")
    with pytest.raises(ConversationError, match="nothing new"):
        session.exclude()
    with pytest.raises(ConversationError, match="no such limit"):
        session.allow(feature="income")
    with pytest.raises(ConversationError, match="no plan 7"):
        session.accept(7)
    with pytest.raises(InvalidSetting, match="'k'"):
        start(k=1)


def test_a_stored_session_of_another_model_or_of_nonsense_is_refused():
    session = start()
    data = session.to_dict()
    with pytest.raises(FingerprintMismatch, match="another model"):
        Session.from_dict({**data, "model_fingerprint": "x"}, session.planner, session.prior)
    for broken in ({}, [], {**data, "events": [{"kind": "shout"}]}, {**data, "seed": None}):
        with pytest.raises(ConversationError):
            Session.from_dict(broken, session.planner, session.prior)
    with pytest.raises(ConversationError, match="not JSON"):
        Session.from_json("{", session.planner, session.prior)


class RefusesAlone:
    """Scores of many at once as ever; a single record is refused."""

    def __call__(self, states):
        return score(states)

    def score_record(self, record):
        return np.array([0.1])


def test_a_plan_the_model_refuses_when_asked_alone_is_not_handed_out():
    problem = lender().problem
    model = BlackBox(RefusesAlone(), problem.space, problem.goal)
    session = Session(ExactPlanner(problem, model), PERSON, prior(), n_particles=300, draws=12)
    assert session.ask().plans[0].success
    for handed_out in (lambda: session.accept(0), session.accept, session.result):
        with pytest.raises(ModelOutput, match="alone"):
            handed_out()
    assert not session.finished
