"""What does a set of changes cost in its best order?

With one change per feature the state after a subset of the changes is determined by the subset:
dynamic programming over subsets, in compiled code. With repeated changes it is found together with
the chains of each feature.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numba
import numpy as np

from pear.arrays import Floats, Indices
from pear.planning.exact.chains import EQUAL, Reach, Target, best_sequence
from pear.planning.exact.options import Choices, Options
from pear.problem import Limits


def equal(one: float, other: float) -> bool:
    """Whether two costs are the same but for rounding.

    >>> equal(4.0, 4.0 + 1e-12), equal(1e-9, 2e-9), equal(np.inf, 4.0)
    (True, False, False)
    """
    return bool(one == other or abs(one - other) <= EQUAL * min(abs(one), abs(other)))


@dataclass(frozen=True)
class Incumbent:
    """The best plan so far; compared by cost, then steps, then ``rank``: earlier moves first."""

    cost: float
    steps: int
    rank: tuple[int, ...]
    moves: tuple[int, ...]
    score: float


@dataclass
class Pricing:
    """Prices assignments of one person: the cheapest legal order of their changes.

    ``limits`` and ``weights`` ``(Q, S, p)`` are those of the queries.
    """

    options: Options
    weights: Floats
    limits: tuple[Limits, ...]
    _memory: dict[Limits, Reach] = field(default_factory=dict)

    def cheapest(
        self, assignment: Indices, queries: Indices, ceilings: Floats
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Cost and moves in their cheapest order, for each of some queries.

        Infinite where no order is legal. Costs that are surely above ``ceilings``, one for each of
        these queries, may come back infinite.
        """
        options = self.options
        if options.single_moves:
            # Filled by compiled code: numba is slow to hand out new arrays.
            costs = np.empty(len(queries))
            sequences = np.empty((len(queries), len(assignment)), np.int64)
            length = best_orders(
                options.choices, options.moves, assignment, queries, costs, sequences
            )
            found = zip(costs.tolist(), sequences[:, :length].tolist(), strict=True)
            return [(cost, tuple(moves)) for cost, moves in found]
        features = np.flatnonzero(assignment)
        targets = [
            Target(
                int(options.columns[feature]),
                float(options.values[feature, assignment[feature]]),
                int(options.choices.changes[feature, assignment[feature]]),
            )
            for feature in features
        ]
        priced = []
        for query, ceiling in zip(queries.tolist(), ceilings.tolist(), strict=True):
            limits = self.limits[query]
            reach = self._memory.setdefault(limits, Reach(options.problem, options.start, limits))
            priced.append(best_sequence(reach, targets, self.weights[query], ceiling))
        return priced


@numba.njit(cache=True)
def best_orders(
    choices: Choices,
    moves: Indices,
    chosen: Indices,
    queries: Indices,
    costs: Floats,
    sequences: Indices,
) -> int:
    """Fill in least mean floored costs ``(m,)`` of the L changes of an assignment, and in which
    order they are made: moves ``(m, L)``. Returns L.

    Of equally cheap orders the one with the earliest moves is taken. Costs are infinite where no
    order is legal.
    """
    # By the numbers of their moves, which decide between equal orders.
    features = np.flatnonzero(chosen)
    for last in range(1, len(features)):
        place, feature = last, features[last]
        move = moves[feature, chosen[feature]]
        while place > 0 and moves[features[place - 1], chosen[features[place - 1]]] > move:
            features[place] = features[place - 1]
            place -= 1
        features[place] = feature
    length, subsets = len(features), 1 << len(features)
    to_go, choice = np.empty(subsets), np.empty(subsets, np.int64)
    for number in range(len(queries)):
        to_go[subsets - 1] = 0.0
        for done in range(subsets - 2, -1, -1):
            least, first = np.inf, 0
            for place in range(length):
                if done >> place & 1 or not _may_follow(choices, features, chosen, done, place):
                    continue
                cost = _step_cost(choices, features, chosen, done, place, queries[number])
                cost += to_go[done | 1 << place]
                if cost < least - EQUAL * min(abs(cost), abs(least)) or (
                    least == np.inf and cost < np.inf
                ):
                    least, first = cost, place
            to_go[done], choice[done] = least, first
        costs[number] = to_go[0]
        done = 0
        for step in range(length):
            feature = features[choice[done]]
            sequences[number, step] = moves[feature, chosen[feature]]
            done |= 1 << choice[done]
    return length


@numba.njit(cache=True)
def _step_cost(
    choices: Choices,
    features: Indices,
    chosen: Indices,
    done: int,
    place: int,
    query: int,
) -> float:
    """Mean floored cost of one change after the subset ``done`` of the others."""
    feature = features[place]
    total = 0.0
    for row in range(query * choices.n_samples, (query + 1) * choices.n_samples):
        linear = choices.alone[feature, chosen[feature], row]
        for slot in range(choices.parents.shape[1]):
            parent = choices.parents[feature, slot]
            if parent < 0:
                break
            option = 0
            for other in range(len(features)):
                if done >> other & 1 and features[other] == parent:
                    option = chosen[parent]
            linear += choices.beside[feature, slot, option, row]
        total += max(choices.floor, linear)
    return total / choices.n_samples


@numba.njit(cache=True)
def _may_follow(
    choices: Choices,
    features: Indices,
    chosen: Indices,
    done: int,
    place: int,
) -> bool:
    """Whether a change has what it requires after the subset ``done`` of the others."""
    for number in range(len(choices.needy)):
        if choices.needy[number] != features[place]:
            continue
        if not choices.uses[number, chosen[features[place]]]:
            continue
        option = 0
        for other in range(len(features)):
            if done >> other & 1 and features[other] == choices.needed[number]:
                option = chosen[features[other]]
        if not choices.meets[number, option]:
            return False
    return True
