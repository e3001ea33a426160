"""First drafts from tables, and what looks odd in a problem."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets import loan_book_problem
from pear.errors import InvalidData
from pear.problem import (
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Problem,
    Requirement,
)
from pear.problem.draft import draft_problem
from pear.problem.draft_features import nice_step, round_out
from pear.problem.files import problem_from_toml
from pear.problem.review import describe_actions, odd_actions
from tests.problem.examples import mixed_problem


def people(n=200):
    rng = np.random.default_rng(0)
    income = np.where(rng.random(n) < 0.1, np.nan, rng.uniform(500, 4_300, n).round(2))
    return pd.DataFrame(
        {
            "customer_id": np.arange(n),
            "note": [f"note {i}" for i in range(n)],
            "Age": rng.integers(18, 80, n),
            "gender": rng.choice(["f", "m"], n),
            "wages": income,
            "late_payments": rng.integers(0, 7, n),
            "balance": rng.normal(0, 1000, n),
            "job": rng.choice(["a", "b", "c"], n),
            "owner": rng.choice(["yes", "no"], n),
            "member": rng.integers(0, 2, n),
            "branch": "main",
            "nothing": np.nan,
            "approved": rng.choice(["approved", "refused"], n),
        }
    )


def test_a_draft_guesses_kinds_bounds_and_what_nobody_can_change():
    table = people()
    draft = draft_problem(table, "approved")
    problem, space = draft.problem, draft.problem.space
    assert draft.left_out == {
        "customer_id": "names rows",
        "note": "names rows",
        "nothing": "empty",
    }
    kinds = {feature.name: feature.kind for feature in space.features}
    assert kinds == {
        "Age": "integer",
        "gender": "categorical",
        "wages": "numeric",
        "late_payments": "integer",
        "balance": "numeric",
        "job": "categorical",
        "owner": "categorical",
        "member": "boolean",
        "branch": "categorical",
    }
    assert [f.name for f in space.features if f.protected] == ["Age", "gender"]
    assert [f.name for f in space.features if f.immutable] == ["Age", "gender", "branch"]
    wages = space["wages"]
    assert (wages.lower, wages.upper) == (0.0, 4300.0)
    assert wages.missing_counts_as == pytest.approx(table["wages"].median())
    assert space["balance"].lower <= table["balance"].min() < 0
    assert problem.goal.favourable == ("approved",)
    grids = {a.name: a.arguments for a in problem.actions.actions}
    assert grids["increase_wages"] == tuple(200.0 * i for i in range(1, 11))
    assert grids["reduce_late_payments"] == (-1, -2, -3, -4, -5, -6)
    assert "increase_late_payments" not in grids
    assert grids["change_job"] == ("a", "b", "c")
    assert grids["change_owner"] == ("no", "yes")
    assert grids["change_member"] == (True, False)
    assert space.encode(table).shape == (200, 9)


def test_a_draft_reads_back_and_marks_what_to_review():
    draft = draft_problem(people(), "approved", name="loans", model="net.onnx")
    text = draft.text()
    assert problem_from_toml(text) == draft.problem
    assert draft.problem.model == "net.onnx"
    before, _, _ = text.partition("[features.gender]")
    assert before.endswith("# Review: marked immutable and protected because of its name.\n")
    before, _, _ = text.partition("[goal]")
    assert "Review: approved was taken for the favourable one of approved, refused." in before
    assert text.splitlines()[2] == (
        "# Left out: customer_id (names rows), note (names rows), nothing (empty)."
    )


@pytest.mark.parametrize(
    ("target", "values", "favourable"),
    [
        ("approved", [0, 1], 1),
        ("SeriousDlqin2yrs", [0, 1], 0),
        ("loan_default", ["no", "yes"], "no"),
        ("income", ["<=50K", ">50K"], ">50K"),
        ("granted", [True, False], True),
        ("decision", ["good", "poor", "unsure"], "good"),
        ("level", [1.0, 2.0, 3.0], 3),
    ],
)
def test_the_favourable_class_is_guessed(target, values, favourable):
    table = pd.DataFrame({"x": range(len(values) * 4), target: values * 4})
    assert draft_problem(table, target).problem.goal.favourable == (favourable,)


def test_names_that_shorten_to_the_same_words_keep_apart():
    table = pd.DataFrame({"a b": range(9), "a_b": range(9), "A-b": range(9), "ok": [0, 1, 1] * 3})
    names = [action.name for action in draft_problem(table, "ok").problem.actions.actions]
    assert len(set(names)) == len(names) == 6


def test_values_far_out_do_not_stretch_the_scale():
    values = np.append(np.linspace(0, 10, 999), 1e6)
    draft = draft_problem(pd.DataFrame({"x": values, "ok": np.arange(1000) % 2}), "ok")
    assert draft.problem.space["x"].scale == (0.0, 10.0)
    assert draft.problem.space["x"].upper == 1e6
    assert "far out" in draft.comments["features.x"]


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        ({"x": [1, 2], "y": [0, 1]}, "z", "no column 'z'; its columns are x, y"),
        ({"x": [1, 2], "y": [1, 1]}, "y", "2 to 20 classes .got 1 different"),
        ({"x": [1] * 30, "y": range(30)}, "y", "2 to 20 classes .got 30 different"),
        ({"age": [1, 2], "y": [0, 1]}, "y", "no column that a person could change"),
    ],
)
def test_a_table_that_gives_no_problem_is_refused(table, target, message):
    with pytest.raises(InvalidData, match=message):
        draft_problem(pd.DataFrame(table), target)


def test_a_draft_of_a_table_with_odd_columns():
    n = 300
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "Unnamed: 0": np.arange(n),
            "Monthly income (€)": rng.uniform(500, 4_000, n).round(2),
            "postcode": rng.integers(10_000, 99_999, n),
            "housing": rng.integers(1, 4, n),
            "foreign_worker": rng.integers(0, 2, n),
            "employer": [f"firm {i}" for i in rng.integers(0, 150, n)],
            "on": rng.choice(["True", "False"], n),
            "Alter": rng.integers(18, 80, n),
            "decision": rng.choice(["granted", "declined"], n),
        }
    )
    draft = draft_problem(table, "decision")
    space, grids = draft.problem.space, {a.name: a for a in draft.problem.actions.actions}
    assert draft.left_out["Unnamed: 0"] == "names rows"
    assert draft.left_out["employer"].endswith(" different texts")
    income = space["Monthly income (€)"]
    assert (income.words, income.unit) == ("Monthly income", "€")
    assert space["postcode"].immutable
    assert not space["postcode"].protected
    assert "look like codes" in draft.comments["features.postcode"]
    assert (space["housing"].lower, space["housing"].upper) == (1, 3)
    assert "only 1, 2, 3 occur" in draft.comments["features.housing"]
    assert space["foreign_worker"].protected
    assert space["on"].kind == "boolean"
    assert (space["Alter"].protected, space["Alter"].upper) == (True, None)
    assert set(grids) == {
        "increase_monthly_income", "reduce_monthly_income",
        "increase_housing", "reduce_housing", "change_on",
    }  # fmt: skip
    assert draft.problem.goal.favourable == ("granted",)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e308])
def test_numbers_no_person_has_are_refused_by_row(value):
    table = pd.DataFrame({"x": [1.0, 2.0, value, 3.0], "ok": [0, 1, 0, 1]})
    with pytest.raises(InvalidData, match=r"row 2: 'x' is too large for a number of a person"):
        draft_problem(table, "ok")


def test_round_numbers():
    assert [nice_step(x, whole=False) for x in (0.013, 0.5, 7.0, 5000.0)] == [0.01, 0.5, 5.0, 5e3]
    assert [nice_step(x, whole=True) for x in (0.2, 1.0, 27.0)] == [1, 1, 20]
    assert round_out(0.0, down=True) == 0.0
    assert round_out(0.0123, down=False) == 0.013
    assert round_out(123.0, down=False) == 130.0


def odd_problem():
    space = FeatureSpace(
        (
            Feature("income"),
            Feature("debt"),
            Feature("overdue", "integer"),
            Feature("job", "categorical", categories=("a", "b", "ghost")),
            Feature("city", "categorical", categories=("x", "y")),
        )
    )
    never = Requirement("city", ("y",))
    return Problem(
        space,
        ActionSpace(
            space,
            (
                Action("spend", "income", "add", (-5.0, 5.0)),
                Action("borrow", "debt", "add", (-1.0, 1.0), lower=0.0),
                Action("owe", "overdue", "set", (0, 3)),
                Action("work", "job", "set", ("a", "b", "ghost"), requires=(never,)),
                Action("far", "debt", "add", (-50.0, -1.0), "decrease", lower=0.0),
                Action("gone", "debt", "add", (-90.0, -80.0), "decrease", lower=0.0),
            ),
        ),
        CostGraph(space),
    )


def test_odd_actions_are_warned_of():
    problem = odd_problem()
    states = np.array([[1.0, 2.0, 1.0, 0.0, 0.0], [3.0, 4.0, 0.0, 1.0, 0.0]])
    assert len(odd_actions(problem)) == 2
    warnings = odd_actions(problem, states)
    expected = [
        "action 'borrow' can raise 'debt'",
        "action 'owe' can raise 'overdue'",
        "nobody in the data has job = ghost, and an action proposes it",
        "nobody in the data has city = y",
        "action 'far': to nobody in the data apply -50.0",
        "action 'gone' never applies to anyone in the data",
        "action 'work' needs city: y, which nobody has and no action leads to",
        "action 'spend' can bring 'income' below 0",
    ]
    assert len(warnings) == len(expected)
    for warning, start in zip(warnings, expected, strict=True):
        assert warning.startswith(start)


def test_the_loan_book_has_nothing_odd_in_it():
    problem = loan_book_problem()
    assert odd_actions(problem) == []


def test_actions_in_words_are_said_to_someone_they_apply_to():
    problem = mixed_problem()
    record = {
        "age": 30, "income": 2100.0, "debt": 4, "school": "none", "job": "clerk", "owner": False,
    }  # fmt: skip
    lines = describe_actions(problem, problem.space.encode(record))
    assert lines == [
        "earn: Increase your monthly income from 2,100 to 2,200 € (4 amounts, 100 to 400)",
        "wages: Reduce your monthly income from 2,100 to 0 € (7 values, 0 to 5,000)",
        "repay: Reduce your debt from 4 to 3 (3 amounts, -1 to -20)",
        "study: Change your school from none to school (or 1 other value)",
        "rise: Change your job from clerk to manager, needs school: degree; debt: at most 50",
        "buy: Buy a home (no to yes)",
        "declare: Reduce your debt from 4 to 0 (2 values, 0 to 10)",
    ]
    assert describe_actions(problem, problem.space.encode({**record, "debt": None}))[-1] == (
        "declare: Change your debt, which is not stated, to 0 (2 values, 0 to 10)"
    )
    assert len(describe_actions(problem)) == len(describe_actions(odd_problem())) + 1 == 7


def test_a_draft_fills_missing_values_of_every_kind_with_the_usual_one():
    table = pd.DataFrame(
        {
            "n": pd.array([1, 2, 2, None] * 5, "Int64"),
            "job": ["a", "a", None, "b"] * 5,
            "owner": ["true", "true", None, "false"] * 5,
            "flag": pd.array([True, False, None, False] * 5, "boolean"),
            "same": [4, 4, None, 4] * 5,
            "ok": [0, 1] * 10,
        }
    )
    space = draft_problem(table, "ok").problem.space
    assert {f.name: f.missing_counts_as for f in space.features} == {
        "n": 2,
        "job": "a",
        "owner": True,
        "flag": False,
        "same": 4,
    }
    assert space["same"].scale is None
    assert np.isnan(space.encode(table)[2, 1:]).all()
    assert (
        space.scaled(space.encode(table))[2].tolist()
        == space.scaled(np.array([[2.0, 0, 1, 0, 4]]))[0].tolist()
    )


def test_a_column_of_many_different_texts_is_left_out():
    names = [f"person {i // 2}" for i in range(300)]
    draft = draft_problem(pd.DataFrame({"who": names, "x": range(300), "ok": [0, 1] * 150}), "ok")
    assert draft.left_out == {"who": "150 different texts"}
