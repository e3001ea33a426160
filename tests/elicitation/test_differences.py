"""What differs between plans, as data and in words a person can answer by."""

import numpy as np

from pear.elicitation import Words
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


def said(*moves):
    words = Words(PLANNER.problem)
    return [words.difference(difference) for difference in found(*moves)]


def test_each_plan_says_what_only_it_asks_for_and_what_it_spares():
    assert found((1,), (9, 12)) == (
        Difference(only=("income",), spared=("debt", "job")),
        Difference(only=("debt", "job"), spared=("income",)),
    )
    earn, repay = said((1,), (9, 12))
    assert "Only this plan changes monthly income." in earn
    assert "It leaves monthly debt and job as they are." in earn
    assert "It leaves monthly income as it is." in repay


def test_the_same_feature_with_another_value_is_a_difference():
    little, much = said((0,), (3,))
    assert little == "Monthly income: 12 here, 18 in plan B."
    assert much == "Monthly income: 18 here, 12 in plan A."


def test_the_same_steps_in_another_order_are_called_that():
    assert set(said((1, 9), (9, 1))) == {"The same steps in another order."}


def test_a_part_of_another_plan_says_what_it_spares():
    short, long = said((1,), (1, 9))
    assert short == "It leaves monthly debt as it is."
    assert long == "Only this plan changes monthly debt."


def test_a_plan_alone_has_nothing_to_differ_from():
    assert found((1,)) == (Difference(only=("income",)),)
