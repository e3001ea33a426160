"""Who is searched for, what do their trees hold, and which plans were found?

One tree per person, nodes and branches in arrays. An :class:`Evaluator` says what a new node looks
like before anything below it is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Flags, Floats, Indices
from pear.problem import NO_LIMITS, Limits
from pear.problem.features import States

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
    favourable: Flags
    memory: NDArray[np.float32]
    legal: Flags
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

    def node_visits(self, people: Indices, nodes: Indices) -> Floats:
        """Visits of n nodes, the one that created each included, shape ``(n,)``."""
        return np.asarray(1.0 + self.visits[people, nodes].sum(axis=1))

    def way_to(self, people: Indices, nodes: Indices, longest: int) -> tuple[Indices, Floats]:
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
    """Bytes that one node takes, to decide how many people are searched at once."""
    return 8 * width + 4 * memory + 29 + 33 * actions


@dataclass(frozen=True)
class FoundPlans:
    """n successful plans of at most L moves.

    ``person`` ``(n,)`` is the row of the person in the search, ``moves`` ``(n, L)`` ends in -1,
    ``scores`` ``(n, L + 1)`` in NaN, ``costs`` ``(n,)`` are under the person's weights.
    """

    person: Indices
    moves: Indices
    scores: Floats
    costs: Floats

    def __len__(self) -> int:
        return len(self.person)

    @property
    def lengths(self) -> Indices:
        return np.asarray((self.moves >= 0).sum(axis=1))

    @classmethod
    def none(cls, longest: int) -> FoundPlans:
        return cls(
            np.zeros(0, np.intp),
            np.zeros((0, longest), np.intp),
            np.zeros((0, longest + 1)),
            np.zeros(0),
        )

    @classmethod
    def joined(cls, parts: list[FoundPlans]) -> FoundPlans:
        return cls(
            np.concatenate([part.person for part in parts]),
            np.concatenate([part.moves for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.costs for part in parts]),
        )

    def where(self, chosen: Flags | Indices) -> FoundPlans:
        """Some of the plans, in the order given."""
        return FoundPlans(
            self.person[chosen], self.moves[chosen], self.scores[chosen], self.costs[chosen]
        )

    def best_of_each(self, merit: Floats, people: int) -> Indices:
        """The plan of highest merit of each person, -1 for none, shape ``(people,)``.

        Ties: the cheaper, then the shorter, then the one with the smaller move numbers.
        """
        keys = [self.moves[:, step] for step in reversed(range(self.moves.shape[1]))]
        order = np.lexsort([*keys, self.lengths, self.costs, -merit, self.person])
        people_of, first = np.unique(self.person[order], return_index=True)
        best = np.full(people, -1, np.intp)
        best[people_of] = order[first]
        return best


Ask = Callable[[States], Floats]
"""Scores of n states; how a search reaches the black box."""
Noise = Callable[[Floats, Flags, Indices], Floats]
"""Priors ``(n, actions)``, legal actions and whose they are ``(n,)`` to noisy priors."""


@dataclass(frozen=True)
class People:
    """B people: ``states`` ``(B, d)``, weight samples ``(B, s, p)``, ``reference`` ``(B,)``.

    ``reference`` is what the plan for the mean weights costs each (NaN: no such plan).
    ``streams`` are everybody's own random numbers, needed for playouts only. ``scores``
    ``(B,)`` of the starts, when they are known already: then no rows are asked for them.
    """

    states: States
    weights: Floats
    reference: Floats
    limits: Limits = NO_LIMITS
    streams: tuple[np.random.Generator, ...] = ()
    scores: Floats | None = None


@dataclass(frozen=True)
class Effort:
    """How much one search may do: simulations per step, and rows per person in all.

    ``max_rows`` is one number or one per person ``(B,)``; None: no cap.
    """

    simulations: int
    max_rows: int | NDArray[np.int64] | None = None


@dataclass(frozen=True)
class SearchOutcome:
    """``executed`` ``(B, L)``: the most visited moves, -1 after the end; ``path``: those of
    them that succeed; all plans ``found``; ``rows`` ``(B,)`` asked; start ``scores`` ``(B,)``."""

    executed: Indices
    path: FoundPlans
    found: FoundPlans
    rows: NDArray[np.int64]
    scores: Floats
    trees: Trees


@dataclass(frozen=True)
class Evaluation:
    """Of n nodes: ``prior`` ``(n, actions)``, ``value`` ``(n,)``, ``memory`` ``(n, h)``."""

    prior: Floats
    value: Floats
    memory: NDArray[np.float32]


class Evaluator(Protocol):
    """Looks at new nodes. ``playouts``: their values come from random playouts instead."""

    @property
    def memory_width(self) -> int: ...

    @property
    def playouts(self) -> bool: ...

    def __call__(
        self,
        states: States,
        move_costs: Floats,
        legal: Flags,
        memory: NDArray[np.float32],
    ) -> Evaluation:
        """Evaluate n states ``(n, d)`` with move costs ``(n, m)`` and their parents' memory."""
        ...


@dataclass(frozen=True)
class UniformPrior:
    """Every legal action is as likely: plain MCTS."""

    memory_width: int = 0
    playouts: bool = True

    def __call__(
        self,
        states: States,
        move_costs: Floats,
        legal: Flags,
        memory: NDArray[np.float32],
    ) -> Evaluation:
        prior = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
        return Evaluation(prior, np.zeros(len(states)), memory)
