"""All assignments of one person whose bound lies in a band of costs, by depth-first search.

A node of the search is a set of changed features with their options; every other feature stays as
it is. Features are taken in a sequence, so that each set is met once. A node's children change one
more feature, further on in the sequence. A subtree is dropped when no query can afford any of it,
or when no completion can become favourable (its score ceiling). The search can be left at any
node and taken up there again: the whole of its position is in the :class:`Cursor`.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.decision.ceilings.bound import ceiling, fix
from pear.decision.ceilings.specialised import Specialised
from pear.planning.exact.options import Choices, Options

Integers = NDArray[np.int64]


class Cursor(NamedTuple):
    """Where a search stands.

    ``sequence`` ``(K,)`` is the order in which features are taken, ``position`` its inverse. At
    each depth, ``place`` and ``rank`` ``(K + 2,)`` say which child comes next; ``member``
    ``(K + 1,)`` are the features changed, ``chosen`` ``(K,)`` all options, ``steps`` ``(K + 2,)``
    the changes made. ``cut`` ``(Q,)`` says whether a query's cost has dropped anything. The others are
    work areas: ``sums`` ``(4, R)`` and ``open_options`` ``(K, V)``.
    """

    sequence: Integers
    position: Integers
    depth: Integers
    place: Integers
    rank: Integers
    member: Integers
    chosen: Integers
    steps: Integers
    cut: NDArray[np.bool_]
    sums: Floats
    open_options: NDArray[np.bool_]


def at_the_root(options: Options, sequence: Integers) -> Cursor:
    """A search that has looked at nothing yet."""
    k, v, rows = options.choices.own.shape
    position = np.empty(k, np.int64)
    position[sequence] = np.arange(k)
    return Cursor(
        sequence=sequence,
        position=position,
        depth=np.zeros(1, np.int64),
        place=np.zeros(k + 2, np.int64),
        rank=np.zeros(k + 2, np.int64),
        member=np.zeros(k + 1, np.int64),
        chosen=np.zeros(k, np.int64),
        steps=np.zeros(k + 2, np.int64),
        cut=np.zeros(options.n_queries, np.bool_),
        sums=np.zeros((4, rows)),
        open_options=np.zeros((k, v), np.bool_),
    )


@numba.njit(cache=True)
def below(
    choices: Choices,
    special: Specialised | None,
    cursor: Cursor,
    low: Floats,
    high: Floats,
    most_nodes: int,
    assignments: NDArray[np.int16],
    bounds: Floats,
) -> tuple[int, int, bool]:
    """Go on until the buffers are full, ``most_nodes`` are looked at, or nothing is left.

    Lists the assignments ``(n, K)`` with ``low < bound <= high`` for some query and with
    ``bound <= low`` for none, and their smallest bounds ``(n,)``. ``low`` and ``high`` ``(Q,)`` are
    minus infinity for a query that is decided. Returns how many assignments are listed, how many
    nodes were looked at, and whether the search has come to its end.
    """
    n_features = len(cursor.sequence)
    chosen, member = cursor.chosen, cursor.member
    most_steps, highest = choices.max_steps.max(), high.max()
    found = nodes = 0
    depth = cursor.depth[0]
    while depth >= 0:
        if found == len(bounds) or nodes >= most_nodes:
            cursor.depth[0] = depth
            return found, nodes, False
        place = cursor.place[depth]
        if place == n_features:
            depth -= 1
            if depth >= 0:
                chosen[member[depth]] = 0
            continue
        feature = cursor.sequence[place]
        if cursor.rank[depth] == choices.n_ranked[feature]:
            cursor.rank[depth] = 0
            cursor.place[depth] = place + 1
            if special is not None and place + 1 < n_features:
                remaining = most_steps - cursor.steps[depth]
                room = _room(choices, cursor, depth, place, high)
                if _hopeless(choices, special, cursor, depth, place, remaining, room):
                    cursor.place[depth] = n_features
            continue
        option = choices.ranked[feature, cursor.rank[depth]]
        cursor.rank[depth] += 1
        steps = cursor.steps[depth] + choices.links[feature, option]
        if steps > most_steps:
            continue
        nodes += 1
        chosen[feature], member[depth] = option, feature
        itself, subtree = _lead_bounds(choices, cursor, depth + 1, place)
        if subtree + choices.lead_rest > highest:
            cursor.cut[:] = True
            chosen[feature] = 0
            if choices.single and not _relieves(choices, cursor, depth, feature):
                # All further options of this feature are dearer.
                cursor.rank[depth] = choices.n_ranked[feature]
            continue
        room = max(highest - subtree - choices.lead_rest, 0.0)
        listed = low[0] < itself <= high[0]
        if len(cursor.sums[0]) > 1:
            room, listed, itself = _by_query(choices, cursor, depth + 1, place, steps, low, high)
        elif itself > high[0]:
            # What follows may cost less than nothing; this node itself is cut off.
            cursor.cut[0] = True
        if room < 0 or not _possible(choices, cursor, place):
            chosen[feature] = 0
            continue
        further = steps < most_steps and place + 1 < n_features
        if special is not None:
            fix(special, depth, feature, option)
            remaining = most_steps - steps if further else 0
            if _hopeless(choices, special, cursor, depth + 1, place, remaining, room):
                chosen[feature] = 0
                continue
            if listed and remaining > 0:
                cursor.open_options[:] = False
                listed = ceiling(special, depth + 1, cursor.open_options, 0) > special.required
        if listed and _possible(choices, cursor, n_features):
            assignments[found] = chosen
            bounds[found] = itself
            found += 1
        if further:
            depth += 1
            cursor.place[depth], cursor.rank[depth], cursor.steps[depth] = place + 1, 0, steps
        else:
            chosen[feature] = 0
    cursor.depth[0] = -1
    return found, nodes, True


@numba.njit(cache=True)
def _lead_bounds(choices: Choices, cursor: Cursor, count: int, place: int) -> tuple[float, float]:
    """Bounds, by the leading row, of the node alone and of everything below it.

    Below it, a parent after ``place`` in the sequence may still change.
    """
    itself = subtree = 0.0
    for number in range(count):
        feature = cursor.member[number]
        option = cursor.chosen[feature]
        links = choices.links[feature, option]
        alone = lowest = choices.lead_own[feature, option]
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            if cursor.chosen[parent] > 0:
                relief = links * choices.lead_relief[feature, slot, cursor.chosen[parent]]
                alone += relief
                lowest += relief
            elif cursor.position[parent] > place:
                lowest += links * choices.lead_least_relief[feature, slot]
        itself += max(links * choices.floor, alone)
        subtree += max(links * choices.floor, lowest)
    return itself, subtree


@numba.njit(cache=True)
def _row_bounds(choices: Choices, cursor: Cursor, count: int, place: int) -> None:
    """The same two bounds under every row of weights, into ``cursor.sums``."""
    itself, subtree = cursor.sums[0], cursor.sums[1]
    alone, lowest = cursor.sums[2], cursor.sums[3]
    itself[:] = 0.0
    subtree[:] = 0.0
    for number in range(count):
        feature = cursor.member[number]
        option = cursor.chosen[feature]
        links = choices.links[feature, option]
        alone[:] = choices.own[feature, option]
        lowest[:] = alone
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            if cursor.chosen[parent] > 0:
                relief = choices.relief[feature, slot, cursor.chosen[parent]]
                for row in range(len(relief)):
                    alone[row] += links * relief[row]
                    lowest[row] += links * relief[row]
            elif cursor.position[parent] > place:
                least = choices.least_relief[feature, slot]
                for row in range(len(least)):
                    lowest[row] += links * least[row]
        floor = links * choices.floor
        for row in range(len(itself)):
            itself[row] += max(floor, alone[row])
            subtree[row] += max(floor, lowest[row])


@numba.njit(cache=True)
def _by_query(
    choices: Choices,
    cursor: Cursor,
    count: int,
    place: int,
    steps: int,
    low: Floats,
    high: Floats,
) -> tuple[float, bool, float]:
    """The most room any query has below this node, whether the node is listed, its least bound.

    The room is negative where no query can afford anything from here on.
    """
    _row_bounds(choices, cursor, count, place)
    n_samples = choices.n_samples
    room, least = -np.inf, np.inf
    listed, earlier = False, False
    for query in range(len(high)):
        if high[query] == -np.inf or steps > choices.max_steps[query]:
            continue
        itself = subtree = rest = 0.0
        for row in range(query * n_samples, (query + 1) * n_samples):
            itself += cursor.sums[0, row]
            subtree += cursor.sums[1, row]
            rest += choices.rest[row]
        itself /= n_samples
        subtree = (subtree + rest) / n_samples
        if subtree == np.inf:
            continue
        if subtree > high[query]:
            cursor.cut[query] = True
            continue
        room = max(room, high[query] - subtree, 0.0)
        if itself <= low[query]:
            earlier = True
        elif itself <= high[query]:
            listed = True
            least = min(least, itself)
        else:
            cursor.cut[query] = True
    return room, listed and not earlier, least


@numba.njit(cache=True)
def _room(choices: Choices, cursor: Cursor, depth: int, place: int, high: Floats) -> float:
    """What the queries can still spend below the node at ``depth`` on features after ``place``."""
    if len(cursor.sums[0]) == 1:
        return high[0] - _lead_bounds(choices, cursor, depth, place)[1] - choices.lead_rest
    steps = cursor.steps[depth]
    cut = cursor.cut.copy()
    room = _by_query(choices, cursor, depth, place, steps, high, high)[0]
    cursor.cut[:] = cut
    return room


@numba.njit(cache=True)
def _hopeless(
    choices: Choices,
    special: Specialised,
    cursor: Cursor,
    depth: int,
    place: int,
    remaining: int,
    room: float,
) -> bool:
    """Whether no completion by features after ``place`` can be favourable.

    Options that do not fit into ``room`` are left out; where that was so, they count as cut off.
    """
    left_out = False
    cursor.open_options[:] = False
    for later in range(place + 1, len(cursor.sequence) if remaining > 0 else 0):
        feature = cursor.sequence[later]
        for rank in range(choices.n_ranked[feature]):
            option = choices.ranked[feature, rank]
            if choices.links[feature, option] > remaining:
                continue
            if choices.lead_term[feature, option] > room:
                left_out = True
            else:
                cursor.open_options[feature, option] = True
    if ceiling(special, depth, cursor.open_options, remaining) > special.required:
        return False
    if left_out:
        cursor.cut[:] = True
    return True


@numba.njit(cache=True)
def _relieves(choices: Choices, cursor: Cursor, count: int, feature: int) -> bool:
    """Whether a feature is a parent of one changed before it in the sequence."""
    for number in range(count):
        for slot in range(choices.parents.shape[1]):
            if choices.parents[cursor.member[number], slot] == feature:
                return True
    return False


@numba.njit(cache=True)
def _possible(choices: Choices, cursor: Cursor, place: int) -> bool:
    """Whether every change has, or after ``place`` can still get, what it requires."""
    for number in range(len(choices.needy)):
        option = cursor.chosen[choices.needy[number]]
        needed = choices.needed[number]
        if (
            option > 0
            and choices.uses[number, option]
            and not choices.meets[number, 0]
            and not choices.meets[number, cursor.chosen[needed]]
            and (cursor.chosen[needed] > 0 or cursor.position[needed] <= place)
        ):
            return False
    return True


def bounds_of(options: Options, assignments: NDArray[np.integer]) -> Floats:
    """Bounds of complete assignments ``(n, K)`` for every query, shape ``(n, Q)``."""
    cursor = at_the_root(options, np.arange(len(options.columns)))
    bounds = np.empty((len(assignments), options.n_queries))
    _all_bounds(options.choices, cursor, np.asarray(assignments, np.int64), bounds)
    return bounds


@numba.njit(cache=True)
def _all_bounds(choices: Choices, cursor: Cursor, assignments: Integers, bounds: Floats) -> None:
    n_samples, everything = choices.n_samples, len(cursor.sequence)
    for number in range(len(assignments)):
        count = 0
        steps = 0
        for feature in range(everything):
            option = assignments[number, feature]
            cursor.chosen[feature] = option
            if option > 0:
                cursor.member[count] = feature
                count += 1
                steps += choices.links[feature, option]
        _row_bounds(choices, cursor, count, everything)
        for query in range(bounds.shape[1]):
            total = 0.0
            for row in range(query * n_samples, (query + 1) * n_samples):
                total += cursor.sums[0, row]
            fits = steps <= choices.max_steps[query]
            bounds[number, query] = total / n_samples if fits else np.inf
