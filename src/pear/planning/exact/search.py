"""The search itself: it yields batches of states and receives their scores.

Lanes of the same group share a start state and therefore the scores of states. Every
assignment whose bound is below the lane's incumbent is scored, smallest bound first, so
the verdict is a proof. It never calls the model; a driver does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.assignments import Rows, below
from pear.planning.exact.beam import beam_moves
from pear.planning.exact.known import KnownScores, assignment_keys, key_words
from pear.planning.exact.lane import Incumbent, Lane, single_changes
from pear.planning.exact.options import Floats, Indices, Tables
from pear.planning.exact.order import best_orders
from pear.planning.exact.sequences import Target, best_sequence
from pear.planning.exact.survey import Survey, changed_moves

SearchSteps = Generator[Floats, Floats, "list[Lane]"]

FIRST_BATCH = 64
LARGEST_BATCH = 8_192
RECALLED = 3
"""Favourable states of a survey whose exact order is worked out for each lane."""
BEAM_AFTER = 4_000
"""Rows after which a lane without a plan is given one by a score-guided beam."""


@dataclass(frozen=True)
class Progress:
    """How far a search is: ``open_lanes`` of ``lanes`` are not decided yet."""

    rows: int
    lanes: int
    open_lanes: int
    lower_bound: float
    upper_bound: float
    seconds: float


@dataclass
class Search:
    """One search over the lanes of ``tables``.

    ``groups`` ``(N,)`` says which lanes share a person; ``bars`` ``(N,)`` is the score a
    favourable state exceeds; ``max_rows`` is a budget per group.
    """

    tables: Tables
    groups: Indices
    bars: Floats
    max_rows: int
    reserve: int = 0
    """Rows of the budget kept back for the scores along the plans found."""
    deadline: float = np.inf
    first_batch: int = FIRST_BATCH
    progress: Callable[[Progress], None] | None = None
    survey: Survey | None = None
    """What earlier searches from the same start learned; only with a single group."""
    hurried: bool = False
    """Give a lane up that has a plan and more to prove than the budget allows."""
    lanes: list[Lane] = field(default_factory=list)
    rows_asked: Indices = field(default_factory=lambda: np.zeros(0, np.intp))
    stopped_by_clock: bool = False
    began: float = 0.0

    def steps(self) -> SearchSteps:
        """Yields states ``(n, d)``, receives their scores ``(n,)``, returns the decided lanes."""
        self.began = time.monotonic()
        self._rate = np.inf
        count = len(self.tables.starts)
        n_groups = int(self.groups.max()) + 1
        self.rows_asked = np.zeros(n_groups, np.intp)
        self._members = [np.flatnonzero(self.groups == g) for g in range(n_groups)]
        shared = self.tables.max_changes > 1
        self._known = [
            KnownScores() if len(members) > 1 or shared else None for members in self._members
        ]
        if self.survey is not None:
            self._known = [self.survey.known.copy()]
        self._found: tuple[list[Indices], list[Floats]] = ([], [])
        self.lanes = [Lane(number, hurried=self.hurried) for number in range(count)]
        firsts = np.array([members[0] for members in self._members])
        scores = yield from self._ask(self.tables.starts[firsts], np.arange(n_groups))
        singles = single_changes(self.tables)
        for lane in self.lanes:
            lane.start_score = float(scores[self.groups[lane.number]])
            if lane.start_score > self.bars[lane.number]:
                lane.decide(Incumbent(0.0, 0, -1, (), lane.start_score))
            lane.begin(singles[lane.number], float(self.tables.rest[0, lane.number]))
        if self.survey is not None and len(self.survey.scores):
            self._recall(self.survey)
        while True:
            open_lanes = [lane for lane in self.lanes if not lane.decided]
            if not open_lanes:
                break
            if time.monotonic() >= self.deadline:
                self.stopped_by_clock = True
                break
            yield from self._beams(open_lanes)
            self._refill([lane for lane in open_lanes if not lane.pending_left])
            yield from self._score_round([lane for lane in open_lanes if not lane.decided])
            self._report()
        return self.lanes

    def learned(self) -> Survey:
        """The survey with everything this search found."""
        [known] = self._known
        return (self.survey or Survey()).extended(known or KnownScores(), *self._found)

    def _recall(self, survey: Survey) -> None:
        """Give lanes the best of the favourable states known before."""
        numbers = np.array([lane.number for lane in self.lanes if not lane.decided], np.intp)
        if not len(numbers):
            return
        rows, scores = survey.rows(self.tables, numbers)
        fine = scores > self.bars[rows.lanes]
        rows, scores = rows.take(np.flatnonzero(fine)), scores[fine]
        keys = assignment_keys(self.tables, rows.lanes, rows.options)
        order = np.lexsort((*key_words(keys)[::-1], rows.steps, rows.bounds, rows.lanes))
        place = np.arange(len(order)) - np.searchsorted(rows.lanes[order], rows.lanes[order])
        for i in order[place < RECALLED]:
            lane = self.lanes[rows.lanes[i]]
            if lane.improves(rows.bounds[i], rows.steps[i], keys[i]):
                options = np.array([column[i] for column in rows.options])
                self._offer(lane, options, int(rows.steps[i]), keys[i], float(scores[i]))

    def _refill(self, lanes: list[Lane]) -> None:
        """Enumerate the next shell of the lanes that have nothing left to score."""
        lanes = [lane for lane in lanes if not lane.close_if_done()]
        if not lanes:
            return
        numbers = np.array([lane.number for lane in lanes])
        thresholds = np.full(len(self.lanes), -np.inf)
        caps = np.zeros(len(self.lanes), np.intp)
        for lane in lanes:
            thresholds[lane.number] = lane.next_threshold()
            caps[lane.number] = lane.cap(self.max_rows)
        shell = below(self.tables, numbers, thresholds, caps)
        rows = self._without_impossible(shell.rows)
        keys = assignment_keys(self.tables, rows.lanes, rows.options)
        order = np.lexsort((*key_words(keys)[::-1], rows.steps, rows.bounds, rows.lanes))
        rows, keys = rows.take(order), keys[order]
        ends = np.searchsorted(rows.lanes, np.r_[numbers, numbers + 1])
        for i, lane in enumerate(lanes):
            mine = np.arange(ends[i], ends[i + len(lanes)])
            lane.receive(
                rows.take(mine),
                keys[mine],
                threshold=float(thresholds[lane.number]),
                cut=bool(shell.cut[lane.number]),
                dropped=bool(shell.dropped[lane.number]),
            )

    def _without_impossible(self, rows: Rows) -> Rows:
        """Drop assignments in which a change never gets what it requires of another feature."""
        actions = self.tables.problem.actions
        if not actions.requirement_tables or self.tables.max_changes > 1 or not len(rows):
            return rows
        states = self.tables.states(rows.lanes, rows.options)
        fine = np.ones(len(rows), bool)
        level_of = {level.column: i for i, level in enumerate(self.tables.levels)}
        for action, column, requirement in actions.requirement_tables:
            changed = level_of[actions.space.index(actions.actions[action].feature)]
            moves = self.tables.levels[changed].moves[rows.lanes, rows.options[changed]]
            uses = (moves >= 0) & (actions.action_of[moves] == action)
            before = self.tables.starts[rows.lanes, column]
            met = actions.requirement_met(column, requirement, before)
            met |= actions.requirement_met(column, requirement, states[:, column])
            fine &= ~uses | met
        return rows.take(np.flatnonzero(fine))

    def _score_round(self, lanes: list[Lane]) -> Generator[Floats, Floats, None]:
        batches: list[tuple[Lane, Rows, NDArray[np.generic]]] = []
        for lane in lanes:
            left = self._budget_left(int(self.groups[lane.number]))
            size = self._batch_size(lane, left)
            rows, keys = lane.next_batch(size)
            if len(rows):
                batches.append((lane, rows, keys))
            elif left <= 0:
                lane.stop()
        asked, owners, plan = self._unknown(batches)
        scores = yield from self._ask(asked, owners)
        for (lane, rows, keys), where in zip(batches, plan, strict=True):
            known = self._known[self.groups[lane.number]]
            if known is None:
                mine = scores[where]
            else:
                mine = known.scores(keys)
            finished = len(mine) == len(rows) and not np.isnan(mine).any()
            done = len(rows) if finished else int(np.argmax(np.isnan(mine)))
            self._learn(lane, rows.take(np.arange(done)), keys[:done], mine[:done])
            lane.scored(done)
            if done < len(rows):
                lane.stop()

    def _unknown(
        self, batches: list[tuple[Lane, Rows, NDArray[np.generic]]]
    ) -> tuple[Floats, Indices, list[Indices]]:
        """States of a round nobody knows the score of, within the budget of their group."""
        parts: list[Floats] = []
        owners: list[Indices] = []
        plan: list[Indices] = []
        total = 0
        self._fresh: list[tuple[KnownScores, NDArray[np.generic], slice]] = []
        by_group: dict[int, list[tuple[Lane, Rows, NDArray[np.generic]]]] = {}
        for lane, rows, keys in batches:
            by_group.setdefault(int(self.groups[lane.number]), []).append((lane, rows, keys))
        for group, members in by_group.items():
            left = self._budget_left(group)
            known = self._known[group]
            if known is None:
                lane, rows, _ = members[0]
                rows = rows.take(np.arange(min(len(rows), left)))
                fresh = self.tables.states(rows.lanes, rows.options)
                plan.append(np.arange(total, total + len(rows)))
            else:
                keys = np.concatenate([keys for _, _, keys in members])
                first = known.first_unknown(keys)
                bounds = np.concatenate([rows.bounds for _, rows, _ in members])
                first = first[np.argsort(bounds[first], kind="stable")][:left]
                lanes = np.concatenate([rows.lanes for _, rows, _ in members])[first]
                options = [
                    np.concatenate(column)[first]
                    for column in zip(*(rows.options for _, rows, _ in members), strict=True)
                ]
                fresh = self.tables.states(lanes, options)
                self._fresh.append((known, keys[first], slice(total, total + len(first))))
                plan.extend(np.zeros(0, np.intp) for _ in members)
            parts.append(fresh)
            owners.append(np.full(len(fresh), group))
            total += len(fresh)
        if not parts:
            return np.zeros((0, self.tables.starts.shape[1])), np.zeros(0, np.intp), plan
        batches[:] = [item for members in by_group.values() for item in members]
        return np.concatenate(parts), np.concatenate(owners), plan

    def _ask(self, states: Floats, owners: Indices) -> Generator[Floats, Floats, Floats]:
        if not len(states):
            return np.zeros(0)
        began = time.monotonic()
        scores = yield states
        spent = time.monotonic() - began
        self._rate = len(states) / max(spent, 1e-9)
        self.rows_asked += np.bincount(owners, minlength=len(self.rows_asked))
        for known, keys, where in getattr(self, "_fresh", ()):
            known.add(keys, scores[where])
        self._fresh = []
        return scores

    def _learn(self, lane: Lane, rows: Rows, keys: NDArray[np.generic], scores: Floats) -> None:
        """Favourable states get their exact cheapest order and may lower incumbents."""
        if self.survey is not None:
            good = np.flatnonzero(scores > self.bars[lane.number])
            self._found[0].append(changed_moves(self.tables, rows.take(good)))
            self._found[1].append(scores[good])
        for i in np.flatnonzero(scores > self.bars[lane.number]):
            if not lane.improves(rows.bounds[i], rows.steps[i], keys[i]):
                break
            options = np.array([column[i] for column in rows.options])
            self._offer(lane, options, int(rows.steps[i]), keys[i], float(scores[i]))

    def _offer(
        self, lane: Lane, options: NDArray[np.int16], steps: int, key: object, score: float
    ) -> None:
        tables, number = self.tables, lane.number
        start = tables.starts[number]
        if tables.max_changes > 1:
            targets = [
                Target(lv.column, float(lv.values[number, o]), int(lv.links[number, o]))
                for lv, o in zip(tables.levels, options, strict=True)
                if o
            ]
            cost, moves = best_sequence(
                tables.problem,
                start,
                targets,
                tables.weights[number],
                tables.limits[number],
                lane.ceiling(),
            )
            lane.take(Incumbent(cost, steps, key, tuple(moves.tolist()), score))
            return
        moves = np.array(
            [lv.moves[number, o] for lv, o in zip(tables.levels, options, strict=True) if o]
        )
        members = [
            other
            for other in self._members[self.groups[number]]
            if not self.lanes[other].decided
            and self.tables.limits[other] == self.tables.limits[number]
        ]
        costs, orders = best_orders(tables.problem, start, moves, tables.weights[members])
        for other, cost, order in zip(members, costs, orders, strict=True):
            if steps <= tables.max_steps[other] and score > self.bars[other]:
                incumbent = Incumbent(float(cost), steps, key, tuple(order.tolist()), score)
                self.lanes[other].take(incumbent)

    def _beams(self, lanes: list[Lane]) -> Generator[Floats, Floats, None]:
        """Give hard lanes a first plan: one score-guided beam per group."""
        for group in {int(self.groups[lane.number]) for lane in lanes}:
            members = [lane for lane in lanes if self.groups[lane.number] == group]
            ready = self.rows_asked[group] >= min(BEAM_AFTER, self.max_rows // 4)
            if not ready or members[0].beamed or all(lane.incumbent for lane in members):
                continue
            for lane in members:
                lane.beamed = True
            lane = members[0]
            left = min(self._budget_left(group), self.max_rows // 4)
            found = yield from beam_moves(
                self.tables,
                lane.number,
                float(self.bars[lane.number]),
                left,
                lambda states, group=group: self._ask(states, np.full(len(states), group)),
            )
            for moves, score in found:
                self._take_sequence(members, moves, score)

    def _take_sequence(self, members: list[Lane], moves: Indices, score: float) -> None:
        tables = self.tables
        for lane in members:
            if len(moves) > tables.max_steps[lane.number] or score <= self.bars[lane.number]:
                continue
            if tables.limits[lane.number] != tables.limits[members[0].number]:
                continue
            weights = tables.weights[[lane.number]]
            costs, orders = best_orders(tables.problem, tables.starts[lane.number], moves, weights)
            key = np.iinfo(np.int64).max
            lane.take(Incumbent(float(costs[0]), len(moves), key, tuple(orders[0].tolist()), score))

    def _budget_left(self, group: int) -> int:
        return max(0, self.max_rows - self.reserve - int(self.rows_asked[group]))

    def _batch_size(self, lane: Lane, left: int) -> int:
        size = min(self.first_batch << min(lane.rounds, 20), LARGEST_BATCH, left)
        if np.isfinite(self.deadline):
            seconds = max(self.deadline - time.monotonic(), 0.0)
            rate = self._rate if np.isfinite(self._rate) else 1.0
            size = min(size, max(1, int(rate * seconds / 20)))
        return size

    def _report(self) -> None:
        if self.progress is None:
            return
        lows = [lane.lower_bound for lane in self.lanes]
        highs = [lane.upper_bound for lane in self.lanes]
        self.progress(
            Progress(
                rows=int(self.rows_asked.sum()),
                lanes=len(self.lanes),
                open_lanes=sum(not lane.decided for lane in self.lanes),
                lower_bound=float(np.mean(lows)),
                upper_bound=float(np.mean(highs)),
                seconds=time.monotonic() - self.began,
            )
        )
