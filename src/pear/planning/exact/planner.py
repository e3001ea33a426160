"""The certified exact planner: the cheapest plan, and the proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import BudgetTooSmall, InvalidSetting
from pear.planning.exact.asking import Clock, Progress, ScoreMemory, drive
from pear.planning.exact.options import Layout, options_of
from pear.planning.exact.search import FIRST_BATCH, Search
from pear.planning.planner import (
    Candidates,
    Memory,
    Planner,
    Query,
    Weights,
    check_count,
    check_parts,
)
from pear.problem import NO_LIMITS, Limits, Plan, Problem, walk
from pear.problem.features import PersonLike
from pear.problem.plan import make_plans
from pear.problem.values import is_number

TOGETHER = 512
"""People whose searches are kept at the same time."""


@dataclass
class ExactPlanner(Planner):
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

    Raises
    ------
    InvalidSetting
        Where a setting is out of its range.

    Examples
    --------
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> problem = loan_book_problem()
    >>> planner = ExactPlanner(problem, loan_book_classifier(problem))
    >>> plan = planner.plan(loan_book_people()["Amina"])
    >>> plan.success, plan.certificate.verdict
    (True, 'optimal')
    """

    problem: Problem
    black_box: BlackBox
    max_length: int | None = None
    max_rows: int = 1_000_000
    max_changes_per_feature: int = 1
    max_seconds: float | None = None
    look_inside: bool = True
    first_batch: int = FIRST_BATCH
    progress: Callable[[Progress], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_parts(self.problem, self.black_box)
        for name, setting in (
            ("max_length", self.longest),
            ("max_changes_per_feature", self.max_changes_per_feature),
            ("max_rows", self.max_rows),
            ("first_batch", self.first_batch),
        ):
            check_count(name, setting)
        if not isinstance(self.look_inside, bool):
            raise InvalidSetting(f"'look_inside' must be True or False (got {self.look_inside!r})")
        if self.progress is not None and not callable(self.progress):
            raise InvalidSetting(f"'progress' must be a function (got {self.progress!r})")
        seconds = self.max_seconds
        if seconds is not None and not (is_number(seconds) and seconds >= 0):
            raise InvalidSetting(f"'max_seconds' must be a number of at least 0 (got {seconds!r})")
        if self.max_rows < 2 * self.longest:
            raise BudgetTooSmall(
                f"'max_rows' must be at least {2 * self.longest} for plans of up to {self.longest} "
                f"changes (got {self.max_rows!r})"
            )

    @property
    def longest(self) -> int:
        return self.problem.max_length if self.max_length is None else self.max_length

    def optima(self, person: PersonLike, samples: Floats, limits: Limits = NO_LIMITS) -> list[Plan]:
        """The optimal plan for each sample ``(s, p)``, all found in one pass."""
        query = Query(self.problem.state(person), self.problem.weights(samples), limits)
        count = len(query.samples)
        search = self._search_optima(query, rows=self.max_rows, plans=count)
        return self._plans_of([search], [range(count)])

    def plans_by_length(
        self, person: PersonLike, weights: Weights | None = None, limits: Limits = NO_LIMITS
    ) -> list[Plan]:
        """The cheapest plan with at most 1, 2, 3… changes, in one pass."""
        longest = min(self.longest, limits.max_steps or self.longest)
        each = [replace(limits, max_steps=steps) for steps in range(1, longest + 1)]
        samples = np.repeat(self.problem.weights(weights)[None], longest, axis=0)
        clock = Clock.started(self.max_seconds, longest * (self.longest - 1))
        start = self.problem.state(person)
        search = self._search(start, samples, each, clock, plans=longest)
        return self._plans_of([search], [range(longest)])

    def _plan_each(self, queries: Sequence[Query]) -> list[Plan]:
        """Plans found side by side, with one call of the model a round."""
        clock = Clock.started(self.max_seconds, len(queries) * (self.longest - 1))
        plans: list[Plan] = []
        for first in range(0, len(queries), TOGETHER):
            some = queries[first : first + TOGETHER]
            found = self._side_by_side(
                [(query.state, query.samples[None], [query.limits]) for query in some], clock
            )
            made = self._plans_of(found, [range(1)] * len(found))
            for query, plan in zip(some, made, strict=True):
                if plan.certificate.verdict == "infeasible" and query.limits != NO_LIMITS:
                    blocking = self._blocking(query)
                    plan = plan.with_certificate(replace(plan.certificate, blocking=blocking))
                plans.append(_bounded_by_its_cost(plan))
        return plans

    def _candidates(
        self, query: Query, n: int, memory: Memory | None, max_rows: int | None
    ) -> Candidates:
        """Costs and certificate of each plan are those for the first sample it is optimal for.

        With ``max_rows``, a proof is given up where it would look at more assignments than that.
        """
        rows = self.max_rows if max_rows is None else min(max_rows, self.max_rows)
        memory = self._memory_of(query.state, memory)
        search = self._search_optima(
            query, rows=max(rows, 2 * self.longest), plans=n, memory=memory,
            stop_early=max_rows is not None,
        )  # fmt: skip
        support: dict[tuple[int, ...], list[int]] = {}
        for sample, best in enumerate(search.best):
            if best is not None:
                support.setdefault(best.moves, []).append(sample)
        ranked = sorted(support.values(), key=len, reverse=True)[: max(1, n)]
        plans = self._plans_of([search], [[samples[0] for samples in ranked]])
        return Candidates(tuple(plans), search.rows, memory)

    def _memory_of(self, start: Floats, memory: Memory | None) -> ScoreMemory:
        """The memory given, or a new one; that of another person, problem or model is refused."""
        mine = (self.problem.fingerprint, self.black_box, (start + 0.0).tobytes())
        if memory is None:
            return ScoreMemory(mine)
        if not isinstance(memory, ScoreMemory):
            raise InvalidSetting(
                f"'memory' must be one that an exact planner gave (got {memory!r:.100}); leave it "
                "out to start anew"
            )
        whats = ("problem", "model", "person")
        for what, one, other in zip(whats, mine, memory.owner or ("", None, b""), strict=True):
            if one is not other and one != other:
                raise InvalidSetting(
                    f"'memory' is of another {what}; give the one that the last call for this "
                    "person, problem and model gave, or leave it out"
                )
        return memory

    def _search_optima(
        self,
        query: Query,
        *,
        rows: int,
        plans: int,
        memory: ScoreMemory | None = None,
        stop_early: bool = False,
    ) -> Search:
        """A finished search in which every sample of a query is a query of its own."""
        count = len(query.samples)
        clock = Clock.started(self.max_seconds, min(plans, count) * (self.longest - 1))
        return replace(self, max_rows=rows)._search(
            query.state, query.samples[:, None], [query.limits] * count, clock,
            plans=plans, memory=memory, stop_early=stop_early,
        )  # fmt: skip

    def _search(
        self,
        start: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        clock: Clock,
        *,
        plans: int = 1,
        memory: ScoreMemory | None = None,
        stop_early: bool = False,
        any_plan: bool = False,
    ) -> Search:
        """A finished search for one person."""
        [search] = self._side_by_side(
            [(start, weights, limits)], clock, plans, memory, stop_early, any_plan
        )
        return search

    def _side_by_side(
        self,
        people: Sequence[tuple[Floats, Floats, Sequence[Limits]]],
        clock: Clock,
        plans: int = 1,
        memory: ScoreMemory | None = None,
        stop_early: bool = False,
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
            first = once._side_by_side(people, clock.half(), 0, None, stop_early, any_plan)
        searches: list[Search] = []
        layout = Layout.of(self.problem)

        def begun() -> Iterator[Search]:
            for number, (start, weights, limits) in enumerate(people):
                options = options_of(
                    layout, start, weights, limits, self.longest, self.max_changes_per_feature
                )
                search = Search(
                    options,
                    weights,
                    tuple(limits),
                    np.array([self.problem.goal.required(limit) for limit in limits]),
                    self.max_rows - reserve,
                    self.max_changes_per_feature,
                    clock,
                    inside=self.black_box.inside if self.look_inside else None,
                    memory=memory,
                    first_batch=self.first_batch,
                    stop_early=stop_early,
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
        # What a search knows of an end is the worst of its near misses, where there are any.
        known = not actions.tolerances.any()
        last = -1 if known else None
        paths = [
            [walk(search.options.start, actions, _moves(search, q))[1:last] for q in queries]
            for search, queries in zip(searches, chosen, strict=True)
        ]
        inner = [states for path in paths for states in path]
        scores = np.zeros(0)
        if sum(map(len, inner)):
            scores = self.black_box.score(np.concatenate(inner))
        at, known_scores = 0, []
        for search, queries, path in zip(searches, chosen, paths, strict=True):
            search.rows += sum(map(len, path))
            for query, states in zip(queries, path, strict=True):
                best = search.best[query]
                mine, at = scores[at : at + len(states)], at + len(states)
                end = [best.score] if known and best is not None and best.moves else []
                known_scores.append(np.array([search.start_score, *mine, *end]))
        every = [
            (search, q) for search, queries in zip(searches, chosen, strict=True) for q in queries
        ]
        plans = make_plans(
            self.problem,
            [search.options.start for search, _ in every],
            [_moves(search, q) for search, q in every],
            [search.weights[q] for search, q in every],
            known_scores,
            [search.certificate(q) for search, q in every],
            limits=[search.limits[q] for search, q in every],
            model_fingerprint=fingerprint,
        )
        return [_bounded_by_its_cost(plan) for plan in plans]

    def _blocking(self, query: Query) -> tuple[tuple[str, ...], ...]:
        """Limits, alone or in pairs, whose removal opens a plan.

        All the limits tried share one further budget of ``max_rows`` and ``max_seconds``.
        """
        singles: list[tuple[tuple[str, ...], Limits]] = [
            ((words,), rest) for words, rest in query.limits.parts()
        ]
        found = self._opening(query, singles)
        if found or len(singles) < 2:
            return found
        pairs: dict[frozenset[str], tuple[tuple[str, ...], Limits]] = {}
        for words, rest in query.limits.parts():
            for other, rest_of_both in rest.parts():
                pairs.setdefault(frozenset((words, other)), ((words, other), rest_of_both))
        return self._opening(query, list(pairs.values()))

    def _opening(
        self, query: Query, tried: list[tuple[tuple[str, ...], Limits]]
    ) -> tuple[tuple[str, ...], ...]:
        """Those of the limits tried, named by their words, under which there is a plan."""
        if not tried:
            return ()
        mean = query.samples.mean(axis=0)
        everyone = np.repeat(mean[None, None], len(tried), axis=0)
        found = replace(self, progress=None)._search(
            query.state,
            everyone,
            [limits for _, limits in tried],
            Clock.started(self.max_seconds),
            plans=0,
            any_plan=True,
        )
        return tuple(
            words for (words, _), best in zip(tried, found.best, strict=True) if best is not None
        )


def _bounded_by_its_cost(plan: Plan) -> Plan:
    """The bounds as the plan's own steps add up: a search takes differences of larger numbers."""
    certificate, cost = plan.certificate, plan.cost
    if certificate.upper_bound in (None, cost):
        return plan
    lower = certificate.lower_bound
    if certificate.verdict == "optimal":
        lower = cost
    elif lower is not None:
        lower = min(lower, cost)
    return plan.with_certificate(replace(certificate, lower_bound=lower, upper_bound=cost))


def _moves(search: Search, query: int) -> tuple[int, ...]:
    best = search.best[query]
    return best.moves if best is not None else ()
