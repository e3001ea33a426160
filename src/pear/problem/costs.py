"""What a change costs a person: the paper's cost correlation structure.

The cost of changing feature k in state s is (paper, eqn. cost, with the settings behind
its tables)::

    max(floor, w_k |s'_k - s_k| + sum over parents j of w_jk (offset + s_j))

It is linear in w inside the floor, so every (state, move) has a feature vector φ and its
cost is ``max(floor, φ·w)``. Weights are one per feature, then one per edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidProblem, InvalidSetting
from pear.problem.actions import ActionSpace
from pear.problem.checks import at_key, is_finite, is_whole, names_tuple, shown
from pear.problem.features import FeatureSpace, States
from pear.problem.limits import NO_LIMITS, Limits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CostGraph:
    """Which features make which changes harder.

    ``edges`` are (parent, child) names. ``floor`` is the least a step can cost (None: no
    floor). ``zero_change`` is what a scaled change of exactly 0 counts as (None: 0).

    >>> from pear.problem.features import Feature
    >>> space = FeatureSpace((Feature("a"), Feature("b")))
    >>> CostGraph(space, (("a", "b"),)).weight_names
    ('a', 'b', 'a->b')
    """

    space: FeatureSpace
    edges: tuple[tuple[str, str], ...] = ()
    floor: float | None = 1.0
    offset: float = 1.0
    zero_change: float | None = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", checked_edges(self.space, self.edges))
        for key in ("floor", "zero_change"):
            setting = getattr(self, key)
            if setting is not None and not is_finite(setting):
                raise at_key(key, f"'{key}' must be a number, or none (got {shown(setting)})")
        if not is_finite(self.offset):
            raise at_key("offset", f"'offset' must be a number (got {shown(self.offset)})")

    @property
    def n_weights(self) -> int:
        return len(self.space) + len(self.edges)

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """Names of the weights: features, then ``parent->child``."""
        return (*self.space.names, *(f"{parent}->{child}" for parent, child in self.edges))

    @cached_property
    def parents(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each feature column: (parent column, weight position) of its edges."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(len(self.space))]
        for number, (parent, child) in enumerate(self.edges):
            found[self.space.index(child)].append(
                (self.space.index(parent), len(self.space) + number)
            )
        return tuple(tuple(pairs) for pairs in found)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Feature columns so that parents come before their children."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.space.names)
        graph.add_edges_from(self.edges)
        key = self.space.index
        return tuple(
            self.space.index(n) for n in nx.lexicographical_topological_sort(graph, key=key)
        )

    @property
    def least(self) -> float:
        """The floor as a number: minus infinity where there is none."""
        return -np.inf if self.floor is None else float(self.floor)

    def change(self, column: int, before: Floats, after: Floats) -> Floats:
        """What a change of one feature counts as, |s'_k - s_k|, for values of any shape."""
        if self.space.features[column].is_categorical:
            return np.ones(np.broadcast(before, after).shape)
        size = np.abs(
            self.space.scale_column(column, np.asarray(after, float))
            - self.space.scale_column(column, np.asarray(before, float))
        )
        if self.zero_change is not None:
            size = np.where(size == 0.0, self.zero_change, size)
        return size

    def features(self, states: States, actions: ActionSpace, moves: NDArray[np.intp]) -> Floats:
        """Cost features φ of n (state, move) pairs, shape ``(n, n_weights)``."""
        states, moves = np.atleast_2d(states), np.asarray(moves, np.intp)
        phi = np.zeros((len(moves), self.n_weights))
        columns = actions.feature_of[moves]
        rows = np.arange(len(moves))
        before = states[rows, columns]
        after = np.where(
            actions.adds[moves], before + actions.argument_of[moves], actions.argument_of[moves]
        )
        for column in np.unique(columns):
            here = rows[columns == column]
            phi[here, column] = self.change(int(column), before[here], after[here])
            for parent, position in self.parents[column]:
                phi[here, position] = self.offset + self.space.scale_column(
                    parent, states[here, parent]
                )
        return phi

    def floored(self, linear: Floats) -> Floats:
        """Costs from φ·w."""
        return linear if self.floor is None else np.maximum(linear, self.floor)

    def costs(
        self, states: States, actions: ActionSpace, moves: NDArray[np.intp], weights: Floats
    ) -> Floats:
        """Costs of n (state, move) pairs: ``(n,)`` for one weight vector, ``(n, s)`` for s."""
        weights = self.check_weights(weights)
        linear = self.features(states, actions, moves) @ weights.T
        return linear if self.floor is None else np.maximum(linear, self.floor, out=linear)

    def sequence_features(self, start: Floats, actions: ActionSpace, moves: Any) -> Floats:
        """Cost features of each step of a sequence, shape ``(length, n_weights)``."""
        moves = np.asarray(moves, np.intp)
        if not len(moves):
            return np.zeros((0, self.n_weights))
        return self.features(walk(start, actions, moves)[:-1], actions, moves)

    def sequence_cost(
        self, start: Floats, actions: ActionSpace, moves: Any, weights: Floats
    ) -> Any:
        """Cost of a whole sequence: a number, or ``(s,)`` for s weight vectors."""
        weights = self.check_weights(weights)
        linear = self.sequence_features(start, actions, moves) @ weights.T
        return self.floored(linear).sum(axis=0)

    def best_order(
        self,
        start: Floats,
        actions: ActionSpace,
        moves: Sequence[int],
        weights: Floats,
        limits: Limits = NO_LIMITS,
    ) -> tuple[tuple[int, ...], float]:
        """The moves in their cheapest allowed order and its cost, see :mod:`pear.problem.order`."""
        return best_order(self, start, actions, moves, weights, limits)

    def check_weights(self, weights: Any) -> Floats:
        """Weights as an array of ``(n_weights,)`` or ``(s, n_weights)``, or a clear refusal."""
        try:
            array = np.asarray(weights, float)
        except (TypeError, ValueError):
            raise InvalidSetting(
                f"'weights' must be numbers (got a {type(weights).__name__}); "
                "see Problem.named_weights for weights by name"
            ) from None
        if array.ndim not in (1, 2) or array.shape[-1] != self.n_weights or array.size == 0:
            raise InvalidSetting(
                f"'weights' must have {self.n_weights} entries, one per feature and edge "
                f"(got shape {array.shape})"
            )
        if not np.isfinite(array).all():
            raise InvalidSetting("'weights' must be finite numbers (found NaN or infinity)")
        return array

    def without_edges(self, share: float, seed: int) -> CostGraph:
        """The graph with a share of its edges removed; larger shares remove supersets.

        ``int(share * edges)`` of them, as in the paper's experiments; for one seed the removals
        are nested.
        """
        if not is_finite(share) or not 0 <= share <= 1:
            raise InvalidSetting(f"'share' must be between 0 and 1 (got {share!r})")
        if not is_whole(seed):
            raise InvalidSetting(f"'seed' must be a whole number (got {shown(seed)})")
        order = np.random.default_rng(seed).permutation(len(self.edges))
        removed = set(order[: int(share * len(self.edges))].tolist())
        return replace(self, edges=tuple(e for i, e in enumerate(self.edges) if i not in removed))

    def positions_in(self, other: CostGraph) -> NDArray[np.intp]:
        """Where this graph's weights stand in a larger graph's weight vector."""
        place = {name: i for i, name in enumerate(other.weight_names)}
        absent = [name for name in self.weight_names if name not in place]
        if absent:
            raise InvalidSetting(
                f"the other graph has no weight '{absent[0]}'; give the larger one"
            )
        return np.array([place[name] for name in self.weight_names], np.intp)

    def to_networkx(self) -> Any:
        """The graph as a networkx DiGraph over feature names.

        Edges carry their place in ``position``, since networkx does not keep their order and
        the weights follow it.
        """
        graph = nx.DiGraph()
        graph.add_nodes_from(self.space.names)
        for position, (parent, child) in enumerate(self.edges):
            graph.add_edge(parent, child, position=position)
        return graph

    @classmethod
    def from_networkx(cls, space: FeatureSpace, graph: Any, **settings: Any) -> CostGraph:
        """A cost graph from a networkx DiGraph over feature names.

        >>> from pear.problem.features import Feature
        >>> space = FeatureSpace((Feature("a"), Feature("b")))
        >>> CostGraph.from_networkx(space, nx.DiGraph([("a", "b")])).edges
        (('a', 'b'),)
        """
        if not graph.is_directed():
            raise InvalidProblem("the cost graph must be directed; give a networkx DiGraph")
        edges = sorted(graph.edges(data="position", default=0), key=lambda edge: edge[2])
        return cls(space, tuple((parent, child) for parent, child, _ in edges), **settings)


def walk(start: Floats, actions: ActionSpace, moves: Any) -> States:
    """The states a sequence goes through, the start first, shape ``(length + 1, d)``."""
    states = [np.asarray(start, float)]
    for move in np.asarray(moves, np.intp):
        states.append(actions.apply(states[-1][None], np.array([move]))[0])
    return np.array(states)


def costs_under(features: Floats, weights: Floats, floor: float | None) -> Floats:
    """Cost of a sequence with step features ``(length, p)`` under samples ``(s, p)``: ``(s,)``."""
    linear = features @ np.atleast_2d(weights).T
    return np.asarray((linear if floor is None else np.maximum(linear, floor)).sum(axis=0))


def checked_edges(space: FeatureSpace, edges: Any) -> tuple[tuple[str, str], ...]:
    """Edges as pairs of feature names, once each and without a cycle."""
    pairs = []
    for edge in edges:
        pair = names_tuple(edge)
        if pair is None or len(pair) != 2:
            raise at_key("edges", f"an edge must be a pair of parent and child (got {edge!r})")
        for name in pair:
            try:
                space.index(name)
            except InvalidProblem as error:
                raise at_key("edges", f"the edge {list(pair)}: {error}") from None
        pairs.append((pair[0], pair[1]))
    twice = [pair for pair in pairs if pairs.count(pair) > 1]
    if twice:
        raise at_key(
            "edges", f"the cost graph lists the edge {list(twice[0])} twice; remove one of them"
        )
    graph = nx.DiGraph(pairs)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        around = " -> ".join([*cycle, cycle[0]])
        raise at_key("edges", f"the cost graph has a cycle: {around}; remove one of its edges")
    return tuple(pairs)


MOST_CHANGES = 14
"""More changes than this would need a table of over 16,384 subsets."""


def best_order(
    costs: CostGraph,
    start: NDArray[np.float64],
    actions: ActionSpace,
    moves: Sequence[int],
    weights: NDArray[np.float64],
    limits: Limits = NO_LIMITS,
) -> tuple[tuple[int, ...], float]:
    """The moves in their cheapest order from ``start`` ``(d,)``, and what that costs.

    ``weights`` is ``(p,)``, or samples ``(s, p)``: then the mean floored cost counts. Moves
    of one feature stay in the order given. Among equally cheap orders, the one with the
    smaller move numbers first. Where no order is allowed: no moves, and infinity.

    >>> from pear.problem import Action, CostGraph, Feature, FeatureSpace
    >>> space = FeatureSpace((Feature("a"), Feature("b"), Feature("c")))
    >>> set_to_5 = tuple(Action(f"set {n}", n, "set", (5.0,)) for n in space.names)
    >>> actions = ActionSpace(space, set_to_5)
    >>> chain = CostGraph(space, (("a", "b"), ("b", "c")), floor=None, offset=0.0)
    >>> best_order(chain, np.ones(3), actions, [0, 1, 2], np.ones(5))
    ((2, 1, 0), 14.0)
    """
    chosen = np.asarray(moves, np.intp)
    if chosen.ndim != 1 or len(chosen) > MOST_CHANGES:
        raise InvalidSetting(
            f"'moves' must be a list of at most {MOST_CHANGES} moves (got shape {chosen.shape})"
        )
    weights = costs.check_weights(weights)
    n = len(chosen)
    states = subset_states(start, actions, chosen)
    step = (
        np.stack(
            [
                costs.costs(states, actions, np.full(len(states), move), weights)
                .reshape(len(states), -1)
                .mean(axis=1)
                for move in chosen
            ],
            axis=1,
        )
        if n
        else np.zeros((1, 0))
    )
    step[~actions.allowed(states, limits)[:, chosen]] = np.inf
    step[~_next_in_line(actions, chosen)] = np.inf
    # rest[s] is the least cost of the changes that are not in subset s.
    rest = np.full(2**n, np.inf)
    rest[-1] = 0.0
    for subset in range(2**n - 2, -1, -1):
        rest[subset] = min(
            step[subset, i] + rest[subset | 1 << i] for i in range(n) if not subset >> i & 1
        )
    if not np.isfinite(rest[0]):
        return (), np.inf
    subset, order = 0, []
    while subset != 2**n - 1:
        ways = [
            (int(chosen[i]), i)
            for i in range(n)
            if not subset >> i & 1 and step[subset, i] + rest[subset | 1 << i] == rest[subset]
        ]
        move, i = min(ways)
        order.append(move)
        subset |= 1 << i
    return tuple(order), float(rest[0])


def subset_states(
    start: NDArray[np.float64], actions: ActionSpace, moves: NDArray[np.intp]
) -> States:
    """The state after each subset of n moves, shape ``(2**n, d)``; bit i stands for move i.

    Of several moves of one feature, a subset is taken to hold the first ones.
    """
    subsets = np.arange(2 ** len(moves))
    states = np.repeat(np.asarray(start, float)[None], len(subsets), axis=0)
    for column in np.unique(actions.feature_of[moves]):
        chain = np.flatnonzero(actions.feature_of[moves] == column)
        values = [states[0, column]]
        for move in moves[chain]:
            amount = actions.argument_of[move]
            values.append(values[-1] + amount if actions.adds[move] else amount)
        made = np.sum([subsets >> i & 1 for i in chain], axis=0)
        states[:, column] = np.array(values)[made]
    return states


def _next_in_line(actions: ActionSpace, moves: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Where all earlier moves of the same feature are made, and no later one: ``(2**n, n)``."""
    subsets = np.arange(2 ** len(moves))
    ready = np.ones((len(subsets), len(moves)), bool)
    columns = actions.feature_of[moves]
    for i in range(len(moves)):
        for j in np.flatnonzero(columns == columns[i]):
            made = (subsets >> j & 1).astype(bool)
            if j < i:
                ready[:, i] &= made
            elif j > i:
                ready[:, i] &= ~made
    return ready
