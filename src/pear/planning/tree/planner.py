"""Which plan does a tree search return, and how are its rows counted?

:class:`SearchPlanner` is what MCTS, FARE, W-FARE and the policy alone share; :class:`TreeSearch`
is plain MCTS.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.planner import (
    Candidates,
    Counted,
    Memory,
    Proposals,
    by_limits,
    generators,
)
from pear.planning.tree.rules import LengthRules, Rules, SavingRules
from pear.planning.tree.search import search
from pear.planning.tree.trees import (
    Ask,
    Effort,
    Evaluator,
    FoundPlans,
    People,
    SearchOutcome,
    UniformPrior,
    bytes_per_node,
)
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem
from pear.problem.costs import as_samples
from pear.problem.features import States

Returns = Literal["best", "path"]

MEMORY_AT_ONCE = 256 * 2**20
"""Bytes of trees searched at once; more people are searched in several batches."""


@dataclass(frozen=True)
class Met:
    """What a search met: plans ``found``, ``rows`` ``(B,)`` charged, start ``scores`` ``(B,)``."""

    found: FoundPlans
    rows: NDArray[np.int64]
    scores: Floats


class SearchPlanner:
    """A planner that searches trees; subclasses say with which rules and which prior.

    ``simulations`` are per step. ``max_rows`` caps the rows asked of the black box for one
    plan (None: no cap). ``searches`` is the number of samples ``candidates`` plans for.
    ``returns`` is ``best``: the best of all successful plans met, or ``path``: the path of
    the most visited moves, as the paper's planners do.
    """

    method = "search"

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        *,
        simulations: int = 15,
        max_rows: int | None = None,
        searches: int = 8,
        returns: Returns = "best",
    ) -> None:
        if returns not in get_args(Returns):
            raise InvalidSetting(f"'returns' must be 'best' or 'path' (got {returns!r})")
        self.returns = returns
        self.problem = problem
        self.black_box = black_box
        self.simulations = at_least_one("simulations", simulations)
        self.max_rows = None if max_rows is None else at_least_one("max_rows", max_rows)
        self.searches = at_least_one("searches", searches)

    def rules(self) -> Rules:
        """Selection, reward and cost term."""
        raise NotImplementedError

    def evaluator(self) -> Evaluator:
        """Prior and value of new nodes."""
        raise NotImplementedError

    def merit(self, found: FoundPlans) -> Floats:
        """What the planner maximises among the plans it met, shape ``(n,)``: low cost."""
        return -found.costs

    def plan(
        self,
        state: Floats,
        weights: Floats,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> Plan:
        """The best plan met from ``state`` ``(d,)``; weights ``(p,)`` or samples ``(s, p)``."""
        weights = self.problem.costs.check_weights(weights)
        states = np.asarray(state, float)[None]
        return self.plan_many(states, np.atleast_2d(weights)[None], limits, _list(rng))[0]

    def plan_many(
        self,
        states: States,
        weights: Floats,
        limits: Limits | Sequence[Limits] = NO_LIMITS,
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Plan]:
        """One plan per person, searched in lockstep: the same plans as one by one."""
        states = np.atleast_2d(np.asarray(states, float))
        weights = as_samples(weights, len(states))
        if len(states):
            self.problem.costs.check_weights(weights.reshape(-1, weights.shape[-1]))
        streams, size = generators(rngs, len(states)), self.people_at_once()

        def together(people: NDArray[np.intp], own: Limits) -> list[Plan]:
            plans: list[Plan] = []
            for first in range(0, len(people), size):
                some = people[first : first + size]
                mine = tuple(streams[i] for i in some)
                plans += self._plan_batch(states[some], weights[some], own, mine)
            return plans

        return by_limits(together, limits, len(states))

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
        """At most n distinct successful plans met when searching for some of the samples.

        First those that are the cheapest met for some sample, by how many; then the others
        by mean cost. All searches together respect ``max_rows``.
        """
        started, n = time.perf_counter(), at_least_one("n", n)
        most = min((rows for rows in (max_rows, self.max_rows) if rows is not None), default=None)
        samples = np.atleast_2d(self.problem.costs.check_weights(samples))
        trees = min(self.searches, len(samples), max(1, (most or 10**9) // 20))
        chosen = np.linspace(0, len(samples) - 1, trees).astype(int)
        if rng is not None:
            chosen = np.sort(rng.choice(len(samples), trees, replace=False))
        weights = samples[chosen][:, None, :]
        weights[-1, 0] = samples.mean(axis=0)
        states = np.repeat(np.asarray(state, float)[None], trees, axis=0)
        streams = tuple((rng or np.random.default_rng(0)).spawn(trees))
        asked = Counted(self.black_box.score)
        share = None if most is None else most // trees
        met = self.meet(states, weights, limits, streams, share, partial(ask_once, asked))
        if not len(met.found):
            return Candidates((), asked.rows)
        moves, first = np.unique(met.found.moves, axis=0, return_index=True)
        costs = self.problem.costs.sequence_costs(states[0], self.problem.actions, moves, samples)
        wins = np.bincount(costs.argmin(axis=0), minlength=len(moves))
        order = np.lexsort([costs.mean(axis=1), -wins])[:n]
        seconds = time.perf_counter() - started
        plans = tuple(
            self._found(
                states[0], met.found.where(first[[i]]), samples, asked.rows, seconds, limits
            )
            for i in order
        )
        return Candidates(plans, asked.rows)

    def propose(
        self,
        states: States,
        weights: Floats,
        rngs: Sequence[np.random.Generator],
        limits: Limits = NO_LIMITS,
    ) -> list[Proposals]:
        """Everybody's plans met in one search each; see :func:`pear.planning.planner.proposals`."""
        found, size = [], self.people_at_once()
        for first in range(0, len(states), size):
            some = slice(first, first + size)
            met = self.meet(
                states[some],
                weights[some, None, :],
                limits,
                tuple(rngs[some]),
                self.max_rows,
                self.black_box.score,
            )
            for person in range(len(states[some])):
                moves = np.unique(met.found.moves[met.found.person == person], axis=0)
                plans = tuple(tuple(row[row >= 0].tolist()) for row in moves)
                found.append(Proposals(plans, int(met.rows[person])))
        return found

    def meet(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
        max_rows: int | None,
        ask: Ask,
    ) -> Met:
        """Search for B people; found costs are under the weights searched with."""
        nothing = np.full(len(states), np.nan)
        people = People(states, weights, nothing, limits, streams)
        effort = self.effort(max_rows)
        outcome = self.search(people, ask, effort)
        return Met(self.kept(outcome), outcome.rows, outcome.scores)

    def search(self, people: People, ask: Ask, effort: Effort) -> SearchOutcome:
        """One search of everybody's tree, with this planner's rules and prior."""
        rules, evaluator = self.rules(), self.evaluator()
        return search(self.problem, ask, people, rules, evaluator, effort)

    def effort(self, max_rows: int | NDArray[np.int64] | None) -> Effort:
        """What one search may do."""
        return Effort(self.simulations, max_rows)

    def kept(self, outcome: SearchOutcome) -> FoundPlans:
        """The plans to choose from."""
        return outcome.found if self.returns == "best" else outcome.path

    def people_at_once(self) -> int:
        """How many people's trees fit in :data:`MEMORY_AT_ONCE`."""
        nodes = 1 + self.simulations * self.problem.max_length
        nodes = nodes if self.max_rows is None else min(nodes, 1 + self.max_rows)
        one = bytes_per_node(
            len(self.problem.space), len(self.problem.actions) + 1, self.evaluator().memory_width
        )
        return max(1, min(512, MEMORY_AT_ONCE // (nodes * one)))

    def _plan_batch(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
    ) -> list[Plan]:
        started = time.perf_counter()
        met = self.meet(states, weights, limits, streams, self.max_rows, self.black_box.score)
        best = met.found.best_of_each(self.merit(met.found), len(states))
        seconds = (time.perf_counter() - started) / len(states)
        return [
            self._found(
                states[i], met.found.where(best[[i]]), weights[i], met.rows[i], seconds, limits
            )
            if best[i] >= 0
            else heuristic_plan(
                self, states[i], [], weights[i], met.scores[[i]], met.rows[i], seconds, limits
            )
            for i in range(len(states))
        ]

    def _found(
        self,
        state: Floats,
        found: FoundPlans,
        weights: Floats,
        rows: int,
        seconds: float,
        limits: Limits,
    ) -> Plan:
        length = int(found.lengths[0])
        moves, scores = found.moves[0, :length].tolist(), found.scores[0, : length + 1]
        return heuristic_plan(self, state, moves, weights, scores, rows, seconds, limits)


def at_least_one(name: str, value: int) -> int:
    """A count given as a setting, or a clear refusal."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidSetting(f"'{name}' must be a whole number of at least 1 (got {value!r})")
    return int(value)


def ask_once(score: Ask, states: States) -> Floats:
    """Scores where equal states are asked once."""
    distinct, places = np.unique(states, axis=0, return_inverse=True)
    return np.asarray(score(distinct)[places.ravel()])


def _list(rng: np.random.Generator | None) -> list[np.random.Generator] | None:
    return None if rng is None else [rng]


class _Planner(Protocol):
    method: str
    problem: Problem
    black_box: BlackBox


def heuristic_plan(
    planner: _Planner,
    state: Floats,
    moves: list[int],
    weights: Floats,
    scores: Floats,
    rows: int,
    seconds: float,
    limits: Limits,
) -> Plan:
    """A plan from scored moves; where the last score is not favourable, one that says so.

    ``scores`` are of the start and of the state after each move; ``rows`` is what finding
    the plan is charged.
    """
    problem = planner.problem
    longest = min(problem.max_length, limits.max_steps or problem.max_length)
    success = bool(scores[-1] > problem.goal.bar(limits))
    certificate = Certificate(
        "heuristic" if success else "unknown",
        rows=int(rows),
        seconds=seconds,
        max_length=longest,
        max_changes_per_feature=longest,
    )
    return problem.make_plan(
        state,
        moves,
        weights,
        scores,
        certificate,
        limits=limits,
        method=planner.method,
        model_fingerprint=planner.black_box.fingerprint,
    )


class TreeSearch(SearchPlanner):
    """Plain MCTS: uniform prior, random playouts, reward γ^length.

    Of the successful plans it meets it returns the cheapest under the weights given. With
    ``rules=SavingRules()`` the search itself is after cheap plans too.
    """

    method = "mcts"

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        *,
        simulations: int = 15,
        max_rows: int | None = None,
        searches: int = 8,
        returns: Returns = "best",
        rules: LengthRules | SavingRules = LengthRules(),
    ) -> None:
        super().__init__(
            problem,
            black_box,
            simulations=simulations,
            max_rows=max_rows,
            searches=searches,
            returns=returns,
        )
        self.settings = rules

    def rules(self) -> Rules:
        return self.settings.build()

    def evaluator(self) -> Evaluator:
        return UniformPrior()
