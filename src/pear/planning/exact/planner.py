"""The certified exact planner: the cheapest plan, and the proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import BudgetTooSmall, InvalidSetting
from pear.planning.exact.drive import Clock, drive
from pear.planning.exact.memory import ScoreMemory
from pear.planning.exact.options import options_of
from pear.planning.exact.search import FIRST_BATCH, Progress, Search
from pear.planning.planner import Candidates, Memory, one_per_person
from pear.problem import NO_LIMITS, Limits, Plan, Problem, walk

TOGETHER = 512
"""People whose searches are kept at the same time."""


@dataclass
class ExactPlanner:
    """Finds the cheapest plan among those with at most ``max_length`` changes, and proves it.

    Parameters
    ----------
    problem, black_box
        What can be changed, and the model that decides.
    max_length
        Most changes of a plan; the problem's own where left out.
    max_rows
        Most rows that one person's search may ask. The scores along plans for several samples or
        lengths come on top where they do not fit.
    max_changes_per_feature
        How often a plan may change the same feature.
    max_seconds
        A guard by the clock, which makes results depend on the machine and is marked in the
        certificate.
    look_inside
        Whether a model that can be read is read, for proofs that hardly ask it.
    first_batch
        Rows of the first call.
    progress
        Called as the search goes on.

    Examples
    --------
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> problem = loan_book_problem()
    >>> planner = ExactPlanner(problem, loan_book_classifier(problem))
    >>> plan = planner.plan(problem.state(loan_book_people()["Amina"]), problem.usual_weights)
    >>> plan.success, plan.certificate.verdict
    (True, 'optimal')
    """

    problem: Problem
    black_box: BlackBox
    max_length: int | None = None
    max_rows: int = 200_000
    max_changes_per_feature: int = 1
    max_seconds: float | None = None
    look_inside: bool = True
    first_batch: int = FIRST_BATCH
    progress: Callable[[Progress], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise InvalidSetting(f"'max_length' must be at least 1 (got {self.max_length!r})")
        if self.max_changes_per_feature < 1:
            raise InvalidSetting(
                "'max_changes_per_feature' must be at least 1 "
                f"(got {self.max_changes_per_feature!r})"
            )
        if self.max_rows < 2 * self.longest:
            raise BudgetTooSmall(
                f"'max_rows' must be at least {2 * self.longest} for plans of up to {self.longest} "
                f"changes (got {self.max_rows!r})"
            )

    @property
    def longest(self) -> int:
        return self.problem.max_length if self.max_length is None else self.max_length

    def plan(
        self,
        state: Floats,
        weights: Floats,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> Plan:
        """The cheapest plan from ``state`` ``(d,)``.

        ``weights`` is ``(p,)``, or samples ``(s, p)``: then the plan of least mean floored cost.
        An infeasible verdict names the limits that block.
        """
        [plan] = self._plan_each(self._states(state), self._samples(weights)[None], [limits])
        return plan

    def plan_many(
        self,
        states: Floats,
        weights: Floats,
        limits: Limits | Sequence[Limits] = NO_LIMITS,
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Plan]:
        """Plans for n people side by side, one call of the model a round.

        ``states`` is ``(n, d)``. ``weights`` is ``(p,)``, or a row per person ``(n, p)``, or
        samples per person ``(n, s, p)``, or ``(1, s, p)`` for everybody: with samples, each
        person's plan is that of least mean floored cost over theirs.
        """
        states = self._states(states)
        if not len(states):
            return []
        weights = self.problem.weights_of(len(states), weights)
        return self._plan_each(states, weights, one_per_person(limits, len(states)))

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
        """Distinct plans, each optimal for some of the samples ``(s, p)``; most supported first.

        Costs and certificate of each plan are those for the first sample it is optimal for.
        With ``max_rows``, a proof is given up where it would look at more assignments than that.
        """
        rows = self.max_rows if max_rows is None else min(max_rows, self.max_rows)
        known = memory if isinstance(memory, ScoreMemory) else ScoreMemory()
        search = self._search_optima(
            state, samples, limits, rows=max(rows, 2 * self.longest), plans=n, memory=known,
            hurried=max_rows is not None,
        )  # fmt: skip
        support: dict[tuple[int, ...], list[int]] = {}
        for query, best in enumerate(search.best):
            if best is not None:
                support.setdefault(best.moves, []).append(query)
        ranked = sorted(support.values(), key=len, reverse=True)[: max(1, n)]
        plans = self._plans_of([search], [[queries[0] for queries in ranked]])
        return Candidates(tuple(plans), search.rows, known)

    def optima(self, state: Floats, samples: Floats, limits: Limits = NO_LIMITS) -> list[Plan]:
        """The optimal plan for each sample ``(s, p)``, all found in one pass."""
        count = len(np.atleast_2d(samples))
        search = self._search_optima(state, samples, limits, rows=self.max_rows, plans=count)
        return self._plans_of([search], [range(count)])

    def plans_by_length(
        self, state: Floats, weights: Floats, limits: Limits = NO_LIMITS
    ) -> list[Plan]:
        """The cheapest plan with at most 1, 2, 3… changes, in one pass."""
        longest = min(self.longest, limits.max_steps or self.longest)
        each = [replace(limits, max_steps=steps) for steps in range(1, longest + 1)]
        samples = np.repeat(self._samples(weights)[None], longest, axis=0)
        [start] = self._states(state)
        clock = Clock.started(self.max_seconds, longest * (self.longest - 1))
        search = self._search(start, samples, each, clock, plans=longest)
        return self._plans_of([search], [range(longest)])

    def _search_optima(
        self,
        state: Floats,
        samples: Floats,
        limits: Limits,
        *,
        rows: int,
        plans: int,
        memory: ScoreMemory | None = None,
        hurried: bool = False,
    ) -> Search:
        samples = self._samples(samples)
        [start] = self._states(state)
        clock = Clock.started(self.max_seconds, min(plans, len(samples)) * (self.longest - 1))
        return replace(self, max_rows=rows)._search(
            start, samples[:, None], [limits] * len(samples), clock,
            plans=plans, memory=memory, hurried=hurried,
        )  # fmt: skip

    def _plan_each(self, states: Floats, weights: Floats, limits: Sequence[Limits]) -> list[Plan]:
        """A plan for each of n people; ``weights`` ``(n, s, p)``."""
        clock = Clock.started(self.max_seconds, len(states) * (self.longest - 1))
        plans: list[Plan] = []
        for first in range(0, len(states), TOGETHER):
            people = range(first, min(first + TOGETHER, len(states)))
            found = self._side_by_side(
                [(states[i], weights[i : i + 1], [limits[i]]) for i in people], clock
            )
            made = self._plans_of(found, [range(1)] * len(found))
            for i, plan in zip(people, made, strict=True):
                if plan.certificate.verdict == "infeasible" and limits[i] != NO_LIMITS:
                    blocking = self._blocking(states[i], limits[i], weights[i].mean(axis=0))
                    plan = plan.with_certificate(replace(plan.certificate, blocking=blocking))
                plans.append(plan)
        return plans

    def _search(
        self,
        start: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        clock: Clock,
        *,
        plans: int = 1,
        memory: ScoreMemory | None = None,
        hurried: bool = False,
        any_plan: bool = False,
    ) -> Search:
        """A finished search for one person."""
        [search] = self._side_by_side(
            [(start, weights, limits)], clock, plans, memory, hurried, any_plan
        )
        return search

    def _side_by_side(
        self,
        people: Sequence[tuple[Floats, Floats, Sequence[Limits]]],
        clock: Clock,
        plans: int = 1,
        memory: ScoreMemory | None = None,
        hurried: bool = False,
        any_plan: bool = False,
    ) -> list[Search]:
        """Finished searches for several people: start, weights ``(Q, S, p)`` and limits of each.

        Rows for the scores along ``plans`` plans of each are kept back.
        """
        reserve = min(plans * (self.longest - 1), self.max_rows // 2)
        first: list[Search] = []
        if self.max_changes_per_feature > 1:
            # A plan that changes each feature once is one here too, and prunes most of the rest.
            once = replace(self, max_changes_per_feature=1, progress=None)
            once.max_rows = self.max_rows // 2
            first = once._side_by_side(people, clock.half(), 0, None, hurried, any_plan)
        searches: list[Search] = []

        def begun() -> Iterator[Search]:
            for number, (start, weights, limits) in enumerate(people):
                options = options_of(
                    self.problem, start, weights, limits, self.longest, self.max_changes_per_feature
                )
                search = Search(
                    options,
                    weights,
                    tuple(limits),
                    np.array([self.problem.goal.bar(limit) for limit in limits]),
                    self.max_rows - reserve,
                    self.max_changes_per_feature,
                    clock,
                    inside=self.black_box.inside if self.look_inside else None,
                    memory=memory,
                    first_batch=self.first_batch,
                    hurried=hurried,
                    any_plan=any_plan,
                    progress=self.progress,
                )
                if first:
                    search.start_with(first[number])
                searches.append(search)
                yield search

        drive(begun(), self.black_box, clock)
        return searches

    def _plans_of(self, searches: Sequence[Search], chosen: Sequence[Sequence[int]]) -> list[Plan]:
        """Plans of some queries of each search, with the score of every state on the way."""
        actions, fingerprint = self.problem.actions, self.black_box.fingerprint
        paths = [
            [walk(search.options.start, actions, _moves(search, query))[1:-1] for query in queries]
            for search, queries in zip(searches, chosen, strict=True)
        ]
        inner = [states for path in paths for states in path]
        scores = np.zeros(0)
        if sum(map(len, inner)):
            scores = self.black_box.score(np.concatenate(inner))
        plans, at = [], 0
        for search, queries, path in zip(searches, chosen, paths, strict=True):
            search.rows += sum(map(len, path))
            for query, states in zip(queries, path, strict=True):
                best, weights = search.best[query], search.weights[query]
                mine, at = scores[at : at + len(states)], at + len(states)
                end = [best.score] if best is not None and best.moves else []
                plan = self.problem.make_plan(
                    search.options.start,
                    _moves(search, query),
                    weights if len(weights) > 1 else weights[0],
                    np.array([search.start_score, *mine, *end]),
                    search.certificate(query),
                    limits=search.limits[query],
                    model_fingerprint=fingerprint,
                )
                plans.append(plan)
        return plans

    def _states(self, states: Floats) -> Floats:
        array = np.atleast_2d(np.asarray(states, float))
        missing = np.isnan(array) & ~np.array(
            [feature.may_be_missing for feature in self.problem.space.features]
        ) if array.shape[1:] == (len(self.problem.space),) else np.True_  # fmt: skip
        if np.any(missing) or np.isinf(array).any():
            raise InvalidSetting(
                f"a state must hold {len(self.problem.space)} finite numbers "
                f"(got shape {array.shape}); use problem.state(record)"
            )
        return array

    def _samples(self, weights: Floats) -> Floats:
        """Weights of one person as samples ``(s, p)``."""
        return self.problem.weights(weights)

    def _blocking(
        self, state: Floats, limits: Limits, weights: Floats
    ) -> tuple[tuple[str, ...], ...]:
        """Limits, alone or in pairs, whose removal opens a plan.

        All the limits tried share one further budget of ``max_rows`` and ``max_seconds``.
        """
        singles: list[tuple[tuple[str, ...], Limits]] = [
            ((words,), rest) for words, rest in limits.parts()
        ]
        found = self._opening(state, weights, singles)
        if found or len(singles) < 2:
            return found
        pairs: dict[frozenset[str], tuple[tuple[str, ...], Limits]] = {}
        for words, rest in limits.parts():
            for other, rest_of_both in rest.parts():
                pairs.setdefault(frozenset((words, other)), ((words, other), rest_of_both))
        return self._opening(state, weights, list(pairs.values()))

    def _opening(
        self, state: Floats, weights: Floats, tried: list[tuple[tuple[str, ...], Limits]]
    ) -> tuple[tuple[str, ...], ...]:
        """Those of the limits tried, named by their words, under which there is a plan."""
        if not tried:
            return ()
        everyone = np.repeat(weights[None, None], len(tried), axis=0)
        found = replace(self, progress=None)._search(
            state,
            everyone,
            [limits for _, limits in tried],
            Clock.started(self.max_seconds),
            plans=0,
            any_plan=True,
        )
        return tuple(
            words for (words, _), best in zip(tried, found.best, strict=True) if best is not None
        )


def _moves(search: Search, query: int) -> tuple[int, ...]:
    best = search.best[query]
    return best.moves if best is not None else ()
