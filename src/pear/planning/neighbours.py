"""Which training point with a favourable decision can this person reach? (FACE)

A graph joins each point of a sample of the training data to its nearest neighbours among
those that agree with it in everything a person cannot change. Edges through thinly
populated regions count as longer. The person is joined to it in the same way; of the
favourable points that can be reached, the one cheapest under our cost is the plan's end,
and the changes that lead there are made in random order.

The values come from training points, not from the action grid: such a plan is never
certified, and its steps say so.

References: Poyiadzi et al. (2020), FACE: feasible and actionable counterfactual
explanations; paper, section "Feasible and Actionable Counterfactual Explanations".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.neighbors import NearestNeighbors

from pear.arrays import Flags, Floats, Indices
from pear.decision import BlackBox
from pear.decision.encoding import unit_inputs
from pear.errors import InvalidSetting
from pear.planning.planner import Candidates, Memory, Planner, Query, check_parts
from pear.problem import NO_LIMITS, Action, Certificate, Limits, Plan, Problem, Step
from pear.problem.features import FeatureSpace, States, Value
from pear.problem.values import is_whole
from pear.problem.wording import phrase

OFF_GRID = "taken from a person in the training data, not from the list of steps offered here"


@dataclass(frozen=True)
class Routes:
    """Ways from one person to the favourable points.

    ``targets`` ``(q,)`` are the favourable points reached, by number; ``distances`` ``(q,)``
    the lengths of the shortest paths; ``previous`` ``(n + 1,)`` the point before each on its
    shortest path, the person being number n.
    """

    targets: Indices
    distances: Floats
    previous: Indices

    def path(self, target: int) -> list[int]:
        """The training points from the person (left out) to a target."""
        person, path = len(self.previous) - 1, [int(target)]
        while self.previous[path[-1]] != person:
            path.append(int(self.previous[path[-1]]))
        return path[::-1]


class NeighboursPlanner(Planner):
    """FACE on a sample of the training data.

    ``training`` is a table of records or states ``(n, d)``; ``share`` of it is sampled with
    ``seed``. Each point is joined to its ``k`` nearest, and to none further than ``radius``
    in any one feature, where the scaled range and another category both count 1.
    """

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        training: pd.DataFrame | States,
        *,
        share: float = 0.1,
        k: int = 50,
        radius: float = 1.0,
        max_length: int | None = None,
        seed: int = 0,
    ) -> None:
        check_parts(problem, black_box)
        if not 0 < share <= 1:
            raise InvalidSetting(f"'share' must be in (0, 1] (got {share!r}); 1 takes every point")
        if not is_whole(k) or k < 1:
            raise InvalidSetting(f"'k' must be a whole number of at least 1 (got {k!r})")
        if not radius > 0:
            raise InvalidSetting(f"'radius' must be a positive number (got {radius!r})")
        self.problem, self.black_box = problem, black_box
        self.k, self.radius, self.max_length = k, radius, max_length
        states = _states(problem.space, training)
        size = max(1, round(share * len(states)))
        chosen = np.random.default_rng(seed).choice(len(states), size, replace=False)
        self.points: States = states[np.sort(chosen)]

    @cached_property
    def fixed(self) -> Indices:
        """Columns no action changes: points joined by an edge agree in them."""
        return np.setdiff1d(np.arange(len(self.problem.space)), self.problem.actions.actionable)

    @cached_property
    def scores(self) -> Floats:
        """The model's scores of the points, ``(n,)``; asked once."""
        return self.black_box.score(self.points)

    @cached_property
    def sparseness(self) -> Floats:
        """How thinly populated the region of each point is, ``(n,)``; 1 is the usual."""
        neighbours = NearestNeighbors(n_neighbors=min(self.k + 1, len(self.points)))
        places = places_of(self.problem.space, self.points)
        reach = neighbours.fit(places).kneighbors(places)[0][:, -1]
        return np.asarray(np.maximum(reach, 1e-9) / max(float(np.median(reach)), 1e-9))

    @cached_property
    def graph(self) -> sparse.csr_array:
        """Edges between points with their lengths, sparse ``(n, n)``."""
        return self._edges(self.points, self.sparseness, to_itself=True)

    def routes(self, state: Floats, limits: Limits = NO_LIMITS) -> Routes:
        """Shortest paths from a person to every favourable point they can reach."""
        n = len(self.points)
        entry = self._edges(np.atleast_2d(state), np.ones(1), to_itself=False)
        corner = sparse.csr_array((n, 1))
        whole = sparse.csr_array(
            sparse.vstack(
                [
                    sparse.hstack([self.graph, corner]),
                    sparse.hstack([entry, sparse.csr_array((1, 1))]),
                ]
            )
        )
        distances, previous = csgraph.dijkstra(whole, indices=n, return_predecessors=True)
        good = self.scores > self.problem.goal.required(limits)
        targets = np.flatnonzero(good & np.isfinite(distances[:n]))
        return Routes(targets, distances[targets], previous.astype(np.intp))

    def _plan_each(self, queries: Sequence[Query]) -> list[Plan]:
        """The cheapest favourable training point each can reach, as changes in random order."""
        return [(self._plans(query, 1) or [self._no_plan(query)])[0] for query in queries]

    def _candidates(
        self, query: Query, n: int, memory: Memory | None, max_rows: int | None
    ) -> Candidates:
        """Plans to different training points, the cheapest on average first."""
        return Candidates(tuple(self._plans(query, n)), rows=1)

    def _plans(self, query: Query, n: int) -> list[Plan]:
        began, state, limits = time.perf_counter(), query.state, query.limits
        self.problem.actions.allowed(state[None], limits)  # refuses limits on unknown names
        if self.black_box.favourable(state[None], limits)[0]:
            ends, orders = state[None], [np.zeros(0, np.intp)]
        else:
            ends, orders = self._ends(state, limits, query.generator)
        graph = self.problem.costs
        costs = np.array(
            [
                graph.change_costs(state, end, order, query.samples).sum()
                for end, order in zip(ends, orders, strict=True)
            ]
        )
        certificate = Certificate(
            "heuristic",
            rows=1,
            seconds=time.perf_counter() - began,
            max_length=self._longest(limits),
        )
        return [
            self._plan_to(query, ends[i], orders[i], certificate)
            for i in np.argsort(costs, kind="stable")[:n]
        ]

    def _no_plan(self, query: Query) -> Plan:
        certificate = Certificate("unknown", rows=1, max_length=self._longest(query.limits))
        return self._plan_to(query, query.state, np.zeros(0, np.intp), certificate)

    def _plan_to(self, query: Query, end: Floats, order: Indices, certificate: Certificate) -> Plan:
        """A plan off the action grid: columns changed to the values of ``end``, in an order."""
        space, states = self.problem.space, [query.state]
        for column in order.tolist():
            states.append(states[-1].copy())
            states[-1][column] = end[column]
        scores = self.black_box.score(np.array(states))
        costs = self.problem.costs.change_costs(query.state, end, order, query.samples)
        steps = []
        for i, column in enumerate(order.tolist()):
            feature = space.features[column]
            action = Action(f"change {feature.name}", feature.name, "set", ())
            before, after = float(states[i][column]), float(end[column])
            value = cast(Value, feature.value(after))
            steps.append(
                Step(
                    action=action.name,
                    argument=value,
                    feature=feature.name,
                    before=feature.value(before),
                    after=value,
                    cost=float(costs[i]),
                    score_before=float(scores[i]),
                    score_after=float(scores[i + 1]),
                    words=phrase(action, feature, before, after, value),
                    reason=OFF_GRID,
                )
            )
        return Plan(
            start=space.decode(query.state)[0],
            steps=tuple(steps),
            cost=float(costs.sum()),
            score=float(scores[-1]),
            success=bool(scores[-1] > self.problem.goal.required(query.limits)),
            certificate=certificate,
            on_grid=not steps,
            method="face",
            problem_fingerprint=self.problem.fingerprint,
            model_fingerprint=self.black_box.fingerprint,
            weights=tuple(map(tuple, query.samples.tolist())),
            limits=query.limits,
        )

    def _longest(self, limits: Limits) -> int:
        return self.max_length or self.problem.longest(limits)

    def _ends(
        self, state: Floats, limits: Limits, rng: np.random.Generator
    ) -> tuple[States, list[Indices]]:
        """Distinct favourable points within this person's limits, each with an order of changes."""
        routes = self.routes(state, limits)
        ends = np.unique(self.points[routes.targets], axis=0).reshape(-1, len(state))
        changed = ends != state
        keep = changed.sum(axis=1) <= self._longest(limits)
        keep &= ~(changed & ~_open_columns(self.problem, limits)).any(axis=1)
        for name, value in limits.values:
            column = self.problem.space.index(name)
            code = self.problem.space[name].code(value)
            keep &= ~(changed[:, column] & (ends[:, column] == code))
        ends, changed = ends[keep], changed[keep]
        return ends, [rng.permutation(np.flatnonzero(row)) for row in changed]

    def _edges(self, states: States, sparseness: Floats, *, to_itself: bool) -> sparse.csr_array:
        """Edges from states to points that agree in the fixed columns, sparse ``(len, n)``."""
        mine, theirs = states[:, self.fixed], self.points[:, self.fixed]
        _, groups = np.unique(np.vstack([theirs, mine]), axis=0, return_inverse=True)
        groups = groups.reshape(-1)
        of_points, of_states = groups[: len(theirs)], groups[len(theirs) :]
        starts, ends, lengths = [], [], []
        for group in np.unique(of_states):
            rows, members = np.flatnonzero(of_states == group), np.flatnonzero(of_points == group)
            if not len(members):
                continue
            wanted = min(self.k + to_itself, len(members))
            places = places_of(self.problem.space, self.points[members])
            nearest = NearestNeighbors(n_neighbors=wanted).fit(places)
            distances, found = nearest.kneighbors(places_of(self.problem.space, states[rows]))
            starts.append(np.repeat(rows, wanted))
            ends.append(members[found].ravel())
            lengths.append(distances.ravel())
        if not starts:
            return sparse.csr_array((len(states), len(self.points)))
        row, column, length = np.concatenate(starts), np.concatenate(ends), np.concatenate(lengths)
        apart = self.problem.space.distances(states[row], self.points[column])
        near = apart.max(axis=1) <= self.radius
        if to_itself:
            near &= row != column
        row, column = row[near], column[near]
        # A sparse matrix would take a length of 0 for no edge at all.
        weighted = np.maximum(length[near], 1e-9) * (sparseness[row] + self.sparseness[column]) / 2
        return sparse.csr_array((weighted, (row, column)), (len(states), len(self.points)))


def places_of(space: FeatureSpace, states: States) -> States:
    """Where points lie for distances: scaled numbers, categories one unit apart."""
    places = unit_inputs(space)(states)
    start = 0
    for feature in space.features:
        width = len(feature.categories) if feature.is_categorical else 1
        if feature.is_categorical:
            places[:, start : start + width] /= np.sqrt(2)
        start += width
    return places


def _open_columns(problem: Problem, limits: Limits) -> Flags:
    """Columns that some action this person accepts changes, ``(d,)``."""
    open_ = np.zeros(len(problem.space), bool)
    for action in problem.actions.actions:
        if action.name not in limits.actions and action.feature not in limits.features:
            open_[problem.space.index(action.feature)] = True
    return open_


def _states(space: FeatureSpace, training: Any) -> States:
    if isinstance(training, pd.DataFrame):
        return space.encode(training[[name for name in space.names if name in training.columns]])
    states = np.asarray(training, float)
    if states.ndim != 2 or states.shape[1] != len(space) or not len(states):
        raise InvalidSetting(
            f"'training' must be a table or states of shape (n, {len(space)}) with n at least 1 "
            f"(got shape {states.shape})"
        )
    return states
