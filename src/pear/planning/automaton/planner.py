"""Which plan does the automaton walk to, and why each step? (EFARE, W-EFARE)

As the planner of a conversation it makes XPEAR: the plans on offer are the distinct walks
under posterior samples, and every step carries its reason.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pear.arrays import Flags, Floats, Indices
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.automaton.automaton import START, Automaton, Condition, because
from pear.planning.automaton.tree import STOP, MoveTree
from pear.planning.planner import (
    Candidates,
    Memory,
    Planner,
    Proposals,
    Query,
    best_for_samples,
    by_limits,
    check_parts,
    plan_from_moves,
)
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem, walk
from pear.problem.costs import NO_MOVE, as_sequence
from pear.problem.features import States
from pear.problem.plan import Verdict

Moves = tuple[int, ...]


@dataclass(frozen=True)
class Reason:
    """Why the automaton takes a move: ``conditions``, all true of the person at that point.

    ``did`` of the ``of`` people trained on for whom they hold too took this move from
    ``node``, which is START where nobody took it from the node the walk was at.
    """

    node: int
    move: int
    conditions: tuple[Condition, ...]
    did: int
    of: int

    def words(self, problem: Problem) -> str:
        """The reason as a phrase that starts with "because"."""
        if self.conditions:
            return because(problem, self.conditions)
        if not self.did:
            return "because it was tried here, though nobody the automaton learned from did it"
        if self.node == START:
            return f"because {self.did} of the {self.of} people learned from began with it"
        return f"because {self.did} of the {self.of} people who had come this far did it next"

    def to_dict(self, automaton: Automaton) -> dict[str, Any]:
        """Plain data for JSON."""
        problem = automaton.problem
        return {
            "from": automaton.name(self.node),
            "to": automaton.name(self.move),
            "move": self.move,
            "conditions": [condition.to_dict(problem) for condition in self.conditions],
            "did": self.did,
            "of": self.of,
            "words": self.words(problem),
        }


class AutomatonPlanner(Planner):
    """Plans by walking an automaton.

    ``width`` walks per person are followed side by side. ``strict`` is the published walk:
    one, that ends at STOP or at a move that is not allowed. ``samples`` is how many of the
    posterior samples given are walked for.
    """

    def __init__(
        self,
        automaton: Automaton,
        black_box: BlackBox,
        *,
        width: int = 16,
        strict: bool = False,
        samples: int = 32,
    ) -> None:
        check_parts(automaton.problem, black_box)
        for name, value in (("width", width), ("samples", samples)):
            if value < 1:
                raise InvalidSetting(f"'{name}' must be at least 1 (got {value!r})")
        self.automaton, self.black_box = automaton, black_box
        self.problem: Problem = automaton.problem
        self.width, self.strict, self.samples = width, strict, samples

    @property
    def method(self) -> str:
        return "w-efare" if self.automaton.aware else "efare"

    def _plan_each(self, queries: Sequence[Query]) -> list[Plan]:
        """People walk side by side; for samples, the walks under single ones compete too."""
        plans = by_limits(queries, self._plans)
        if len(queries) and len(queries[0].samples) > 1:
            for number, query in enumerate(queries):
                found = self._candidates(query, self.samples, None, None).plans
                options = [plan for plan in (plans[number], *found) if plan.success]
                plans[number] = min(options, key=lambda plan: plan.cost, default=plans[number])
        return plans

    def _candidates(
        self, query: Query, n: int, memory: Memory | None, max_rows: int | None
    ) -> Candidates:
        """The distinct walks under the samples that are cheapest for some of them."""
        began = time.perf_counter()
        state, samples, limits = query.state, query.samples, query.limits
        if self.black_box.favourable(state[None], limits)[0]:
            return Candidates(tuple(self._plans([query], limits)), rows=1)
        chosen = np.unique(np.linspace(0, len(samples) - 1, self.samples).astype(int))
        starts = np.repeat(state[None], len(chosen), axis=0)
        walks = self._walks(starts, samples[chosen, None], limits)
        rows = 1 + int(walks.rows.sum())
        if not len(walks.person):
            return Candidates((), rows)
        pool = np.unique(walks.moves, axis=0)
        graph, actions = self.problem.costs, self.problem.actions
        best = best_for_samples(graph.sequence_costs(state, actions, pool, samples), n)
        certificate = self._certificate("heuristic", rows, time.perf_counter() - began, limits)
        plans = tuple(
            self._finish(state, as_sequence(pool[i]), samples, certificate, limits) for i in best
        )
        return Candidates(plans, rows)

    def propose(
        self,
        states: States,
        weights: Floats,
        rngs: Sequence[np.random.Generator],
        n: int,
    ) -> list[Proposals]:
        """Everybody's walks that end favourably, walked side by side; nothing is left to chance."""
        walks = self._walks(states, np.asarray(weights)[:, None, :], NO_LIMITS)
        plans: list[dict[Moves, None]] = [{} for _ in states]
        for person, moves in zip(walks.person.tolist(), walks.moves, strict=True):
            plans[person][as_sequence(moves)] = None
        asked = walks.rows.tolist()
        return [Proposals(tuple(own), rows) for own, rows in zip(plans, asked, strict=True)]

    def reasons(self, state: Floats, weights: Floats, moves: Any) -> tuple[Reason, ...]:
        """Why each move of a walk: true of the state before it, under the weights given.

        ``weights`` is ``(p,)`` or samples ``(s, p)``, whose mean costs are then meant.
        """
        samples = np.atleast_2d(weights)[None]
        moves = [int(move) for move in moves]
        found = []
        for before, node, move in zip(
            walk(state, self.problem.actions, moves), (START, *moves), moves, strict=False
        ):
            inputs = self.automaton.inputs.matrix(before[None], samples)
            found.append(self._reason(node, move, inputs))
        return tuple(found)

    def _reason(self, node: int, move: int, inputs: Floats) -> Reason:
        """The smallest group in the node's tree, or else in that of the start, that did it."""
        for origin in (node, START):
            tree = self.automaton.trees.get(origin)
            place = None if tree is None else smallest_group(tree, inputs, move)
            if tree is not None and place is not None:
                did = int(tree.counts[place][tree.moves == move].sum())
                conditions = self.automaton.conditions(tree, place)
                return Reason(origin, move, conditions, did, int(tree.counts[place].sum()))
        return Reason(node, move, (), 0, 0)

    def with_reasons(self, plan: Plan, state: Floats, weights: Floats) -> Plan:
        """The plan with the automaton's reason in each step, under the weights given."""
        reasons = self.reasons(state, weights, plan.moves)
        steps = tuple(
            replace(step, reason=reason.words(self.problem))
            for step, reason in zip(plan.steps, reasons, strict=True)
        )
        return replace(plan, steps=steps)

    def _walks(self, states: States, weights: Floats, limits: Limits) -> Walks:
        return find_walks(
            self.automaton,
            self.black_box,
            states,
            weights,
            limits,
            width=self.width,
            strict=self.strict,
        )

    def _plans(self, queries: Sequence[Query], limits: Limits) -> list[Plan]:
        began = time.perf_counter()
        states = np.array([query.state for query in queries])
        weights = np.array([query.samples for query in queries])
        done = self.black_box.favourable(states, limits)
        going = np.flatnonzero(~done)
        walks = self._walks(states[going], weights[going], limits)
        best = walks.cheapest(len(going))
        seconds = (time.perf_counter() - began) / max(len(states), 1)
        places = {int(person): i for i, person in enumerate(going)}
        plans = []
        for person, state in enumerate(states):
            place = places.get(person)
            found = place is None or best[place] >= 0
            moves = () if place is None or not found else as_sequence(walks.moves[best[place]])
            rows = 1 + (0 if place is None else int(walks.rows[place]))
            verdict: Verdict = "heuristic" if found else "unknown"
            certificate = self._certificate(verdict, rows, seconds, limits)
            plans.append(self._finish(state, moves, weights[person], certificate, limits))
        return plans

    def _certificate(
        self, verdict: Verdict, rows: int, seconds: float, limits: Limits
    ) -> Certificate:
        longest = self.problem.longest(limits)
        return Certificate(
            verdict, rows=rows, seconds=seconds, max_length=longest, max_changes_per_feature=longest
        )

    def _finish(
        self,
        state: Floats,
        moves: tuple[int, ...],
        weights: Floats,
        certificate: Certificate,
        limits: Limits,
    ) -> Plan:
        plan = plan_from_moves(
            self, state, moves, weights, certificate, limits=limits, method=self.method
        )
        return self.with_reasons(plan, state, weights)


def smallest_group(tree: MoveTree, inputs: Floats, move: int) -> int | None:
    """The deepest node on the way of inputs ``(1, columns)`` at which a move was ever next."""
    for node in reversed(tree.path(int(tree.leaves(inputs)[0]))):
        if tree.counts[node][tree.moves == move].sum():
            return node
    return None


@dataclass(frozen=True)
class Walks:
    """Walks of n people that end favourably.

    ``person`` ``(q,)``, ``moves`` ``(q, longest)`` padded with NO_MOVE, ``costs`` ``(q,)``
    under the person's weights, ``chance`` ``(q,)`` the log probability of the walk; ``rows``
    ``(n,)`` asked of the black box for each.
    """

    person: Indices
    moves: Indices
    costs: Floats
    chance: Floats
    rows: Indices

    def cheapest(self, n: int) -> Indices:
        """Number of each person's cheapest walk, ties to the likeliest; -1 for none: ``(n,)``."""
        best = np.full(n, -1, np.intp)
        order = np.lexsort((-self.chance, np.round(self.costs, 9), self.person))
        people, first = np.unique(self.person[order], return_index=True)
        best[people] = order[first]
        return best


@dataclass
class _Frontier:
    """Walks still going: where each is, whose it is, how it came here."""

    states: States
    person: Indices
    node: Indices
    moves: Indices
    costs: Floats
    chance: Floats

    def keep(self, chosen: Indices) -> _Frontier:
        return _Frontier(
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
    steps, required = problem.longest(limits), problem.goal.required(limits)
    frontier = _Frontier(
        np.array(states, float),
        np.arange(n),
        np.full(n, START),
        np.full((n, steps), NO_MOVE, np.intp),
        np.zeros(n),
        np.zeros(n),
    )
    rows, best, ended = np.zeros(n, np.intp), np.full(n, np.inf), []
    for step in range(steps):
        frontier = _step(automaton, frontier, weights, limits, step, 1 if strict else width, strict)
        if not len(frontier.person):
            break
        good = black_box.score(frontier.states) > required
        np.add.at(rows, frontier.person, 1)
        ended.append(frontier.keep(np.flatnonzero(good)))
        np.minimum.at(best, frontier.person[good], frontier.costs[good])
        going = ~good
        if problem.costs.least >= 0:
            # Steps cost nothing less than 0: a walk already dearer cannot become the cheapest.
            going &= frontier.costs < best[frontier.person]
        frontier = frontier.keep(np.flatnonzero(going))
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
    frontier: _Frontier,
    weights: Floats,
    limits: Limits,
    step: int,
    width: int,
    strict: bool,
) -> _Frontier:
    """All walks one move longer, at most ``width`` per person."""
    problem = automaton.problem
    if not len(frontier.person):
        return frontier
    theirs = weights[frontier.person]
    allowed = problem.actions.allowed(frontier.states, limits)
    inputs = automaton.inputs.matrix(frontier.states, theirs)
    chances = np.zeros(allowed.shape)
    for node in np.unique(frontier.node):
        here = np.flatnonzero(frontier.node == node)
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
    chance = frontier.chance[row] + np.log(share)
    person = frontier.person[row]
    order = np.lexsort((move, row, -chance, person))
    place = np.arange(len(order)) - np.searchsorted(person[order], person[order])
    chosen = order[place < width]
    row, move, chance = row[chosen], move[chosen], chance[chosen]
    moves = frontier.moves[row]
    moves[:, step] = move
    paid = problem.costs.costs(frontier.states[row], problem.actions, move, theirs[row]).mean(
        axis=1
    )
    after = problem.actions.apply(frontier.states[row], move)
    return _Frontier(after, frontier.person[row], move, moves, frontier.costs[row] + paid, chance)


def _open_moves(tree: MoveTree, inputs: Floats, allowed: Flags) -> Floats:
    """How often each allowed move was next in the smallest group that has one, ``(n, m)``."""
    at = tree.leaves(inputs)
    counts = tree.spread(at, allowed.shape[1]) * allowed
    while True:
        stuck = np.flatnonzero((counts.sum(axis=1) == 0) & (tree.parent[at] >= 0))
        if not len(stuck):
            return counts
        at[stuck] = tree.parent[at[stuck]]
        counts[stuck] = tree.spread(at[stuck], allowed.shape[1]) * allowed[stuck]


def _likeliest(tree: MoveTree, inputs: Floats, allowed: Flags) -> Floats:
    """The likeliest move alone, nothing where it is STOP or not allowed, ``(n, m)``."""
    chosen = tree.moves[tree.counts[tree.leaves(inputs)].argmax(axis=1)]
    taken = np.zeros(allowed.shape)
    rows = np.flatnonzero(chosen != STOP)
    taken[rows, chosen[rows]] = allowed[rows, chosen[rows]]
    return taken
