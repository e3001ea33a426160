"""People for whom the cheapest states, in their order, lead nowhere for long."""

import numpy as np
import pytest

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner, Survey
from pear.planning.exact.options import build_tables
from pear.planning.exact.polish import neighbours, options_of
from pear.planning.exact.survey import moves_by_level
from pear.problem import (
    NO_LIMITS,
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
)
from tests.planning.exact.test_ties_and_batches import flags

DECOYS = "abcdefghijkl"
VALUES = tuple(float(value) for value in range(1, 10))


def with_decoys(dear: str, length: int) -> Problem:
    """Some dear features of nine values, and twelve cheap ones that may be switched on."""
    space = FeatureSpace(tuple(Feature(name, scale=(0.0, 9.0)) for name in dear + DECOYS))
    actions = [Action(f"set_{name}", name, "set", VALUES) for name in dear]
    actions += [Action(f"on_{name}", name, "set", (9.0,)) for name in DECOYS]
    return Problem(
        space, ActionSpace(space, tuple(actions)), CostGraph(space), Goal(), max_length=length
    )


def plateau(problem: Problem, dear: int) -> BlackBox:
    """The same score everywhere, except where all the dear features are raised to 4 or more."""

    def score(states):
        return np.where((states[:, :dear] >= 4).all(axis=1), 0.9, 0.29)

    return BlackBox(score, problem.space, problem.goal, fingerprint=f"plateau of {dear}")


def weights_of(dear: int) -> np.ndarray:
    return np.array([90.0] * dear + [9.0] * len(DECOYS))


def test_neighbours_change_one_feature_or_swap_one_change_and_may_cost_less():
    problem = flags(edges=(("a", "b"),))
    weights = np.array([[[2.0, 3.0, 4.0, 5.0, 1.5]]])
    tables = build_tables(problem, np.zeros((1, 4)), weights, [NO_LIMITS], 3)
    here = options_of(tables, 0, (0, 3))
    found = neighbours(tables, 0, here, 7.0)
    states = [tuple(state) for state in tables.states(found.lanes, found.words)]
    # From (1, 0, 0, 1): leave one out, or leave one out and take another instead.
    assert states == [(1, 0, 0, 0), (0, 0, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0)]
    assert found.bounds.tolist() == [2.0, 5.0, 6.0, 6.5]


def test_a_first_plan_that_follows_the_score_is_made_cheaper():
    """The beam raises x as far as the score rises; less of it is enough, and cheaper."""
    problem = with_decoys("xy", 6)

    def score(states):
        pair = states[:, :2]
        return 0.1 + 0.15 * (pair >= 4).sum(axis=1) + 0.011 * pair.sum(axis=1)

    black_box = BlackBox(score, problem.space, problem.goal, fingerprint="tempting")
    planner = ExactPlanner(problem, black_box, max_rows=600, first_batch=4)
    plan = planner.plan(np.zeros(14), weights_of(2))
    assert plan.certificate.verdict == "bounded"
    assert plan.cost == pytest.approx(100)  # the beam's own plan costs 110


def test_a_plan_is_found_where_the_score_tells_no_direction():
    """A beam sees a flat score, and the cheap decoys come first in the order of cost."""
    problem = with_decoys("xyz", 6)
    planner = ExactPlanner(problem, plateau(problem, 3), max_rows=8_000)
    plan = planner.plan(np.zeros(15), weights_of(3))
    assert plan.certificate.verdict == "bounded"
    assert plan.cost == pytest.approx(120)  # 3 * 90 * 4/9, which no plan undercuts
    again = planner.plan(np.zeros(15), weights_of(3))
    assert again.moves == plan.moves


def test_a_survey_remembers_plans_that_were_not_met_in_the_order_of_cost():
    problem = with_decoys("xyz", 6)
    planner = ExactPlanner(problem, plateau(problem, 3), max_rows=8_000)
    found = planner.candidates(np.zeros(15), weights_of(3), 1, max_rows=8_000)
    [plan] = planner.candidates(
        np.zeros(15), weights_of(3), 1, memory=found.memory, max_rows=100
    ).plans
    assert plan.cost == pytest.approx(120)


def test_a_surveyed_set_with_a_move_the_lane_has_no_option_for_is_left_out():
    problem = with_decoys("xy", 6)
    start = np.zeros(14)
    tables = build_tables(problem, start[None], weights_of(2)[None, None], [NO_LIMITS], 6)
    x_is_4, y_is_4 = 3, 12
    survey = Survey(
        moves=moves_by_level(tables, [(x_is_4, y_is_4), (y_is_4,)]), scores=np.array([0.9, 0.9])
    )
    assert len(survey.best(tables, 0, 0.5, 10)[0]) == 2
    start[0] = 4.0  # Here "set x to 4" changes nothing and is no option.
    tables = build_tables(problem, start[None], weights_of(2)[None, None], [NO_LIMITS], 6)
    rows, _ = survey.best(tables, 0, 0.5, 10)
    assert [tuple(s[:2]) for s in tables.states(rows.lanes, rows.words)] == [(4.0, 4.0)]
