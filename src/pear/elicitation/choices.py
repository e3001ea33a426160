"""Which plans should the next question hold?

Costs of a pool of m plans under n weighted samples stand in one matrix ``(n, m)``; a choice
set is k of its columns.

References: paper, eqn. eu, eqn. eus, algorithm 2; Viappiani and Boutilier (2010) for the
guarantee of the greedy choice, which holds for ``f(O) = E[B - min C]`` with B at least
every cost and f of nothing 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidSetting
from pear.preferences import Noiseless, ResponseModel

Floats = NDArray[np.float64]


def expected_utility(costs: Floats, weights: Floats) -> Floats:
    """Minus the expected cost of each plan, shape ``(m,)`` (paper, eqn. eu).

    >>> expected_utility(np.array([[2.0, 4.0], [6.0, 0.0]]), np.array([0.5, 0.5]))
    array([-4., -2.])
    """
    return -np.asarray(weights @ costs)


def expected_utility_of_selection(
    costs: Floats, weights: Floats, response: ResponseModel | None = None
) -> float:
    """Expected utility of what a person picks from all the plans given (paper, eqn. eus).

    The default response model is the noiseless one: minus the expected cost of the cheapest.

    >>> expected_utility_of_selection(np.array([[2.0, 4.0], [6.0, 0.0]]), np.array([0.5, 0.5]))
    -1.0
    """
    if response is None or isinstance(response, Noiseless):
        return float(-(weights @ costs.min(axis=1)))
    chosen = np.exp(response.log_probabilities(costs))
    return float(-(weights @ (chosen * costs).sum(axis=1)))


def greedy_choice_set(
    costs: Floats,
    weights: Floats,
    k: int,
    included: tuple[int, ...] = (),
    among: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Columns of a choice set of at most k plans by greedy maximisation of EUS, noiseless.

    ``included`` columns are in it already; the others come from ``among``, or from all.
    Plans that add nothing are still added, so that a question has k plans where the pool
    has; ties go to the plan that comes first in the pool.
    """
    if k < 1:
        raise InvalidSetting(f"'k' must be at least 1 (got {k!r})")
    chosen = list(included)
    best = costs[:, chosen].min(axis=1) if chosen else np.full(len(costs), np.inf)
    allowed = np.ones(costs.shape[1], dtype=bool)
    if among is not None:
        allowed[:] = False
        allowed[list(among)] = True
    allowed[chosen] = False
    while len(chosen) < k and allowed.any():
        expected = np.where(allowed, weights @ np.minimum(best[:, None], costs), np.inf)
        column = int(np.argmin(np.round(expected, 9)))
        chosen.append(column)
        allowed[column] = False
        best = np.minimum(best, costs[:, column])
    return tuple(chosen)


def exhaustive_choice_set(
    costs: Floats, weights: Floats, k: int, response: ResponseModel | None = None
) -> tuple[int, ...]:
    """The best choice set of k plans by trying all: a reference for small pools."""
    size = min(k, costs.shape[1])
    if comb(costs.shape[1], size) > 200_000:
        raise InvalidSetting(
            f"{comb(costs.shape[1], size):,} choice sets are too many to try; use greedy_choice_set"
        )
    sets: list[tuple[int, ...]] = list(combinations(range(costs.shape[1]), size))
    values = [expected_utility_of_selection(costs[:, s], weights, response) for s in sets]
    return sets[int(np.argmax(np.round(values, 9)))]


def expected_gain(costs: Floats, weights: Floats, chosen: tuple[int, ...]) -> float:
    """What asking is worth, in cost units: how much cheaper the plan gets in expectation.

    The expected cost of the best single plan of the pool less that of the cheapest plan
    of the choice set: the quantity the choice set was chosen by.
    """
    if not costs.shape[1] or not chosen:
        return 0.0
    single = float((weights @ costs).min())
    return max(0.0, single - float(weights @ costs[:, list(chosen)].min(axis=1)))
