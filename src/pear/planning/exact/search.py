"""The search for one person: it yields states, receives their scores, and proves what is cheapest.

Assignments are enumerated in bands of rising cost, and all of a band that can still matter are
scored, smallest bound first. A favourable one gets its exact best order and may lower an
incumbent; it ends nothing, since its cost can exceed its bound. A query is decided once everything
with a bound below its incumbent is scored, or nothing is left. The search never calls the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pear.arrays import Flags, Floats, Indices
from pear.decision.ceilings.margins import LINEAR, NETWORK, TREES
from pear.planning.exact.asking import Progress, ScoreMemory, first_of_each
from pear.planning.exact.chains import EQUAL
from pear.planning.exact.heuristics import Asking, Explorer, Favourable
from pear.planning.exact.kernel import (
    at_the_top,
    bounds_of,
    favourable_below,
    relaxed_solutions,
)
from pear.planning.exact.options import BUFFER, Band, Options
from pear.planning.exact.pricing import Incumbent, Pricing, equal
from pear.problem import Certificate, Limits, walk
from pear.problem.plan import Verdict, lowest_within, near_misses

if TYPE_CHECKING:
    from pear.decision.ceilings import Scorer, SeveralWhiteBoxes, Specialised, WhiteBox
    from pear.planning.exact.asking import Clock

FIRST_BATCH, LARGEST_BATCH = 64, 8_192
WINDOW = 4
"""How far ahead assignments are checked for whether they still matter, in batches."""
SLICE = 20_000
"""Work, in rows, between two looks at the clock."""
LEAST_WORK = 200_000
"""Work that enumeration may always take, however few rows may be asked."""
NODES_PER_ROW = 200
"""Nodes that take as long as one row, for one row of weights."""
CEILING_WORK = {LINEAR: 2.0, TREES: 10.0, NETWORK: 4.0}
"""Rows that take as long as one node with a bound of the score."""
BRIEF_LOOK = 600
"""Nodes with a bound of the score that the first brief look takes."""
READ_PER_ROW = 4
"""How many of a network's scores, by what was read of it, take as long as one row."""
N_PRICES = 24
"""Solutions of the relaxation that are tried."""
COMPARED = 64
"""States of a call, the highest scores first, that are compared with what was read."""
FIRST_TRY = 4_000
"""Work after which a person without a plan gets a beam; each further try after five times that."""
TRIES = 3
"""A narrow beam, then random restarts, then a wide beam."""
FAR = 0.8
"""A plan whose lower bound is below this share of its cost is far from proven."""
RECALLED = 3
"""Favourable states of a memory, for each query, that are priced first."""


@dataclass
class Search:
    """One search: Q queries about one person.

    ``weights`` ``(Q, S, p)``, ``limits`` and ``required`` ``(Q,)``, the score that a favourable
    state exceeds, are those of the queries. ``max_rows`` may be asked; with ``stop_early`` no more
    assignments are looked at than that is worth, and with ``any_plan`` the first plan of a query
    ends it.
    """

    options: Options
    weights: Floats
    limits: tuple[Limits, ...]
    required: Floats
    max_rows: int
    max_changes: int
    clock: Clock
    inside: WhiteBox | SeveralWhiteBoxes | None = None
    memory: ScoreMemory | None = None
    first_batch: int = FIRST_BATCH
    stop_early: bool = False
    any_plan: bool = False
    progress: Callable[[Progress], None] | None = None
    rows: int = field(default=0, init=False)
    start_score: float = field(default=0.0, init=False)
    started: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        queries = self.options.n_queries
        self.best: list[Incumbent | None] = [None] * queries
        self.costs = np.full(queries, np.inf)
        """Costs of the incumbents; infinite where there is none."""
        self.decided = np.zeros(queries, bool)
        self.stopped = np.zeros(queries, bool)
        self.complete = np.full(queries, -np.inf)
        """All assignments with a bound up to this are scored."""
        self._pricing = Pricing(self.options, self.weights, self.limits)
        self._enumerated, self._readings = 0.0, 0
        self._tries = 0
        self._rounds = 0
        self._out_of_time = False
        self._scorer: Scorer | None = None
        self._scorer_tried = False
        self._special: Specialised | None = None
        self._looked, self._tries_looked = self.inside is None, 0
        self._look_after = self._read_after = np.inf
        """Work after which a look inside, or reading a network's scores, is the faster way."""
        if self.inside is not None:
            # Sooner where few rows may be asked, later where many queries share what is read.
            delay = min(1.0, self.max_rows / (16 * FIRST_TRY)) * (3 + queries) / 4
            self._look_after = self.inside.worth_after * delay
            self._read_after = self.inside.scored_after * delay
        self._compared: list[tuple[Floats, Floats]] = []
        """States and scores to compare with what is read from the model."""
        self._unread = (self.complete, self.decided)
        """What was proven before the model was looked into."""
        self._misread = False
        if self.memory is None and (queries > 1 or self.max_changes > 1):
            self.memory = ScoreMemory()

    @property
    def left(self) -> int:
        """Rows that may still be asked."""
        return max(0, self.max_rows - self.rows)

    def steps(self) -> Generator[Floats, Floats, None]:
        """Yields states ``(n, d)`` and receives their scores ``(n,)``, NaN once time is up."""
        scores = yield self.options.start[None]
        self.rows += 1
        self.started, self.start_score = True, float(scores[0])
        self._compare(self.options.start[None], scores)
        for query in np.flatnonzero(self.start_score > self.required):
            self.best[query] = Incumbent(0.0, 0, (), (), self.start_score)
            self.costs[query], self.decided[query] = 0.0, True
        self._recall()
        band = Band(self.options)
        while not self.decided.all():
            if self._may_look_inside:
                self._look_inside()
                yield from self._try_relaxed()
                band.begun = False
            yield from self._explore()
            yield from self._work_on(band)
            if self._misread:
                band, self._misread = Band(self.options), False
            if self.progress is not None:
                self.progress(self._progress())
            if self._out_of_time or self._enumerated >= self._most_work or self.left == 0:
                self.stopped |= ~self.decided
                self.decided[:] = True
        if self.stopped.any() and not self._out_of_time:
            yield from self._explore(at_last=True)

    @property
    def _work(self) -> float:
        """Rows asked or read, and nodes looked at as rows that take as long."""
        return self.rows + self._readings + self._enumerated

    @property
    def _most_work(self) -> float:
        """What enumeration may take, in rows."""
        return self.max_rows if self.stop_early else max(self.max_rows, LEAST_WORK)

    def start_with(self, other: Search) -> None:
        """Take over the plans of a search of the same queries in a smaller space, and its rows."""
        self.rows = other.rows - 1
        for query, found in enumerate(other.best):
            if found is not None and found.moves:
                end = walk(self.options.start, self.options.problem.actions, found.moves)[-1:]
                [assignment], _ = self._chosen(end[:, self.options.columns])
                rank = tuple(self.options.ranks(assignment[None])[0].tolist())
                self._keep(query, replace(found, rank=rank))

    # One band

    def _work_on(self, band: Band) -> Generator[Floats, Floats, None]:
        """List the next assignments of a band and score them."""
        if not band.begun:
            band.begin(self._special)
        high = np.where(self.decided, -np.inf, np.minimum(band.high, self.costs))
        low = np.where(self.decided, -np.inf, self.complete)
        pending, bounds, nodes, finished = band.go_on(low, high, self._slice)
        self._enumerated += nodes * self._node_work
        self._out_of_time |= self.clock.over()
        if not finished and len(pending) == BUFFER and band.narrow():
            return
        bounds = bounds_of(self.options, pending) if len(high) > 1 else bounds[:, None]
        scored = yield from self._score(pending, bounds)
        if self._misread or (scored < len(pending) and self._may_look_inside):
            # Asked one by one, the rest takes longer than another look at the whole band.
            return
        if finished and scored == len(pending):
            closed = np.flatnonzero(~self.decided)
            self.complete[closed] = np.minimum(band.high, self.costs)[closed]
            for query in closed.tolist():
                enough = self.complete[query] >= self.costs[query]
                self.decided[query] = enough or not band.cut(query)
            band.advance()
        elif finished:
            # Everything below the first that was not scored is.
            rest = bounds[scored:].min(axis=0)
            self.complete = np.maximum(self.complete, np.minimum(rest, high))

    @property
    def _slice(self) -> int:
        """Nodes between two looks at the clock, and within what may still be looked at."""
        most = self._most_work - self._enumerated
        if not self._looked:
            most = min(most, max(self._look_after - self._work, 0.0))
        return int(min(SLICE, most) / self._node_work) + 1

    @property
    def _node_work(self) -> float:
        """What one node takes, in rows."""
        if self._special is not None:
            return CEILING_WORK[self._special.kind]
        return float(1 + self.options.choices.own.shape[2] / 16) / NODES_PER_ROW

    def _score(self, pending: Indices, bounds: Floats) -> Generator[Floats, Floats, int]:
        """Score what can still matter, smallest bound first; how many of them are dealt with."""
        at = 0
        while at < len(pending):
            yield from self._explore()
            self._look_briefly()
            if self.left == 0 or self._out_of_time or self._may_look_inside or self._misread:
                return at
            size = min(self.first_batch << min(self._rounds, 20), LARGEST_BATCH)
            near = slice(at, at + WINDOW * size)
            batch = at + np.flatnonzero(self._matters(pending[near], bounds[near]))[:size]
            if not len(batch):
                at = min(near.stop, len(pending))
                continue
            asked = pending[batch]
            scores = yield from self.ask(asked)
            self._rounds += 1
            self._propose_all(asked, bounds[batch], scores)
            missing = np.isnan(scores)
            if missing.any():
                return int(batch[missing.argmax()])
            at = int(batch[-1]) + 1
        return len(pending)

    def _matters(self, assignments: Indices, bounds: Floats) -> Flags:
        """Which assignments could be better for some undecided query, shape ``(n,)``."""
        costs = np.where(self.decided, -np.inf, self.costs)
        if np.isposinf(costs).any():
            return np.asarray(np.isfinite(bounds).any(axis=1))
        slack = np.where(self.decided, 0.0, EQUAL * np.abs(costs))
        matters = np.asarray((bounds < costs - slack).any(axis=1))
        tied = np.asarray(bounds <= costs + slack) & ~matters[:, None]
        for query in np.flatnonzero(tied.any(axis=0)):
            best = self.best[query]
            assert best is not None
            rows = np.flatnonzero(tied[:, query])
            steps = self.options.steps(assignments[rows])
            earlier = self.options.earlier(assignments[rows], best.rank)
            matters[rows] |= (steps < best.steps) | ((steps == best.steps) & earlier)
        return matters

    def ask(self, assignments: Indices) -> Asking:
        """Scores of assignments ``(n, K)``; NaN from where the budget, or the time, has ended.

        What was read of a network rules most of them out; the model is asked about the others.
        """
        if self._may_read_scores:
            self._read_scores()
        if self._scorer is None:
            return (yield from self._ask(assignments))
        self._enumerated += len(assignments) / READ_PER_ROW
        scores, hopeful = self._scorer.scores(assignments)
        if hopeful.any():
            scores[hopeful] = yield from self._ask(assignments[hopeful])
        return scores

    def _ask(self, assignments: Indices) -> Asking:
        """Scores by the model itself, and by what is remembered of it."""
        states = self.options.states(assignments)
        if self.memory is None:
            return (yield from self._with_misses(states, (yield from self._asked(states))))
        values = states[:, self.options.columns]
        scores = self.memory.scores(values)
        unknown = np.flatnonzero(np.isnan(scores))
        unknown = unknown[first_of_each(values[unknown])][: self.left]
        if not len(unknown):
            return scores
        ends = states[unknown]
        asked = yield from self._with_misses(ends, (yield from self._asked(ends)))
        known = ~np.isnan(asked)
        self.memory.add(values[unknown[known]], asked[known])
        return self.memory.scores(values)

    def _asked(self, states: Floats) -> Asking:
        """Scores of states, as many as may be asked; NaN for the others."""
        most = min(len(states), self.left)
        if not most:
            return np.full(len(states), np.nan)
        scores = yield states[:most]
        known = int(np.count_nonzero(~np.isnan(scores)))
        self.rows += known
        self._out_of_time |= known < most
        self._compare(states[:known], scores[:known])
        return np.append(scores, np.full(len(states) - most, np.nan))

    def _with_misses(self, ends: Floats, scores: Floats) -> Asking:
        """The scores of ends, each lowered to the lowest within the tolerance of its steps."""
        actions = self.options.problem.actions
        if not actions.tolerances.any():
            return scores
        good = np.flatnonzero(scores > self.options.problem.goal.required())
        missed, owners = near_misses(actions, self.options.start, ends[good])
        return lowest_within(scores, good[owners], (yield from self._asked(missed)))

    # Plans

    def _propose_all(self, assignments: Indices, bounds: Floats, scores: Floats) -> None:
        """Favourable assignments may lower incumbents."""
        favourable = np.flatnonzero(scores > self.required.min())
        if not len(favourable):
            return
        assignments, bounds = assignments[favourable], bounds[favourable]
        scores = scores[favourable]
        good = np.asarray(scores[:, None] > self.required)
        good &= (~self.decided | self.stopped) & np.isfinite(bounds)
        at = 0
        while at < len(scores):
            most = self.costs + EQUAL * np.abs(self.costs)
            able = np.asarray(good[at:] & (bounds[at:] <= most))
            some = np.asarray(able.any(axis=1))
            first = int(some.argmax())
            if not some[first]:
                return
            queries = np.flatnonzero(able[first])
            self._price(assignments[at + first], queries, float(scores[at + first]))
            at += first + 1

    def _price(self, assignment: Indices, queries: Indices, score: float) -> None:
        """A favourable assignment in its best order, for some queries."""
        priced = self._pricing.cheapest(assignment, queries, self.costs[queries])
        rank = tuple(self.options.ranks(assignment[None])[0].tolist())
        for query, (cost, moves) in zip(queries.tolist(), priced, strict=True):
            if cost < np.inf:
                self._keep(query, Incumbent(cost, len(moves), rank, moves, score))

    def _keep(self, query: int, found: Incumbent) -> None:
        """Keep a plan that is better than the incumbent."""
        best = self.best[query]
        if best is not None:
            if equal(found.cost, best.cost):
                if (found.steps, found.rank) >= (best.steps, best.rank):
                    return
            elif found.cost > best.cost:
                return
        self.best[query], self.costs[query] = found, found.cost
        if self.any_plan:
            self.decided[query] = True

    def _recall(self) -> None:
        """Begin with the cheapest plans that are known from earlier searches."""
        if self.memory is None or self.decided.all():
            return
        values, scores = self.memory.favourable(float(self.required.min()))
        assignments, known = self._chosen(values)
        assignments, scores = assignments[known], scores[known]
        if not len(assignments):
            return
        bounds = bounds_of(self.options, assignments)
        kept = np.unique(np.argsort(bounds, axis=0, kind="stable")[:RECALLED])
        self._propose_all(assignments[kept], bounds[kept], scores[kept])

    def _chosen(self, values: Floats) -> tuple[Indices, Flags]:
        """The options that lead to values ``(n, K)``, and where there are some."""
        assignments = np.zeros(values.shape, np.intp)
        known = np.ones(len(values), bool)
        allowed = np.asarray(np.isfinite(self.options.choices.own).any(axis=2))
        for feature in range(values.shape[1]):
            mine = self.options.values[feature]
            # The fewest changes that lead there come first.
            same = np.asarray((values[:, [feature]] == mine) & allowed[feature])
            same[:, 0] = (values[:, feature] == mine[0]) | np.isnan(values[:, feature])
            assignments[:, feature] = same.argmax(axis=1)
            known &= same.any(axis=1)
        return assignments, known

    # Hard people

    def _explore(self, *, at_last: bool = False) -> Generator[Floats, Floats, None]:
        """Give hard people a first plan, and those who have one a cheaper one nearby.

        ``at_last``: the proof is given up, and those who had no turn yet get one.
        """
        due = min(FIRST_TRY, max(self.max_rows // 16, FIRST_BATCH)) * 5**self._tries
        reading = self._special is not None
        late = at_last and (reading or not self._tries)
        if not late and (self._tries >= TRIES or self._work < due):
            return
        undecided = np.flatnonzero(self.stopped if at_last else ~self.decided)
        without = [query for query in undecided if self.best[query] is None]
        if reading and len(self.best) == 1 and not without and (not at_last or self.stop_early):
            return  # The search itself soon meets better ones.
        tries, self._tries = self._tries, self._tries + 1
        again = at_last if reading else tries == 1 and not at_last
        if without or (
            again and any(self.lower_bound(int(q)) < FAR * self.costs[q] for q in undecided)
        ):
            explorer = self._explorer(int(without[0] if without else undecided[0]))
            most = self.max_rows // 4 if reading else min(self.left, self.max_rows // 4)
            if tries == 1 or not without:
                found = yield from explorer.restarts(most)
            else:
                found = yield from explorer.beam(8 ** (tries + 1), most)
            yield from self._propose_found(found)
        improved = tries > 0 or at_last or bool(without) or self.max_changes > 1
        if improved:
            yield from self._improve(undecided)

    def _improve(self, undecided: Indices) -> Generator[Floats, Floats, None]:
        """Local search from the plans of some queries, each distinct plan once."""
        plans = {best.rank: int(query) for query in undecided if (best := self.best[query])}
        for rank, query in list(plans.items())[:4]:
            if rank:
                ordered = np.array(rank)
                assignment = np.zeros(len(rank), np.intp)
                width = self.options.values.shape[1]
                assignment[self.options.by_action] = np.where(ordered == width, 0, ordered)
                most = min(self.left, self.max_rows // (4 * len(plans)))
                found = yield from self._explorer(query).local_search(assignment, most)
                yield from self._propose_found(found)

    def _explorer(self, query: int) -> Explorer:
        ask = self.ask if self._special is None else self._read
        return Explorer(self.options, query, float(self.required[query]), ask)

    def _read(self, assignments: Indices) -> Asking:
        """Scores by what was read from the model: as :meth:`ask`, without asking it."""
        assert self.inside is not None
        self._readings += len(assignments)
        return self.inside.scores(self.options.states(assignments))
        yield

    def _propose_found(self, found: Favourable) -> Generator[Floats, Floats, None]:
        """Plans that heuristics found; the model itself has the last word on their scores."""
        assignments, scores = found.assignments, found.scores
        if len(assignments):
            if self._special is not None:
                scores = yield from self.ask(assignments)
            self._propose_all(assignments, bounds_of(self.options, assignments), scores)

    # Ceilings

    @property
    def _may_look_inside(self) -> bool:
        """Whether the model can still be read, and the search turns out to be work."""
        return not self._looked and self._work >= self._look_after

    @property
    def _may_read_scores(self) -> bool:
        """Whether a network's scores may now be taken from what is read of it."""
        return not self._scorer_tried and self._work >= self._read_after

    def _read_scores(self) -> None:
        """Take a network's scores from what was read of it, once."""
        assert self.inside is not None
        self._scorer_tried = True
        if self._agreed_so_far():
            self._scorer = self.inside.scorer(*self._readable)

    def _look_briefly(self) -> None:
        """Look inside briefly where another try found no plan: perhaps none is within reach.

        What takes longer to decide waits until a look is worth its time.
        """
        if self._looked or self._tries_looked == self._tries or np.isfinite(self.costs).any():
            return
        self._tries_looked = self._tries
        nodes = BRIEF_LOOK * 5 ** (self._tries - 1)
        self._look_inside()
        if self._special is not None:
            everything = np.where(self.decided, -np.inf, np.inf)
            found, looked, finished = favourable_below(
                self.options.choices, self._special, at_the_top(self.options),
                np.full(len(everything), -np.inf), everything, nodes,
                np.empty((1, len(self.options.columns)), np.int64), np.empty(1),
            )  # fmt: skip
            self._enumerated += looked * self._node_work
            if finished and not found:
                self.complete[~self.decided], self.decided[:] = np.inf, True
                return
        self._special, self._looked = None, False

    def _look_inside(self) -> None:
        """Read the model for ceilings, once."""
        assert self.inside is not None
        self._looked = True
        if self._agreed_so_far():
            most = int(min(self.options.choices.max_steps.max(), len(self.options.columns)))
            self._special = self.inside.specialise(*self._readable, most)

    @property
    def _readable(self) -> tuple[Floats, list[int], list[Floats], float]:
        """Start, columns, the values of each, and the score that a favourable state exceeds."""
        options = self.options
        values = [mine[:width] for mine, width in zip(options.values, options.widths, strict=True)]
        return options.start, options.columns.tolist(), values, float(self.required.min())

    def _agreed_so_far(self) -> bool:
        """Whether what was read gives the scores the model gave; then proofs may rest on it."""
        assert self.inside is not None
        states, scores = zip(*self._compared, strict=True)
        agreed = self.inside.agrees(np.concatenate(states), np.concatenate(scores))
        if agreed and self._scorer is None:
            self._unread = (self.complete.copy(), self.decided.copy())
        return agreed

    def _try_relaxed(self) -> Generator[Floats, Floats, None]:
        """Begin with what a relaxation takes for cheap."""
        if self._special is None:
            return
        nodes = at_the_top(self.options)
        tried = relaxed_solutions(self.options.choices, self._special, nodes, N_PRICES)
        tried = tried[tried.any(axis=1)].astype(np.intp)
        if not len(tried):
            return
        scores = yield from self._read(tried)
        good = np.flatnonzero(scores > self.required.min())
        if len(good):
            bounds = bounds_of(self.options, tried[good])
            least = good[np.unique(np.argsort(bounds, axis=0, kind="stable")[:RECALLED])]
            yield from self._propose_found(Favourable(tried[least], scores[least]))

    def _compare(self, states: Floats, scores: Floats) -> None:
        """What was read must give the model's own scores; else all that it proved is dropped."""
        if self.inside is None or not len(states):
            return
        highest = np.argsort(-scores, kind="stable")[:COMPARED]
        some, theirs = states[highest], scores[highest]
        if self._scorer is None and self._special is None:
            # The last few calls are enough, and all that is kept.
            self._compared = [*self._compared[-COMPARED:], (some, theirs)]
        elif not self.inside.agrees(some, theirs):
            self._scorer, self._special, self._misread = None, None, True
            self._scorer_tried = self._looked = True
            self.complete, self.decided = self._unread

    # What is proven

    def lower_bound(self, query: int) -> float:
        """No plan of a query costs less."""
        choices = self.options.choices
        least = choices.floor
        if not least > 0:
            rows = slice(query * choices.n_samples, (query + 1) * choices.n_samples)
            least = float(choices.rest[rows].mean())
        return float(min(max(self.complete[query], least), self.costs[query]))

    def certificate(self, query: int) -> Certificate:
        """What has been proven for one query."""
        best, proven = self.best[query], not self.stopped[query]
        lower = None if proven else self.lower_bound(query)
        verdict: Verdict
        if best is None:
            verdict = "infeasible" if proven else "unknown"
        else:
            verdict, lower = ("optimal", best.cost) if proven else ("bounded", lower)
        return Certificate(
            verdict=verdict,
            lower_bound=lower if lower is not None and np.isfinite(lower) else None,
            upper_bound=best.cost if best else None,
            rows=self.rows,
            seconds=time.monotonic() - self.clock.began,
            max_length=int(self.options.choices.max_steps[query]),
            max_changes_per_feature=self.max_changes,
            reproducible=proven or not self._out_of_time,
            looked_into=self.inside.what if self.inside and (self._special or self._scorer) else "",
        )

    def _progress(self) -> Progress:
        return Progress(
            rows=self.rows,
            queries=len(self.best),
            open_queries=int((~self.decided).sum()),
            lower_bound=float(np.mean([self.lower_bound(q) for q in range(len(self.best))])),
            upper_bound=float(np.mean(self.costs)),
            seconds=time.monotonic() - self.clock.began,
        )
