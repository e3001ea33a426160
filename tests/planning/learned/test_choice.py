"""Which planner is taken for how many rows."""

import numpy as np
import pytest

from pear.planning.exact import ExactPlanner
from pear.planning.learned import WFARE, Policy
from pear.planning.learned.choice import ROWS_FOR_PROOF, planner_for, simulations_for
from tests.planning.small_problems import random_people, small_model, small_problem


@pytest.fixture
def policy():
    problem = small_problem()
    return Policy.fresh(problem, "wfare", np.ones(problem.costs.n_weights), hidden=8)


def test_few_rows_and_a_policy_mean_wfare(policy):
    planner = planner_for(policy.problem, small_model(policy.problem), 60, policy)
    assert isinstance(planner, WFARE)
    states, weights = random_people(policy.problem, 10, np.random.default_rng(0))
    assert all(plan.certificate.rows <= 60 for plan in planner.plan_many(states, weights))


@pytest.mark.parametrize("rows", [None, ROWS_FOR_PROOF])
def test_enough_rows_mean_exact_search(policy, rows):
    planner = planner_for(policy.problem, small_model(policy.problem), rows, policy)
    assert isinstance(planner, ExactPlanner)


def test_without_a_policy_for_wfare_it_is_exact_search(policy):
    model = small_model(policy.problem)
    other = Policy.fresh(policy.problem, "fare", policy.mean_weights, hidden=8)
    for given in (None, other):
        planner = planner_for(policy.problem, model, 60, given)
        assert isinstance(planner, ExactPlanner)
        assert planner.max_rows == 60


def test_both_searches_of_wfare_fit_the_rows():
    problem = small_problem()
    assert simulations_for(problem, 60) * 2 * problem.max_length <= 60
    assert simulations_for(problem, 1) == 1
    assert simulations_for(problem, None) == 5
