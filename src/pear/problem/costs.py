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

from pear.arrays import Flags, Floats, Indices
from pear.errors import InvalidProblem, InvalidSetting
from pear.problem.actions import ActionSpace
from pear.problem.features import FeatureSpace, States
from pear.problem.limits import NO_LIMITS, Limits
from pear.problem.values import as_tuple, is_finite, is_whole, kind_of, refusal_at, shown


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
                raise refusal_at(key, f"'{key}' must be a number, or none (got {shown(setting)})")
        if not is_finite(self.offset):
            raise refusal_at("offset", f"'offset' must be a number (got {shown(self.offset)})")

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
        return self.counted(
            np.abs(
                self.space.scale_column(column, np.asarray(after, float))
                - self.space.scale_column(column, np.asarray(before, float))
            )
        )

    def counted(self, sizes: Floats) -> Floats:
        """What changes of numbers count as, whose scaled sizes these are."""
        return (
            sizes if self.zero_change is None else np.where(sizes == 0.0, self.zero_change, sizes)
        )

    def change_features(self, states: States, columns: Indices, after: Floats) -> Floats:
        """Cost features φ of n changes, each of one column ``(n,)`` to a value: ``(n, p)``."""
        states, columns, after = np.atleast_2d(states), np.asarray(columns), np.asarray(after)
        phi = np.zeros((len(columns), self.n_weights))
        for column in np.unique(columns):
            here = np.flatnonzero(columns == column)
            phi[here, column] = self.change(int(column), states[here, column], after[here])
            for parent, position in self.parents[column]:
                phi[here, position] = self.offset + self.space.scale_column(
                    parent, states[here, parent]
                )
        return phi

    def features(self, states: States, actions: ActionSpace, moves: Indices) -> Floats:
        """Cost features φ of n (state, move) pairs, shape ``(n, p)``."""
        states, moves = np.atleast_2d(states), np.asarray(moves, np.intp)
        columns = actions.feature_of[moves]
        before = states[np.arange(len(moves)), columns]
        after = np.where(
            actions.adds[moves], before + actions.argument_of[moves], actions.argument_of[moves]
        )
        return self.change_features(states, columns, after)

    def floored(self, linear: Floats) -> Floats:
        """Costs from φ·w."""
        return linear if self.floor is None else np.maximum(linear, self.floor)

    def costs(
        self, states: States, actions: ActionSpace, moves: Indices, weights: Floats
    ) -> Floats:
        """Costs of n (state, move) pairs.

        Shape ``(n,)`` for one weight vector ``(p,)``, ``(n, s)`` for samples ``(s, p)`` shared by
        all pairs, or ``(n, s, p)``, own ones for each pair.
        """
        phi = self.features(states, actions, moves)
        if np.ndim(weights) == 3:
            return self.floored(np.einsum("np,nsp->ns", phi, weights))
        return self.floored(phi @ self.check_weights(weights).T)

    def all_costs(self, states: States, actions: ActionSpace, weights: Floats) -> Floats:
        """Mean floored cost of every move, ``(n, m)``, under each state's samples ``(n, s, p)``.

        The same as :meth:`costs` of all pairs, without a φ for each of them.
        """
        results = actions.results(states)
        costs = np.empty(results.shape)
        for column in actions.actionable:
            moves = np.flatnonzero(actions.feature_of == column)
            change = self.change(column, states[:, [column]], results[:, moves])
            fixed = np.zeros(weights.shape[:2])
            for parent, position in self.parents[column]:
                level = self.offset + self.space.scale_column(parent, states[:, parent])
                fixed += weights[:, :, position] * level[:, None]
            linear = weights[:, :, column, None] * change[:, None, :] + fixed[:, :, None]
            costs[:, moves] = self.floored(linear).mean(axis=1)
        return costs

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
        features = self.sequence_features(start, actions, moves)
        costs = costs_under(features, weights, self.floor)
        return costs if weights.ndim == 2 else costs[0]

    def sequence_costs(
        self, start: Floats, actions: ActionSpace, moves: Indices, weights: Floats
    ) -> Floats:
        """Costs ``(n, s)`` of sequences ``(n, L)``, -1 after the end, under samples ``(s, p)``."""
        states = np.repeat(np.asarray(start, float)[None], len(moves), axis=0)
        costs = np.zeros((len(moves), len(weights)))
        for step in moves.T:
            going = np.flatnonzero(step >= 0)
            costs[going] += self.costs(states[going], actions, step[going], weights)
            states[going] = actions.apply(states[going], step[going])
        return costs

    def change_costs(self, start: Floats, end: Floats, order: Any, weights: Floats) -> Floats:
        """Mean floored cost of each change when columns take the values of ``end`` in an order.

        For values that are not arguments of an action. ``start`` and ``end`` ``(d,)``; ``order``
        ``(length,)`` are columns; ``weights`` ``(p,)`` or samples ``(s, p)``. Shape ``(length,)``.
        """
        columns, end = np.asarray(order, np.intp), np.asarray(end, float)
        states = np.repeat(np.array(start, float)[None], len(columns), axis=0)
        for place, column in enumerate(columns):
            states[place + 1 :, column] = end[column]
        phi = self.change_features(states, columns, end[columns])
        return np.asarray(self.floored(phi @ np.atleast_2d(weights).T).mean(axis=1))

    def check_weights(self, weights: Any) -> Floats:
        """Weights as an array of ``(n_weights,)`` or ``(s, n_weights)``, checked."""
        try:
            array = np.asarray(weights, float)
        except (TypeError, ValueError):
            raise InvalidSetting(
                f"'weights' must be numbers (got {kind_of(weights)}); "
                "see Problem.weights for weights by name"
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

    def positions_in(self, other: CostGraph) -> Indices:
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


NO_MOVE = -1
"""Stands for "no step here", so that sequences of different lengths share an array."""


@dataclass(frozen=True)
class Rollout:
    """n sequences carried out step by step.

    ``states`` ``(n, length + 1, d)`` are the states gone through; ``features``
    ``(n, length, p)`` the cost features of each step, zero where there is none; ``taken``
    ``(n, length)`` the steps carried out; ``illegal`` ``(n,)`` how many were not allowed and
    left out.
    """

    states: Floats
    features: Floats
    taken: Flags
    illegal: Indices
    graph: CostGraph

    @property
    def final(self) -> States:
        """States after the last step, shape ``(n, d)``."""
        return self.states[:, -1]

    def costs(self, weights: Floats) -> Floats:
        """Mean floored cost of each sequence, ``(n,)``.

        ``weights`` is ``(p,)`` or ``(s, p)`` for all, or ``(n, s, p)`` with own ones for each.
        """
        weights = np.asarray(weights, float)
        weights = weights if weights.ndim == 3 else weights.reshape(1, -1, weights.shape[-1])
        linear = np.matmul(self.features, np.swapaxes(weights, 1, 2))
        floored = self.graph.floored(linear) * self.taken[:, :, None]
        return np.asarray(floored.sum(axis=1).mean(axis=1))


def roll_out(
    graph: CostGraph,
    actions: ActionSpace,
    starts: States,
    moves: Indices,
    limits: Limits = NO_LIMITS,
) -> Rollout:
    """Carry out n sequences of moves ``(n, length)`` from n states, or from one ``(d,)``.

    What is not allowed is left out.
    """
    moves = np.asarray(moves, np.intp)
    n, length = moves.shape
    current = np.array(np.broadcast_to(starts, (n, len(graph.space))), float)
    states = np.empty((n, length + 1, len(graph.space)))
    features = np.zeros((n, length, graph.n_weights))
    taken = np.zeros((n, length), bool)
    states[:, 0] = current
    for position in range(length):
        wanted = np.flatnonzero(moves[:, position] != NO_MOVE)
        chosen = moves[wanted, position]
        legal = actions.allowed(current[wanted], limits)[np.arange(len(wanted)), chosen]
        rows, chosen = wanted[legal], chosen[legal]
        features[rows, position] = graph.features(current[rows], actions, chosen)
        current[rows] = actions.apply(current[rows], chosen)
        taken[rows, position] = True
        states[:, position + 1] = current
    illegal = (moves != NO_MOVE).sum(axis=1) - taken.sum(axis=1)
    return Rollout(states, features, taken, illegal, graph)


def as_sequence(moves: Indices) -> tuple[int, ...]:
    """One row of moves without its gaps."""
    return tuple(int(move) for move in moves if move != NO_MOVE)


def padded(sequences: Sequence[Sequence[int]]) -> Indices:
    """Sequences of different lengths as one array, shape ``(n, longest)``."""
    width = max([len(sequence) for sequence in sequences], default=0)
    moves = np.full((len(sequences), width), NO_MOVE, np.intp)
    for row, sequence in enumerate(sequences):
        moves[row, : len(sequence)] = sequence
    return moves


def costs_under(
    features: Floats, weights: Floats, floor: float | None, starts: Indices | None = None
) -> Floats:
    """Costs of plans from the cost features of their steps, ``(length, p)``: ``(s,)``.

    ``weights`` are samples ``(s, p)``. With ``starts`` ``(k,)``, the steps of k plans stand one
    after the other and each plan's begin there: ``(s, k)``.
    """
    linear = features @ np.atleast_2d(weights).T
    if floor is not None:
        np.maximum(linear, floor, out=linear)
    if starts is None:
        return np.asarray(linear.sum(axis=0))
    return np.asarray(np.add.reduceat(linear, starts, axis=0).T)


def as_samples(weights: Floats, people: int) -> Floats:
    """Weights of n people as samples, shape ``(n, s, p)``.

    ``weights`` is ``(p,)`` for everybody, ``(n, p)`` one vector each, ``(n, s, p)``, or
    ``(1, s, p)`` for everybody.

    >>> as_samples(np.ones(3), 2).shape
    (2, 1, 3)
    """
    weights = np.asarray(weights, float)
    if weights.ndim == 1:
        return np.broadcast_to(weights, (people, 1, len(weights)))
    if weights.ndim == 3 and len(weights) == 1:
        return np.broadcast_to(weights, (people, *weights.shape[1:]))
    if weights.ndim not in (2, 3) or len(weights) != people:
        raise InvalidSetting(
            f"'weights' must be one vector, one per person, or samples for each of {people} people "
            f"(got shape {weights.shape})"
        )
    return weights[:, None, :] if weights.ndim == 2 else weights


def checked_edges(space: FeatureSpace, edges: Any) -> tuple[tuple[str, str], ...]:
    """Edges as pairs of feature names, once each and without a cycle."""
    pairs, given = [], as_tuple(edges)
    if given is None:
        raise refusal_at(
            "edges", f"'edges' must be a list of (parent, child) pairs (got {edges!r})"
        )
    for edge in given:
        pair = as_tuple(edge)
        if pair is None or len(pair) != 2:
            raise refusal_at("edges", f"an edge must be a pair of parent and child (got {edge!r})")
        for name in pair:
            try:
                space.index(name)
            except InvalidProblem as error:
                raise refusal_at("edges", f"the edge {list(pair)}: {error}") from None
        pairs.append((pair[0], pair[1]))
    twice = [pair for pair in pairs if pairs.count(pair) > 1]
    if twice:
        raise refusal_at(
            "edges", f"the cost graph lists the edge {list(twice[0])} twice; remove one of them"
        )
    graph = nx.DiGraph(pairs)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        around = " -> ".join([*cycle, cycle[0]])
        raise refusal_at("edges", f"the cost graph has a cycle: {around}; remove one of its edges")
    return tuple(pairs)
