"""Conditions in people's words, and thresholds that are short and still the same split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.automaton.rules import rule_problem

from pear.planning.automaton.automaton import (
    Condition,
    Inputs,
    because,
    conditions_of,
    ranks,
    show_number,
)
from pear.planning.automaton.tree import STOP, MoveTree, grow, shortest_between

PROBLEM = rule_problem()
INPUTS = Inputs(PROBLEM, aware=True)


def chain(*splits):
    """A tree that is one path; each split is (column, threshold, went right)."""
    column, threshold, left, right = [], [], [], []
    for number, (place, at, to_right) in enumerate(splits):
        ahead, leaf = number + 1, len(splits) + 1 + number
        column.append(place)
        threshold.append(at)
        left.append(leaf if to_right else ahead)
        right.append(ahead if to_right else leaf)
    nodes = 2 * len(splits) + 1
    pad = nodes - len(splits)
    return MoveTree(
        np.array(column + [-1] * pad),
        np.array(threshold + [0.0] * pad),
        np.array(left + [-1] * pad),
        np.array(right + [-1] * pad),
        np.array([STOP, 0]),
        np.ones((nodes, 2), np.intp),
    ), len(splits)


def words(*splits):
    tree, end = chain(*splits)
    conditions = conditions_of(tree, end, INPUTS, np.array([50.0, 50.0, 50.0]))
    return because(PROBLEM, conditions)


DEBT, NONE, CLERK, MANAGER, REPAY_COST, EARN_COST, EARN_RANK = 0, 2, 3, 4, 5, 6, 9


@pytest.mark.parametrize(
    ("splits", "text"),
    [
        ([(DEBT, 40.0, True)], "because your debt is above 40 €"),
        ([(DEBT, 90.0, False), (DEBT, 40.0, False)], "because your debt is at most 40 €"),
        (
            [(DEBT, 40.0, True), (DEBT, 90.0, False), (DEBT, 60.0, True)],
            "because your debt is above 60 € and at most 90 €",
        ),
        ([(CLERK, 0.5, False), (MANAGER, 0.5, True)], "because your job is manager"),
        ([(CLERK, 0.5, False)], "because your job is not clerk"),
        ([(CLERK, 0.5, False), (NONE, 0.5, False)], "because your job is manager"),
        (
            [(DEBT, 40.0, True), (EARN_COST, 20.0, False)],
            "because your debt is above 40 € "
            "and changing your income is cheap for you (at most 20)",
        ),
        (
            [(REPAY_COST, 80.0, False)],
            "because changing your debt is not too costly for you (at most 80)",
        ),
        ([(REPAY_COST, 80.0, True)], "because changing your debt is costly for you (above 80)"),
        ([(REPAY_COST, 20.0, True)], "because changing your debt is not cheap for you (above 20)"),
        (
            [(REPAY_COST, 20.0, True), (REPAY_COST, 60.0, False)],
            "because changing your debt costs you more than 20 and at most 60",
        ),
        ([(EARN_RANK, 0.0, False)], "because changing your income is your cheapest change"),
        ([(EARN_RANK, 0.5, True)], "because changing your income is not your cheapest change"),
        (
            [(EARN_RANK, 1.0, False)],
            "because changing your income is among your two cheapest changes",
        ),
        (
            [(EARN_RANK, 0.0, True), (EARN_RANK, 1.0, False)],
            "because changing your income is your second cheapest change",
        ),
    ],
)
def test_words(splits, text):
    assert words(*splits) == text


def test_a_rank_is_read_as_it_is_decided():
    costs = np.array([[5.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    assert ranks(costs).tolist() == [[2.0, 0.0, 0.0], [0.0, 1.0, 2.0]]
    condition = Condition("rank", "earn", at_most=0.0)
    cheap = np.array([50.0, 1.0, 90.0, 1.0])
    dear = np.array([1.0, 900.0, 90.0, 1.0])
    state = np.array([80.0, 30.0, 0.0, 0.0])
    assert condition.holds(INPUTS, state, cheap)
    assert not condition.holds(INPUTS, state, dear)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e5))
def test_the_shortest_number_between_is_between(low, width):
    high = low + width
    number = shortest_between(low, high)
    assert low <= number < high
    middle = f"{(low + high) / 2:.12g}"
    assert len(f"{number:.12g}".strip("-0.")) <= len(middle.strip("-0."))


@given(st.integers(2, 60), st.integers(0, 1000))
def test_rounded_thresholds_split_the_training_rows_as_before(n, seed):
    rng = np.random.default_rng(seed)
    inputs, moves = rng.normal(size=(n, 3)) * [1, 100, 1e-3], rng.integers(STOP, 4, n)
    tree = grow(inputs, moves, max_depth=4, min_people=1)
    leaves = tree.leaves(inputs)
    for leaf in np.unique(leaves):
        seen = {int(m): int((moves[leaves == leaf] == m).sum()) for m in tree.moves}
        assert seen == dict(zip(tree.moves.tolist(), tree.counts[leaf].tolist(), strict=True))
    assert tree.counts[0].sum() == n


def test_numbers_are_shown_in_full():
    assert show_number(1250.75, "") == "1,250.75"
    assert show_number(-0.0, "") == "0"
