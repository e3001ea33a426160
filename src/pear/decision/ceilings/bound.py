"""The ceiling of a partial assignment, for every kind of model, in compiled code.

A depth-first search gives the features options one after the other. :func:`fix` reduces the model
by one option, from the arrays of a depth into those of the next; :func:`ceiling` bounds the margin
of every completion from there.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from pear.decision.ceilings.linear import linear_ceiling
from pear.decision.ceilings.margins import LINEAR, TREES, Specialised
from pear.decision.ceilings.networks import closer_gains, network_ceiling, network_gains
from pear.decision.ceilings.relaxation import within_room
from pear.decision.ceilings.tree_bounds import fix_trees, tree_ceiling, tree_gains

FEW = 12
"""Open options of which the later layers of a large network are not bounded anew."""


@numba.njit(cache=True)
def fix(special: Specialised, depth: int, feature: int, option: int) -> None:
    """Give ``feature`` its ``option``: what holds at ``depth + 1``."""
    special.free[depth + 1] = special.free[depth] & ~(np.uint64(1) << np.uint64(feature))
    if special.kind == LINEAR:
        special.base[depth + 1] = special.base[depth] + special.gains[feature, option]
    elif special.kind == TREES:
        fix_trees(special, depth, feature, option)
    else:
        special.hidden[depth + 1] = special.hidden[depth] + special.steps[feature, option]
        special.low[depth + 1] = special.low[depth]
        special.high[depth + 1] = special.high[depth]
        special.seen[depth + 1] = special.seen[depth]
        known = option == 0 or special.seen[depth, feature, option]
        special.seen_remaining[depth + 1] = (
            special.seen_remaining[depth] - (option > 0) if known else -1
        )


@numba.njit(cache=True)
def ceiling(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> float:
    """An upper bound of the margin over every completion.

    Features not fixed on the way to ``depth`` stay as they are or, at most ``remaining`` of them,
    take an option marked in ``open_options`` ``(F, V)``.
    """
    if special.kind == LINEAR:
        return linear_ceiling(special, depth, open_options, remaining)
    if special.kind == TREES:
        return tree_ceiling(special, depth, open_options, remaining)
    return network_ceiling(special, depth, open_options, remaining)


@numba.njit(cache=True)
def narrow(
    special: Specialised,
    depth: int,
    open_options: NDArray[np.bool_],
    costs: NDArray[np.float64],
    room: float,
    remaining: int,
) -> float:
    """An upper bound of the margin over completions that cost less than ``room``.

    ``costs`` ``(F, V)`` is the least that each option of a feature not yet fixed can still add to
    the cost. Options that no favourable completion takes are closed in ``open_options``. From here
    on this depth is about no more than these options, this room and this many changes, until
    :func:`fix` comes to it again; at depth 0 every call starts afresh.
    """
    bound = np.inf
    if special.kind == TREES:
        bound = tree_gains(special, depth, depth, open_options, costs, room, remaining)
    elif special.kind == LINEAR:
        special.here[depth] = special.level[depth] = special.base[depth]
        special.potential[depth] = special.gains
    else:
        network_gains(special, depth, open_options, remaining)
        bound = narrow_again(special, depth, open_options, costs, room, remaining)
        if bound >= special.required and _worth_it(special, open_options, remaining):
            closer_gains(special, depth, open_options, remaining)
    if bound < special.required:
        return bound
    return min(bound, narrow_again(special, depth, open_options, costs, room, remaining))


@numba.njit(cache=True)
def _worth_it(special: Specialised, open_options: NDArray[np.bool_], remaining: int) -> bool:
    """Whether so much may follow that a closer bound of a network takes less."""
    count = 0
    for feature in range(len(open_options)):
        for option in range(1, open_options.shape[1]):
            count += open_options[feature, option]
    few = min(FEW, len(special.weights) // 100) if remaining > 1 else 0
    return count > few


@numba.njit(cache=True)
def narrow_again(
    special: Specialised,
    depth: int,
    open_options: NDArray[np.bool_],
    costs: NDArray[np.float64],
    room: float,
    remaining: int,
) -> float:
    """:func:`narrow` with what it last computed at this depth: cheap, for fewer open options."""
    free = special.free[depth]
    for feature in range(len(special.counts)):
        if not free >> np.uint64(feature) & np.uint64(1):
            open_options[feature, 1:] = False
        else:
            open_options[feature, special.counts[feature] :] = False
    return within_room(
        special.potential[depth],
        costs,
        open_options,
        room,
        remaining,
        special.level[depth],
        special.required,
    )
