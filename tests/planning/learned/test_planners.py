"""RL, FARE and W-FARE as planners."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import InvalidSetting
from pear.planning.learned import FARE, WFARE, Policy, PolicyOnly
from pear.problem import NO_LIMITS, Limits, walk
from tests.planning.learned.agents import trained_policy
from tests.planning.small_problems import brute_force, random_people, small_model, small_problem

PLANNERS = {"rl": PolicyOnly, "fare": FARE, "wfare": WFARE}


def planner_of(kind, **settings):
    policy = trained_policy(kind)
    return PLANNERS[kind](policy, small_model(policy.problem), **settings)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(["rl", "fare", "wfare"]),
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 3),
    feature=st.sampled_from([(), ("income",), ("debt",)]),
    action=st.sampled_from([(), ("find work",), ("earn",)]),
    max_rows=st.one_of(st.none(), st.integers(1, 30)),
)
@pytest.mark.slow
def test_only_allowed_actions_are_proposed(kind, seed, steps, feature, action, max_rows):
    planner = planner_of(kind, max_rows=max_rows)
    problem = planner.problem
    states, weights = random_people(problem, 5, np.random.default_rng(seed))
    limits = Limits(features=feature, actions=action, max_steps=steps)
    before = planner.black_box.rows
    plans = planner.plan_many(states, weights, limits)
    asked = planner.black_box.rows - before
    assert max_rows is None or asked <= 5 * max_rows
    for state, plan in zip(states, plans, strict=True):
        path = walk(state, problem.actions, plan.moves)
        for place, move in enumerate(plan.moves):
            assert problem.actions.allowed(path[[place]], limits)[0, move]
        assert len(plan.moves) <= steps
        assert max_rows is None or plan.certificate.rows <= max_rows
        if plan.success:
            assert planner.black_box.favourable(path[[-1]])[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rl", "fare", "wfare"])
def test_together_and_one_by_one_return_the_same_plans(kind):
    problem = small_problem()
    states, weights = random_people(problem, 15, np.random.default_rng(1))
    together = planner_of(kind).plan_many(states, weights)
    alone = [planner_of(kind).plan(s, w) for s, w in zip(states, weights, strict=True)]
    assert [p.moves for p in together] == [p.moves for p in alone]


@pytest.mark.slow
def test_wfare_finds_cheap_plans_after_a_little_training():
    planner = planner_of("wfare", simulations=15)
    states, weights = random_people(planner.problem, 40, np.random.default_rng(8))
    plans = planner.plan_many(states, weights)
    best = [
        brute_force(planner.problem, planner.black_box, s, w)
        for s, w in zip(states, weights, strict=True)
    ]
    solvable = [(plan, b) for plan, b in zip(plans, best, strict=True) if b is not None]
    assert np.mean([plan.success for plan, _ in solvable]) >= 0.95
    found = [(plan.cost, b) for plan, b in solvable if plan.success]
    assert all(cost >= b - 1e-9 for cost, b in found)
    assert np.mean([c for c, _ in found]) <= 1.15 * np.mean([b for _, b in found])


def test_fare_does_not_look_at_the_persons_weights():
    planner = planner_of("fare")
    states, weights = random_people(planner.problem, 20, np.random.default_rng(3))
    mine = planner.plan_many(states, weights)
    other = planner.plan_many(states, weights[::-1].copy())
    assert [p.moves for p in mine] == [p.moves for p in other]
    assert [p.cost for p in mine] != [p.cost for p in other]


def test_wfare_falls_back_on_the_plan_for_the_mean_weights():
    """No plan of W-FARE costs this person more than the plan for the mean weights."""
    planner = planner_of("wfare", simulations=2)
    problem = planner.problem
    states, weights = random_people(problem, 60, np.random.default_rng(5))
    references = planner.references(states, NO_LIMITS, None, planner.black_box.score)
    plans = planner.plan_many(states, weights)
    compared = 0
    for state, weight, reference, plan in zip(states, weights, references, plans, strict=True):
        if len(reference.moves):
            moves = [move for move in reference.moves[0] if move >= 0]
            cost = problem.costs.sequence_cost(state, problem.actions, moves, weight)
            assert plan.cost <= cost + 1e-9
            compared += 1
    assert compared > 20


def test_the_plan_for_the_mean_weights_is_searched_once_per_state():
    planner = planner_of("wfare")
    states, weights = random_people(planner.problem, 1, np.random.default_rng(4))
    first = planner.plan(states[0], weights[0])
    asked = planner.black_box.rows
    again = planner.plan(states[0], weights[0])
    assert planner.black_box.rows - asked < again.certificate.rows
    assert (first.moves, first.certificate.rows) == (again.moves, again.certificate.rows)


def test_rl_stops_at_an_action_that_is_not_allowed():
    """An untrained agent soon names one; the plan is then no plan, and no rows are wasted."""
    problem = small_problem()
    policy = Policy.fresh(problem, "rl", np.ones(problem.costs.n_weights), hidden=16, seed=1)
    states, weights = random_people(problem, 40, np.random.default_rng(2))
    planner = PolicyOnly(policy, small_model(problem))
    plans = planner.plan_many(states, weights)
    refused = [p for p, s in zip(plans, states, strict=True) if p.certificate.rows > 0]
    assert any(not plan.success and plan.certificate.rows <= 3 for plan in refused)


@pytest.mark.parametrize("kind", ["fare", "wfare"])
def test_candidates_are_distinct_and_successful(kind):
    planner = planner_of(kind, simulations=20, max_rows=400)
    samples = np.random.default_rng(0).uniform(1, 60, (25, planner.problem.costs.n_weights))
    before = planner.black_box.rows
    plans = planner.candidates(np.array([30.0, 3.0, 2.0, 1.0]), samples, 4).plans
    assert planner.black_box.rows - before <= 400
    assert 1 <= len({plan.moves for plan in plans}) == len(plans) <= 4
    assert all(plan.success for plan in plans)


def test_a_policy_of_another_kind_is_refused():
    problem = small_problem()
    policy = Policy.fresh(problem, "fare", np.ones(problem.costs.n_weights), hidden=8)
    with pytest.raises(InvalidSetting, match="trained for 'wfare' \\(got one for 'fare'\\)"):
        WFARE(policy, small_model(problem))
