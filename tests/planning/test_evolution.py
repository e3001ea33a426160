"""CSCF against trying everything, and its front against the definition of domination."""

import os

import numpy as np
import pytest

from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.evolution import EvolutionPlanner, gower
from pear.problem import NO_LIMITS, Limits
from pear.problem.costs import NO_MOVE, as_sequence
from tests.planning.small_problems import brute_force, random_people, small_model, small_problem

pytest.importorskip("pymoo", reason="needs the extra 'experiments'")


@pytest.fixture(scope="module")
def planner():
    problem = small_problem()
    return EvolutionPlanner(problem, small_model(problem), generations=40)


@pytest.mark.slow
def test_with_enough_generations_it_finds_the_optimum(planner):
    # CSCF uses each action at most once, so the optimum compared is over such plans.
    problem = planner.problem
    states, weights = random_people(problem, 12, np.random.default_rng(1))
    plans = planner.plan_many(states, weights, rngs=np.random.default_rng(2).spawn(len(states)))
    for state, weight, plan in zip(states, weights, plans, strict=True):
        best = brute_force(problem, planner.black_box, state, weight, once_per_action=True)
        assert plan.success == (best is not None)
        if best is not None:
            assert plan.cost == pytest.approx(best)
    assert sum(plan.success and plan.length > 0 for plan in plans) >= 6


def test_no_member_of_the_front_is_dominated(planner):
    state = planner.problem.space.encode(
        [{"age": 30.0, "income": 2.0, "debt": 4.0, "job": "none"}]
    )[0]
    weights = np.array([1.0, 9.0, 4.0, 60.0, 1.0, 5.0])
    sequences, objectives = planner.front(state, weights, rng=np.random.default_rng(0))
    assert len(sequences) == len(objectives) >= 1
    worse = (objectives[:, None] >= objectives[None]).all(axis=2)
    strictly = (objectives[:, None] > objectives[None]).any(axis=2)
    assert not (worse & strictly).any()


@pytest.mark.slow
def test_plans_are_legal_and_their_verdict_claims_nothing(planner):
    states, weights = random_people(planner.problem, 8, np.random.default_rng(3))
    for plan in planner.plan_many(states, weights[0]):
        current = planner.problem.state(plan.start)[None]
        for move in plan.moves:
            assert planner.problem.actions.allowed(current)[0, move]
            current = planner.problem.actions.apply(current, np.array([move]))
        assert plan.success == planner.black_box.favourable(current)[0]
        assert plan.certificate.verdict == ("heuristic" if plan.success else "unknown")


def test_people_side_by_side_ask_the_model_once_per_generation():
    problem, calls = small_problem(), []

    def score(states):
        calls.append(len(states))
        return np.zeros(len(states))

    model = BlackBox(score, problem.space, problem.goal)
    states, weights = random_people(problem, 4, np.random.default_rng(0))
    calls.clear()
    EvolutionPlanner(problem, model, population=10, generations=6)._evolve(
        states, weights[:, None], NO_LIMITS, np.random.default_rng(0).spawn(4)
    )
    assert len(calls) == 6
    assert calls[0] == 4 * 10


def test_same_seed_same_plans(planner):
    states, weights = random_people(planner.problem, 2, np.random.default_rng(4))
    first = planner.plan_many(states, weights, rngs=np.random.default_rng(7).spawn(len(states)))
    again = planner.plan_many(states, weights, rngs=np.random.default_rng(7).spawn(len(states)))
    assert [plan.moves for plan in first] == [plan.moves for plan in again]


def test_limits_are_kept(planner):
    state = planner.problem.space.encode(
        [{"age": 30.0, "income": 2.0, "debt": 5.0, "job": "none"}]
    )[0]
    limits = Limits(features=("job",), max_steps=2)
    plan = planner.plan(state, np.ones(6), limits, np.random.default_rng(0))
    assert plan.length <= 2
    assert all(step.feature != "job" for step in plan.steps)


@pytest.mark.slow
def test_candidates_are_distinct_successful_and_best_for_some_sample(planner):
    problem = planner.problem
    state = problem.space.encode([{"age": 30.0, "income": 2.0, "debt": 4.0, "job": "none"}])[0]
    samples = np.random.default_rng(5).uniform(1, 60, (40, problem.costs.n_weights))
    plans = planner.candidates(state, samples, 4, rng=np.random.default_rng(0)).plans
    assert 1 <= len(plans) <= 4
    assert len({plan.moves for plan in plans}) == len(plans)
    assert all(plan.success for plan in plans)
    costs = np.array(
        [problem.costs.sequence_cost(state, problem.actions, p.moves, samples) for p in plans]
    )
    assert set(costs.argmin(axis=0)) == set(range(len(plans)))


def test_keys_decode_as_described(planner):
    # earn (key 0.4) with the second of three amounts, then find work (0.45); the rest is off.
    orders, picks = [0.4, 0.6, 0.45, 0.51], [0.5, 0.0, 1.0, 0.0]
    [row] = planner.decode(np.array([orders + picks]))
    assert as_sequence(row) == (1, 6)
    [nothing] = planner.decode(np.full((1, 8), 0.9))
    assert nothing.tolist() == [NO_MOVE] * 3


def test_gower_distance_by_hand(planner):
    # income 2 -> 6 of 10 is 0.4, the job is another: 1; over four features: 1.4 / 4.
    before = np.array([[30.0, 2.0, 4.0, 0.0]])
    after = np.array([[30.0, 6.0, 4.0, 1.0]])
    assert gower(planner.problem.space, before, after) == pytest.approx([0.35])


@pytest.mark.parametrize("setting", [{"population": 2}, {"bias": 1.5}, {"children": 0.0}])
def test_bad_settings_are_refused_by_name(planner, setting):
    with pytest.raises(InvalidSetting, match=next(iter(setting))):
        EvolutionPlanner(planner.problem, planner.black_box, **setting)


@pytest.mark.published
@pytest.mark.skipif("PEAR_BENCH" not in os.environ, reason="needs PEAR_BENCH")
@pytest.mark.slow
def test_validity_on_published_users_is_at_least_the_published():
    from pear.datasets.published import (
        published_classifier,
        published_prior_means,
        published_problem,
        published_users,
    )

    problem = published_problem("adult")
    planner = EvolutionPlanner(problem, published_classifier(problem))
    users, mean = published_users(problem), published_prior_means("adult").mean(axis=0)
    plans = planner.plan_many(users.states[:15], mean, rngs=np.random.default_rng(0).spawn(15))
    assert np.mean([plan.success for plan in plans]) >= 0.78
