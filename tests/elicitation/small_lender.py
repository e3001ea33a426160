"""A small lender whose whole plan space can be listed, for conversations in tests."""

from __future__ import annotations

import numpy as np

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior
from pear.problem import (
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
)

PERSON = {"income": 10.0, "savings": 0.0, "debt": 8.0, "job": "temporary"}


def score(states: np.ndarray) -> np.ndarray:
    """Higher income and savings, less debt and a permanent job help."""
    income, savings, debt, job = states.T
    return 1 / (1 + np.exp(-(0.25 * income + 0.3 * savings - 0.35 * debt + 1.2 * job - 2.4)))


def lender() -> ExactPlanner:
    """A planner over four features, three of them numeric, with a cost graph."""
    space = FeatureSpace(
        (
            Feature("income", scale=(0.0, 20.0), lower=0.0, label="monthly income"),
            Feature("savings", scale=(0.0, 10.0), lower=0.0),
            Feature("debt", scale=(0.0, 10.0), lower=0.0, label="monthly debt"),
            Feature("job", "categorical", categories=("temporary", "permanent")),
        )
    )
    actions = ActionSpace(
        space,
        (
            Action("earn", "income", "add", (2.0, 4.0, 6.0, 8.0)),
            Action("save", "savings", "add", (1.0, 2.0, 4.0, 6.0)),
            Action("repay", "debt", "add", (-2.0, -4.0, -6.0, -8.0)),
            Action("settle", "job", "set", ("permanent",)),
        ),
    )
    graph = CostGraph(space, (("job", "income"), ("income", "savings"), ("income", "debt")))
    problem = Problem(space, actions, graph, Goal(), max_length=4)
    return ExactPlanner(problem, BlackBox(score, space, problem.goal, name="small lender"))


def prior(spread: float = 20.0) -> GaussianMixturePrior:
    """Two kinds of people: those who find earning hard and those who find repaying hard."""
    means = np.array([[90.0, 30, 20, 20, 5, 5, 5], [20.0, 30, 90, 60, 5, 5, 5]])
    return GaussianMixturePrior(means, np.full(means.shape, spread**2))
