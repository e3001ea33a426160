"""Small problems whose cheapest plan can be found by trying everything."""

from itertools import product

import numpy as np

from pear.decision import BlackBox
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


def small_problem(max_length=3):
    """Income, debt and job; a managerial job needs an income of at least 3."""
    space = FeatureSpace(
        (
            Feature("age", scale=(0.0, 100.0), immutable=True),
            Feature("income", scale=(0.0, 10.0), lower=0.0, upper=10.0),
            Feature("debt", scale=(0.0, 10.0), lower=0.0, upper=10.0),
            Feature("job", "categorical", categories=("none", "clerk", "manager")),
        )
    )
    actions = ActionSpace(
        space,
        (
            Action("earn", "income", "add", (1.0, 2.0, 4.0)),
            Action("repay", "debt", "add", (-1.0, -2.0, -4.0)),
            Action("find work", "job", "set", ("clerk",)),
            Action(
                "be promoted",
                "job",
                "set",
                ("manager",),
                requires=(Requirement("income", lower=3),),
            ),
        ),
    )
    costs = CostGraph(space, (("age", "income"), ("income", "job")))
    return Problem(space, actions, costs, Goal(), max_length)


def small_model(problem):
    """More income and a better job help, debt harms."""

    def score(states):
        worth = states[:, 1] - states[:, 2] + 2 * states[:, 3]
        return 1 / (1 + np.exp(-(worth - 6)))

    return BlackBox(score, problem.space, problem.goal, name="worth")


def random_people(problem, n, rng):
    """People around the boundary, with positive weights."""
    states = np.column_stack(
        [
            rng.integers(20, 70, n),
            rng.integers(0, 6, n),
            rng.integers(0, 6, n),
            rng.integers(0, 3, n),
        ]
    ).astype(float)
    return states, rng.uniform(1, 60, (n, problem.costs.n_weights))


def brute_force(problem, black_box, state, weights, once_per_action=False):
    """Cheapest cost over every legal sequence, None where there is none."""
    best = 0.0 if black_box.favourable(state[None])[0] else None
    if best is not None:
        return best
    for length in range(1, problem.max_length + 1):
        for moves in product(range(len(problem.actions)), repeat=length):
            actions = problem.actions.action_of[list(moves)]
            if once_per_action and len(set(actions)) < length:
                continue
            current, legal = state[None], True
            for move in moves:
                legal = legal and problem.actions.allowed(current)[0, move]
                current = problem.actions.apply(current, np.array([move]))
            if legal and black_box.favourable(current)[0]:
                cost = problem.costs.sequence_cost(state, problem.actions, moves, weights)
                best = cost if best is None else min(best, cost)
    return best
