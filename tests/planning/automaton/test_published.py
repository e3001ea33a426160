"""EFARE and W-EFARE on the paper's Adult users, against its table eval-results."""

import os

import numpy as np
import pytest

pytestmark = [
    pytest.mark.published,
    pytest.mark.skipif(
        not {"PEAR_BENCH", "PEAR_DATA"} <= set(os.environ), reason="needs PEAR_BENCH and PEAR_DATA"
    ),
]


@pytest.mark.parametrize(("aware", "least"), [(False, 0.76), (True, 0.95)])
@pytest.mark.slow
def test_validity_is_at_least_the_published(aware, least):
    from benchmarks.baselines import set_up, taught

    from pear.planning.automaton import AutomatonPlanner
    from pear.planning.exact import ExactPlanner

    bench = set_up(300)
    teacher = ExactPlanner(bench.problem, bench.model, max_rows=10_000)
    planner = AutomatonPlanner(taught(bench, teacher, aware, seed=0), bench.model)
    plans = planner.plan_many(bench.users.states, bench.users.weights if aware else bench.mean)
    assert np.mean([plan.success for plan in plans]) >= least
    cost = np.mean([bench.true_cost(i, plan) for i, plan in enumerate(plans) if plan.success])
    assert cost <= (182 if aware else 305)
