"""Which completions still fit: few enough changes, cheap enough, and enough of a rise together?

Each open option adds at most ``gains`` to the margin and at least ``costs`` to the cost. For every
price ``p`` of one unit of cost, a completion cheaper than ``room`` raises the margin by no more
than ``p * room`` plus the largest values of ``gain - p * cost`` that as many features as may still
change can add up to. The price with the smallest such bound is found by intersecting tangents, and
options that no completion within this bound takes are closed.

References
----------
Fisher (1981), "The Lagrangian relaxation method for solving integer programming problems".
Balas and Zemel (1980), "An algorithm for large zero-one knapsack problems": fixing by bounds.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pear.decision.ceilings.margins import Matrix

Flags = NDArray[np.bool_]

ROUNDS = 8
"""Most prices tried."""

FALL = 0.75
"""What remains of a price from one solution of the relaxation to the next."""

GUARD = 2.0**-44
"""More than rounding does to a bound, relative to the amounts it is added up from."""


@numba.njit(cache=True)
def within_room(
    gains: Matrix,
    costs: Matrix,
    open_options: Flags,
    room: float,
    remaining: int,
    here: float,
    required: float,
) -> float:
    """An upper bound of the margin over completions that cost less than ``room``.

    ``gains``, ``costs`` and ``open_options`` are ``(F, V)``, option 0 unused; ``here`` is the
    margin without a further change. Closes what no completion above ``required`` takes.
    """
    n_features = len(gains)
    best = np.empty(n_features)
    taken = np.zeros(n_features, np.bool_)
    price, bound, slope = 0.0, np.inf, 0.0
    lowest = np.inf
    at = 0.0
    # A price whose bound still falls, and one whose bound rises again.
    down_price, down_bound, down_slope = 0.0, 0.0, 0.0
    up_price, up_bound, up_slope = -1.0, 0.0, 0.0
    for _ in range(ROUNDS):
        bound, slope = _relaxed(
            gains, costs, open_options, price, room, remaining, here, best, taken
        )
        if bound < lowest:
            lowest, at = bound, price
        if bound < required or not np.isfinite(room):
            break
        if slope >= 0.0:
            if price == 0.0:
                break
            up_price, up_bound, up_slope = price, bound, slope
        else:
            down_price, down_bound, down_slope = price, bound, slope
        if up_price < 0.0:
            following = _dearest(gains, costs, open_options)
            if following <= price:
                break
        else:
            if up_slope - down_slope <= 0.0:
                break
            crossing = down_bound - up_bound + up_slope * up_price - down_slope * down_price
            following = crossing / (up_slope - down_slope)
            if not down_price < following < up_price:
                break
            # What the tangents say is the least any price between them can reach.
            if down_bound + down_slope * (following - down_price) > lowest - 1e-9 * abs(lowest):
                break
        price = following
    if lowest < required:
        return lowest
    _relaxed(gains, costs, open_options, at, room, remaining, here, best, taken)
    _close(gains, costs, open_options, at, remaining, lowest, required, best, taken)
    return lowest


@numba.njit(cache=True)
def worth_taking(
    gains: Matrix, costs: Matrix, open_options: Flags, remaining: int, n_prices: int
) -> NDArray[np.int64]:
    """What a completion takes at falling prices: options ``(n_prices, F)``, dearer and better.

    The solutions of the relaxation for one room after the other; the last price is nothing.
    """
    n_features = len(gains)
    found = np.zeros((n_prices, n_features), np.int64)
    best, taken = np.empty(n_features), np.zeros(n_features, np.bool_)
    price = _dearest(gains, costs, open_options)
    for number in range(n_prices):
        if number == n_prices - 1:
            price = 0.0
        _relaxed(gains, costs, open_options, price, np.inf, remaining, 0.0, best, taken)
        for feature in range(n_features):
            if taken[feature]:
                for option in range(1, gains.shape[1]):
                    if open_options[feature, option]:
                        value = gains[feature, option] - price * costs[feature, option]
                        if value == best[feature]:
                            found[number, feature] = option
        price *= FALL
    return found


@numba.njit(cache=True)
def _relaxed(
    gains: Matrix,
    costs: Matrix,
    open_options: Flags,
    price: float,
    room: float,
    remaining: int,
    here: float,
    best: Matrix,
    taken: Flags,
) -> tuple[float, float]:
    """The bound at a price, and how it changes with the price."""
    n_features, n_options = gains.shape
    cost_of = np.zeros(n_features)
    for feature in range(n_features):
        best[feature], taken[feature] = 0.0, False
        for option in range(1, n_options):
            if open_options[feature, option]:
                value = gains[feature, option] - price * costs[feature, option]
                if value > best[feature]:
                    best[feature], cost_of[feature] = value, costs[feature, option]
    total = spent = size = 0.0
    for _ in range(remaining):
        place, most = -1, 0.0
        for feature in range(n_features):
            if not taken[feature] and best[feature] > most:
                place, most = feature, best[feature]
        if place < 0:
            break
        taken[place] = True
        total += most
        spent += cost_of[place]
        size += abs(cost_of[place])
    if price == 0.0:
        return here + total + GUARD * (abs(here) + total), room - spent
    size = abs(here) + total + price * (abs(room) + size)
    return here + price * room + total + GUARD * size, room - spent


@numba.njit(cache=True)
def _dearest(gains: Matrix, costs: Matrix, open_options: Flags) -> float:
    """A price at which no option is worth its cost."""
    most = 0.0
    for feature in range(gains.shape[0]):
        for option in range(1, gains.shape[1]):
            if open_options[feature, option] and gains[feature, option] > 0.0:
                cost = costs[feature, option]
                if cost > 0.0:
                    most = max(most, gains[feature, option] / cost)
    return most


@numba.njit(cache=True)
def _close(
    gains: Matrix,
    costs: Matrix,
    open_options: Flags,
    price: float,
    remaining: int,
    bound: float,
    required: float,
    best: Matrix,
    taken: Flags,
) -> None:
    """Close what would take the bound below ``required`` if it were chosen."""
    last = np.inf
    count = 0
    for feature in range(len(best)):
        if taken[feature]:
            count += 1
            last = min(last, best[feature])
    for feature in range(gains.shape[0]):
        replaced = best[feature]
        if not taken[feature]:
            # Another one more only fits where fewer were worth taking than may change.
            replaced = last if count == remaining else 0.0
        for option in range(1, gains.shape[1]):
            if open_options[feature, option]:
                value = gains[feature, option] - price * costs[feature, option]
                if bound - replaced + value < required:
                    open_options[feature, option] = False
