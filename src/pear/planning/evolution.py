"""Which plan does an evolving population of random keys find? (CSCF)

Each candidate is a vector of keys in [0, 1], two per action: the first orders the actions
and switches those above 0.5 off, the second picks the argument. Two objectives, cost and
Gower distance to the start; a candidate is feasible when every step is legal and the last
state is favourable. Evolution and sorting are pymoo's.

References: Naumann and Ntoutsi (2021), Consequence-aware sequential counterfactual
generation; Gonçalves and Resende (2011), Biased random-key genetic algorithms; paper,
section "Consequence-aware Sequential Counterfactuals".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pear.arrays import Flags, Floats, Indices
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.optional import require
from pear.planning.planner import (
    Candidates,
    Memory,
    Planner,
    Query,
    best_for_samples,
    by_limits,
    check_parts,
    plan_from_moves,
)
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem
from pear.problem.costs import NO_MOVE, as_sequence, padded, roll_out
from pear.problem.features import FeatureSpace, States

ON = 0.5
"""Actions whose first key is above this are switched off."""


@dataclass(frozen=True)
class Fitness:
    """What a population is worth: ``objectives`` ``(n, 2)`` are cost and Gower distance,
    ``violations`` ``(n, 2)`` are illegal steps and the score lacking; feasible is 0 and 0."""

    objectives: Floats
    violations: Floats

    @property
    def feasible(self) -> Flags:
        return np.asarray((self.violations <= 0).all(axis=1))


@dataclass
class EvolutionPlanner(Planner):
    """CSCF: a biased random-key genetic algorithm with non-dominated sorting.

    ``bias`` is the probability that a child takes a key from its elite parent, ``children``
    the share of each generation made by crossing; the rest is fresh. It proves nothing.
    """

    problem: Problem
    black_box: BlackBox
    population: int = 50
    generations: int = 25
    bias: float = 0.7
    children: float = 0.8

    def __post_init__(self) -> None:
        check_parts(self.problem, self.black_box)
        if self.population < 5 or self.generations < 1:
            raise InvalidSetting(
                "'population' must be at least 5 and 'generations' at least 1 "
                f"(got {self.population!r} and {self.generations!r})"
            )
        for name in ("bias", "children"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidSetting(
                    f"'{name}' must be between 0 and 1 (got {getattr(self, name)!r})"
                )

    @cached_property
    def first_moves(self) -> Indices:
        """Number of the first move of each action, and the number of moves, ``(f + 1,)``."""
        counts = [len(action.arguments) for action in self.problem.actions.actions]
        return np.concatenate([[0], np.cumsum(counts)])

    def decode(self, keys: Floats, limits: Limits = NO_LIMITS) -> Indices:
        """Move sequences ``(n, longest)`` of n key vectors ``(n, 2 f)``."""
        orders, picks = np.split(keys, 2, axis=1)
        counts = np.diff(self.first_moves)
        arguments = np.minimum((picks * counts).astype(np.intp), counts - 1)
        moves = np.where(orders <= ON, self.first_moves[:-1] + arguments, NO_MOVE)
        places = np.argsort(np.where(orders <= ON, orders, 2.0), axis=1, kind="stable")
        return np.take_along_axis(moves, places, axis=1)[:, : self.problem.longest(limits)]

    def fitness(
        self, starts: States, moves: Indices, weights: Floats, limits: Limits = NO_LIMITS
    ) -> Fitness:
        """Objectives and constraint violations of n sequences; one call of the black box."""
        rollout = roll_out(self.problem.costs, self.problem.actions, starts, moves, limits)
        scores = self.black_box.score(rollout.final)
        required = self.problem.goal.required(limits)
        lacking = np.where(scores > required, 0.0, np.maximum(required - scores, 1e-12))
        costs = rollout.costs(weights)
        return Fitness(
            np.column_stack([costs, gower(self.problem.space, starts, rollout.final)]),
            np.column_stack([rollout.illegal, lacking]),
        )

    def _plan_each(self, queries: Sequence[Query]) -> list[Plan]:
        """People evolve side by side, with one call of the black box per generation."""
        return by_limits(queries, self._solve)

    def _candidates(
        self, query: Query, n: int, memory: Memory | None, max_rows: int | None
    ) -> Candidates:
        """The best plans for the samples among all that populations for n of them found."""
        state, samples, limits = query.state, query.samples, query.limits
        few = samples[np.linspace(0, len(samples) - 1, min(n, len(samples))).astype(int)]
        began, streams = time.perf_counter(), query.generator.spawn(len(few))
        starts = np.repeat(state[None], len(few), axis=0)
        found, asked = self._evolve(starts, few[:, None], limits, streams)
        rows = int(asked.sum())
        pool = list(dict.fromkeys(sequence for front, _ in found for sequence in front))
        if not pool:
            return Candidates((), rows)
        costs = self.problem.costs.sequence_costs(
            state, self.problem.actions, padded(pool), samples
        )
        seconds = time.perf_counter() - began
        plans = tuple(
            self._finish(state, pool[i], samples, limits, rows, seconds)
            for i in best_for_samples(costs, n)
        )
        return Candidates(plans, rows)

    def front(
        self,
        state: Floats,
        weights: Floats,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> tuple[list[tuple[int, ...]], Floats]:
        """The non-dominated valid plans found, cheapest first, with their objectives ``(q, 2)``."""
        weights = np.atleast_2d(self.problem.costs.check_weights(weights))
        streams = [rng or np.random.default_rng(0)]
        return self._evolve(np.atleast_2d(state), weights[None], limits, streams)[0][0]

    def _solve(self, queries: list[Query], limits: Limits) -> list[Plan]:
        began = time.perf_counter()
        states = np.array([query.state for query in queries])
        weights = np.array([query.samples for query in queries])
        done = self.black_box.favourable(states, limits)
        open_ = np.flatnonzero(~done)
        found: dict[int, tuple[int, ...]] = dict.fromkeys(np.flatnonzero(done).tolist(), ())
        evolved, asked = self._evolve(
            states[open_], weights[open_], limits, [queries[i].generator for i in open_.tolist()]
        )
        for person, (sequences, _) in zip(open_.tolist(), evolved, strict=True):
            if sequences:
                found[person] = sequences[0]
        rows = np.ones(len(states), np.intp)
        rows[open_] += asked
        seconds = (time.perf_counter() - began) / max(len(states), 1)
        return [
            self._finish(states[i], found.get(i), weights[i], limits, int(rows[i]), seconds)
            for i in range(len(states))
        ]

    def _finish(
        self,
        state: Floats,
        moves: tuple[int, ...] | None,
        weights: Floats,
        limits: Limits,
        rows: int,
        seconds: float,
    ) -> Plan:
        verdict: Any = "unknown" if moves is None else "heuristic"
        certificate = Certificate(
            verdict, rows=rows, seconds=seconds, max_length=self.problem.longest(limits)
        )
        return plan_from_moves(
            self, state, moves or (), weights, certificate, limits=limits, method="cscf"
        )

    def _evolve(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: Sequence[np.random.Generator],
    ) -> tuple[list[tuple[list[tuple[int, ...]], Floats]], Indices]:
        """For each person the valid non-dominated sequences, cheapest first, and rows asked."""
        algorithms = [self._algorithm(int(rng.integers(2**31))) for rng in streams]
        asked = np.zeros(len(states), np.intp)
        individuals = require("pymoo.core.population").Population
        for _ in range(self.generations if algorithms else 0):
            batches = [algorithm.ask() for algorithm in algorithms]
            owner = np.repeat(np.arange(len(states)), [len(batch) for batch in batches])
            asked += np.bincount(owner, minlength=len(asked))
            everyone = individuals.merge(*batches) if len(batches) > 1 else batches[0]
            moves = self.decode(everyone.get("X"), limits)
            worth = self.fitness(states[owner], moves, weights[owner], limits)
            everyone.set("F", worth.objectives)
            everyone.set("G", worth.violations)
            for algorithm, batch in zip(algorithms, batches, strict=True):
                algorithm.tell(infills=batch)
        return [self._valid(algorithm, limits) for algorithm in algorithms], asked

    @property
    def n_keys(self) -> int:
        """Keys of a candidate: two for each function."""
        return 2 * len(self.problem.actions.actions)

    def _algorithm(self, seed: int) -> Any:
        brkga = require("pymoo.algorithms.soo.nonconvex.brkga").BRKGA
        problem = require("pymoo.core.problem").Problem(
            n_var=self.n_keys, n_obj=2, n_ieq_constr=2, xl=0.0, xu=1.0
        )
        offspring = round(self.children * self.population)
        algorithm = brkga(
            n_elites=0,
            n_offsprings=offspring,
            n_mutants=self.population - offspring,
            bias=self.bias,
            survival=FeasibleFront(fallback=max(2, self.population - offspring)),
        )
        algorithm.setup(problem, seed=seed, termination=("n_gen", self.generations), verbose=False)
        return algorithm

    def _valid(self, algorithm: Any, limits: Limits) -> tuple[list[tuple[int, ...]], Floats]:
        people = algorithm.pop
        elite = people.get("type") == "elite"
        elite &= (people.get("G") <= 0).all(axis=1)
        objectives = people.get("F")[elite]
        moves = self.decode(people.get("X")[elite], limits)
        order = np.lexsort(objectives.T[::-1])
        return [as_sequence(moves[i]) for i in order], objectives[order]


@dataclass(frozen=True)
class FeasibleFront:
    """Marks as elite the first non-dominated front of the feasible, each worth only once.

    While nothing is feasible, the ``fallback`` candidates nearest to it take their place.
    """

    fallback: int

    def do(self, problem: Any, people: Any, **settings: Any) -> Any:
        """The population with its elite marked, in pymoo's form of a survival."""
        violations = np.maximum(people.get("G"), 0.0)
        feasible = np.flatnonzero((violations <= 0).all(axis=1))
        if len(feasible):
            objectives = people.get("F")[feasible]
            _, first = np.unique(objectives, axis=0, return_index=True)
            sorting = require("pymoo.util.nds.non_dominated_sorting").NonDominatedSorting()
            front = sorting.do(objectives[first], only_non_dominated_front=True)
            elite = feasible[first[front]]
        else:
            elite = np.lexsort((violations[:, 1], violations[:, 0]))[: self.fallback]
        kinds = np.full(len(people), "non_elite", object)
        kinds[elite] = "elite"
        people.set("type", kinds)
        return people


def gower(space: FeatureSpace, starts: States, ends: States) -> Floats:
    """Gower distance, ``(n,)``: the mean over features of how far they lie apart."""
    apart = space.distances(np.broadcast_to(starts, ends.shape), ends)
    return np.asarray(apart.mean(axis=1))
