"""What every planner takes: people and weights in any form, checked in one place."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
from pear.errors import InvalidRecord, InvalidSetting
from pear.planning.evolution import EvolutionPlanner
from pear.planning.exact import ExactPlanner
from pear.planning.neighbours import NeighboursPlanner
from pear.planning.tree import TreeSearch
from pear.problem import Limits

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


def test_only_the_planner_that_finds_them_in_one_pass_gives_plans_by_length(planner):
    found = planner.plans_by_length(AMINA)
    assert len(found) == (PROBLEM.max_length if isinstance(planner, ExactPlanner) else 0)
