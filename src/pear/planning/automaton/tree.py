"""Which moves come next here? One small decision tree, held in plain arrays.

scikit-learn grows it; its thresholds are then rounded to the shortest number that splits
the training rows in the same way, so that what is shown to a person is what is decided by.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from pear.arrays import Floats, Indices
from pear.errors import InvalidData

STOP = -1
"""Stands for "nothing more to do" among the moves a tree chooses from."""


@dataclass(frozen=True)
class MoveTree:
    """A decision tree with q nodes over c moves; node 0 is its root.

    ``column`` ``(q,)`` is the input a node splits on, -1 at a leaf; rows with a value of at
    most ``threshold`` ``(q,)`` go to ``left`` ``(q,)``, the others to ``right`` ``(q,)``.
    ``moves`` ``(c,)`` are move numbers or STOP; ``counts`` ``(q, c)`` how often each was
    next among the training rows that came to the node.
    """

    column: Indices
    threshold: Floats
    left: Indices
    right: Indices
    moves: Indices
    counts: Indices

    @cached_property
    def parent(self) -> Indices:
        """The node above each, -1 for the root, shape ``(q,)``."""
        above = np.full(len(self.column), -1, np.intp)
        inner = np.flatnonzero(self.column >= 0)
        above[self.left[inner]] = inner
        above[self.right[inner]] = inner
        return above

    def leaves(self, inputs: Floats) -> Indices:
        """The leaf each row of inputs ``(n, columns)`` comes to, shape ``(n,)``."""
        at = np.zeros(len(inputs), np.intp)
        moving = np.flatnonzero(self.column[at] >= 0)
        while len(moving):
            here = at[moving]
            low = inputs[moving, self.column[here]] <= self.threshold[here]
            at[moving] = np.where(low, self.left[here], self.right[here])
            moving = moving[self.column[at[moving]] >= 0]
        return at

    def path(self, node: int) -> list[int]:
        """Nodes from the root to a node, both included."""
        way = [int(node)]
        while self.parent[way[-1]] >= 0:
            way.append(int(self.parent[way[-1]]))
        return way[::-1]

    def spread(self, nodes: Indices, n_moves: int) -> Floats:
        """How often each move was next at tree nodes ``(n,)``, STOP left out: ``(n, n_moves)``."""
        table = np.zeros((len(nodes), n_moves))
        real = self.moves != STOP
        table[:, self.moves[real]] = self.counts[nodes][:, real]
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: Any, n_columns: int, n_moves: int) -> MoveTree:
        """The tree stored by :meth:`to_dict`; a damaged one is refused."""
        try:
            arrays = {
                name: np.asarray(data[name], float if name == "threshold" else np.intp)
                for name in cls.__dataclass_fields__
            }
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidData(f"a tree of the automaton cannot be read: {error!r}") from None
        tree = cls(**arrays)
        nodes = len(tree.column) if tree.column.ndim == 1 else 0
        ordered = nodes > 0 and all(
            getattr(tree, name).shape == (nodes,) for name in ("threshold", "left", "right")
        )
        # Children after their parents: descending always ends.
        inner = np.flatnonzero(tree.column >= 0) if ordered else np.zeros(0, np.intp)
        fits = (
            ordered
            and tree.moves.ndim == 1
            and tree.counts.shape == (nodes, len(tree.moves))
            and bool((tree.column < n_columns).all())
            and bool(((tree.moves >= STOP) & (tree.moves < n_moves)).all())
            and bool((tree.counts >= 0).all())
            and bool(np.isfinite(tree.threshold).all())
            and all(
                bool(((child[inner] > inner) & (child[inner] < nodes)).all())
                for child in (tree.left, tree.right)
            )
        )
        if not fits:
            raise InvalidData(
                "a tree of the automaton does not fit its own arrays or this problem; "
                "train the automaton again"
            )
        return tree


def grow(
    inputs: Floats, moves: Indices, *, max_depth: int, min_people: int, seed: int = 0
) -> MoveTree:
    """A small tree that tells the next moves ``(n,)`` from inputs ``(n, columns)``."""
    known, coded = np.unique(moves, return_inverse=True)
    grown = DecisionTreeClassifier(
        max_depth=max_depth, min_samples_leaf=min(min_people, len(moves)), random_state=seed
    )
    with warnings.catch_warnings():
        # Many moves and few people is the usual case here, not a regression in disguise.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        found = grown.fit(inputs, coded).tree_
    column = np.where(found.children_left >= 0, found.feature, -1).astype(np.intp)
    threshold = np.where(column >= 0, found.threshold, 0.0)
    tree = MoveTree(
        column=column,
        threshold=threshold,
        left=found.children_left.astype(np.intp),
        right=found.children_right.astype(np.intp),
        moves=known.astype(np.intp),
        counts=np.zeros((len(column), len(known)), np.intp),
    )
    rows = {0: np.arange(len(inputs))}
    for node in range(len(column)):
        here = rows.pop(node)
        np.add.at(tree.counts[node], coded[here], 1)
        if column[node] < 0:
            continue
        values = inputs[here, column[node]]
        # scikit-learn splits on values in single precision.
        low = values.astype(np.float32) <= threshold[node]
        threshold[node] = shortest_between(float(values[low].max()), float(values[~low].min()))
        rows[int(tree.left[node])], rows[int(tree.right[node])] = here[low], here[~low]
    return tree


def shortest_between(low: float, high: float) -> float:
    """The number with the fewest digits that is at least ``low`` and below ``high``.

    >>> shortest_between(38.0, 41.5), shortest_between(0.4137, 0.4561), shortest_between(3, 4)
    (40.0, 0.42, 3.0)
    """
    if not low < high:
        return low
    largest = max(abs(low), abs(high), 1e-12)
    for power in range(int(np.ceil(np.log10(largest))), -13, -1):
        if low <= 0.0 < high:
            return 0.0
        step = 10.0**power
        number = float(round(np.ceil(low / step) * step, max(0, -power)))
        if low <= number < high:
            return number
    return low
