"""The formulas of the paper against cases computed by hand."""

import math

import numpy as np
import pytest

from pear.planning.tree.rules import (
    LengthRules,
    SavingRules,
    action_cost_bonus,
    length_reward,
    prefix_bonus,
    puct,
    saving_reward,
)
from pear.planning.tree.search import random_move


def one(value):
    return np.array([float(value)])


def test_puct_adds_value_exploration_and_cost():
    merit = puct(
        totals=np.array([[3.0, 0.0]]),
        visits=np.array([[4, 0]], np.int32),
        prior=np.array([[0.2, 0.8]]),
        bonus=np.array([[0.05, 0.3]]),
        node_visits=one(9),
        exploration=0.5,
        cost_weight=2.0,
    )
    assert merit[0, 0] == pytest.approx(3 / 4 + 0.5 * 0.2 * 3 / 5 + 2 * 0.05)
    assert merit[0, 1] == pytest.approx(0 + 0.5 * 0.8 * 3 / 1 + 2 * 0.3)


def test_defaults_are_the_papers():
    assert (LengthRules().exploration, LengthRules().cost_weight) == (0.5, 1.0)
    assert (SavingRules().gamma, SavingRules().eta) == (0.97, 0.01)


def test_reward_of_mcts_and_fare():
    assert length_reward(one(3), one(80), one(9), gamma=0.97)[0] == pytest.approx(0.912673)


def test_reward_of_wfare():
    reward = saving_reward(one(2), one(40), one(90), gamma=0.97, eta=0.01)[0]
    assert reward == pytest.approx(0.97**42 / (1 + math.exp(-0.5)))


def test_reward_of_wfare_where_the_plan_for_the_mean_weights_fails():
    reward = saving_reward(one(2), one(40), one(np.nan), gamma=0.97, eta=0.01)[0]
    assert reward == pytest.approx(0.97**42 / 2)


def test_cost_term_of_mcts_and_fare():
    bonus = action_cost_bonus(np.array([[1.0, 3.0]]), one(2), one(5), one(0))
    assert bonus[0] == pytest.approx([math.exp(-1), math.exp(-3), 1.0])


def test_cost_term_of_wfare_is_of_the_prefix_with_the_move():
    bonus = prefix_bonus(np.array([[10.0, 60.0]]), one(1), one(20), one(50), gamma=0.97, eta=0.01)
    assert bonus[0, 0] == pytest.approx(0.97 ** (2 + 30) / (1 + math.exp(-0.2)))
    assert bonus[0, 1] == pytest.approx(0.97 ** (2 + 80) / (1 + math.exp(0.3)))
    assert bonus[0, 2] == pytest.approx(0.97 ** (1 + 20) / (1 + math.exp(-0.3)))


def test_negative_costs_do_not_drown_the_other_terms():
    gains = np.array([[-90.0, 1.0]])
    assert action_cost_bonus(gains, one(0), one(0), one(0))[0] == pytest.approx(
        [1.0, math.exp(-1), 1.0]
    )
    assert prefix_bonus(gains, one(0), one(-90), one(0), gamma=0.97, eta=0.01)[0, 0] == 1.0


def test_random_moves_are_legal_and_all_as_likely():
    legal = np.tile([True, False, True, True], (30_000, 1))
    moves = random_move(legal, np.random.default_rng(0).random(len(legal)))
    shares = np.bincount(moves, minlength=4) / len(moves)
    assert shares[1] == 0
    assert shares[[0, 2, 3]] == pytest.approx([1 / 3] * 3, abs=0.02)


def test_no_random_move_where_none_is_legal():
    assert random_move(np.zeros((1, 3), bool), one(0.4))[0] == -1
