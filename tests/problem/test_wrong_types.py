"""Parts of the wrong type are refused by name, before anything is built on them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from pear import (
    Action,
    ExactPlanner,
    Feature,
    Goal,
    Limits,
    Problem,
    Requirement,
    Session,
    draft_problem,
    load_model,
    load_problem,
    verify,
    write_problem,
)
from pear.decision import from_callable
from pear.errors import InvalidInput, ModelRefused
from pear.problem import CostGraph

FEATURES = [Feature("income"), Feature("job", "categorical", categories=("a", "b"))]
EARN = Action("earn", "income", "add", (1.0, 2.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"space": Feature("income")}, "the features must be a list of Feature"),
        ({"space": None}, "the features must be a list of Feature"),
        ({"space": ["income"]}, "the features must be a list of Feature .got 'income'"),
        ({"actions": EARN}, "the actions must be a list of Action"),
        ({"actions": ["earn"]}, "the actions must be a list of Action .got 'earn'"),
        ({"costs": "cheap"}, "'costs' must be a CostGraph .got 'cheap'"),
        ({"goal": "approved"}, "'goal' must be a Goal .got 'approved'"),
        ({"asked": "income"}, "'asked' must be a Asked .got 'income'"),
        ({"interface": "x"}, "'interface' must be a Interface .got 'x'"),
        ({"archetypes": 3}, "'archetypes' must be a list of Archetype .got 3"),
        ({"archetypes": ["x"]}, "'archetypes' must be a list of Archetype .got 'x'"),
        ({"words": ["de"]}, "'words' must be a Mapping .got"),
        ({"words": {"de": {"labels": {}}}}, "'words' must be a Words .got"),
        ({"weight_range": [(1, 2)]}, "'weight_range' must be a Mapping .got"),
        ({"edges": 3}, "'edges' must be a list .* pairs .got 3"),
        ({"edges": "income"}, "'edges' must be a list .* pairs .got 'income'"),
    ],
)
def test_a_part_of_a_problem(settings, message):
    with pytest.raises(InvalidInput, match=message):
        Problem(**{"space": FEATURES, "actions": [EARN], **settings})


@pytest.mark.parametrize("requires", [("job",), ({"feature": "job"},)])
def test_a_requirement(requires):
    with pytest.raises(InvalidInput, match="'requires' must be a list of Requirement"):
        Action("earn", "income", "add", (1,), requires=requires)


@pytest.mark.parametrize(
    "arguments", [range(1, 4), np.arange(1, 4), pd.Series([1, 2, 3]), pd.Index([1, 2, 3])]
)
def test_whatever_lists_values_may_give_arguments(arguments):
    assert Action("earn", "income", "add", arguments).arguments == (1, 2, 3)


def test_a_path_or_problem_that_is_none():
    with pytest.raises(InvalidInput, match=r"'path' must be a path .got None"):
        load_problem(None)
    with pytest.raises(InvalidInput, match=r"'problem' must be a Problem .got None"):
        write_problem(None, "problem.toml")


@pytest.fixture(scope="module")
def problem():
    return Problem(
        [Feature("income", lower=0.0, upper=10.0), Feature("savings", lower=0.0, upper=10.0)],
        [EARN, Action("save", "savings", "add", (1.0, 2.0))],
        edges=[("income", "savings")],
    )


@pytest.fixture(scope="module")
def black_box(problem):
    return from_callable(lambda states: states.sum(axis=1) / 20, problem)


@pytest.mark.parametrize(
    "limits", [{"features": ["income"]}, ["income"], "income", [Limits(features=("income",))]]
)
def test_limits(problem, black_box, limits):
    planner = ExactPlanner(problem, black_box)
    with pytest.raises(InvalidInput, match="'limits' must be a Limits"):
        planner.plan({"income": 5.0, "savings": 5.0}, limits=limits)


def test_limits_of_many(problem, black_box):
    planner = ExactPlanner(problem, black_box)
    with pytest.raises(InvalidInput, match="'limits' must be a Limits"):
        planner.plan_many([{"income": 5.0, "savings": 5.0}], limits=["income"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 2.5}, "'max_length' must be a whole number of at least 1 .got 2.5"),
        ({"max_changes_per_feature": "2"}, "'max_changes_per_feature' must be a whole number"),
        ({"max_rows": "many"}, "'max_rows' must be a whole number of at least 1 .got 'many'"),
    ],
)
def test_settings_of_the_planner(problem, black_box, settings, message):
    with pytest.raises(InvalidInput, match=message):
        ExactPlanner(problem, black_box, **settings)


def test_problem_and_model_in_the_wrong_places(problem, black_box):
    with pytest.raises(InvalidInput, match=r"'problem' must be a Problem .got BlackBox"):
        ExactPlanner(black_box, problem)
    with pytest.raises(InvalidInput, match=r"'black_box' must be a BlackBox .*load_model"):
        ExactPlanner(problem, lambda states: states[:, 0])


def test_weights_by_name_in_any_order(problem, black_box):
    person, planner = {"income": 5.0, "savings": 4.0}, ExactPlanner(problem, black_box)
    named = {"income->savings": 3.0, "savings": 50.0, "income": 40.0}
    plan = planner.plan(person, named)
    assert planner.plan(person, pd.Series(named)).weights == plan.weights
    rows = pd.DataFrame([named, {name: 2 * weight for name, weight in named.items()}])
    in_order = rows[list(problem.weight_names)].to_numpy()
    assert np.array_equal(problem.weights(rows), in_order)
    assert np.array_equal(problem.weights_of(2, rows)[:, 0], in_order)
    with pytest.raises(InvalidInput, match="weights are missing for income->savings"):
        planner.plan(person, pd.Series({"income": 1.0, "savings": 2.0}))


def test_what_a_model_a_draft_or_a_check_is_made_from(problem, black_box):
    with pytest.raises(InvalidInput, match=r"'problem' must be a Problem .got 'problem.toml'"):
        load_model(lambda states: states[:, 0], "problem.toml")
    with pytest.raises(ModelRefused, match="LogisticRegression is a class"):
        load_model(LogisticRegression, problem)
    with pytest.raises(InvalidInput, match=r"'table' must be a DataFrame .got 'data.csv'"):
        draft_problem("data.csv", "approved")
    with pytest.raises(InvalidInput, match=r"'plan' must be a Plan .got 'plan'"):
        verify("plan", problem, black_box)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"planner": "exact"}, "'planner' must be a Planner .got 'exact'"),
        ({"prior": "usual"}, "'prior' must be a GaussianMixturePrior .got 'usual'"),
        ({"limits": ["income"]}, "'limits' must be a Limits .got"),
    ],
)
def test_what_a_session_is_made_from(problem, black_box, changed, message):
    given = {"planner": ExactPlanner(problem, black_box), "person": {"income": 5.0, "savings": 4.0}}
    with pytest.raises(InvalidInput, match=message):
        Session(**{**given, **changed})


def test_a_goal_that_is_a_cost_graph(problem):
    with pytest.raises(InvalidInput, match="'goal' must be a Goal"):
        Problem(FEATURES, [EARN], goal=CostGraph(problem.space))
    assert Problem(FEATURES, [EARN], goal=Goal()).goal == Goal()
    assert Requirement("job", ["a"]).values == ("a",)
