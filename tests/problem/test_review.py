"""What ``pear check`` says of a problem: actions in words, and what looks wrong."""

import numpy as np

from pear.datasets import loan_book_problem, loan_book_table
from pear.problem import (
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
    Requirement,
)
from pear.problem.review import describe_actions, doubts_about, unreviewed
from tests.problem.examples import mixed_problem


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
    assert len(doubts_about(problem)) == 2
    warnings = doubts_about(problem, states)
    expected = [
        "action 'borrow' can raise 'debt'",
        "action 'owe' can raise 'overdue'",
        "nobody in the data has job = ghost, and an action proposes it",
        "nobody in the data has city = y",
        "action 'far': nobody in the data can use -50.0",
        "action 'gone' never applies to anyone in the data",
        "action 'work' needs city: y, which nobody has and no action leads to",
        "action 'spend' can bring 'income' below 0",
    ]
    assert len(warnings) == len(expected)
    for warning, start in zip(warnings, expected, strict=True):
        assert warning.startswith(start)


def test_the_loan_book_has_nothing_odd_in_it():
    problem = loan_book_problem()
    assert doubts_about(problem) == []


def test_no_time_and_no_money_are_said_so():
    lines = describe_actions(loan_book_problem())
    [less] = [line for line in lines if line.startswith("ask_for_less")]
    assert less.endswith(", at once, nothing to pay")


def test_actions_in_words_are_said_to_someone_they_apply_to():
    problem = mixed_problem()
    record = {
        "age": 30, "income": 2100.0, "debt": 4, "school": "none", "job": "clerk", "owner": False,
    }  # fmt: skip
    lines = describe_actions(problem, problem.space.encode(record))
    assert lines == [
        "earn: Increase your monthly income from €2,100 to €2,200 (4 amounts, 100 to 400)",
        "wages: Reduce your monthly income from €2,100 to €0 (7 values, 0 to 5,000)",
        "repay: Reduce your debt from 4 to 3 (3 amounts, -1 to -20), 4 weeks, €1 to €20 once",
        "study: Change your school from none to school (or 1 other value), €30.5 a month",
        "rise: Change your job from clerk to manager, needs school: degree; debt: at most 50",
        "buy: Buy a home (no to yes)",
        "declare: Reduce your debt from 4 to 0 (2 values, 0 to 10)",
    ]
    assert describe_actions(problem, problem.space.encode({**record, "debt": None}))[-1] == (
        "declare: Change your debt, which is not known, to 0 (2 values, 0 to 10)"
    )
    assert len(describe_actions(problem)) == len(describe_actions(odd_problem())) + 1 == 7


def test_what_nobody_has_reviewed_is_listed():
    assert unreviewed(mixed_problem()) == ["wages"]
    assert unreviewed(loan_book_problem()) == []


def foolish_problem():
    """What people complained about, stated by hand."""
    space = FeatureSpace(
        (
            Feature("black", "categorical", categories=("no", "yes")),
            Feature("x7", "categorical", categories=("female", "male")),
            Feature("unemployment_rate"),
            Feature("income", scale=(0.0, 1000.0)),
            Feature("rent", lower=0.0, upper=500.0, scale=(0.0, 100.0)),
        )
    )
    actions = (
        Action("a", "black", "set", ("no",)),
        Action("b", "x7", "set", ("male",)),
        Action("c", "unemployment_rate", "add", (-1.0,)),
        Action("d", "income", "set", (500.0, 5000.0)),
        Action("e", "rent", "add", (50.0, 200.0)),
    )
    return Problem(space, ActionSpace(space, actions), CostGraph(space), Goal(("deny",)))


def test_foolish_actions_and_a_goal_people_fear_are_warned_of():
    warnings = doubts_about(foolish_problem())
    expected = [
        "the favourable class is 'deny', which sounds like the decision people fear",
        "action 'a' changes 'black', which tells who a person is",
        "action 'b' changes 'x7', which tells who a person is",
        "action 'c' changes 'unemployment_rate', which sounds like a rate nobody sets alone",
        "action 'd' leads to 5,000, outside of the scale of 'income' (0 to 1,000)",
    ]
    assert len(warnings) == len(expected)
    for warning, start in zip(warnings, expected, strict=True):
        assert warning.startswith(start)


def test_values_outside_of_the_scale_are_warned_of():
    states = np.array(
        [[0, 0, 5.0, 900.0, 90.0], [1, 1, 5.0, 1200.0, 20.0], [0, 0, 4.0, 1.0, 400.0]]
    )
    warnings = doubts_about(foolish_problem(), states)
    about = [warning for warning in warnings if "scale" in warning]
    remedy = "; costs misjudge changes out there: widen 'scale', or bound the action"
    assert about[1:] == [
        "1 of 3 people lie outside of the scale of 'income' (0 to 1,000)" + remedy,
        "1 of 3 people lie outside of the scale of 'rent' (0 to 100)" + remedy,
        "action 'e' takes people out of the scale of 'rent' (0 to 100)" + remedy,
    ]


def test_the_loan_book_stays_within_its_scales():
    problem = loan_book_problem()
    states = problem.space.encode(loan_book_table(500, 0))
    assert [warning for warning in doubts_about(problem, states) if "lie outside" in warning] == []


def test_numbers_that_tell_the_same_are_warned_of():
    space = FeatureSpace((Feature("income"), Feature("per_year"), Feature("debt")))
    earn = Action("earn", "income", "add", (100.0,), "increase")
    save = Action("save", "debt", "add", (-100.0,), "decrease", lower=0.0)
    rng = np.random.default_rng(0)
    income, debt = rng.gamma(4, 500, 200), rng.gamma(2, 200, 200)
    states = np.column_stack([income, 12 * income, debt])
    told = doubts_about(Problem(space, ActionSpace(space, (earn, save)), CostGraph(space)), states)
    assert [line for line in told if "hold the same information" in line] == [
        "'income' and 'per_year' hold the same information in the data, and a step changes only "
        "one of them; give the model only one, or remove the step"
    ]
    only = Problem(space, ActionSpace(space, (save,)), CostGraph(space))
    assert not any("hold the same information" in line for line in doubts_about(only, states))
