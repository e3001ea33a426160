"""The clever search against trying every sequence of moves, on thousands of small problems."""

import numpy as np
import pytest
from hypothesis import given, settings

from pear.planning.exact import ExactPlanner
from pear.problem import walk
from tests.planning.exact.small_problems import brute_force, cases


def check(case, plan, best):
    """The plan's claims hold when they are computed from nothing but the definitions."""
    problem = case.problem
    if not np.isfinite(best):
        assert plan.certificate.verdict == "infeasible"
        assert not plan.success
        return
    assert plan.certificate.verdict == "optimal"
    assert plan.success
    assert plan.cost == pytest.approx(best, abs=1e-6)
    path = walk(case.state, problem.actions, plan.moves)
    for state, move in zip(path[:-1], plan.moves, strict=True):
        assert problem.actions.allowed(state[None], case.limits)[0, move]
    assert case.black_box.score(path[-1:])[0] > problem.goal.required(case.limits)


@settings(max_examples=600, deadline=None)
@given(cases())
@pytest.mark.slow
def test_the_optimum_and_the_infeasible_verdict_are_those_of_brute_force(case):
    planner = ExactPlanner(case.problem, case.black_box)
    check(case, planner.plan(case.state, case.weights, case.limits), brute_force(case))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(cases(max_features=3))
def test_repeated_changes_are_those_of_brute_force(case):
    planner = ExactPlanner(case.problem, case.black_box, max_changes_per_feature=3)
    best = brute_force(case, max_changes_per_feature=3)
    check(case, planner.plan(case.state, case.weights, case.limits), best)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(cases(samples=4))
def test_the_mean_floored_cost_over_samples_is_that_of_brute_force(case):
    planner = ExactPlanner(case.problem, case.black_box)
    check(case, planner.plan(case.state, case.weights, case.limits), brute_force(case))


@settings(max_examples=150, deadline=None)
@given(cases(samples=5))
def test_optima_in_one_pass_are_those_of_separate_searches(case):
    planner = ExactPlanner(case.problem, case.black_box)
    together = planner.optima(case.state, case.weights, case.limits)
    for weights, plan in zip(case.weights, together, strict=True):
        alone = planner.plan(case.state, weights, case.limits)
        assert plan.moves == alone.moves
        assert plan.cost == pytest.approx(alone.cost, abs=1e-6)
        assert plan.certificate.verdict == alone.certificate.verdict


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_cheapest_plan_for_each_length_is_that_of_brute_force(case):
    planner = ExactPlanner(case.problem, case.black_box)
    plans = planner.plans_by_length(case.state, case.weights, case.limits)
    for length, plan in enumerate(plans, start=1):
        best = brute_force(case, max_length=length)
        assert plan.success == np.isfinite(best)
        if plan.success:
            assert plan.length <= length
            assert plan.cost == pytest.approx(best, abs=1e-6)


@settings(max_examples=300, deadline=None)
@given(cases())
@pytest.mark.slow
def test_a_budget_is_kept_and_its_bound_is_never_above_the_optimum(case):
    best = brute_force(case)
    for max_rows in (8, 11, 16, 30):
        asked = case.black_box.rows
        planner = ExactPlanner(case.problem, case.black_box, max_rows=max_rows, first_batch=3)
        plan = planner.plan(case.state, case.weights, case.limits)
        certificate = plan.certificate
        if certificate.verdict != "infeasible":  # then other limits are tried as well
            assert case.black_box.rows - asked <= max_rows
        assert certificate.rows <= max_rows
        if certificate.lower_bound is not None:
            assert certificate.lower_bound <= best + 1e-6
        if certificate.verdict == "optimal":
            assert plan.cost == pytest.approx(best, abs=1e-6)
        if plan.success:
            assert plan.cost >= best - 1e-6
        if certificate.verdict == "infeasible":
            assert best == np.inf


@settings(max_examples=100, deadline=None)
@given(cases())
def test_the_plan_does_not_depend_on_the_batch_size(case):
    small = ExactPlanner(case.problem, case.black_box, first_batch=1)
    large = ExactPlanner(case.problem, case.black_box, first_batch=500)
    first = small.plan(case.state, case.weights, case.limits)
    second = large.plan(case.state, case.weights, case.limits)
    assert first.moves == second.moves
