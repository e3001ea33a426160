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
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem, walk

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
        if self.max_rows < self.longest + 2:
            raise BudgetTooSmall(
                f"'max_rows' must be at least {self.longest + 2} for plans of up to {self.longest} "
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
        [plan] = self._search(
            self._states(state), np.atleast_2d(self._weights(weights))[None], [limits], np.zeros(1, np.intp)
        )
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
        return self._search(states, weights[:, None], everyone, np.arange(len(states)))

    def candidates(
        self,
        state: Floats,
        samples: Floats,
        n: int,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> list[Plan]:
        """Distinct plans, each optimal for some of the samples ``(s, p)``; most supported first."""
        plans = self.optima(state, samples, limits)
        support: dict[tuple[int, ...], list[Plan]] = {}
        for plan in plans:
            if plan.success:
                support.setdefault(plan.moves, []).append(plan)
        ranked = sorted(support.values(), key=lambda same: -len(same))
        return [same[0] for same in ranked[:n]]

    def optima(self, state: Floats, samples: Floats, limits: Limits = NO_LIMITS) -> list[Plan]:
        """The optimal plan for each sample ``(s, p)``, all found in one pass."""
        samples = np.atleast_2d(self._weights(samples))
        states = np.repeat(self._states(state), len(samples), axis=0)
        groups = np.zeros(len(samples), np.intp)
        return self._search(states, samples[:, None], [limits] * len(samples), groups)

    def plans_by_length(
        self, state: Floats, weights: Floats, limits: Limits = NO_LIMITS
    ) -> list[Plan]:
        """The cheapest plan with at most 1, 2, 3… changes, in one pass."""
        longest = min(self.longest, limits.max_steps or self.longest)
        lanes = [replace(limits, max_steps=steps) for steps in range(1, longest + 1)]
        matrix = np.atleast_2d(self._weights(weights))
        states = np.repeat(self._states(state), longest, axis=0)
        weights = np.repeat(matrix[None], longest, axis=0)
        return self._search(states, weights, lanes, np.zeros(longest, np.intp))

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

    def _search(
        self,
        starts: Floats,
        weights: Floats,
        limits: Sequence[Limits],
        groups: NDArray[np.intp],
    ) -> list[Plan]:
        began = time.monotonic()
        tables = build_tables(
            self.problem, starts, weights, limits, self.longest, self.max_changes_per_feature
        )
        search = Search(
            tables,
            groups,
            np.array([self.problem.goal.bar(limit) for limit in limits]),
            self.max_rows,
            deadline=np.inf if self.max_seconds is None else began + self.max_seconds,
            first_batch=self.first_batch,
            progress=self.progress,
        )
        lanes = drive(search, self.black_box)
        paths = [walk(starts[i], self.problem.actions, lane.incumbent.moves if lane.incumbent else ())
                 for i, lane in enumerate(lanes)]
        inner = [path[1:-1] for path in paths]
        between = np.concatenate(inner) if inner else np.zeros((0, starts.shape[1]))
        scores = self._step_scores(between, groups, inner, search)
        seconds = time.monotonic() - began
        return [
            self._finish(lane, starts[i], weights[i], limits[i], scores[i], search, seconds)
            for i, lane in enumerate(lanes)
        ]

    def _step_scores(
        self, between: Floats, groups: NDArray[np.intp], inner: list[Floats], search: Search
    ) -> list[Floats]:
        """Scores of the states between start and end of each plan; asked once per state."""
        if not len(between):
            return [np.zeros(0) for _ in inner]
        distinct, inverse = np.unique(between, axis=0, return_inverse=True)
        scores = self.black_box.score(distinct)[inverse.ravel()]
        ends = np.cumsum([len(states) for states in inner])
        sizes = np.array([len(states) for states in inner])
        search.rows_asked += np.bincount(groups, weights=sizes, minlength=len(search.rows_asked)).astype(np.intp)
        return [scores[end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def _finish(
        self,
        lane: Lane,
        start: Floats,
        weights: Floats,
        limits: Limits,
        inner_scores: Floats,
        search: Search,
        seconds: float,
    ) -> Plan:
        best = lane.incumbent
        timed_out = search.stopped_by_clock and not lane.decided
        proven = lane.decided and not lane.stopped
        if best is None:
            verdict = "infeasible" if proven else "unknown"
            lower = None if proven else _finite(lane.lower_bound)
        else:
            verdict = "optimal" if proven else "bounded"
            lower = best.cost if proven else _finite(lane.lower_bound)
        certificate = Certificate(
            verdict=verdict,  # type: ignore[arg-type]
            lower_bound=lower,
            upper_bound=best.cost if best else None,
            rows=int(search.rows_asked[search.groups[lane.number]]),
            seconds=seconds,
            max_length=int(search.tables.max_steps[lane.number]),
            max_changes_per_feature=self.max_changes_per_feature,
            reproducible=not timed_out,
        )
        moves = best.moves if best else ()
        end = [best.score] if best and best.moves else []
        scores = np.array([lane.start_score, *inner_scores, *end])
        return self.problem.make_plan(
            start,
            moves,
            weights if len(weights) > 1 else weights[0],
            scores,
            certificate,
            limits=limits,
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
        [plan] = self._search(
            self._states(state), weights[None, None], [limits], np.zeros(1, np.intp)
        )
        return plan.success


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
