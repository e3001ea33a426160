"""The certified exact planner: the cheapest plan, and the proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.errors import BudgetTooSmall, InvalidSetting
from pear.planning.exact.drivers import drive
from pear.planning.exact.lane import Lane
from pear.planning.exact.options import build_tables
from pear.planning.exact.search import FIRST_BATCH, Progress, Search
from pear.planning.exact.survey import Survey
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem, walk
from pear.problem.plan import Verdict

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
                f"'max_changes_per_feature' must be at least 1 (got {self.max_changes_per_feature!r})"
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
        if plan.certificate.verdict == "infeasible" and limits != NO_LIMITS:
            blocking = self._blocking(state, weights, limits)
            plan = plan.with_certificate(replace(plan.certificate, blocking=blocking))
        return plan

    def plan_many(
        self,
        states: Floats,
        weights: Floats,
        limits: Sequence[Limits] | None = None,
    ) -> list[Plan]:
        """Plans for n people in lockstep: ``states`` ``(n, d)``, ``weights`` ``(n, p)`` or ``(p,)``."""
        states = self._states(states)
        weights = self._weights(weights)
        if weights.ndim == 1:
            weights = np.repeat(weights[None], len(states), axis=0)
        if len(weights) != len(states):
            raise InvalidSetting(
                f"'weights' must be one vector or one per person (got {len(weights)} for {len(states)})"
            )
        if not len(states):
            return []
        everyone = list(limits) if limits is not None else [NO_LIMITS] * len(states)
        return self._plans_of(states, weights[:, None], everyone, np.arange(len(states)))

    def candidates(
        self,
        state: Floats,
        samples: Floats,
        n: int,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> list[Plan]:
        """Distinct plans, each optimal for some of the samples ``(s, p)``; most supported first.

        Costs and certificate of each plan are those for the first sample it is optimal for.
        """
        n = max(1, min(n, self.max_rows // (2 * self.longest)))
        return self._distinct(self._optima(state, samples, limits, n * (self.longest - 1)), n)

    def _distinct(self, found: Search, n: int) -> list[Plan]:
        support: dict[tuple[int, ...], list[int]] = {}
        for lane in found.lanes:
            if lane.incumbent is not None:
                support.setdefault(lane.incumbent.moves, []).append(lane.number)
        ranked = sorted(support.values(), key=len, reverse=True)
        return self._plans(found, [numbers[0] for numbers in ranked[:n]])

    def surveyed_candidates(
        self,
        state: Floats,
        samples: Floats,
        n: int,
        survey: Survey,
        limits: Limits = NO_LIMITS,
    ) -> tuple[list[Plan], Survey]:
        """As :meth:`candidates`, starting from what earlier calls for this state learned.

        The plans are the best known for the samples; a proof is given up where it would
        take more than ``max_rows`` assignments of one sample.
        """
        n = max(1, min(n, self.max_rows // (2 * self.longest)))
        reserve = n * (self.longest - 1)
        found = self._optima(state, samples, limits, reserve, survey=survey)
        return self._distinct(found, n), found.learned()

    def optima(self, state: Floats, samples: Floats, limits: Limits = NO_LIMITS) -> list[Plan]:
        """The optimal plan for each sample ``(s, p)``, all found in one pass."""
        found = self._optima(
            state, samples, limits, len(np.atleast_2d(samples)) * (self.longest - 1)
        )
        return self._plans(found)

    def _optima(
        self,
        state: Floats,
        samples: Floats,
        limits: Limits,
        reserve: int,
        survey: Survey | None = None,
    ) -> Search:
        samples = np.atleast_2d(self._weights(samples))
        states = np.repeat(self._states(state), len(samples), axis=0)
        groups = np.zeros(len(samples), np.intp)
        return self._search(
            states, samples[:, None], [limits] * len(samples), groups, reserve, survey
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

    def _plans_of(
        self,
        starts: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        groups: NDArray[np.intp],
    ) -> list[Plan]:
        lanes_each = int(np.bincount(groups).max())
        reserve = lanes_each * (self.longest - 1)
        return self._plans(self._search(starts, weights, limits, groups, reserve))

    def _search(
        self,
        starts: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        groups: NDArray[np.intp],
        reserve: int,
        survey: Survey | None = None,
    ) -> Search:
        began = time.monotonic()
        tables = build_tables(
            self.problem, starts, weights, limits, self.longest, self.max_changes_per_feature
        )
        if reserve > self.max_rows // 2:
            raise BudgetTooSmall(
                f"'max_rows' of {self.max_rows} is too small for this many plans at once; "
                f"give at least {2 * reserve}"
            )
        search = Search(
            tables,
            groups,
            np.array([self.problem.goal.bar(limit) for limit in limits]),
            self.max_rows,
            reserve=reserve,
            deadline=np.inf if self.max_seconds is None else began + self.max_seconds,
            first_batch=self.first_batch,
            progress=self.progress,
            survey=survey if self.max_changes_per_feature == 1 else None,
            hurried=survey is not None,
        )
        drive(search, self.black_box)
        return search

    def _plans(self, search: Search, chosen: Sequence[int] | None = None) -> list[Plan]:
        """Plans of the chosen lanes, with the score of every state on the way."""
        numbers = range(len(search.lanes)) if chosen is None else chosen
        lanes = [search.lanes[number] for number in numbers]
        inner = [
            walk(search.tables.starts[lane.number], self.problem.actions, lane.moves)[1:-1]
            for lane in lanes
        ]
        sizes = [len(states) for states in inner]
        scores = np.zeros(0)
        if sum(sizes):
            scores = self.black_box.score(np.concatenate(inner))
            groups = search.groups[[lane.number for lane in lanes]]
            search.rows_asked += np.bincount(
                np.repeat(groups, sizes), minlength=len(search.rows_asked)
            )
        parts = np.split(scores, np.cumsum(sizes)[:-1]) if lanes else []
        return [self._finish(lane, part, search) for lane, part in zip(lanes, parts, strict=True)]

    def _finish(self, lane: Lane, inner_scores: Floats, search: Search) -> Plan:
        best, tables, number = lane.incumbent, search.tables, lane.number
        proven = lane.decided and not lane.stopped
        verdict: Verdict
        if best is None:
            verdict, lower = ("infeasible", None) if proven else ("unknown", lane.lower_bound)
        else:
            verdict, lower = ("optimal", best.cost) if proven else ("bounded", lane.lower_bound)
        certificate = Certificate(
            verdict=verdict,
            lower_bound=lower if lower is not None and np.isfinite(lower) else None,
            upper_bound=best.cost if best else None,
            rows=int(search.rows_asked[search.groups[number]]),
            seconds=time.monotonic() - search.began,
            max_length=int(tables.max_steps[number]),
            max_changes_per_feature=self.max_changes_per_feature,
            reproducible=proven or not search.stopped_by_clock,
        )
        end = [best.score] if best and best.moves else []
        weights = tables.weights[number]
        return self.problem.make_plan(
            tables.starts[number],
            lane.moves,
            weights if len(weights) > 1 else weights[0],
            np.array([lane.start_score, *inner_scores, *end]),
            certificate,
            limits=tables.limits[number],
            model_fingerprint=self.black_box.fingerprint,
        )

    def _blocking(
        self, state: Floats, weights: Floats, limits: Limits
    ) -> tuple[tuple[str, ...], ...]:
        """Limits, alone or in pairs, whose removal opens a plan."""
        quiet = replace(self, progress=None)
        singles = list(limits.parts())
        matrix = np.atleast_2d(self._weights(weights)).mean(axis=0)
        found = [(words,) for words, rest in singles if quiet._opens(state, matrix, rest)]
        if found:
            return tuple(found)
        for words, rest in singles:
            for other, rest_of_both in rest.parts():
                if words < other and quiet._opens(state, matrix, rest_of_both):
                    found.append((words, other))
        return tuple(found)

    def _opens(self, state: Floats, weights: Floats, limits: Limits) -> bool:
        [plan] = self._plans_of(
            self._states(state), weights[None, None], [limits], np.zeros(1, np.intp)
        )
        return plan.success
