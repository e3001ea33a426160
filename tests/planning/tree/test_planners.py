"""Plain MCTS as a planner: optimum, limits, budget, candidates."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.planning.tree import TreeSearch
from pear.planning.tree.rules import LengthRules, SavingRules
from pear.problem import CostGraph, Limits, walk
from tests.planning.small_problems import brute_force, random_people, small_model, small_problem


@pytest.mark.parametrize(
    ("max_length", "rules"),
    [
        (2, LengthRules(exploration=20.0)),
        (2, SavingRules(exploration=20.0)),
        (3, SavingRules(exploration=20.0)),
    ],
)
@pytest.mark.slow
def test_reaches_the_optimum_with_enough_simulations(max_length, rules):
    problem = small_problem(max_length)
    black_box = small_model(problem)
    states, weights = random_people(problem, 12, np.random.default_rng(5))
    planner = TreeSearch(problem, black_box, simulations=3000, rules=rules)
    plans = planner.plan_many(states, weights)
    for state, weight, plan in zip(states, weights, plans, strict=True):
        best = brute_force(problem, black_box, state, weight)
        assert plan.success == (best is not None)
        if best is not None:
            assert plan.cost == pytest.approx(best)
            assert plan.certificate.verdict == "heuristic"
        else:
            assert plan.certificate.verdict == "unknown"


def test_together_and_one_by_one_return_the_same_plans():
    problem = small_problem()
    states, weights = random_people(problem, 20, np.random.default_rng(1))
    planner = TreeSearch(problem, small_model(problem), simulations=6)
    together = planner.plan_many(states, weights, rngs=np.random.default_rng(3).spawn(20))
    streams = np.random.default_rng(3).spawn(20)
    alone = [planner.plan(s, w, rng=r) for s, w, r in zip(states, weights, streams, strict=True)]
    assert [p.moves for p in together] == [p.moves for p in alone]
    assert [p.certificate.rows for p in together] == [p.certificate.rows for p in alone]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    steps=st.integers(1, 3),
    feature=st.sampled_from([(), ("income",), ("debt",)]),
    action=st.sampled_from([(), ("find work",), ("earn",)]),
    max_rows=st.one_of(st.none(), st.integers(1, 40)),
)
def test_plans_are_legal_successful_and_within_limits(seed, steps, feature, action, max_rows):
    problem = small_problem()
    black_box = small_model(problem)
    states, weights = random_people(problem, 4, np.random.default_rng(seed))
    limits = Limits(features=feature, actions=action, max_steps=steps)
    planner = TreeSearch(problem, black_box, simulations=8, max_rows=max_rows)
    for state, plan in zip(states, planner.plan_many(states, weights, limits), strict=True):
        check_plan(problem, black_box, state, plan, limits)
        assert max_rows is None or plan.certificate.rows <= max_rows


def check_plan(problem, black_box, state, plan, limits):
    path = walk(state, problem.actions, plan.moves)
    for place, move in enumerate(plan.moves):
        assert problem.actions.allowed(path[[place]], limits)[0, move]
    assert len(plan.moves) <= (limits.max_steps or problem.max_length)
    if plan.success:
        assert black_box.favourable(path[[-1]], limits)[0]
    else:
        assert plan.moves == ()


def test_rows_reported_are_rows_asked():
    problem = small_problem()
    black_box = small_model(problem)
    states, weights = random_people(problem, 15, np.random.default_rng(2))
    plans = TreeSearch(problem, black_box, simulations=5).plan_many(states, weights)
    assert sum(plan.certificate.rows for plan in plans) == black_box.rows


def test_an_already_favourable_person_has_nothing_to_do():
    problem = small_problem()
    plan = TreeSearch(problem, small_model(problem)).plan(
        np.array([30.0, 9.0, 0.0, 2.0]), np.ones(problem.costs.n_weights)
    )
    assert (plan.success, plan.moves, plan.cost) == (True, (), 0.0)


def test_samples_of_weights_give_the_mean_cost():
    problem = small_problem()
    samples = np.random.default_rng(0).uniform(1, 60, (7, problem.costs.n_weights))
    state = np.array([30.0, 2.0, 3.0, 0.0])
    plan = TreeSearch(problem, small_model(problem), simulations=200).plan(state, samples)
    costs = problem.costs.sequence_cost(state, problem.actions, plan.moves, samples)
    assert plan.success
    assert plan.cost == pytest.approx(costs.mean())


def test_candidates_are_distinct_successful_and_cheapest_first():
    problem = small_problem()
    black_box = small_model(problem)
    samples = np.random.default_rng(0).uniform(1, 60, (30, problem.costs.n_weights))
    state = np.array([30.0, 2.0, 3.0, 0.0])
    planner = TreeSearch(problem, black_box, simulations=100, max_rows=900)
    before = black_box.rows
    plans = planner.candidates(state, samples, 5, rng=np.random.default_rng(1)).plans
    assert black_box.rows - before <= 900
    assert len({plan.moves for plan in plans}) == len(plans) == 5
    assert all(plan.success for plan in plans)
    costs = np.array(
        [problem.costs.sequence_cost(state, problem.actions, plan.moves, samples) for plan in plans]
    )
    wins = np.bincount(costs.argmin(axis=0), minlength=5)
    assert wins[0] == wins.max()


def test_path_returns_the_most_visited_moves():
    problem = small_problem()
    states, weights = random_people(problem, 30, np.random.default_rng(4))
    black_box = small_model(problem)
    best = TreeSearch(problem, black_box, simulations=15).plan_many(states, weights)
    path = TreeSearch(problem, black_box, simulations=15, returns="path").plan_many(states, weights)
    assert all(b.success for b, p in zip(best, path, strict=True) if p.success)
    pairs = [(b.cost, p.cost) for b, p in zip(best, path, strict=True) if p.success]
    assert all(b <= p + 1e-9 for b, p in pairs)
    assert any(b < p for b, p in pairs)


@pytest.mark.parametrize("setting", ["simulations", "max_rows", "searches"])
def test_counts_below_one_are_refused(setting):
    problem = small_problem()
    with pytest.raises(InvalidSetting, match=f"'{setting}' must be a whole number"):
        TreeSearch(problem, small_model(problem), **{setting: 0})


def test_without_a_floor_changes_that_are_welcome_do_not_hide_the_plans():
    small = small_problem()
    free = replace(small, costs=CostGraph(small.space, small.costs.edges, floor=None))
    model = small_model(free)
    states, weights = random_people(free, 30, np.random.default_rng(6))
    plans = TreeSearch(free, model, simulations=15).plan_many(states, -weights)
    there = ExactPlanner(free, model).plan_many(states, weights)
    found, possible = (np.mean([plan.success for plan in some]) for some in (plans, there))
    assert found >= 0.9 * possible > 0


def test_weights_that_do_not_fit_the_people_are_refused():
    problem = small_problem()
    states, weights = random_people(problem, 3, np.random.default_rng(0))
    planner = TreeSearch(problem, small_model(problem))
    with pytest.raises(InvalidSetting, match="for each of 3 people"):
        planner.plan_many(states, weights[:2])
    with pytest.raises(InvalidSetting, match="must have 6 entries"):
        planner.plan_many(states, weights[:, :2])
    with pytest.raises(InvalidSetting, match="finite"):
        planner.plan_many(states, weights * np.nan)


def test_one_generator_per_person_is_needed():
    problem = small_problem()
    states, weights = random_people(problem, 3, np.random.default_rng(0))
    with pytest.raises(InvalidSetting, match="one generator per person"):
        TreeSearch(problem, small_model(problem)).plan_many(
            states, weights, rngs=[np.random.default_rng(0)]
        )
