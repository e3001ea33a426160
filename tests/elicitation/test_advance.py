"""The paper's state advance: every question from a later state, every plan from the start."""

import numpy as np
import pytest

from pear.elicitation import Session, SimulatedPerson
from pear.elicitation.simulation import question_of
from pear.errors import ConversationError
from pear.preferences import Noiseless
from pear.problem import walk
from tests.elicitation.small_lender import PERSON, lender, prior


def start(**settings):
    settings = {"min_gain": 0.0, "n_particles": 300, "draws": 12, **settings}
    return Session(lender(), PERSON, prior(), advance=True, response=Noiseless(), **settings)


def away_from_the_start(session):
    """Answers until a question is asked from a later state."""
    for _ in range(4):
        if not np.array_equal(session.question_state(), session.start):
            return session
        plans = session.ask().plans
        longest = max(range(len(plans)), key=lambda i: plans[i].length)
        session.answer(longest)
    raise AssertionError("no question was asked from a later state")


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_wherever_a_question_was_asked_the_best_plan_works_from_the_start(seed):
    # A survey of a later state, taken for one of the start, would promise plans that fail.
    session, rng = start(seed=seed), np.random.default_rng(seed)
    person = SimulatedPerson(prior().sample(1, rng)[0][0], Noiseless())
    actions, black_box = session.planner.problem.actions, session.planner.black_box
    places = set()
    for _ in range(6):
        question = session.ask()
        if question is None:
            break
        places.add(session.question_state().tobytes())
        for plan in question.plans:
            last = walk(session.question_state(), actions, plan.moves)[-1]
            assert black_box.favourable(last[None])[0]
        session.answer(person.choose(question_of(session, question.plans), rng))
        last = walk(session.start, actions, session.best().moves)[-1]
        assert black_box.favourable(last[None])[0]
    assert len(places) > 1


def test_asking_goes_on_at_the_start_where_the_later_state_leaves_nothing_to_ask():
    session = away_from_the_start(start())
    advanced = session._advanced()
    assert not np.array_equal(advanced, session.start)
    session._views[advanced.tobytes()] = nothing = session._view_from(advanced)
    object.__setattr__(nothing, "gain", 0.0)
    assert session.ask() is not None
    assert np.array_equal(session.question_state(), session.start)


def test_a_new_limit_starts_anew_for_the_steps_so_far_may_be_ruled_out():
    session = away_from_the_start(start())
    session.exclude(feature="savings")
    assert np.array_equal(session.question_state(), session.start)


def test_a_plan_from_a_later_state_is_no_plan_to_accept():
    session = away_from_the_start(start())
    with pytest.raises(ConversationError, match="later state"):
        session.accept(0)
    assert not session.finished
    plan = session.accept()
    assert plan.start == session.planner.problem.space.decode(session.start)[0]


@pytest.mark.parametrize("choice", [0, 1, "same", "none"])
def test_every_kind_of_answer_is_taken_from_a_later_state_and_resumes(choice):
    session = away_from_the_start(start())
    session.answer(choice)
    again = Session.from_json(session.to_json(), session.planner, session.prior)
    assert np.array_equal(again.question_state(), session.question_state())
    assert np.array_equal(again.posterior.samples, session.posterior.samples)
    first, second = session.ask(), again.ask()
    assert [p.moves for p in first.plans] == [p.moves for p in second.plans]
    assert session.best().moves == again.best().moves
