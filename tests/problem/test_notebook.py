"""Plans and problems as tables, short texts and pictures: complete, short, and safe in a page."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pear import Action, BlackBox, ExactPlanner, Feature, Limits, Problem


@pytest.fixture
def problem():
    return Problem(
        [
            Feature("income", lower=0, scale=(0, 100), unit="€", label="<b>income</b>"),
            Feature("job", "categorical", categories=("none", "full")),
        ],
        [Action("earn", "income", "add", (20.0, 40.0)), Action("work", "job", "set", ("full",))],
        edges=[("job", "income")],
    )


@pytest.fixture
def planner(problem):
    return ExactPlanner(problem, BlackBox(lambda s: (s[:, 0] + 40 * s[:, 1]) / 160, problem.space))


@pytest.fixture
def plan(planner):
    return planner.plan(np.array([20.0, 0.0]), np.array([1.0, 1.0, 0.1]))


def test_a_plan_is_a_table_with_a_row_for_each_step(plan):
    table = plan.to_frame()
    assert list(table.index) == list(range(1, plan.length + 1))
    assert list(table["words"]) == [step.words for step in plan.steps]
    assert table["cost"].sum() == pytest.approx(plan.cost)
    assert table["score_after"].iloc[-1] == plan.score
    assert list(table["before"]) == [step.before for step in plan.steps]
    assert "reason" not in table
    reasoned = replace(plan, steps=tuple(replace(s, reason="because") for s in plan.steps))
    assert (reasoned.to_frame()["reason"] == "because").all()


def test_a_plan_says_itself_in_a_line(planner, plan):
    assert repr(plan) == "Plan(2 steps, cost 2, optimal: earn 40.0, work full)"
    weights = planner.problem.usual_weights
    assert repr(planner.plan(np.array([90.0, 1.0]), weights)) == "Plan(nothing to change)"
    nothing = Limits().without_features("income", "job")
    none = planner.plan(np.array([20.0, 0.0]), weights, nothing)
    assert repr(none) == "Plan(no plan, infeasible)"
    assert len(none.to_frame()) == 0
    assert list(none.to_frame().columns) == list(plan.to_frame().columns)


def test_the_page_of_a_notebook_shows_no_markup_of_the_problem(problem, plan):
    for page in (problem._repr_html_(), plan._repr_html_()):
        assert "<b>income" not in page
    assert "&lt;b&gt;income" in plan._repr_html_()
    assert plan.certificate.words() in plan._repr_html_()


def test_a_problem_is_a_table_of_its_features(problem):
    table = problem.to_frame()
    assert list(table.index) == ["income", "job"]
    assert table.loc["job", "values"] == "none, full"
    assert table.loc["income", "values"] == "from 0"
    assert table.loc["income", "harder with"] == "job"
    assert table.loc["income", "actions"] == "earn (add 20.0, 40.0)"
    assert isinstance(table, pd.DataFrame)


def test_a_plan_is_drawn_step_by_step(plan):
    pytest.importorskip("matplotlib").use("Agg")
    axes = plan.plot()
    assert [bar.get_width() for bar in axes.patches] == [step.cost for step in plan.steps]
    assert [t.get_text() for t in axes.get_yticklabels()] == [
        f"{i}. {step.words}" for i, step in enumerate(plan.steps, 1)
    ]
    assert plan.plot(axes) is axes
