"""States are compared exactly, and costs with what competes with them."""

import numpy as np
import pytest

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem


def planned(actions, accepts, weights, *, repeats=1, floor=0.0):
    """The plan from 0 of people who are accepted where ``accepts`` says so."""
    names = list(dict.fromkeys(action.feature for action in actions))
    space = FeatureSpace(tuple(Feature(name) for name in names))
    graph = CostGraph(space, (), floor=floor)
    problem = Problem(space, ActionSpace(space, tuple(actions)), graph, Goal(), max_length=3)
    model = BlackBox(lambda states: np.where(accepts(states), 0.9, 0.1), space, problem.goal)
    planner = ExactPlanner(problem, model, max_changes_per_feature=repeats)
    return planner.plan(np.zeros(len(names)), np.array(weights)), model


@pytest.mark.parametrize("wanted", [0.3, 0.1 + 0.2])
@pytest.mark.parametrize("floor", [0.0, 1.0])
def test_a_tenth_and_two_tenths_are_not_three_tenths(wanted, floor):
    assert 0.1 + 0.2 != 0.3
    actions = [Action("x", "x", "add", (0.1, 0.2, 0.3))]
    plan, model = planned(actions, lambda s: s[:, 0] == wanted, [1.0], repeats=3, floor=floor)
    assert plan.certificate.verdict == "optimal"
    assert plan.steps[-1].after == wanted
    assert model.score(np.array([[plan.steps[-1].after]]))[0] == plan.score == 0.9


def test_increments_of_a_ten_billionth_are_told_apart():
    actions = [Action("x", "x", "add", (1e-10,)), Action("y", "y", "set", (1.0,))]
    enough = 1e-10 + 1e-10 + 1e-10
    plan, _ = planned(actions, lambda s: (s[:, 0] == enough) | (s[:, 1] > 0), [1.0, 1.0], repeats=3)
    assert [step.feature for step in plan.steps] == ["x", "x", "x"]
    assert plan.cost == pytest.approx(3e-10)


@pytest.mark.parametrize("dear", [1e6, 1e12, 1e15])
def test_a_dear_option_does_not_make_others_equal(dear):
    actions = [Action(name, name, "set", (1.0,)) for name in "abc"]
    plan, _ = planned(actions, lambda s: s.any(axis=1), [dear, 4.5, 4.0])
    assert (plan.cost, plan.certificate.verdict) == (4.0, "optimal")


@pytest.mark.parametrize("size", [1e-8, 1e-12, 1e-200])
def test_tiny_costs_are_costs(size):
    actions = [Action(name, name, "set", (1.0,)) for name in "abc"]
    plan, _ = planned(actions, lambda s: s.any(axis=1), [3 * size, 2 * size, size])
    assert (plan.cost, plan.steps[0].feature) == (size, "c")


def test_costs_that_differ_by_less_than_a_billionth_of_themselves_are_not_equal():
    actions = [Action(name, name, "set", (1.0,)) for name in "ab"]
    plan, _ = planned(actions, lambda s: s.any(axis=1), [1.0 + 1e-11, 1.0])
    assert plan.steps[0].feature == "b"


def test_bounds_are_what_the_steps_cost_where_huge_parts_of_a_cost_cancel():
    b = Feature("b", "categorical", categories=("x", "z"), ordered=True)
    c = Feature("c", "categorical", categories=("x", "y"))
    space = FeatureSpace((b, c))
    actions = (Action("to_b", "b", "set", ("x",)), Action("to_c", "c", "set", ("x",)))
    graph = CostGraph(space, (("b", "c"),), floor=1e-9, offset=0.0)
    problem = Problem(space, ActionSpace(space, actions), graph, Goal())
    model = BlackBox(lambda s: np.where(s.sum(axis=1) == 0, 0.9, 0.1), space, problem.goal)
    planner = ExactPlanner(problem, model)
    plan = planner.plan(np.array([1.0, 1.0]), np.array([-6.61, 1.06, 1.41e12]))
    assert [step.feature for step in plan.steps] == ["b", "c"]
    assert plan.cost == pytest.approx(1.06 + 1e-9, rel=1e-12)
    assert plan.certificate.lower_bound == plan.certificate.upper_bound == plan.cost


@pytest.mark.parametrize("dear", [1e12, 1e15])
def test_huge_parts_that_a_parent_takes_away_do_not_blur_what_is_left(dear):
    space = FeatureSpace((Feature("parent"), Feature("child")))
    actions = (Action("leave", "parent", "set", (0.0,)), Action("move", "child", "set", (3.0, 2.0)))
    graph = CostGraph(space, (("parent", "child"),), floor=0.0, offset=0.0)
    problem = Problem(space, ActionSpace(space, actions), graph, Goal())
    model = BlackBox(
        lambda s: np.where((s[:, 0] == 0) & (s[:, 1] >= 2), 0.9, 0.1), space, problem.goal
    )
    weights = np.array([1.0, 1e-5, dear])
    plan = ExactPlanner(problem, model).plan(np.array([1.0, 1.0]), weights)
    assert [step.after for step in plan.steps] == [0.0, 2.0]
    assert plan.cost == pytest.approx(1.00001, rel=1e-12)
