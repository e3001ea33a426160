"""XPEAR: an ordinary conversation whose every step has a reason that is true."""

import numpy as np
import pytest

from pear.elicitation.session import Session
from pear.elicitation.xpear import ExplainedSession, xpear_session
from pear.errors import InvalidSetting
from pear.planning.automaton import AutomatonPlanner
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior, Noiseless
from pear.problem import walk
from tests.planning.automaton.rules import trained


@pytest.fixture(scope="module")
def planner():
    _, model, automaton = trained()
    return AutomatonPlanner(automaton, model)


@pytest.fixture(scope="module")
def prior():
    means = np.array([[20.0, 5.0, 90.0, 1.0], [20.0, 400.0, 10.0, 1.0]])
    return GaussianMixturePrior(means, np.stack([np.eye(4)] * 2), np.array([0.5, 0.5]))


PERSON = {"debt": 80.0, "income": 30.0, "job": "none", "sex": "female"}


def test_every_plan_on_offer_has_true_reasons(planner, prior):
    session = xpear_session(planner, PERSON, prior, response=Noiseless(), seed=1)
    asked = session.ask()
    assert asked is not None
    draws = session._view().draws
    for plan in asked.plans:
        assert plan.success
        states = walk(session.start, planner.problem.actions, plan.moves)
        reasons = planner.reasons(session.start, draws, plan.moves)
        for step, reason, state in zip(plan.steps, reasons, states, strict=False):
            assert step.reason == reason.words(planner.problem)
            for condition in reason.conditions:
                assert condition.holds(planner.automaton.inputs, state, draws)


def test_answers_lead_to_the_plan_that_is_cheap_for_the_person(planner, prior):
    true = np.array([20.0, 400.0, 10.0, 1.0])
    session = xpear_session(planner, PERSON, prior, response=Noiseless(), seed=0, min_gain=0.0)
    problem = planner.problem
    for _ in range(4):
        asked = session.ask()
        if asked is None:
            break
        costs = [
            problem.costs.sequence_cost(session.start, problem.actions, plan.moves, true)
            for plan in asked.plans
        ]
        session.answer(int(np.argmin(costs)))
    assert session.n_answers >= 1
    plan = session.recommend().plan
    assert {step.action for step in plan.steps} == {"repay", "find work"}
    assert all(step.reason.startswith("because") for step in plan.steps)
    assert all(step.reason for step in session.best().steps)


def test_it_is_stored_and_resumed_as_any_session(planner, prior):
    session = xpear_session(planner, PERSON, prior, seed=3)
    if session.ask() is not None:
        session.answer(0)
    again = ExplainedSession.from_dict(session.to_dict(), planner, prior)
    assert isinstance(again, Session)
    assert again.recommend().plan.steps == session.recommend().plan.steps
    assert again.recommend().confidence == session.recommend().confidence


def test_a_planner_without_reasons_is_refused(planner, prior):
    exact = ExactPlanner(planner.problem, planner.black_box)
    with pytest.raises(InvalidSetting, match="W-EFARE"):
        xpear_session(exact, PERSON, prior)
    _, model, unaware = trained(aware=False)
    with pytest.raises(InvalidSetting, match="aware=True"):
        xpear_session(AutomatonPlanner(unaware, model), PERSON, prior)
