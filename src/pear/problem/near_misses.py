"""What if somebody reaches a little less than a plan says, or a little more?

An action's ``tolerance`` says how far its result may be missed. Somebody who changed a feature then
ends anywhere within that of the plan's value: inside the feature's bounds, and never further back
than where they began. A plan counts only if the decision is favourable wherever they may end.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from pear.arrays import Floats, Indices
from pear.problem.actions import ActionSpace
from pear.problem.features import States


def near_misses(actions: ActionSpace, start: Floats, ends: States) -> tuple[States, Indices]:
    """Where people may end instead of ``ends`` ``(n, d)``, having begun at ``start`` ``(d,)``.

    Every changed feature with a tolerance is as planned, at its lower end or at its upper end, in
    all combinations but the planned one: where a score only rises or only falls with each of them,
    nothing in between is worse.

    Returns
    -------
    tuple
        The states ``(m, d)``, and which of the ends each belongs to ``(m,)``.

    Examples
    --------
    >>> from pear.problem import Action, Feature, FeatureSpace
    >>> space = FeatureSpace((Feature("income", upper=2_550.0),))
    >>> earn = Action("earn", "income", "add", (50.0,), tolerance=100.0)
    >>> near_misses(ActionSpace(space, (earn,)), np.array([2_450.0]), np.array([[2_500.0]]))[0]
    array([[2450.],
           [2550.]])
    """
    found, owners = [np.zeros((0, len(start)))], [np.zeros(0, np.intp)]
    for number, end in enumerate(ends):
        columns = np.flatnonzero((actions.tolerances > 0) & (end != start))
        choices = [
            _reached(actions, column, start[column], end[column]) for column in columns.tolist()
        ]
        combined = np.array(list(product(*choices)), float)[1:]
        states = np.repeat(end[None], len(combined), axis=0)
        states[:, columns] = combined.reshape(len(combined), len(columns))
        found.append(states)
        owners.append(np.full(len(combined), number, np.intp))
    return np.concatenate(found), np.concatenate(owners)


def _reached(actions: ActionSpace, column: int, start: float, end: float) -> list[float]:
    """A value as planned, and its lower and upper end."""
    feature, tolerance = actions.space.features[column], actions.tolerances[column]
    low, high = end - tolerance, end + tolerance
    if start < end:
        low = max(low, start)
    elif start > end:
        high = min(high, start)
    if feature.lower is not None:
        low = max(low, feature.lower)
    if feature.upper is not None:
        high = min(high, feature.upper)
    return list(dict.fromkeys((float(end), float(low), float(high))))


def lowest_within(scores: Floats, owners: Indices, missed: Floats) -> Floats:
    """The scores ``(n,)`` of ends, each lowered to that of its worst near miss ``(m,)``; NaN where
    one is not known."""
    lowest = scores.copy()
    np.minimum.at(lowest, owners, missed)
    return lowest
