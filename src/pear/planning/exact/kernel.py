"""All assignments of one person whose bound lies in a band of costs, by depth-first search.

A node of the search is a set of changed features with their options; every other feature stays as
it is. Features are taken in order, parents first, so that each set is met once and all that a
change's parents do is known when it is made. A node's children change one more feature, further
on. A subtree is dropped when no query can afford any of it. The search can be left at any node and
taken up there again: the whole of its position is in the :class:`Cursor`.

:func:`favourable_below` is the same search for models that can be looked into, with an upper bound
of the score at every node. A node holds the options that are still *open*. Those that no favourable
completion within the cost that is left can take are closed; a node whose bound is too low is
dropped. What is left is taken feature by feature, the one that can raise the score most first; a
feature that is done with is closed, which means that it stays as it is. Hardly anything is listed
that is not favourable.
What an open parent's change can take off a change already made is charged to the parent: it costs
something itself, and only so many may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.decision.ceilings.bound import fix, narrow, narrow_again
from pear.decision.ceilings.margins import Specialised
from pear.decision.ceilings.relaxation import worth_taking

if TYPE_CHECKING:
    from pear.planning.exact.options import Choices, Options

Integers = NDArray[np.int64]

TOLERANCE = 1e-9
"""Share of the limit by which the room is widened, so that rounding never closes an option."""


class Cursor(NamedTuple):
    """Where a search stands.

    At each depth, ``place`` and ``rank`` ``(K + 2,)`` say which child comes next; ``member``
    ``(K + 1,)`` are the features changed, ``chosen`` ``(K,)`` the options of all, ``steps``
    ``(K + 2,)`` the changes made. ``lead`` ``(K + 2,)`` and ``sums`` ``(K + 2, R)`` are the bounds
    of what is changed, by the leading row and under every row of weights; ``subtree``
    ``(K + 2, R)`` those of everything below, where ``undecided`` ``(K,)`` features may still change
    (only where features are not taken parents first).

    ``open_queries`` ``(K + 3, Q)`` lists the queries that can afford to go on, ``n_open``
    ``(K + 3,)`` of them: below a node there are no others. ``cut`` ``(Q,)`` says whether a query's
    cost has dropped anything.
    """

    depth: Integers
    place: Integers
    rank: Integers
    member: Integers
    chosen: Integers
    steps: Integers
    lead: Floats
    sums: Floats
    subtree: Floats
    undecided: NDArray[np.bool_]
    open_queries: Integers
    n_open: Integers
    cut: NDArray[np.bool_]


def at_the_root(options: Options) -> Cursor:
    """A search that has looked at nothing yet."""
    k, _, rows = options.choices.own.shape
    return Cursor(
        depth=np.zeros(1, np.int64),
        place=np.zeros(k + 2, np.int64),
        rank=np.zeros(k + 2, np.int64),
        member=np.zeros(k + 1, np.int64),
        chosen=np.zeros(k, np.int64),
        steps=np.zeros(k + 2, np.int64),
        lead=np.zeros(k + 2),
        sums=np.zeros((k + 2, rows)),
        subtree=np.zeros((k + 2, rows)),
        undecided=np.zeros(k, np.bool_),
        open_queries=np.repeat(np.arange(options.n_queries)[None], k + 3, axis=0),
        n_open=np.full(k + 3, options.n_queries, np.int64),
        cut=np.zeros(options.n_queries, np.bool_),
    )


@numba.njit(cache=True)
def below(
    choices: Choices,
    cursor: Cursor,
    low: Floats,
    high: Floats,
    most_nodes: int,
    assignments: Integers,
    bounds: Floats,
) -> tuple[int, int, bool]:
    """Go on until the buffers are full, ``most_nodes`` are looked at, or nothing is left.

    Lists the assignments ``(n, K)`` with ``low < bound <= high`` for some query and with
    ``bound <= low`` for none, and their smallest bounds ``(n,)``. ``low`` and ``high`` ``(Q,)`` are
    minus infinity for a query that is decided. Returns how many assignments are listed, how many
    nodes were looked at, and whether the search has come to its end.
    """
    # One function that indexes whole arrays: calls and slices would take most of the time.
    own, relief, parents, changes = choices.own, choices.relief, choices.parents, choices.changes
    chosen, member, sums = cursor.chosen, cursor.member, cursor.sums
    open_queries, n_open, cut = cursor.open_queries, cursor.n_open, cursor.cut
    n_features, n_slots, n_rows, n_samples = *parents.shape, sums.shape[1], choices.n_samples
    most_steps, highest = choices.max_steps.max(), high.max()
    found = nodes = 0
    depth = cursor.depth[0]
    while depth >= 0:
        if found == len(bounds) or nodes >= most_nodes:
            cursor.depth[0] = depth
            return found, nodes, False

        # The next child: one more feature with one of its options.
        place = cursor.place[depth]
        if place == n_features:
            depth -= 1
            if depth >= 0:
                chosen[member[depth]] = 0
            continue
        if cursor.rank[depth] == choices.n_ranked[place]:
            cursor.rank[depth] = 0
            cursor.place[depth] = place + 1
            continue
        option = choices.ranked[place, cursor.rank[depth]]
        cursor.rank[depth] += 1
        steps = cursor.steps[depth] + changes[place, option]
        if steps > most_steps:
            continue
        nodes += 1
        chosen[place], member[depth] = option, place

        # Its bound by the leading row.
        cost = choices.lead_own[place, option]
        for slot in range(n_slots):
            parent = parents[place, slot]
            if parent < 0:
                break
            cost += changes[place, option] * choices.lead_relief[place, slot, chosen[parent]]
        least = changes[place, option] * choices.floor
        bound = cursor.lead[depth] + max(least, cost)
        cursor.lead[depth + 1] = bound
        if bound + choices.lead_rest > highest:
            cut[:] = True
            chosen[place] = 0
            if choices.single:
                # All further options of this feature are dearer.
                cursor.rank[depth] = choices.n_ranked[place]
            continue
        affordable, listed = True, low[0] < bound <= high[0]
        if n_rows == 1 and bound > high[0]:
            # What follows may cost less than nothing; this node itself is cut off.
            cut[0] = True

        # Its bounds under every row, and the queries that can afford them.
        if n_rows > 1:
            for row in range(n_rows):
                sums[depth + 1, row] = own[place, option, row]
            for slot in range(n_slots):
                parent = parents[place, slot]
                if parent < 0:
                    break
                other = chosen[parent]
                if other > 0:
                    for row in range(n_rows):
                        sums[depth + 1, row] += (
                            changes[place, option] * relief[place, slot, other, row]
                        )
            for row in range(n_rows):
                sums[depth + 1, row] = sums[depth, row] + max(least, sums[depth + 1, row])
            bound, going_on = np.inf, 0
            listed, earlier = False, False
            for number in range(n_open[depth]):
                query = open_queries[depth, number]
                if high[query] == -np.inf or steps > choices.max_steps[query]:
                    continue
                mean = lowest = 0.0
                for row in range(query * n_samples, (query + 1) * n_samples):
                    mean += sums[depth + 1, row]
                    lowest += sums[depth + 1, row] + choices.rest[row]
                if n_samples > 1:
                    mean, lowest = mean / n_samples, lowest / n_samples
                if lowest == np.inf:
                    continue
                if lowest > high[query]:
                    cut[query] = True
                    continue
                open_queries[depth + 1, going_on] = query
                going_on += 1
                if mean <= low[query]:
                    earlier = True
                elif mean <= high[query]:
                    listed = True
                    bound = min(bound, mean)
                else:
                    cut[query] = True
            n_open[depth + 1] = going_on
            affordable, listed = going_on > 0, listed and not earlier

        if listed and possible(choices, cursor):
            assignments[found] = chosen
            bounds[found] = bound
            found += 1
        if affordable and steps < most_steps and place + 1 < n_features:
            depth += 1
            cursor.place[depth], cursor.rank[depth], cursor.steps[depth] = place + 1, 0, steps
        else:
            chosen[place] = 0
    cursor.depth[0] = -1
    return found, nodes, True


@numba.njit(cache=True)
def lead_bound(choices: Choices, cursor: Cursor, count: int) -> float:
    """The bound of the first ``count`` changes, by the leading row."""
    total = 0.0
    for number in range(count):
        feature = cursor.member[number]
        option = cursor.chosen[feature]
        changes = choices.changes[feature, option]
        cost = choices.lead_own[feature, option]
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            cost += changes * choices.lead_relief[feature, slot, cursor.chosen[parent]]
        total += max(changes * choices.floor, cost)
    return total


@numba.njit(cache=True)
def row_bounds(choices: Choices, cursor: Cursor, count: int) -> None:
    """Bounds of ``count`` changes in any order under every row of weights, into ``sums[count]``.

    Into ``subtree[count]`` those of everything below, where undecided features may still change.
    """
    sums, subtree, chosen = cursor.sums, cursor.subtree, cursor.chosen
    n_rows, here = sums.shape[1], count + 1
    sums[count] = subtree[count] = 0.0
    for number in range(count):
        feature = cursor.member[number]
        option = chosen[feature]
        changes = choices.changes[feature, option]
        # In what is kept of the next depth, where nothing is yet.
        for row in range(n_rows):
            sums[here, row] = subtree[here, row] = choices.own[feature, option, row]
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            other = chosen[parent]
            if other > 0:
                for row in range(n_rows):
                    relief = changes * choices.relief[feature, slot, other, row]
                    sums[here, row] += relief
                    subtree[here, row] += relief
            elif cursor.undecided[parent]:
                for row in range(n_rows):
                    subtree[here, row] += changes * choices.least_relief[feature, slot, row]
        for row in range(n_rows):
            sums[count, row] += max(changes * choices.floor, sums[here, row])
            subtree[count, row] += max(changes * choices.floor, subtree[here, row])


@numba.njit(cache=True)
def by_query(
    choices: Choices, cursor: Cursor, count: int, steps: int, low: Floats, high: Floats
) -> tuple[bool, bool, float]:
    """Whether some query can afford to go on, whether the node is listed, and its bound.

    As within :func:`below`, where changes are made in any order.
    """
    row_bounds(choices, cursor, count)
    bound, going_on, n_samples = np.inf, 0, choices.n_samples
    listed, earlier = False, False
    for number in range(cursor.n_open[count]):
        query = cursor.open_queries[count, number]
        if high[query] == -np.inf or steps > choices.max_steps[query]:
            continue
        mean = lowest = 0.0
        for row in range(query * n_samples, (query + 1) * n_samples):
            mean += cursor.sums[count, row]
            lowest += cursor.subtree[count, row] + choices.rest[row]
        mean, lowest = mean / n_samples, lowest / n_samples
        if lowest == np.inf:
            continue
        if lowest > high[query]:
            cursor.cut[query] = True
            continue
        cursor.open_queries[count + 1, going_on] = query
        going_on += 1
        if mean <= low[query]:
            earlier = True
        elif mean <= high[query]:
            listed = True
            bound = min(bound, mean)
        else:
            cursor.cut[query] = True
    cursor.n_open[count + 1] = going_on
    return going_on > 0, listed and not earlier, bound


@numba.njit(cache=True)
def possible(choices: Choices, cursor: Cursor) -> bool:
    """Whether every change has what it requires, at the start or by another change."""
    for number in range(len(choices.needy)):
        option = cursor.chosen[choices.needy[number]]
        if (
            option > 0
            and choices.uses[number, option]
            and not choices.meets[number, 0]
            and not choices.meets[number, cursor.chosen[choices.needed[number]]]
        ):
            return False
    return True


def bounds_of(options: Options, assignments: NDArray[np.integer]) -> Floats:
    """Bounds of complete assignments ``(n, K)`` for every query, shape ``(n, Q)``."""
    cursor = at_the_root(options)
    bounds = np.empty((len(assignments), options.n_queries))
    _all_bounds(options.choices, cursor, np.asarray(assignments, np.int64), bounds)
    return bounds


@numba.njit(cache=True)
def _all_bounds(choices: Choices, cursor: Cursor, assignments: Integers, bounds: Floats) -> None:
    for number in range(len(assignments)):
        count = steps = 0
        cursor.chosen[:] = assignments[number]
        for feature, option in enumerate(cursor.chosen):
            if option > 0:
                cursor.member[count] = feature
                count += 1
                steps += choices.changes[feature, option]
        row_bounds(choices, cursor, count)
        for query in range(bounds.shape[1]):
            mean = 0.0
            for row in range(query * choices.n_samples, (query + 1) * choices.n_samples):
                mean += cursor.sums[count, row]
            fits = steps <= choices.max_steps[query]
            bounds[number, query] = mean / choices.n_samples if fits else np.inf


# With a bound of the score


class Nodes(NamedTuple):
    """Where a search stands, and what it keeps of each depth D on the way.

    ``open_options`` ``(D, K, V)``, ``costs`` ``(D, K, V)`` the least that an option adds,
    ``feature`` and ``option`` ``(D,)`` the choice being tried, -1 for none yet. ``saved`` ``(K,)``
    is a work area.
    """

    cursor: Cursor
    entering: NDArray[np.bool_]
    open_options: NDArray[np.bool_]
    costs: Floats
    feature: NDArray[np.int64]
    option: NDArray[np.int64]
    saved: Floats


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
        saved=np.zeros(k),
    )


@numba.njit(cache=True)
def favourable_below(
    choices: Choices,
    special: Specialised,
    nodes: Nodes,
    low: Floats,
    high: Floats,
    most_nodes: int,
    assignments: Integers,
    bounds: Floats,
) -> tuple[int, int, bool]:
    """As :func:`below`, for what may be favourable only."""
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
                    remaining = most_steps - steps[depth]
                    room = _room(choices, nodes, depth, highest, remaining)
                    alive = room > -np.inf and (
                        narrow_again(
                            special,
                            depth,
                            nodes.open_options[depth],
                            nodes.costs[depth],
                            room,
                            remaining,
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
                steps[depth + 1] = steps[depth] + choices.changes[feature, option]
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
    room = _room(choices, nodes, depth, highest, remaining)
    bound = lead_bound(choices, cursor, depth)
    listed = low[0] < bound <= high[0]
    affordable = room > -np.inf
    if affordable and cursor.sums.shape[1] > 1:
        affordable, listed, bound = by_query(choices, cursor, depth, made, low, high)
    if not affordable:
        return False, False, bound
    for feature in range(len(open_options)):
        for option in range(1, open_options.shape[1]):
            if choices.changes[feature, option] > remaining:
                open_options[feature, option] = False
    if narrow(special, depth, open_options, nodes.costs[depth], room, remaining) < special.required:
        return False, False, bound
    listed = listed and depth > 0 and special.here[depth] >= special.required
    return True, listed and possible(choices, cursor), bound


@numba.njit(cache=True)
def _room(choices: Choices, nodes: Nodes, depth: int, highest: float, remaining: int) -> float:
    """What can still be spent at a node; computes what each open option adds at least.

    Minus infinity where what is chosen costs too much already.
    """
    cursor, open_options, costs = nodes.cursor, nodes.open_options[depth], nodes.costs[depth]
    chosen, saved = cursor.chosen, nodes.saved
    for feature in range(len(open_options)):
        cursor.undecided[feature] = _next_open(open_options[feature], 0) >= 0
    for feature in range(len(open_options)):
        if cursor.undecided[feature]:
            own_floor = _relief(choices, nodes, depth, feature)
            for option in range(1, open_options.shape[1]):
                changes = choices.changes[feature, option]
                least = choices.lead_own[feature, option] + changes * own_floor
                # What costs less than nothing is in ``lead_rest`` already.
                costs[feature, option] = max(0.0, changes * choices.floor, least)
    spent = 0.0
    for number in range(depth):
        feature = cursor.member[number]
        option = chosen[feature]
        if option == 0:
            continue
        changes = choices.changes[feature, option]
        cost = choices.lead_own[feature, option]
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            cost += changes * choices.lead_relief[feature, slot, chosen[parent]]
        above = max(changes * choices.floor, cost)
        spent += above
        # What a parent's change can still take off is charged to the parent.
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            if chosen[parent] == 0 and cursor.undecided[parent]:
                for other in range(1, open_options.shape[1]):
                    relief = changes * choices.lead_relief[feature, slot, other]
                    costs[parent, other] += max(relief, changes * choices.floor - above)
    for feature in range(len(open_options)):
        saved[feature] = 0.0
        if cursor.undecided[feature]:
            for option in range(1, open_options.shape[1]):
                if open_options[feature, option]:
                    saved[feature] = max(saved[feature], -costs[feature, option])
    back = 0.0
    for _ in range(remaining):
        place = saved.argmax()
        back += saved[place]
        saved[place] = 0.0
    room = highest - spent - choices.lead_rest
    if room + back < 0.0:
        return -np.inf
    return room + TOLERANCE * (abs(highest) + spent + back)


@numba.njit(cache=True)
def _relief(choices: Choices, nodes: Nodes, depth: int, feature: int) -> float:
    """The most that parents can take off a change: those chosen, and those still open."""
    chosen, open_options = nodes.cursor.chosen, nodes.open_options[depth]
    relief = 0.0
    for slot in range(choices.parents.shape[1]):
        parent = choices.parents[feature, slot]
        if parent < 0:
            break
        if chosen[parent] > 0:
            relief += choices.lead_relief[feature, slot, chosen[parent]]
        else:
            least = 0.0
            for option in range(1, open_options.shape[1]):
                if open_options[parent, option]:
                    least = min(least, choices.lead_relief[feature, slot, option])
            relief += least
    return relief


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


@numba.njit(cache=True)
def relaxed_solutions(
    choices: Choices, special: Specialised, nodes: Nodes, n_prices: int
) -> NDArray[np.int64]:
    """Assignments ``(n_prices, K)`` that a relaxation takes for cheap, at falling prices."""
    # A depth that is no constant: numba compiles everything below a second time for one that is.
    depth = nodes.cursor.depth[0]
    open_options, costs = nodes.open_options[depth].copy(), nodes.costs[depth]
    remaining = choices.max_steps.max()
    _room(choices, nodes, depth, np.inf, remaining)
    narrow(special, depth, open_options, costs, np.inf, remaining)
    return worth_taking(special.potential[depth], costs, open_options, remaining, n_prices)
