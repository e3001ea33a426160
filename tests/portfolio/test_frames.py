"""A DataFrame in, a DataFrame out: the plans are the planner's, under everybody's own weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from pear import Action, BlackBox, ExactPlanner, Feature, Limits, Problem, recourse
from pear.errors import InvalidRecord, InvalidSetting, ModelRefused

PROBLEM = Problem(
    [
        Feature("income", scale=(0, 100)),
        Feature("savings", scale=(0, 100)),
        Feature("job", "categorical", categories=("none", "part", "full")),
        Feature("age"),
    ],
    [
        Action("earn", "income", "add", (20.0, 40.0)),
        Action("save", "savings", "add", (20.0, 40.0)),
        Action("work", "job", "set", ("part", "full")),
    ],
    edges=[("income", "savings")],
)
PEOPLE = pd.DataFrame(
    {
        "income": [20.0, 30.0, 90.0],
        "savings": [30.0, 20.0, 90.0],
        "job": ["none", "part", "full"],
        "age": [30.0, 40.0, 50.0],
        "town": ["A", "B", "C"],
    },
    index=["ann", "bob", "cyn"],
)


def score(states):
    return (states[:, 0] + 1.5 * states[:, 1] + 10 * states[:, 2]) / 275


def test_the_table_holds_the_planners_own_plans():
    table = recourse(score, PEOPLE, PROBLEM, weights=np.array([1.0, 2.0, 3.0, 4.0, 0.5]))
    planner = ExactPlanner(PROBLEM, BlackBox(score, PROBLEM.space, PROBLEM.goal))
    states = PROBLEM.states(PEOPLE)
    plans = [planner.plan(state, np.array([1.0, 2.0, 3.0, 4.0, 0.5])) for state in states]
    assert list(table.index) == ["ann", "bob", "cyn"]
    assert list(table["decision"]) == ["refused", "refused", "approved"]
    assert list(table["verdict"]) == [plan.certificate.verdict for plan in plans]
    assert list(table["cost"]) == pytest.approx([plan.cost for plan in plans])
    assert list(table["steps"]) == ["; ".join(s.words for s in plan.steps) for plan in plans]
    for (_, row), plan in zip(table.iterrows(), plans, strict=True):
        for name in ("income", "savings", "job"):
            changed = {step.feature: step.after for step in plan.steps}
            assert row[f"{name}_before"] == plan.start[name]
            assert row[f"{name}_after"] == changed.get(name, plan.start[name])
    assert "age_before" not in table


def test_the_after_columns_are_accepted_by_the_model():
    table = recourse(score, PEOPLE, PROBLEM)
    after = PEOPLE.assign(**{name: table[f"{name}_after"] for name in ("income", "savings", "job")})
    assert (score(PROBLEM.states(after)) > 0.5).all()
    assert table["score_after"].to_numpy() == pytest.approx(score(PROBLEM.states(after)))


def test_one_person_in_any_form_is_the_same_person():
    whole = recourse(score, PEOPLE, PROBLEM).reset_index(drop=True).iloc[[0]]
    record = PEOPLE.iloc[0].drop("town").to_dict()
    for person in (record, [record], PEOPLE.iloc[0], PEOPLE.iloc[[0]]):
        table = recourse(score, person, PROBLEM).reset_index(drop=True)
        pd.testing.assert_frame_equal(table, whole)


def test_weights_may_be_of_each_person_and_stand_in_any_order():
    names = list(PROBLEM.weight_names)
    each = pd.DataFrame(
        [[1, 9, 9, 1, 0], [9, 1, 9, 1, 0], [1, 1, 1, 1, 1]], PEOPLE.index, names, float
    )
    table = recourse(score, PEOPLE, PROBLEM, weights=each.iloc[::-1, ::-1])
    alone = [
        recourse(score, PEOPLE.loc[[name]], PROBLEM, weights=each.loc[name].to_dict())
        for name in PEOPLE.index
    ]
    pd.testing.assert_frame_equal(table, pd.concat(alone))
    assert len(set(table["cost"])) == 3


def test_a_table_of_weights_without_somebody_is_refused():
    each = pd.DataFrame(1.0, PEOPLE.index, list(PROBLEM.weight_names))
    with pytest.raises(InvalidSetting, match="one row per person"):
        recourse(score, PEOPLE, PROBLEM, weights=each.drop("bob"))
    with pytest.raises(InvalidSetting, match="the columns savings"):
        recourse(score, PEOPLE, PROBLEM, weights=each.drop(columns="savings"))


def test_who_has_no_plan_keeps_their_row():
    nothing = Limits().without_features("income", "savings", "job")
    table = recourse(score, PEOPLE, PROBLEM, limits=[nothing, Limits(), Limits()])
    assert list(table["verdict"]) == ["infeasible", "optimal", "optimal"]
    assert table.loc["ann", ["cost", "length", "steps"]].isna().all()
    assert table.loc["ann", "income_after"] == 20.0


def test_nobody_gives_a_table_without_rows():
    whole = recourse(score, PEOPLE, PROBLEM)
    none = recourse(score, PEOPLE.iloc[:0], PROBLEM)
    assert len(none) == 0
    assert list(none.columns) == list(whole.columns)


def test_a_row_that_does_not_fit_is_named():
    with pytest.raises(InvalidRecord, match=r"row 1: 'job' .*'most'"):
        recourse(score, PEOPLE.assign(job=["none", "most", "full"]), PROBLEM)


def test_progress_is_told_until_everybody_is_done():
    told = []
    recourse(score, PEOPLE, PROBLEM, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (3, 3)


def test_a_fitted_estimator_is_taken_as_it_is():
    table = pd.DataFrame({"income": [10.0, 20, 80, 90], "savings": [0.0, 10, 60, 70]})
    model = LogisticRegression().fit(table, [0, 0, 1, 1])
    problem = Problem(
        [Feature("income", scale=(0, 100)), Feature("savings", scale=(0, 100))],
        [
            Action("earn", "income", "add", (20.0, 40.0, 60.0)),
            Action("save", "savings", "add", (60,)),
        ],
    )
    found = recourse(model, table, problem)
    assert list(found["decision"]) == ["refused", "refused", "approved", "approved"]
    assert found["success"].all()


def test_what_is_no_model_is_refused():
    with pytest.raises(ModelRefused, match="a dict is not a model"):
        recourse({}, PEOPLE, PROBLEM)
