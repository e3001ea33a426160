"""Which walks through the automaton reach a favourable decision? Many people at once.

Strictly, a walk takes the likeliest move at every node and ends at STOP or at a move that
is not allowed. That often ends before the decision has turned. A walk here therefore goes
on until the decision is favourable, takes only moves that are allowed, and up to ``width``
walks per person are followed side by side, the likeliest first. Where a leaf has no allowed
move left, the wider group above it in the tree is asked, and at last the tree of the start.
Everything is deterministic; one call of the black box per step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.planning.automaton.automaton import START, Automaton
from pear.planning.automaton.tree import STOP, MoveTree
from pear.planning.sequences import NO_MOVE, longest
from pear.problem import NO_LIMITS, Limits
from pear.problem.features import States

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Walks:
    """Walks of n people that end favourably.

    ``person`` ``(q,)``, ``moves`` ``(q, longest)`` padded with NO_MOVE, ``costs`` ``(q,)``
    under the person's weights, ``chance`` ``(q,)`` the log probability of the walk; ``rows``
    ``(n,)`` asked of the black box for each.
    """

    person: Ints
    moves: Ints
    costs: Floats
    chance: Floats
    rows: Ints

    def cheapest(self, n: int) -> Ints:
        """Number of each person's cheapest walk, ties to the likeliest; -1 for none: ``(n,)``."""
        best = np.full(n, -1, np.intp)
        order = np.lexsort((-self.chance, np.round(self.costs, 9), self.person))
        people, first = np.unique(self.person[order], return_index=True)
        best[people] = order[first]
        return best


@dataclass
class _Front:
    """Walks still going: where each is, whose it is, how it came here."""

    states: States
    person: Ints
    node: Ints
    moves: Ints
    costs: Floats
    chance: Floats

    def keep(self, chosen: Ints) -> _Front:
        return _Front(
            self.states[chosen],
            self.person[chosen],
            self.node[chosen],
            self.moves[chosen],
            self.costs[chosen],
            self.chance[chosen],
        )


def find_walks(
    automaton: Automaton,
    black_box: BlackBox,
    states: States,
    weights: Floats,
    limits: Limits = NO_LIMITS,
    *,
    width: int = 16,
    strict: bool = False,
) -> Walks:
    """Walks of n people from states ``(n, d)`` with weight samples ``(n, s, p)``."""
    problem, n = automaton.problem, len(states)
    steps, bar = longest(problem, limits), problem.goal.bar(limits)
    front = _Front(
        np.array(states, float),
        np.arange(n),
        np.full(n, START),
        np.full((n, steps), NO_MOVE, np.intp),
        np.zeros(n),
        np.zeros(n),
    )
    rows, best, ended = np.zeros(n, np.intp), np.full(n, np.inf), []
    for step in range(steps):
        front = _step(automaton, front, weights, limits, step, 1 if strict else width, strict)
        if not len(front.person):
            break
        good = black_box.score(front.states) > bar
        np.add.at(rows, front.person, 1)
        ended.append(front.keep(np.flatnonzero(good)))
        np.minimum.at(best, front.person[good], front.costs[good])
        going = ~good
        if problem.costs.least >= 0:
            # Steps cost nothing less than 0: a walk already dearer cannot become the cheapest.
            going &= front.costs < best[front.person]
        front = front.keep(np.flatnonzero(going))
    if not ended:
        nothing = np.zeros(0)
        empty = np.zeros(0, np.intp)
        return Walks(empty, np.zeros((0, steps), np.intp), nothing, nothing, rows)
    return Walks(
        np.concatenate([part.person for part in ended]),
        np.concatenate([part.moves for part in ended]),
        np.concatenate([part.costs for part in ended]),
        np.concatenate([part.chance for part in ended]),
        rows,
    )


def _step(
    automaton: Automaton,
    front: _Front,
    weights: Floats,
    limits: Limits,
    step: int,
    width: int,
    strict: bool,
) -> _Front:
    """All walks one move longer, at most ``width`` per person."""
    problem = automaton.problem
    if not len(front.person):
        return front
    theirs = weights[front.person]
    allowed = problem.actions.allowed(front.states, limits)
    inputs = automaton.inputs.matrix(front.states, theirs)
    chances = np.zeros(allowed.shape)
    for node in np.unique(front.node):
        here = np.flatnonzero(front.node == node)
        tree = automaton.tree_at(int(node))
        if strict:
            chances[here] = _likeliest(tree, inputs[here], allowed[here])
            continue
        chances[here] = _open_moves(tree, inputs[here], allowed[here])
        stuck = here[chances[here].sum(axis=1) == 0]
        if len(stuck) and node != START:
            chances[stuck] = _open_moves(automaton.trees[START], inputs[stuck], allowed[stuck])
    row, move = np.nonzero(chances)
    share = chances[row, move] / chances.sum(axis=1)[row]
    chance = front.chance[row] + np.log(share)
    person = front.person[row]
    order = np.lexsort((move, row, -chance, person))
    place = np.arange(len(order)) - np.searchsorted(person[order], person[order])
    chosen = order[place < width]
    row, move, chance = row[chosen], move[chosen], chance[chosen]
    moves = front.moves[row]
    moves[:, step] = move
    paid = problem.costs.costs(front.states[row], problem.actions, move, theirs[row]).mean(axis=1)
    after = problem.actions.apply(front.states[row], move)
    return _Front(after, front.person[row], move, moves, front.costs[row] + paid, chance)


def _open_moves(tree: MoveTree, inputs: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """How often each allowed move was next in the smallest group that has one, ``(n, m)``."""
    at = tree.leaves(inputs)
    counts = tree.spread(at, allowed.shape[1]) * allowed
    while True:
        stuck = np.flatnonzero((counts.sum(axis=1) == 0) & (tree.parent[at] >= 0))
        if not len(stuck):
            return counts
        at[stuck] = tree.parent[at[stuck]]
        counts[stuck] = tree.spread(at[stuck], allowed.shape[1]) * allowed[stuck]


def _likeliest(tree: MoveTree, inputs: Floats, allowed: NDArray[np.bool_]) -> Floats:
    """The likeliest move alone, nothing where it is STOP or not allowed, ``(n, m)``."""
    chosen = tree.moves[tree.counts[tree.leaves(inputs)].argmax(axis=1)]
    taken = np.zeros(allowed.shape)
    rows = np.flatnonzero(chosen != STOP)
    taken[rows, chosen[rows]] = allowed[rows, chosen[rows]]
    return taken
