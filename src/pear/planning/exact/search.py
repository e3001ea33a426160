"""The search itself: it yields batches of states and receives their scores.

Lanes of the same group share a start state and therefore the scores of states. Every
assignment whose bound is below a lane's incumbent is scored, smallest bound first, so the
verdict is a proof. It never calls the model; a driver does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pear.planning.exact.assignments import Rows
from pear.planning.exact.beam import WIDTH, beam_is_due, beam_moves, beams_together
from pear.planning.exact.clock import Clock, TimeUp
from pear.planning.exact.front import LAST_KEY, Front, Incumbent, Lane
from pear.planning.exact.fronts import find_fronts, front_tables
from pear.planning.exact.known import KnownScores
from pear.planning.exact.ledger import Ledger
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.offers import offer_moves, offer_rows
from pear.planning.exact.polish import polish
from pear.planning.exact.scatter import scattered_plans
from pear.planning.exact.shells import refill
from pear.planning.exact.survey import Survey, changed_moves, moves_by_level
from pear.planning.exact.tables import Tables

FAR = 0.8
"""A plan whose lower bound is below this share of its cost is far from proven."""

SearchSteps = Generator[Floats, Floats, "list[Lane]"]

FIRST_BATCH = 64
LARGEST_BATCH = 8_192
RECALLED = 3
"""Favourable states of a survey, for each lane, whose exact order is worked out first."""


@dataclass(frozen=True)
class Progress:
    """How far a search is: ``open_lanes`` of ``lanes`` are not decided yet.

    ``lower_bound`` and ``upper_bound`` are means over the lanes; the upper one is infinite
    while a lane has no plan.
    """

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
    clock: Clock = field(default_factory=lambda: Clock.started(None))
    first_batch: int = FIRST_BATCH
    progress: Callable[[Progress], None] | None = None
    survey: Survey | None = None
    """What earlier searches from the same start learned; only with a single group."""
    hurried: bool = False
    """Give a front up that has plans and more to prove than the budget allows."""
    any_plan: bool = False
    """Be content with the first plan of each lane."""

    def __post_init__(self) -> None:
        front_of = find_fronts(self.tables, self.groups)
        self.front_tables = front_tables(self.tables, front_of)
        units = self.tables.units.tolist()
        self.lanes = [Lane(number, unit) for number, unit in enumerate(units)]
        members: list[list[Lane]] = [[] for _ in range(len(self.front_tables.starts))]
        for lane, number in zip(self.lanes, front_of.tolist(), strict=True):
            members[number].append(lane)
        self.fronts = [
            Front(number, lanes, max(lane.unit for lane in lanes), self.hurried)
            for number, lanes in enumerate(members)
        ]
        self.front_of = [self.fronts[number] for number in front_of.tolist()]
        self._of_group: list[list[Front]] = [[] for _ in range(int(self.groups.max()) + 1)]
        for front in self.fronts:
            self._of_group[self.group(front)].append(front)
        known: list[KnownScores | None] = [None] * len(self._of_group)
        for group, fronts in enumerate(self._of_group):
            if self.survey is not None:
                known[group] = self.survey.known.copy()
            elif len(fronts) > 1 or self.tables.max_changes > 1:
                known[group] = KnownScores()
        self.ledger = Ledger(self.front_tables, self.max_rows, self.reserve, self.clock, known)
        self._found: tuple[list[Indices], list[Floats]] = ([], [])

    def group(self, front: Front) -> int:
        """The person a front belongs to."""
        return int(self.groups[front.lanes[0].number])

    def bar(self, front: Front) -> float:
        """The score a favourable state of a front exceeds."""
        return float(self.bars[front.lanes[0].number])

    def steps(self) -> SearchSteps:
        """Yields states ``(n, d)``, receives their scores ``(n,)``, returns the decided lanes."""
        yield from self._begin()
        try:
            while True:
                fronts = [front for front in self.fronts if not front.decided]
                if not fronts:
                    break
                self.clock.check()
                yield from self._beams(fronts)
                idle = [front for front in fronts if not front.pending_left]
                lefts = [self.ledger.left(self.group(front)) for front in idle]
                refill(self.front_tables, idle, self.max_rows, lefts, self.clock)
                yield from self._score([front for front in fronts if not front.decided])
                self._report()
            yield from self._beams([front for front in self.fronts if front.stopped], at_last=True)
        except TimeUp:
            for front in self.fronts:
                if not front.decided:
                    front.stop()
        return self.lanes

    def start_with(self, other: Search) -> None:
        """Take over the plans of a search of the same lanes in a smaller space, and its rows."""
        self.ledger.asked += other.ledger.asked
        for lane, found in zip(self.lanes, other.lanes, strict=True):
            if found.incumbent is not None:
                lane.take(replace(found.incumbent, key=LAST_KEY))
        for front in self.fronts:
            front.refresh()

    def learned(self) -> Survey:
        """The survey with everything this search found."""
        [known] = self.ledger.known
        plans = [lane.incumbent for lane in self.lanes if lane.incumbent and lane.incumbent.moves]
        moves, scores = self._found
        if plans:
            # Found by a beam or by polishing, they are not among the assignments scored.
            sets = moves_by_level(self.front_tables, [plan.moves for plan in plans])
            moves = [sets, *moves]
            scores = [np.array([plan.score for plan in plans]), *scores]
        return (self.survey or Survey()).extended(known or KnownScores(), moves, scores)

    def _begin(self) -> Generator[Floats, Floats, None]:
        _, firsts = np.unique(self.groups, return_index=True)
        owners = self.groups[firsts]
        starts = self.tables.starts[firsts]
        scores = yield from self.ledger.ask(starts, owners, whatever_the_time=True)
        floor, tables = self.tables.problem.costs.least, self.front_tables
        for front in self.fronts:
            score = float(scores[np.searchsorted(owners, self.group(front))])
            for lane in front.lanes:
                lane.start_score = score
                if score > self.bar(front):
                    lane.take(Incumbent(0.0, 0, (), (), score))
            front.decided = score > self.bar(front)
            least = floor if floor > 0 else float(tables.rest[0, front.number])
            front.begin(tables.single_costs[front.number], least)
            if not front.decided and self.survey is not None and len(self.survey.scores):
                count = RECALLED * len(front.lanes)
                recalled = self.survey.best(tables, front.number, self.bar(front), count)
                offer_rows(self.tables, front, self._rivals(front), *recalled)
                self._refresh(front)

    def _rivals(self, front: Front) -> list[Lane]:
        """Lanes of the same person under the same limits for which nothing is proven yet."""
        limits, group = self.tables.limits, self.group(front)
        mine = limits[front.lanes[0].number]
        return [
            lane
            for other in self._of_group[group]
            if (other.stopped or not other.decided) and limits[other.lanes[0].number] == mine
            for lane in other.lanes
        ]

    def _refresh(self, front: Front) -> None:
        for other in self._of_group[self.group(front)]:
            other.refresh()

    def _score(self, fronts: list[Front]) -> Generator[Floats, Floats, None]:
        """One round: the next batch of every front, scored in one call."""
        asking: list[tuple[Front, int]] = []
        batches = []
        for front in fronts:
            left = self.ledger.left(self.group(front))
            rows = front.next_batch(min(self.first_batch << min(front.rounds, 20), LARGEST_BATCH))
            if rows is not None and len(rows) and left > 0:
                asking.append((front, len(rows)))
                batches.append((self.group(front), rows))
            elif left <= 0:
                front.stop()
        scores = yield from self.ledger.scores(batches)
        for (front, size), (_, rows), told in zip(asking, batches, scores, strict=True):
            absent = np.isnan(told)
            done = int(np.argmax(absent)) if absent.any() else len(told)
            self._learn(front, rows, told[:done])
            front.scored(done)
            if done < size and self.clock.left > 0:
                front.stop()
            if self.any_plan and np.isfinite(front.worst):
                front.stop()

    def _learn(self, front: Front, rows: Rows, scores: Floats) -> None:
        """Favourable states may lower incumbents."""
        good = np.flatnonzero(scores > self.bar(front))
        if not len(good):
            return
        rows, scores = rows.take(good), scores[good]
        if self.survey is not None:
            self._found[0].append(changed_moves(self.front_tables, rows))
            self._found[1].append(scores)
        if not front.decided:
            offer_rows(self.tables, front, self._rivals(front), rows, scores)
            self._refresh(front)

    def _beams(
        self, fronts: list[Front], *, at_last: bool = False
    ) -> Generator[Floats, Floats, None]:
        """Give hard people a first plan, by a score-guided beam or scattered plans, and those who
        have one a cheaper one near it.

        ``at_last``: the proof is given up, and those who had no turn yet get one.
        """
        leaders: dict[int, Front] = {}
        for front in fronts:
            group = self.group(front)
            asked = int(self.ledger.asked[group])
            late = at_last and not front.beams
            if not late and not beam_is_due(front.beams, asked, self.max_rows):
                continue
            scattering = front.beams == 1 and not at_last and _far(front)
            patient = front.beams or at_last or self.tables.max_changes > 1
            if patient and np.isfinite(front.worst):
                yield from self._polish(front, [front.lanes[0].moves])
            if scattering or np.isinf(front.worst):
                leaders.setdefault(group, front)
            else:
                front.beams += 1
        if not leaders:
            return
        beams = {}
        for group, front in leaders.items():
            rows = min(self.ledger.left(group), self.max_rows // 4)
            where = (self.front_tables, front.number, self.bar(front), rows)
            if front.beams == 1:
                beams[group] = scattered_plans(*where)
            else:
                beams[group] = beam_moves(*where, width=WIDTH ** (front.beams + 1))
            for other in self._of_group[group]:
                other.beams += 1
        found = yield from beams_together(beams, self.ledger)
        for group, plans in found.items():
            if plans and self.survey is not None:
                sets = [tuple(moves.tolist()) for moves, _ in plans]
                self._found[0].append(moves_by_level(self.front_tables, sets))
                self._found[1].append(np.array([score for _, score in plans]))
            for moves, score in plans:
                offer_moves(self.tables, self._rivals(leaders[group]), moves, score)
            self._refresh(leaders[group])
            starts = [moves.tolist() for moves, _ in plans]
            if leaders[group].beams == 1 and plans:
                starts = [leaders[group].lanes[0].moves]
            yield from self._polish(leaders[group], starts)

    def _polish(
        self, front: Front, plans: Sequence[Sequence[int]]
    ) -> Generator[Floats, Floats, None]:
        """Make plans of a hard person cheaper, which prunes most of the rest."""
        rivals, group, bar = self._rivals(front), self.group(front), self.bar(front)
        most = self.max_rows // (4 * len(self._of_group[group]))
        yield from polish(self.tables, front, rivals, plans, group, bar, self.ledger, most)
        self._refresh(front)

    def _report(self) -> None:
        if self.progress is None:
            return
        fronts = self.front_of
        lows = [fr.lower_bound(lane) for fr, lane in zip(fronts, self.lanes, strict=True)]
        self.progress(
            Progress(
                rows=int(self.ledger.asked.sum()),
                lanes=len(self.lanes),
                open_lanes=sum(not front.decided for front in fronts),
                lower_bound=float(np.mean(lows)),
                upper_bound=float(np.mean([lane.cost for lane in self.lanes])),
                seconds=time.monotonic() - self.clock.began,
            )
        )


def _far(front: Front) -> bool:
    """Whether some lane of a front may have a much cheaper plan than it knows."""
    return any(front.lower_bound(lane) < FAR * lane.cost for lane in front.lanes)
