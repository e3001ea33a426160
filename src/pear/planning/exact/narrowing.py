"""All assignments of a band of costs that may be favourable, for models that can be looked into.

The same depth-first search as :mod:`.kernel`, with an upper bound of the score at every node. A
node holds the options that are still *open*. Those that no favourable completion within the cost
that is left can take are closed; a node whose bound is too low is dropped. What is left is taken
feature by feature, the one that can raise the score most first; a feature that is done with is
closed, which means that it stays as it is. Hardly anything is listed that is not favourable.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.decision.ceilings.bound import fix, narrow, narrow_again
from pear.decision.ceilings.specialised import Specialised
from pear.planning.exact.kernel import Cursor, at_the_root, by_query, lead_bound, possible
from pear.planning.exact.options import Choices, Options

TOLERANCE = 1e-9
"""Share of the limit by which the room is widened, so that rounding never closes an option."""


class Nodes(NamedTuple):
    """Where a search stands, and what it keeps of each depth D on the way.

    ``cursor`` as in :mod:`.kernel`. ``open_options`` ``(D, K, V)``, ``costs`` ``(D, K, V)`` the
    least that an option adds, ``feature`` and ``option`` ``(D,)`` the choice being tried, -1 for
    none yet.
    """

    cursor: Cursor
    entering: NDArray[np.bool_]
    open_options: NDArray[np.bool_]
    costs: Floats
    feature: NDArray[np.int64]
    option: NDArray[np.int64]


def at_the_top(options: Options) -> Nodes:
    """A search that has looked at nothing yet."""
    choices = options.choices
    k, v, _ = choices.own.shape
    depths = min(int(choices.max_steps.max(initial=0)), k) + 2
    open_options = np.zeros((depths, k, v), np.bool_)
    open_options[0, :, 1:] = np.isfinite(choices.lead_own[:, 1:])
    return Nodes(
        cursor=at_the_root(options),
        entering=np.ones(1, np.bool_),
        open_options=open_options,
        costs=np.zeros((depths, k, v)),
        feature=np.full(depths, -1, np.int64),
        option=np.zeros(depths, np.int64),
    )


@numba.njit(cache=True)
def favourable_below(
    choices: Choices,
    special: Specialised,
    nodes: Nodes,
    low: Floats,
    high: Floats,
    most_nodes: int,
    assignments: NDArray[np.int16],
    bounds: Floats,
) -> tuple[int, int, bool]:
    """As :func:`.kernel.below`, for what may be favourable only."""
    cursor = nodes.cursor
    chosen, member, steps = cursor.chosen, cursor.member, cursor.steps
    most_steps, highest = choices.max_steps.max(), high.max()
    found = looked = 0
    depth = cursor.depth[0]
    while depth >= 0:
        if found == len(bounds) or looked >= most_nodes:
            cursor.depth[0] = depth
            return found, looked, False
        if nodes.entering[0]:
            looked += 1
            nodes.entering[0] = False
            nodes.feature[depth] = -1
            alive, listed, bound = _enter(choices, special, nodes, depth, low, high)
            if listed:
                assignments[found] = chosen
                bounds[found] = bound
                found += 1
        else:
            alive = True
            if nodes.feature[depth] >= 0:
                feature = nodes.feature[depth]
                chosen[feature] = 0
                option = _next_open(nodes.open_options[depth, feature], nodes.option[depth])
                if option < 0:
                    nodes.open_options[depth, feature, 1:] = False
                    nodes.feature[depth] = -1
                    room = _room(choices, nodes, depth, highest)
                    alive = room >= 0 and (
                        narrow_again(
                            special,
                            depth,
                            nodes.open_options[depth],
                            nodes.costs[depth],
                            room,
                            most_steps - steps[depth],
                        )
                        >= special.required
                    )
        if alive:
            if nodes.feature[depth] < 0:
                nodes.feature[depth] = _most_promising(special, nodes, depth)
                nodes.option[depth] = 0
            feature = nodes.feature[depth]
            if feature >= 0:
                option = _next_open(nodes.open_options[depth, feature], nodes.option[depth])
                nodes.option[depth] = option
                chosen[feature], member[depth] = option, feature
                fix(special, depth, feature, option)
                steps[depth + 1] = steps[depth] + choices.links[feature, option]
                nodes.open_options[depth + 1] = nodes.open_options[depth]
                nodes.open_options[depth + 1, feature, 1:] = False
                depth += 1
                nodes.entering[0] = True
                continue
        depth -= 1
    cursor.depth[0] = -1
    return found, looked, True


@numba.njit(cache=True)
def _enter(
    choices: Choices, special: Specialised, nodes: Nodes, depth: int, low: Floats, high: Floats
) -> tuple[bool, bool, float]:
    """Close what is in no plan; whether to go on, whether the node is listed, and its bound."""
    cursor, open_options = nodes.cursor, nodes.open_options[depth]
    highest, made = high.max(), cursor.steps[depth]
    remaining = choices.max_steps.max() - made
    room = _room(choices, nodes, depth, highest)
    bound = lead_bound(choices, cursor, depth)
    listed = low[0] < bound <= high[0]
    affordable = room >= 0
    if affordable and len(cursor.sums[0]) > 1:
        affordable, listed, bound = by_query(choices, cursor, depth, made, low, high)
    if not affordable:
        return False, False, bound
    for feature in range(len(open_options)):
        for option in range(1, open_options.shape[1]):
            if choices.links[feature, option] > remaining:
                open_options[feature, option] = False
    if narrow(special, depth, open_options, nodes.costs[depth], room, remaining) < special.required:
        return False, False, bound
    favourable = special.here[depth] >= special.required
    listed = listed and favourable and depth > 0 and possible(choices, cursor)
    return True, listed, bound


@numba.njit(cache=True)
def _room(choices: Choices, nodes: Nodes, depth: int, highest: float) -> float:
    """What can still be spent at a node; computes what each open option adds at least."""
    cursor, open_options, costs = nodes.cursor, nodes.open_options[depth], nodes.costs[depth]
    for feature in range(len(open_options)):
        cursor.undecided[feature] = _next_open(open_options[feature], 0) >= 0
    spent = 0.0
    for feature in range(len(open_options)):
        relief = 0.0
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            if cursor.chosen[parent] > 0:
                relief += choices.lead_relief[feature, slot, cursor.chosen[parent]]
            else:
                least = 0.0
                for option in range(1, open_options.shape[1]):
                    if open_options[parent, option]:
                        least = min(least, choices.lead_relief[feature, slot, option])
                relief += least
        option = cursor.chosen[feature]
        if option > 0:
            links = choices.links[feature, option]
            spent += max(links * choices.floor, choices.lead_own[feature, option] + links * relief)
        elif cursor.undecided[feature]:
            for option in range(1, open_options.shape[1]):
                links = choices.links[feature, option]
                least = choices.lead_own[feature, option] + links * relief
                # What costs less than nothing is in ``lead_rest`` already.
                costs[feature, option] = max(0.0, links * choices.floor, least)
    if spent + choices.lead_rest > highest:
        return -1.0
    return highest - spent - choices.lead_rest + TOLERANCE * abs(highest)


@numba.njit(cache=True)
def _next_open(open_options: NDArray[np.bool_], after: int) -> int:
    """The first open option after another one, -1 for none."""
    for option in range(after + 1, len(open_options)):
        if open_options[option]:
            return option
    return -1


@numba.njit(cache=True)
def _most_promising(special: Specialised, nodes: Nodes, depth: int) -> int:
    """The feature with the open option that can raise the margin most, -1 for none."""
    best, most = -1, -np.inf
    open_options = nodes.open_options[depth]
    for feature in range(len(open_options)):
        for option in range(1, open_options.shape[1]):
            if open_options[feature, option] and special.potential[depth, feature, option] > most:
                best, most = feature, special.potential[depth, feature, option]
    return best
