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
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.automaton.automaton import START, Automaton
from pear.planning.automaton.conditions import Condition, because
from pear.planning.automaton.tree import MoveTree
from pear.planning.automaton.walks import Walks, find_walks
from pear.planning.planner import Candidates, Memory, by_limits, plan_from_moves
from pear.planning.sequences import as_sequence, best_for_samples, longest
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem, walk
from pear.problem.costs import as_samples
from pear.problem.features import States

Floats = NDArray[np.float64]


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


class AutomatonPlanner:
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
        for name, value in (("width", width), ("samples", samples)):
            if value < 1:
                raise InvalidSetting(f"'{name}' must be at least 1 (got {value!r})")
        self.automaton, self.black_box = automaton, black_box
        self.problem: Problem = automaton.problem
        self.width, self.strict, self.samples = width, strict, samples

    @property
    def method(self) -> str:
        return "w-efare" if self.automaton.aware else "efare"

    def plan(
        self,
        state: Floats,
        weights: Floats,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> Plan:
        """The cheapest walk for a person, with reasons; see :class:`Planner`."""
        weights = np.atleast_2d(self.problem.costs.check_weights(weights))
        if len(weights) == 1:
            return self._plans(np.atleast_2d(state), weights[None], limits)[0]
        found = self.candidates(state, weights, self.samples, limits).plans
        together = self._plans(np.atleast_2d(state), weights[None], limits)[0]
        options = [plan for plan in (together, *found) if plan.success]
        return min(options, key=lambda plan: plan.cost, default=together)

    def plan_many(
        self,
        states: States,
        weights: Floats,
        limits: Limits | Sequence[Limits] = NO_LIMITS,
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Plan]:
        """Plans of n people walking side by side."""
        states, each = np.asarray(states, float), as_samples(weights, len(states))
        if len(states):
            self.problem.costs.check_weights(each.reshape(-1, each.shape[-1]))
        return by_limits(
            lambda some, own: self._plans(states[some], each[some], own), limits, len(states)
        )

    def candidates(
        self,
        state: Floats,
        samples: Floats,
        n: int,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
        *,
        memory: Memory | None = None,
        max_rows: int | None = None,
    ) -> Candidates:
        """The distinct walks under the samples that are cheapest for some of them."""
        began = time.perf_counter()
        samples = np.atleast_2d(self.problem.costs.check_weights(samples))
        if self.black_box.favourable(state[None], limits)[0]:
            return Candidates(tuple(self._plans(state[None], samples[None], limits)), rows=1)
        chosen = np.unique(np.linspace(0, len(samples) - 1, self.samples).astype(int))
        starts = np.repeat(state[None], len(chosen), axis=0)
        walks = self._walks(starts, samples[chosen, None], limits)
        rows = 1 + int(walks.rows.sum())
        if not len(walks.person):
            return Candidates((), rows)
        pool = np.unique(walks.moves, axis=0)
        graph, actions = self.problem.costs, self.problem.actions
        best = best_for_samples(graph.sequence_costs(state, actions, pool, samples), n)
        certificate = Certificate(
            "heuristic",
            rows=rows,
            seconds=time.perf_counter() - began,
            max_length=longest(self.problem, limits),
            max_changes_per_feature=longest(self.problem, limits),
        )
        plans = tuple(
            self._finish(state, as_sequence(pool[i]), samples, certificate, limits) for i in best
        )
        return Candidates(plans, rows)

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

    def _plans(self, states: States, weights: Floats, limits: Limits) -> list[Plan]:
        began = time.perf_counter()
        weights = as_samples(weights, len(states))
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
            certificate = Certificate(
                "heuristic" if found else "unknown",
                rows=1 + (0 if place is None else int(walks.rows[place])),
                seconds=seconds,
                max_length=longest(self.problem, limits),
                max_changes_per_feature=longest(self.problem, limits),
            )
            plans.append(self._finish(state, moves, weights[person], certificate, limits))
        return plans

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
