"""Which plan does a tree search return, and how are its rows counted?

:class:`SearchPlanner` is what MCTS, FARE, W-FARE and the policy alone share; :class:`TreeSearch`
is plain MCTS.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.planner import (
    Candidates,
    Counted,
    Memory,
    Planner,
    Proposals,
    Query,
    by_limits,
    check_parts,
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
from pear.problem.features import States

Returns = Literal["best", "path"]

MEMORY_AT_ONCE = 256 * 2**20
"""Bytes of trees searched at once; more people are searched in several batches."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found: plans ``found``, ``rows`` ``(B,)`` charged, start ``scores``
    ``(B,)``."""

    found: FoundPlans
    rows: NDArray[np.int64]
    scores: Floats


class SearchPlanner(Planner):
    """A planner that searches trees; subclasses say with which rules and which prior.

    ``simulations`` are per step. ``max_rows`` caps the rows asked of the black box for one
    plan (None: no cap). ``searches`` is the number of samples ``candidates`` plans for.
    ``returns`` is ``best``: the best of all successful plans found, or ``path``: the path of
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
        check_parts(problem, black_box)
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
        """What the planner maximises among the plans it found, shape ``(n,)``: low cost."""
        return -found.costs

    def _plan_each(self, queries: Sequence[Query]) -> list[Plan]:
        """People are searched for in lockstep: the same plans as one by one."""
        size = self.people_at_once()

        def together(alike: list[Query], limits: Limits) -> list[Plan]:
            firsts = range(0, len(alike), size)
            return [
                plan
                for first in firsts
                for plan in self._plan_batch(alike[first : first + size], limits)
            ]

        return by_limits(queries, together)

    def _candidates(
        self, query: Query, n: int, memory: Memory | None, max_rows: int | None
    ) -> Candidates:
        """Plans found when searching for some of the samples.

        First those that are the cheapest found for some sample, by how many; then the others
        by mean cost. All searches together respect ``max_rows``.
        """
        started, n = time.perf_counter(), at_least_one("n", n)
        state, samples, rng = query.state, query.samples, query.rng
        most = min((rows for rows in (max_rows, self.max_rows) if rows is not None), default=None)
        trees = min(self.searches, len(samples), max(1, (most or 10**9) // 20))
        chosen = np.linspace(0, len(samples) - 1, trees).astype(int)
        if rng is not None:
            chosen = np.sort(rng.choice(len(samples), trees, replace=False))
        weights = samples[chosen][:, None, :]
        weights[-1, 0] = samples.mean(axis=0)
        states = np.repeat(state[None], trees, axis=0)
        streams = tuple(query.generator.spawn(trees))
        asked = Counted(self.black_box.score)
        share = None if most is None else most // trees
        result = self.search_people(
            states, weights, query.limits, streams, share, partial(ask_once, asked)
        )
        if not len(result.found):
            return Candidates((), asked.rows)
        moves, first = np.unique(result.found.moves, axis=0, return_index=True)
        costs = self.problem.costs.sequence_costs(state, self.problem.actions, moves, samples)
        wins = np.bincount(costs.argmin(axis=0), minlength=len(moves))
        order = np.lexsort([costs.mean(axis=1), -wins])[:n]
        seconds = time.perf_counter() - started
        plans = tuple(
            self._found(query, result.found.where(first[[i]]), asked.rows, seconds) for i in order
        )
        return Candidates(plans, asked.rows)

    def propose(
        self,
        states: States,
        weights: Floats,
        rngs: Sequence[np.random.Generator],
        n: int,
    ) -> list[Proposals]:
        """Everybody's plans found in one search each, however many people there are."""
        found, size = [], self.people_at_once()
        for first in range(0, len(states), size):
            some = slice(first, first + size)
            result = self.search_people(
                states[some],
                weights[some, None, :],
                NO_LIMITS,
                tuple(rngs[some]),
                self.max_rows,
                self.black_box.score,
            )
            for person in range(len(states[some])):
                moves = np.unique(result.found.moves[result.found.person == person], axis=0)
                plans = tuple(tuple(row[row >= 0].tolist()) for row in moves)
                found.append(Proposals(plans, int(result.rows[person])))
        return found

    def search_people(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
        max_rows: int | None,
        ask: Ask,
    ) -> SearchResult:
        """Search for B people; found costs are under the weights searched with."""
        nothing = np.full(len(states), np.nan)
        people = People(states, weights, nothing, limits, streams)
        effort = self.effort(max_rows)
        outcome = self.search(people, ask, effort)
        return SearchResult(self.kept(outcome), outcome.rows, outcome.scores)

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

    def _plan_batch(self, queries: Sequence[Query], limits: Limits) -> list[Plan]:
        started = time.perf_counter()
        states = np.array([query.state for query in queries])
        weights = np.array([query.samples for query in queries])
        streams = tuple(query.generator for query in queries)
        result = self.search_people(
            states, weights, limits, streams, self.max_rows, self.black_box.score
        )
        best = result.found.best_of_each(self.merit(result.found), len(states))
        seconds = (time.perf_counter() - started) / len(states)
        return [
            self._found(query, result.found.where(best[[i]]), result.rows[i], seconds)
            if best[i] >= 0
            else self._plan_of(query, [], result.scores[[i]], result.rows[i], seconds)
            for i, query in enumerate(queries)
        ]

    def _found(self, query: Query, found: FoundPlans, rows: int, seconds: float) -> Plan:
        length = int(found.lengths[0])
        moves, scores = found.moves[0, :length].tolist(), found.scores[0, : length + 1]
        return self._plan_of(query, moves, scores, rows, seconds)

    def _plan_of(
        self, query: Query, moves: list[int], scores: Floats, rows: int, seconds: float
    ) -> Plan:
        """A plan from scored moves; where the last score is not favourable, one that says so.

        ``scores`` are of the start and of the state after each move; ``rows`` is what finding
        the plan is charged.
        """
        problem, limits = self.problem, query.limits
        success = bool(scores[-1] > problem.goal.required(limits))
        certificate = Certificate(
            "heuristic" if success else "unknown",
            rows=int(rows),
            seconds=seconds,
            max_length=problem.longest(limits),
            max_changes_per_feature=problem.longest(limits),
        )
        return problem.make_plan(
            query.state,
            moves,
            query.samples,
            scores,
            certificate,
            limits=limits,
            method=self.method,
            model_fingerprint=self.black_box.fingerprint,
        )


def at_least_one(name: str, value: int) -> int:
    """A count given as a setting, or a clear refusal."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidSetting(f"'{name}' must be a whole number of at least 1 (got {value!r})")
    return int(value)


def ask_once(score: Ask, states: States) -> Floats:
    """Scores where equal states are asked once."""
    distinct, places = np.unique(states, axis=0, return_inverse=True)
    return np.asarray(score(distinct)[places.ravel()])


class TreeSearch(SearchPlanner):
    """Plain MCTS: uniform prior, random playouts, reward γ^length.

    Of the successful plans it finds, it returns the cheapest under the weights given. With
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
