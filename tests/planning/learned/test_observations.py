"""What the agent sees, against a case computed by hand."""

import numpy as np
import pytest

from pear.planning.learned.policy import Observer
from pear.problem.costs import as_samples
from tests.planning.small_problems import small_problem


def test_fare_sees_the_state_only():
    problem = small_problem()
    observer = Observer(problem, with_costs=False)
    seen = observer(np.array([[50.0, 2.0, 4.0, 1.0]]), np.zeros((1, len(problem.actions))))
    assert seen[0] == pytest.approx([0.5, 0.2, 0.4, 0, 1, 0])
    assert observer.width == 6


def test_wfare_sees_the_mean_cost_of_each_function_as_well():
    """Weights 10 for income, 20 for debt, 30 for the job, 4 from age, 5 from income.

    Earning 1, 2, 4 of 10: own cost 1, 2, 4, plus 4 (1 + 0.5) from age: mean 7 / 3 + 6.
    Repaying 1, 2, 4: 2, 4, 8: mean 14 / 3. A job: 30 + 5 (1 + 0.2) = 36.
    """
    problem = small_problem()
    observer = Observer(problem, with_costs=True)
    state = np.array([[50.0, 2.0, 4.0, 0.0]])
    names = problem.weight_names
    given = {"income": 10, "debt": 20, "job": 30, "age->income": 4, "income->job": 5}
    weights = np.array([float(given.get(name, 0)) for name in names])
    seen = observer(state, problem.costs.all_costs(state, problem.actions, as_samples(weights, 1)))
    assert seen[0, -4:] * 100 == pytest.approx([7 / 3 + 6, 14 / 3, 36, 36])


def test_the_floor_counts_in_the_mean():
    problem = small_problem()
    observer = Observer(problem, with_costs=True)
    state = np.array([[50.0, 2.0, 4.0, 0.0]])
    costs = problem.costs.all_costs(
        state, problem.actions, as_samples(np.zeros(problem.costs.n_weights), 1)
    )
    assert observer.function_costs(costs)[0] == pytest.approx([1, 1, 1, 1])
