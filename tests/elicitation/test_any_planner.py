"""A session over planners of every kind: scripted, off the grid, and people with nothing to do."""

from dataclasses import dataclass, replace
from threading import Thread

import numpy as np
import pytest

from pear.decision import BlackBox
from pear.elicitation import Session
from pear.planning.planner import Candidates, Planner, plan_from_moves
from pear.preferences import GaussianMixturePrior, Noiseless
from pear.problem import (
    Action,
    ActionSpace,
    Certificate,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Limits,
    Problem,
)
from tests.elicitation.small_lender import PERSON, lender, prior

QUICK = {"min_gain": 0.0, "n_particles": 300, "draws": 12}


@dataclass
class Scripted(Planner):
    """Offers the plans it was given, a round of them at each call; the last round for ever."""

    exact: object
    rounds: tuple[tuple[tuple[int, ...], ...], ...]
    on_grid: bool = True
    calls: int = 0

    def __post_init__(self):
        self.problem, self.black_box = self.exact.problem, self.exact.black_box

    def _plan_each(self, queries):
        return [self._made(self.rounds[-1][0], query) for query in queries]

    def _candidates(self, query, n, memory, max_rows):
        moves_of_all = self.rounds[min(self.calls, len(self.rounds) - 1)]
        self.calls += 1
        return Candidates(tuple(self._made(moves, query) for moves in moves_of_all))

    def _made(self, moves, query):
        found, mean = Certificate("heuristic"), query.samples.mean(axis=0)
        plan = plan_from_moves(self, query.state, moves, mean, found, method="script")
        return plan if self.on_grid else replace(plan, moves=(), on_grid=False)


# Moves of the small lender: 2 earn 6, 3 earn 8, 6 save 4, 8 repay 2, 11 repay 8.
REPAY, SAVE_AND_EARN, REPAY_AND_EARN = (11,), (6, 2), (8, 3)


def test_each_place_is_filled_from_the_candidates_generated_for_it():
    # Algorithm 2: the second place is for the second round, though the first has better left.
    rounds = ((REPAY, SAVE_AND_EARN), (REPAY, REPAY_AND_EARN))
    planner = Scripted(lender(), rounds)
    session = Session(planner, PERSON, prior(), pool="mean", response=Noiseless(), **QUICK)
    assert {plan.moves for plan in session.ask().plans} == {REPAY, REPAY_AND_EARN}
    union = Scripted(lender(), ((REPAY, SAVE_AND_EARN, REPAY_AND_EARN),))
    session = Session(union, PERSON, prior(), response=Noiseless(), **QUICK)
    assert {plan.moves for plan in session.ask().plans} == {REPAY, SAVE_AND_EARN}


def test_a_planner_that_repeats_itself_is_helped_out_by_the_draws():
    planner = Scripted(lender(), ((REPAY,), (REPAY,), (SAVE_AND_EARN,)))
    session = Session(planner, PERSON, prior(), pool="mean", response=Noiseless(), **QUICK)
    assert {plan.moves for plan in session.ask().plans} == {REPAY, SAVE_AND_EARN}


def test_a_planner_with_a_single_plan_has_nothing_to_ask():
    session = Session(Scripted(lender(), ((REPAY,),)), PERSON, prior(), **QUICK)
    assert session.ask() is None
    found = session.recommend()
    assert found.plan.moves == REPAY
    assert found.questions_left == 0


def test_plans_off_the_grid_are_recommended_and_never_compared():
    planner = Scripted(lender(), ((REPAY, SAVE_AND_EARN),), on_grid=False)
    session = Session(planner, PERSON, prior(), **QUICK)
    assert session.ask() is None
    assert session.best() is None
    assert session.so_far() is None
    found = session.recommend()
    assert found.plan.success
    assert found.confidence == 0.0
    assert session.accept().steps == session.accepted().steps


def test_a_person_whose_decision_is_favourable_is_asked_nothing():
    rich = {"income": 18.0, "savings": 8.0, "debt": 0.0, "job": "permanent"}
    session = Session(lender(), rich, prior(), **QUICK)
    assert session.ask() is None
    found = session.recommend()
    assert found.plan.success
    assert found.plan.steps == ()
    assert (found.confidence, found.questions_left, found.gain) == (1.0, 0, 0.0)


def test_a_few_draws_that_agree_are_no_certainty():
    narrow = GaussianMixturePrior(prior().means[:1], np.full((1, 7), 1e-6), background_weight=0.0)
    found = Session(lender(), PERSON, narrow, **QUICK).recommend()
    assert found.confidence == pytest.approx(12.5 / 13)


def test_a_question_holds_no_more_plans_than_there_are():
    session = Session(lender(), PERSON, prior(), k=50, **QUICK)
    plans = session.ask().plans
    assert 2 < len(plans) < 50
    assert len({plan.moves for plan in plans}) == len(plans)


@pytest.mark.parametrize("floor", [None, 0.0, 1.0])
@pytest.mark.parametrize("posterior", ["particles", "slices"])
def test_one_feature_and_any_floor_will_do(floor, posterior):
    space = FeatureSpace((Feature("income", scale=(0.0, 10.0)),))
    actions = ActionSpace(
        space,
        (Action("earn", "income", "add", (2.0, 4.0)), Action("jump", "income", "set", (9.0,))),
    )
    problem = Problem(space, actions, CostGraph(space, (), floor=floor), Goal(), max_length=2)
    exact = type(lender())(
        problem, BlackBox(lambda s: (s[:, 0] >= 4) * 0.9, space, problem.goal, name="bar")
    )
    belief = GaussianMixturePrior([[3.0]], [[4.0]])
    session = Session(exact, {"income": 0.0}, belief, posterior=posterior, **QUICK)
    for choice in (0, 1, "same", "none"):
        if session.ask() is not None:
            session.answer(choice)
    assert session.recommend().plan.success
    assert np.isfinite(session.posterior.mean()).all()


@pytest.mark.parametrize("variance", [1e-12, 1e12])
def test_a_prior_that_is_very_sure_or_very_unsure_holds_a_conversation(variance):
    belief = GaussianMixturePrior(prior().means, np.full(prior().means.shape, variance))
    session = Session(lender(), PERSON, belief, response=Noiseless(), **QUICK)
    for number in range(5):
        if session.ask() is not None:
            session.answer(number % 2)
    assert session.posterior.weights.sum() == pytest.approx(1.0)
    assert session.recommend().plan.success


def test_a_limit_on_the_number_of_steps_holds_for_plans_shown_before():
    session = Session(lender(), PERSON, prior(), k=4, **QUICK)
    assert max(plan.length for plan in session.ask().plans) > 1
    session.answer(0)
    session.set_limits(Limits(max_steps=1))
    assert session.best().length == 1
    assert session.recommend().plan.length == 1


def test_conversations_in_several_threads_share_a_planner():
    planner, found = lender(), {}

    def hold(seed, key):
        session = Session(planner, PERSON, prior(), seed=seed, **QUICK)
        for _ in range(2):
            if session.ask() is not None:
                session.answer(0)
        plan = session.recommend().plan
        found[key] = (plan.moves, plan.certificate.rows, plan.certificate.verdict)

    for seed in range(3):
        hold(seed, ("alone", seed))
    threads = [Thread(target=hold, args=(seed, ("beside", seed))) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found["beside", seed] for seed in range(3)] == [
        found["alone", seed] for seed in range(3)
    ]
