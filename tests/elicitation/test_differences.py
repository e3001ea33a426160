"""What differs between plans, as data."""

import numpy as np

from pear.elicitation.shown import Difference, differences
from pear.planning.planner import plan_from_moves
from pear.problem import Certificate
from tests.elicitation.small_lender import PERSON, lender

PLANNER = lender()
# Moves of the small lender: 0 to 3 earn 2, 4, 6, 8; 4 to 7 save; 8 to 11 repay; 12 settle.


def found(*moves):
    state, weights = PLANNER.problem.state(PERSON), np.ones(7)
    plans = [
        plan_from_moves(PLANNER, state, m, weights, Certificate("heuristic"), method="script")
        for m in moves
    ]
    return differences(plans)


def test_each_plan_says_what_only_it_asks_for_and_what_it_spares():
    assert found((1,), (9, 12)) == (
        Difference(only=("income",), spared=("debt", "job")),
        Difference(only=("debt", "job"), spared=("income",)),
    )


def test_the_same_feature_with_another_value_is_a_difference():
    assert found((0,), (3,)) == (
        Difference(values=(("income", 12.0, ((1, 18.0),)),)),
        Difference(values=(("income", 18.0, ((0, 12.0),)),)),
    )


def test_the_same_steps_in_another_order_are_called_that():
    assert {difference.order for difference in found((1, 9), (9, 1))} == {True}


def test_a_part_of_another_plan_only_spares():
    assert found((1,), (1, 9)) == (Difference(spared=("debt",)), Difference(only=("debt",)))


def test_a_plan_alone_has_nothing_to_differ_from():
    assert found((1,)) == (Difference(only=("income",)),)
