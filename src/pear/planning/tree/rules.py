"""Which branch is followed next, and what is a finished plan worth?

Plain functions over arrays; MCTS, FARE and W-FARE are three choices of them. The last
action of every array over actions is STOP, the others are the moves of the action space.

References: paper, appendix "Monte Carlo Tree Search" (P-UCT and its three terms) and
appendix "Weighted-FARE" (the reward and the cost term of W-FARE).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pear.arrays import Floats

FAILURE = -1.0
"""The reward of a plan that does not lead to the favourable decision."""

Select = Callable[[Floats, NDArray[np.int32], Floats, Floats, Floats], Floats]
"""(totals, visits, prior, bonus) ``(n, actions)`` and node visits ``(n,)`` to scores."""

Reward = Callable[[Floats, Floats, Floats], Floats]
"""(length, cost, reference cost), ``(n,)`` each, of successful plans to rewards ``(n,)``."""

Bonus = Callable[[Floats, Floats, Floats, Floats], Floats]
"""Costs of the moves ``(n, m)``, length, cost and reference ``(n,)`` to ``(n, m + 1)``."""


def puct(
    totals: Floats,
    visits: NDArray[np.int32],
    prior: Floats,
    bonus: Floats,
    node_visits: Floats,
    *,
    exploration: float = 0.5,
    cost_weight: float = 1.0,
) -> Floats:
    """P-UCT: mean reward, exploration and action cost, shape ``(n, actions)``.

    ``exploration`` is c_puct, ``cost_weight`` c_act_cost. ``node_visits`` ``(n,)`` counts the
    visit that created the node. A branch not yet visited has mean reward 0.

    >>> puct(np.array([[1.0, 0.0]]), np.array([[2, 0]]), np.array([[0.5, 0.5]]),
    ...      np.array([[0.1, 0.0]]), np.array([4.0]))
    array([[0.76666667, 0.5 ]])
    """
    value = totals / np.maximum(visits, 1)
    explore = exploration * prior * np.sqrt(node_visits)[:, None] / (1.0 + visits)
    return np.asarray(value + explore + cost_weight * bonus)


def length_reward(length: Floats, cost: Floats, reference: Floats, *, gamma: float) -> Floats:
    """γ^length: MCTS and FARE.

    >>> length_reward(np.array([2.0]), np.array([9.0]), np.array([0.0]), gamma=0.5)
    array([0.25])
    """
    return np.asarray(gamma ** np.asarray(length, float))


def saving_reward(
    length: Floats, cost: Floats, reference: Floats, *, gamma: float, eta: float
) -> Floats:
    """γ^(length + cost) times the sigmoid of the saving over the plan for the mean weights.

    ``reference`` is what that plan costs this person; NaN where it fails: a saving of 0.

    >>> saving_reward(np.array([1.0]), np.array([1.0]), np.array([np.nan]), gamma=0.5, eta=0.01)
    array([0.125])
    """
    saving = np.where(np.isnan(reference), 0.0, reference - cost)
    return np.asarray(gamma ** (length + cost) * expit(eta * saving))


def action_cost_bonus(
    move_costs: Floats, length: Floats, cost: Floats, reference: Floats
) -> Floats:
    """exp(-C(a, s | w)): MCTS and FARE. STOP costs nothing, and nothing counts as less.

    Without a floor costs may be negative; their exponentials would drown the other terms.
    """
    stop = np.zeros((len(move_costs), 1))
    return np.asarray(np.exp(-np.maximum(np.concatenate([move_costs, stop], axis=1), 0.0)))


def prefix_bonus(
    move_costs: Floats,
    length: Floats,
    cost: Floats,
    reference: Floats,
    *,
    gamma: float,
    eta: float,
) -> Floats:
    """γ^(length + cost) times the sigmoid of the saving, for the prefix with this move: W-FARE."""
    stop = np.zeros((len(move_costs), 1))
    costs = cost[:, None] + np.concatenate([move_costs, stop], axis=1)
    lengths = np.broadcast_to(length[:, None] + 1.0, costs.shape).copy()
    lengths[:, -1] -= 1.0
    bonus = saving_reward(lengths, costs, reference[:, None], gamma=gamma, eta=eta)
    return np.minimum(bonus, 1.0)


@dataclass(frozen=True)
class Rules:
    """The three choices that make one search MCTS, FARE or W-FARE (the prior is the fourth)."""

    select: Select
    reward: Reward
    bonus: Bonus


@dataclass(frozen=True)
class LengthRules:
    """The rules of MCTS and FARE: short plans, cheap single actions."""

    gamma: float = 0.97
    exploration: float = 0.5
    cost_weight: float = 1.0

    def build(self) -> Rules:
        return Rules(
            partial(puct, exploration=self.exploration, cost_weight=self.cost_weight),
            partial(length_reward, gamma=self.gamma),
            action_cost_bonus,
        )


@dataclass(frozen=True)
class SavingRules:
    """The rules of W-FARE: short and cheap plans, cheaper than everybody's plan."""

    gamma: float = 0.97
    eta: float = 0.01
    exploration: float = 0.5
    cost_weight: float = 1.0

    def build(self) -> Rules:
        return Rules(
            partial(puct, exploration=self.exploration, cost_weight=self.cost_weight),
            partial(saving_reward, gamma=self.gamma, eta=self.eta),
            partial(prefix_bonus, gamma=self.gamma, eta=self.eta),
        )
