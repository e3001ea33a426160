"""How far apart are two states, and what does it cost to go from one to the other?

For changes to values that are no arguments of any action; everything on the action grid
goes through the cost graph's moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.problem import NO_LIMITS, Action, Certificate, Limits, Plan, Problem, Step
from pear.problem.actions import phrase
from pear.problem.features import FeatureSpace, States

Floats = NDArray[np.float64]


def feature_steps(space: FeatureSpace, before: States, after: States) -> States:
    """How far each feature lies apart, shape ``(n, d)``: the scaled change, 1 for a category."""
    steps = np.abs(space.scaled(after) - space.scaled(before))
    for column, feature in enumerate(space.features):
        if feature.is_categorical:
            steps[:, column] = before[:, column] != after[:, column]
    return np.asarray(steps)


def change_costs(
    problem: Problem, start: Floats, end: Floats, order: Any, weights: Floats
) -> Floats:
    """Cost of each change when columns are changed in an order, ``(length,)``.

    ``weights`` is ``(p,)``, or samples ``(s, p)`` whose floored costs are averaged.
    """
    columns = np.array([int(column) for column in order], np.intp)
    states = np.repeat(np.array(start, float)[None], len(columns), axis=0)
    for place, column in enumerate(columns):
        states[place + 1 :, column] = end[column]
    phi = problem.costs.change_features(states, columns, np.asarray(end, float)[columns])
    return np.asarray(problem.costs.floored(phi @ np.atleast_2d(weights).T).mean(axis=1))


def plan_from_changes(
    problem: Problem,
    black_box: BlackBox,
    start: Floats,
    end: Floats,
    order: Any,
    weights: Floats,
    certificate: Certificate,
    *,
    limits: Limits = NO_LIMITS,
    method: str,
    reason: str = "",
) -> Plan:
    """A plan off the action grid: columns changed to the values of ``end``, in an order."""
    states = [np.array(start, float)]
    for column in order:
        states.append(np.array(states[-1]))
        states[-1][column] = end[column]
    scores = black_box.score(np.array(states))
    costs = change_costs(problem, start, end, order, weights)
    steps = []
    for i, column in enumerate(order):
        feature = problem.space.features[column]
        action = Action(f"change {feature.name}", feature.name, "set", ())
        before, after = float(states[i][column]), float(end[column])
        steps.append(
            Step(
                action=action.name,
                argument=feature.value(after),
                feature=feature.name,
                before=feature.value(before),
                after=feature.value(after),
                cost=float(costs[i]),
                score_before=float(scores[i]),
                score_after=float(scores[i + 1]),
                words=phrase(action, feature, before, after, feature.value(after)),
                reason=reason,
            )
        )
    return Plan(
        start=problem.space.decode(states[0])[0],
        steps=tuple(steps),
        cost=float(costs.sum()),
        score=float(scores[-1]),
        success=bool(scores[-1] > problem.goal.bar(limits)),
        certificate=certificate,
        on_grid=not steps,
        method=method,
        problem_fingerprint=problem.fingerprint,
        model_fingerprint=black_box.fingerprint,
        weights=tuple(map(tuple, np.atleast_2d(weights).tolist())),
        limits=limits,
    )
