"""What is known about every tree: nodes and branches in arrays, one tree per person."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NONE = -1
"""No node, no action."""


@dataclass(frozen=True)
class Trees:
    """B trees of at most N nodes over A actions (the m moves, then STOP).

    Per node, shape ``(B, N)``: ``parent``, ``move`` that led here, ``depth``, ``cost`` of the
    way here, ``score``, ``favourable``; ``states`` ``(B, N, d)``; ``memory`` ``(B, N, h)`` is
    the evaluator's. Per branch, shape ``(B, N, A)``: ``legal``, ``prior``, ``bonus``,
    ``visits``, ``totals`` (of backed-up rewards) and ``child``. ``size`` ``(B,)`` counts nodes.

    Node 0 is the start. A child's number is larger than its parent's.
    """

    states: Floats
    parent: NDArray[np.int32]
    move: NDArray[np.int32]
    depth: NDArray[np.int32]
    cost: Floats
    score: Floats
    favourable: NDArray[np.bool_]
    memory: NDArray[np.float32]
    legal: NDArray[np.bool_]
    prior: Floats
    bonus: Floats
    visits: NDArray[np.int32]
    totals: Floats
    child: NDArray[np.int32]
    size: NDArray[np.int64]

    @classmethod
    def empty(cls, people: int, nodes: int, width: int, actions: int, memory: int) -> Trees:
        """Trees without any node yet."""
        per_node, per_branch = (people, nodes), (people, nodes, actions)
        return cls(
            states=np.zeros((*per_node, width)),
            parent=np.full(per_node, NONE, np.int32),
            move=np.full(per_node, NONE, np.int32),
            depth=np.zeros(per_node, np.int32),
            cost=np.zeros(per_node),
            score=np.zeros(per_node),
            favourable=np.zeros(per_node, bool),
            memory=np.zeros((*per_node, memory), np.float32),
            legal=np.zeros(per_branch, bool),
            prior=np.zeros(per_branch),
            bonus=np.zeros(per_branch),
            visits=np.zeros(per_branch, np.int32),
            totals=np.zeros(per_branch),
            child=np.full(per_branch, NONE, np.int32),
            size=np.zeros(people, np.int64),
        )

    @property
    def stop(self) -> int:
        """The number of the action STOP."""
        return int(self.child.shape[2]) - 1

    def node_visits(self, people: NDArray[np.intp], nodes: NDArray[np.intp]) -> Floats:
        """Visits of n nodes, the one that created each included, shape ``(n,)``."""
        return np.asarray(1.0 + self.visits[people, nodes].sum(axis=1))

    def way_to(
        self, people: NDArray[np.intp], nodes: NDArray[np.intp], longest: int
    ) -> tuple[NDArray[np.intp], Floats]:
        """Moves ``(n, longest)`` from the start to n nodes and scores ``(n, longest + 1)``.

        Rows shorter than ``longest`` end in -1 and NaN.
        """
        n = len(people)
        moves = np.full((n, longest), NONE, np.intp)
        scores = np.full((n, longest + 1), np.nan)
        rows, here = np.arange(n), np.array(nodes)
        while len(rows):
            depth = self.depth[people[rows], here]
            scores[rows, depth] = self.score[people[rows], here]
            inner = depth > 0
            rows, here, depth = rows[inner], here[inner], depth[inner]
            moves[rows, depth - 1] = self.move[people[rows], here]
            here = self.parent[people[rows], here].astype(np.intp)
        return moves, scores


def bytes_per_node(width: int, actions: int, memory: int) -> int:
    """Memory one node takes, to decide how many people are searched at once."""
    return 8 * width + 4 * memory + 29 + 33 * actions
