"""Advice that is sound: what was refused stays away, and what is urgent comes first."""

import numpy as np
import pytest

from pear.decision.blackbox import from_callable
from pear.elicitation import Session
from pear.elicitation.questions import urgent_first
from pear.planning.exact import ExactPlanner
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Problem, Requirement
from tests.elicitation.small_lender import PERSON, lender, prior


def test_a_plan_once_refused_never_comes_back_as_the_result():
    session = Session(lender(), PERSON, prior(), n_particles=300, draws=12, max_questions=8)
    refused = set()
    while (question := session.ask()) is not None:
        refused |= {plan.moves for plan in question.plans}
        session.answer("none")
        found = session.standing()
        if found.result is not None:
            assert found.result.plan.moves not in refused
    standing = session.standing()
    assert session.recommend().plan.success
    assert standing.stage == "plan" or standing.refused_before


def test_where_every_plan_was_refused_there_is_none_and_it_is_said_why():
    space = FeatureSpace((Feature("a", "boolean"), Feature("b", "boolean")))
    actions = ActionSpace(
        space, (Action("a", "a", "set", (True,)), Action("b", "b", "set", (True,)))
    )
    problem = Problem(space, actions, CostGraph(space))
    either = from_callable(lambda states: 0.2 + 0.6 * states.max(axis=1), problem)
    session = Session(ExactPlanner(problem, either), {"a": False, "b": False}, min_gain=0.0)
    assert len(session.ask().plans) == 2
    session.answer("none")
    for _ in range(10):
        if session.ask() is None:
            break
        session.answer("none")
    standing = session.standing()
    shown = {plan for answer in session.position.answers for plan in answer.plans}
    assert standing.result.plan.moves not in shown
    if standing.stage == "no_plan":
        assert standing.refused_before


@pytest.mark.parametrize(
    ("edges", "requires", "expected"),
    [
        ((), (), ["bill", "work", "card"]),
        ((("card", "bill"),), (), ["work", "card", "bill"]),
        ((("work", "bill"),), (), ["work", "bill", "card"]),
        ((), (Requirement("work", (True,)),), ["work", "bill", "card"]),
    ],
)
def test_urgent_steps_come_first_where_that_changes_nothing(edges, requires, expected):
    names = ("work", "card", "bill")
    space = FeatureSpace(tuple(Feature(name, "boolean") for name in names))
    actions = ActionSpace(
        space,
        tuple(
            Action(name, name, "set", (True,), priority=int(name == "bill"),
                   requires=requires if name == "bill" else ())
            for name in names
        ),
    )  # fmt: skip
    problem = Problem(space, actions, CostGraph(space, edges))
    planner = ExactPlanner(problem, from_callable(lambda s: s.mean(axis=1), problem))
    start, weights = np.zeros(3), np.full(problem.costs.n_weights, 5.0)
    plan = problem.make_plan(
        start,
        [0, 1, 2],
        weights,
        np.array([0, 1, 2, 3]) / 3,
        planner.plan(start, weights).certificate,
    )
    [found] = urgent_first(planner, start, [plan])
    assert [step.feature for step in found.steps] == expected
    assert found.cost == pytest.approx(plan.cost)
    assert [step.score_after for step in found.steps] == pytest.approx([1 / 3, 2 / 3, 1])
    assert found.certificate == plan.certificate
