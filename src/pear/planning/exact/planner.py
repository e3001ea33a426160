"""The certified exact planner: the cheapest plan, and the proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.errors import BudgetTooSmall, InvalidSetting
from pear.planning.exact.clock import Clock
from pear.planning.exact.drivers import drive
from pear.planning.exact.options import build_tables
from pear.planning.exact.results import plans_of
from pear.planning.exact.search import FIRST_BATCH, Progress, Search
from pear.planning.exact.survey import Survey
from pear.planning.planner import Candidates, Memory, one_per_person
from pear.problem import NO_LIMITS, Limits, Plan, Problem

Floats = NDArray[np.float64]


@dataclass
class ExactPlanner:
    """Finds the cheapest plan among those with at most ``max_length`` changes, and proves it.

    ``max_rows`` is the most rows one person's search may ask; ``max_seconds`` a guard by
    the clock, which makes results depend on the machine and is marked in the certificate.
    """

    problem: Problem
    black_box: BlackBox
    max_length: int | None = None
    max_rows: int = 200_000
    max_changes_per_feature: int = 1
    max_seconds: float | None = None
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
        matrix = np.atleast_2d(self._weights(weights))
        [plan] = self._plans_of(self._states(state), matrix[None], [limits], np.zeros(1, np.intp))
        return self._explained(plan, state, matrix, limits)

    def plan_many(
        self,
        states: Floats,
        weights: Floats,
        limits: Limits | Sequence[Limits] = NO_LIMITS,
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Plan]:
        """Plans for n people in lockstep, one call of the model a round.

        ``states`` is ``(n, d)``. ``weights`` is ``(p,)``, or a row per person ``(n, p)``, or
        samples per person ``(n, s, p)``, or ``(1, s, p)`` for everybody: with samples, each
        person's plan is that of least mean floored cost over theirs.
        """
        states = self._states(states)
        if not len(states):
            return []
        weights = self._weights_of(len(states), weights)
        everyone = one_per_person(limits, len(states))
        plans = self._plans_of(states, weights, everyone, np.arange(len(states)))
        return [
            self._explained(plan, state, weight, limit)
            for plan, state, weight, limit in zip(plans, states, weights, everyone, strict=True)
        ]

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
        hurried = max_rows is not None
        rows = self.max_rows if max_rows is None else min(max_rows, self.max_rows)
        quick = replace(self, max_rows=max(rows, 2 * self.longest))
        n = max(1, min(n, quick.max_rows // (2 * self.longest)))
        survey = memory if isinstance(memory, Survey) else Survey() if hurried else None
        if hurried and memory is None:
            return self._first_candidates(state, samples, n, limits, quick.max_rows)
        found = quick._optima(state, samples, limits, n * (self.longest - 1), survey, hurried)
        plans = tuple(self._distinct(found, n))
        learned = found.learned() if survey is not None else None
        return Candidates(plans, int(found.ledger.asked.sum()), learned)

    def _first_candidates(
        self, state: Floats, samples: Floats, n: int, limits: Limits, max_rows: int
    ) -> Candidates:
        """A third of the rows for all samples, a third for the first, the last for all again."""
        samples, third = np.atleast_2d(samples), max(max_rows // 3, 2 * self.longest)
        found, rows = Candidates((), 0, Survey()), 0
        for some in (samples, samples[:1], samples):
            found = self.candidates(state, some, n, limits, memory=found.memory, max_rows=third)
            rows += found.rows
            proven = all(plan.certificate.verdict == "optimal" for plan in found.plans)
            if some is samples and found.plans and proven:
                break
        return replace(found, rows=rows)

    def _distinct(self, found: Search, n: int) -> list[Plan]:
        support: dict[tuple[int, ...], list[int]] = {}
        for lane in found.lanes:
            if lane.incumbent is not None:
                support.setdefault(lane.incumbent.moves, []).append(lane.number)
        ranked = sorted(support.values(), key=len, reverse=True)
        return plans_of(found, self.black_box, [numbers[0] for numbers in ranked[:n]])

    def optima(self, state: Floats, samples: Floats, limits: Limits = NO_LIMITS) -> list[Plan]:
        """The optimal plan for each sample ``(s, p)``, all found in one pass."""
        found = self._optima(
            state, samples, limits, len(np.atleast_2d(samples)) * (self.longest - 1)
        )
        return plans_of(found, self.black_box)

    def _optima(
        self,
        state: Floats,
        samples: Floats,
        limits: Limits,
        reserve: int,
        survey: Survey | None = None,
        hurried: bool = False,
    ) -> Search:
        samples = np.atleast_2d(self._weights(samples))
        states = np.repeat(self._states(state), len(samples), axis=0)
        groups = np.zeros(len(samples), np.intp)
        return self._search(
            states, samples[:, None], [limits] * len(samples), groups, reserve, survey, hurried
        )

    def plans_by_length(
        self, state: Floats, weights: Floats, limits: Limits = NO_LIMITS
    ) -> list[Plan]:
        """The cheapest plan with at most 1, 2, 3… changes, in one pass."""
        longest = min(self.longest, limits.max_steps or self.longest)
        lanes = [replace(limits, max_steps=steps) for steps in range(1, longest + 1)]
        matrix = np.atleast_2d(self._weights(weights))
        states = np.repeat(self._states(state), longest, axis=0)
        weights = np.repeat(matrix[None], longest, axis=0)
        return self._plans_of(states, weights, lanes, np.zeros(longest, np.intp))

    def _explained(self, plan: Plan, state: Floats, weights: Floats, limits: Limits) -> Plan:
        """An infeasible verdict with the limits that block."""
        if plan.certificate.verdict != "infeasible" or limits == NO_LIMITS:
            return plan
        blocking = self._blocking(state, limits, weights.mean(axis=0))
        return plan.with_certificate(replace(plan.certificate, blocking=blocking))

    def _states(self, states: Floats) -> Floats:
        array = np.atleast_2d(np.asarray(states, float))
        if array.shape[1] != len(self.problem.space) or not np.isfinite(array).all():
            raise InvalidSetting(
                f"a state must hold {len(self.problem.space)} finite numbers "
                f"(got shape {array.shape}); use problem.state(record)"
            )
        return array

    def _weights(self, weights: Floats) -> Floats:
        return self.problem.costs.check_weights(weights)

    def _weights_of(self, n: int, weights: Floats) -> Floats:
        """Samples per person ``(n, s, p)``; a vector or a row per person is one sample each."""
        if isinstance(weights, np.ndarray) and weights.ndim == 3:
            checked = self._weights(weights.reshape(-1, weights.shape[2]))
            samples, shared = checked.reshape(weights.shape), len(weights) == 1
        else:
            checked = self._weights(weights)
            samples = checked[None, None] if checked.ndim == 1 else checked[:, None]
            shared = checked.ndim == 1
        if len(samples) != n and not shared:
            raise InvalidSetting(
                f"'weights' must be one vector or one per person (got {len(samples)} for {n})"
            )
        return np.repeat(samples, n, axis=0) if shared else samples

    def _plans_of(
        self,
        starts: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        groups: NDArray[np.intp],
    ) -> list[Plan]:
        lanes_each = int(np.bincount(groups).max())
        reserve = lanes_each * (self.longest - 1)
        return plans_of(self._search(starts, weights, limits, groups, reserve), self.black_box)

    def _search(
        self,
        starts: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        groups: NDArray[np.intp],
        reserve: int,
        survey: Survey | None = None,
        hurried: bool = False,
        any_plan: bool = False,
    ) -> Search:
        clock = Clock.started(self.max_seconds, reserve * (int(groups.max()) + 1))
        if reserve > self.max_rows // 2:
            raise BudgetTooSmall(
                f"'max_rows' of {self.max_rows} is too small for this many plans at once; "
                f"give at least {2 * reserve}"
            )
        tables = build_tables(
            self.problem, starts, weights, limits, self.longest, self.max_changes_per_feature
        )
        search = Search(
            tables,
            groups,
            np.array([self.problem.goal.bar(limit) for limit in limits]),
            self.max_rows,
            reserve=reserve,
            clock=clock,
            first_batch=self.first_batch,
            progress=self.progress,
            survey=survey if self.max_changes_per_feature == 1 else None,
            hurried=hurried,
            any_plan=any_plan,
        )
        if self.max_changes_per_feature > 1:
            # A plan that changes each feature once is one here too, and prunes most of the rest.
            once = replace(
                self, max_changes_per_feature=1, max_rows=self.max_rows // 2, progress=None
            )
            if self.max_seconds is not None:
                once.max_seconds = self.max_seconds / 2
            search.start_with(once._search(starts, weights, limits, groups, 0, any_plan=any_plan))
        drive(search, self.black_box)
        return search

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
        count = len(tried)
        if not count:
            return ()
        states = np.repeat(self._states(state), count, axis=0)
        everyone = np.repeat(weights[None, None], count, axis=0)
        # With chains, values depend on the limits, and lanes cannot share scores.
        shared = self.max_changes_per_feature == 1
        groups = np.zeros(count, np.intp) if shared else np.arange(count)
        quiet = replace(self, progress=None)
        found = quiet._search(
            states, everyone, [limits for _, limits in tried], groups, 0, any_plan=True
        )
        return tuple(
            words
            for (words, _), lane in zip(tried, found.lanes, strict=True)
            if lane.incumbent is not None
        )
