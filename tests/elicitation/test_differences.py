"""What differs between plans, in words a person can answer by."""

import numpy as np

from pear.elicitation.differences import differences
from pear.planning.planner import plan_from_moves
from pear.problem import Certificate
from tests.elicitation.small_lender import PERSON, lender

PLANNER = lender()
SPACE = PLANNER.problem.space
# Moves of the small lender: 0 to 3 earn 2, 4, 6, 8; 4 to 7 save; 8 to 11 repay; 12 settle.


def said(*moves):
    state, weights = PLANNER.problem.state(PERSON), np.ones(7)
    plans = [
        plan_from_moves(PLANNER, state, m, weights, Certificate("heuristic"), method="script")
        for m in moves
    ]
    return differences(plans, SPACE)


def test_each_plan_says_what_only_it_asks_for_and_what_it_spares():
    earn, repay = said((1,), (9, 12))
    assert earn.startswith("Only here: ")
    assert "monthly income from 10 to 14" in earn
    assert "Leaves as it is: monthly debt, job." in earn
    assert "Leaves as it is: monthly income." in repay


def test_the_same_feature_with_another_value_is_a_difference():
    little, much = said((0,), (3,))
    assert "to 12" in little
    assert "to 18" in much
    assert "Leaves" not in little + much


def test_the_same_steps_in_another_order_are_called_that():
    assert set(said((1, 9), (9, 1))) == {"The same steps in another order."}


def test_a_part_of_another_plan_says_what_it_spares():
    short, long = said((1,), (1, 9))
    assert short == "Leaves as it is: monthly debt."
    assert long.startswith("Only here: ")
    assert said((1, 9), (1,), (9,))[0] == "Every step of it is in another plan too."


def test_a_plan_alone_has_nothing_to_differ_from():
    assert said((1,)) == ("The only plan.",)
