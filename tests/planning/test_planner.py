"""What every planner takes: people and weights in any form, checked in one place."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
from pear.decision import load_model, several
from pear.errors import InvalidRecord, InvalidSetting
from pear.planning.evolution import EvolutionPlanner
from pear.planning.exact import ExactPlanner
from pear.planning.neighbours import NeighboursPlanner
from pear.planning.tree import TreeSearch
from pear.planning.verify import verify
from pear.problem import Action, Feature, Goal, Limits, Problem

PROBLEM = loan_book_problem()
MODEL = loan_book_classifier(PROBLEM)
AMINA = loan_book_people()["Amina"]
TABLE = pd.DataFrame([AMINA, loan_book_people()["Ben"]], index=["amina", "ben"])


def words_of(plan):
    return [step.words for step in plan.steps]


@pytest.fixture(scope="module")
def exact():
    return ExactPlanner(PROBLEM, MODEL)


@pytest.fixture(
    params=[
        ExactPlanner(PROBLEM, MODEL),
        TreeSearch(PROBLEM, MODEL),
        EvolutionPlanner(PROBLEM, MODEL, population=10, generations=2),
        NeighboursPlanner(PROBLEM, MODEL, PROBLEM.states(TABLE), share=1.0),
    ],
    ids=lambda planner: type(planner).__name__,
)
def planner(request):
    return request.param


@pytest.mark.parametrize(
    "person",
    [AMINA, TABLE.loc["amina"], TABLE.loc[["amina"]], PROBLEM.state(AMINA)],
    ids=["record", "row", "table of one row", "state"],
)
def test_a_person_in_any_form_gets_the_same_plan(exact, person):
    plan = exact.plan(person)
    assert plan.moves == exact.plan(PROBLEM.state(AMINA), PROBLEM.usual_weights).moves
    assert plan.certificate.verdict == "optimal"


def test_weights_may_be_left_out_or_named(exact):
    usual = PROBLEM.usual_weights
    named = dict(zip(PROBLEM.weight_names, usual.tolist(), strict=True))
    assert exact.plan(AMINA, named).cost == exact.plan(AMINA).cost
    assert exact.plan(AMINA).weights == (tuple(usual.tolist()),)


def test_a_table_gives_a_plan_for_each_row_as_alone(planner):
    together = planner.plan_many(TABLE)
    alone = [planner.plan(record) for record in TABLE.to_dict("records")]
    assert [words_of(plan) for plan in together] == [words_of(plan) for plan in alone]


def test_nobody_gets_no_plans(planner):
    assert planner.plan_many([]) == []
    assert planner.plan_many(TABLE.iloc[:0]) == []


def test_what_does_not_fit_is_refused_by_every_planner(planner):
    with pytest.raises(InvalidRecord, match="unknown features: agee"):
        planner.plan({**AMINA, "agee": 3})
    with pytest.raises(InvalidSetting, match="'weights' must have"):
        planner.plan(AMINA, np.ones(2))
    with pytest.raises(InvalidSetting, match="one person was expected"):
        planner.plan(TABLE)
    with pytest.raises(InvalidSetting, match="one per person"):
        planner.plan_many(TABLE, limits=[Limits()])
    with pytest.raises(InvalidSetting, match="one generator per person"):
        planner.plan_many(TABLE, rngs=[np.random.default_rng(0)])
    with pytest.raises(InvalidSetting, match="finite"):
        planner.candidates(AMINA, np.full((2, PROBLEM.costs.n_weights), np.nan), 2)


def above(states):
    """Two classes: incomes up to 2,500, and those above."""
    return np.column_stack([states[:, 0] <= 2500, states[:, 0] > 2500])


def income(*favourable, **goal):
    """A problem of one feature; the model is for those of more than 2,500, class 1."""
    steps = Action("earn", "income", "add", (200.0, 2000.0))
    return Problem([Feature("income")], [steps], goal=Goal(favourable=favourable, **goal))


MAKERS = [
    ExactPlanner,
    TreeSearch,
    EvolutionPlanner,
    lambda problem, model: NeighboursPlanner(problem, model, np.array([[3000.0]]), share=1.0),
    lambda problem, model: verify(MADE, problem, model),
    lambda problem, model: load_model(model, problem),
    lambda problem, model: several([load_model(above, problem), model]),
]
MADE = ExactPlanner(income(1), load_model(above, income(1))).plan({"income": 1000.0})


@pytest.mark.parametrize("make", MAKERS)
def test_a_model_loaded_for_another_problem_is_refused(make):
    model = load_model(above, income(1))
    renamed = Problem([Feature("wage")], [Action("earn", "wage", "add", (200.0,))])
    for other, why in (
        (income(0), r"\[1\] as favourable, .* \[0\]"),
        (income(0, 1), "as favourable"),
        (renamed, "features income, .* wage"),
        (
            Problem([Feature("income", "integer")], [Action("earn", "income", "add", (200,))]),
            "'income' with kind 'numeric', .* 'integer'",
        ),
    ):
        if make is MAKERS[-1] and other is renamed:
            continue  # This function takes states by any name.
        with pytest.raises(InvalidSetting, match=why):
            make(other, model)


def test_a_model_may_be_held_against_another_threshold_and_in_other_words():
    model = load_model(above, income(1))
    words = Problem(
        [Feature("income", unit="€", label="pay", lower=0.0, scale=(0.0, 9.0))],
        [Action("earn", "income", "add", (2000.0,))],
        goal=Goal(("1",), threshold=0.8),
    )
    assert ExactPlanner(words, model).plan({"income": 1000.0}).certificate.verdict == "optimal"


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("n", 2.5),
        ("n", 0),
        ("n", -1),
        ("n", True),
        ("max_rows", 0),
        ("max_rows", "x"),
        ("memory", "x"),
    ],
)
def test_candidates_of_no_number_or_with_what_is_no_memory_are_refused(planner, name, setting):
    settings = {"n": 2, name: setting}
    with pytest.raises(InvalidSetting, match=f"'{name}'"):
        planner.candidates(AMINA, np.ones((2, PROBLEM.costs.n_weights)), **settings)


@pytest.mark.parametrize("margin", [0.5, 0.7])
def test_a_margin_that_no_score_can_keep_is_refused(planner, margin):
    with pytest.raises(InvalidSetting, match="'margin' must leave room below 1"):
        planner.plan(AMINA, limits=Limits(margin=margin))


def test_only_the_planner_that_finds_them_in_one_pass_gives_plans_by_length(planner):
    found = planner.plans_by_length(AMINA)
    assert len(found) == (PROBLEM.max_length if isinstance(planner, ExactPlanner) else 0)
