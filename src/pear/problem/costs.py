"""What a change costs a person: the paper's cost correlation structure.

The cost of changing feature k in state s is (paper, eqn. cost, with the settings behind
its tables)::

    max(floor, w_k |s'_k - s_k| + sum over parents j of w_jk (offset + s_j))

It is linear in w inside the floor, so every (state, move) has a feature vector φ and its
cost is ``max(floor, φ·w)``. Weights are one per feature, then one per edge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidProblem, InvalidSetting
from pear.problem.actions import ActionSpace
from pear.problem.features import FeatureSpace, States

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
        for parent, child in self.edges:
            self.space.index(parent)
            self.space.index(child)
        if len(set(self.edges)) != len(self.edges):
            raise InvalidProblem("the cost graph lists an edge twice")
        graph = nx.DiGraph(list(self.edges))
        if not nx.is_directed_acyclic_graph(graph):
            cycle = [edge[0] for edge in nx.find_cycle(graph)]
            raise InvalidProblem(
                f"the cost graph has a cycle: {' -> '.join([*cycle, cycle[0]])}; remove one of its edges"
            )
        if self.floor is not None and not np.isfinite(self.floor):
            raise InvalidProblem(f"'floor' must be a number or left out (got {self.floor!r})")

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
        feature = self.space.features[column]
        if feature.is_categorical and not feature.levels:
            return np.ones(np.broadcast(before, after).shape)
        if feature.is_categorical:
            size = np.ones(np.broadcast(before, after).shape)
        else:
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
        return self.floored(self.features(states, actions, moves) @ weights.T)

    def sequence_features(self, start: Floats, actions: ActionSpace, moves: Any) -> Floats:
        """Cost features of each step of a sequence from one state, shape ``(length, n_weights)``."""
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

    def check_weights(self, weights: Any) -> Floats:
        """Weights as an array of ``(n_weights,)`` or ``(s, n_weights)``, or a clear refusal."""
        array = np.asarray(weights, float)
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

        For one seed the removals are nested, as the corruption experiment needs.
        """
        if not 0 <= share <= 1:
            raise InvalidSetting(f"'share' must be between 0 and 1 (got {share!r})")
        order = np.random.default_rng(seed).permutation(len(self.edges))
        removed = set(order[: round(share * len(self.edges))].tolist())
        return replace(self, edges=tuple(e for i, e in enumerate(self.edges) if i not in removed))

    def positions_in(self, other: CostGraph) -> NDArray[np.intp]:
        """Where this graph's weights stand in a larger graph's weight vector."""
        place = {name: i for i, name in enumerate(other.weight_names)}
        return np.array([place[name] for name in self.weight_names], np.intp)

    def to_networkx(self) -> Any:
        """The graph as a networkx DiGraph over feature names."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.space.names)
        graph.add_edges_from(self.edges)
        return graph

    @classmethod
    def from_networkx(cls, space: FeatureSpace, graph: Any, **settings: Any) -> CostGraph:
        """A cost graph from a networkx DiGraph over feature names."""
        return cls(space, tuple((str(a), str(b)) for a, b in graph.edges()), **settings)

    def to_dot(self) -> str:
        """The graph in Graphviz DOT."""
        lines = [
            f'  "{feature.name}" [label="{feature.words}"];' for feature in self.space.features
        ]
        lines += [f'  "{parent}" -> "{child}";' for parent, child in self.edges]
        return "\n".join(["digraph costs {", *lines, "}"]) + "\n"


def walk(start: Floats, actions: ActionSpace, moves: Any) -> States:
    """The states a sequence goes through, the start first, shape ``(length + 1, d)``."""
    states = [np.asarray(start, float)]
    for move in np.asarray(moves, np.intp):
        states.append(actions.apply(states[-1][None], np.array([move]))[0])
    return np.array(states)


def costs_under(features: Floats, weights: Floats, floor: float | None) -> Floats:
    """Cost of a sequence with step features ``(length, p)`` under samples ``(s, p)``: ``(s,)``."""
    linear = features @ np.atleast_2d(weights).T
    return (linear if floor is None else np.maximum(linear, floor)).sum(axis=0)
