"""A problem with one obvious rule: the indebted repay, the others earn."""

from functools import cache

import numpy as np

from pear.decision import BlackBox
from pear.planning.automaton import train_automaton
from pear.planning.exact import ExactPlanner
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem


def rule_problem():
    space = FeatureSpace(
        (
            Feature("debt", scale=(0.0, 100.0), lower=0.0, label="debt", unit="€"),
            Feature("income", scale=(0.0, 100.0), lower=0.0),
            Feature("job", "categorical", categories=("none", "clerk", "manager")),
            Feature("sex", "categorical", categories=("female", "male"), protected=True),
        )
    )
    actions = ActionSpace(
        space,
        (
            Action("repay", "debt", "set", (0.0,)),
            Action("earn", "income", "add", (20.0, 60.0)),
            Action("find work", "job", "set", ("clerk", "manager")),
        ),
    )
    return Problem(space, actions, CostGraph(space), Goal(), max_length=3)


def rule_model(problem):
    """Favourable without much debt and with some income; a job counts as income."""

    def score(states):
        enough = states[:, 1] + 30 * states[:, 2] >= 60
        return 0.1 + 0.4 * (states[:, 0] <= 50) + 0.4 * enough

    return BlackBox(score, problem.space, problem.goal, name="rule")


def rule_people(n, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [
            rng.integers(0, 110, n),
            rng.integers(0, 59, n),
            np.zeros(n),
            rng.integers(0, 2, n),
        ]
    ).astype(float)


def draw_weights(n, rng):
    """Half of the people find work hard to find, half find it hard to earn more."""
    kind = rng.integers(0, 2, n)
    mean = np.array([[20.0, 5.0, 90.0, 1.0], [20.0, 400.0, 10.0, 1.0]])[kind]
    return mean + rng.normal(0, 0.5, (n, 4))


@cache
def trained(aware=True):
    problem = rule_problem()
    model = rule_model(problem)
    weights = draw_weights if aware else np.array([20.0, 5.0, 90.0, 1.0])
    automaton = train_automaton(
        problem,
        model,
        ExactPlanner(problem, model),
        rule_people(400, 0),
        weights,
        aware=aware,
        rng=np.random.default_rng(0),
    )
    return problem, model, automaton
