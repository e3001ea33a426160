"""Good plans for hard people, before anything is proven about them.

A first plan prunes most of the rest. Each of these is a generator that asks for scores of
assignments ``(n, K)`` through ``ask`` and returns favourable assignments with their scores. They
never decide anything: what they find is priced like every other plan.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats, Indices
from pear.planning.exact.asking import first_of_each
from pear.planning.exact.chains import EQUAL
from pear.planning.exact.kernel import bounds_of
from pear.planning.exact.options import Options

Asking = Generator[Floats, Floats, Floats]
"""Yields states and returns the scores ``(n,)`` of assignments, NaN where the budget has ended."""

KEPT = 8
"""Favourable assignments that are returned, the cheapest."""
ROUNDS = 5
DRAWN = 4_096
"""Assignments of one round of random restarts."""
PARENTS = 8
"""One of so many, those that score highest, is changed a little for the next round."""
MOST_MOVES = 20
"""Cheaper neighbours that one local search goes to."""
MOST_ROWS = 4_000
"""Rows that one local search asks."""
BLOCK = 256
"""Neighbours scored in one call."""


@dataclass(frozen=True)
class Favourable:
    """Favourable assignments ``(n, K)`` and their scores ``(n,)``."""

    assignments: Indices
    scores: Floats


@dataclass(frozen=True)
class Explorer:
    """Looks for plans of one query: options it may choose, and the score it needs."""

    options: Options
    query: int
    required: float
    ask: Callable[[Indices], Asking]

    @property
    def most_steps(self) -> int:
        return int(self.options.choices.max_steps[self.query])

    def allowed(self) -> list[Indices]:
        """The single changes of each feature that the query leaves."""
        choices = self.options.choices
        row = choices.own[:, :, self.query * choices.n_samples]
        free = np.isfinite(row) & (choices.changes == 1)
        return [np.flatnonzero(mine) for mine in free]

    def cheapest(self, assignments: Indices, scores: Floats) -> Favourable:
        """The cheapest distinct favourable ones."""
        good = np.flatnonzero(scores > self.required)
        assignments, scores = assignments[good], scores[good]
        if len(good):
            first = first_of_each(assignments.astype(float))
            bounds = bounds_of(self.options, assignments[first])[:, self.query]
            least = first[np.argsort(bounds, kind="stable")][:KEPT]
            assignments, scores = assignments[least], scores[least]
        return Favourable(assignments, scores)

    def beam(self, width: int, max_rows: int) -> Generator[Floats, Floats, Favourable]:
        """Each round makes one more change in every way and keeps the highest scores.

        Ends with the first round that finds something favourable.
        """
        allowed = self.allowed()
        kept = np.zeros((1, len(allowed)), np.intp)
        for _ in range(self.most_steps):
            following = _one_more(kept, allowed)[:max_rows]
            if not len(following):
                break
            max_rows -= len(following)
            scores = yield from self.ask(following)
            if (scores > self.required).any():
                return self.cheapest(following, scores)
            known = np.flatnonzero(~np.isnan(scores))
            kept = following[known[np.argsort(-scores[known], kind="stable")[:width]]]
        return Favourable(kept[:0], np.zeros(0))

    def restarts(self, max_rows: int) -> Generator[Floats, Floats, Favourable]:
        """Many sets of changes at random; those that score higher breed the next ones.

        Where a score is the same over a whole region, a beam sees no direction. The draws are the
        same every time, so that a plan depends on nothing but the person.
        """
        rng = np.random.default_rng(0)
        allowed, count = self.allowed(), min(DRAWN, max_rows // ROUNDS)
        found = np.zeros((0, len(allowed)), np.intp)
        found_scores = np.zeros(0)
        if count < PARENTS or not any(len(mine) for mine in allowed):
            return Favourable(found, found_scores)
        drawn = self._drawn(allowed, count, rng)
        for _ in range(ROUNDS):
            scores = np.nan_to_num((yield from self.ask(drawn)), nan=-np.inf)
            good = scores > self.required
            found = np.concatenate([found, drawn[good]])
            found_scores = np.concatenate([found_scores, scores[good]])
            order = np.argsort(-scores, kind="stable")
            if scores[order[0]] > scores[order[-1]]:
                parents = drawn[order[: max(1, count // PARENTS)]]
                drawn = self._changed(allowed, parents, count, rng)
            else:
                drawn = self._drawn(allowed, count, rng)
        return self.cheapest(found, found_scores)

    def _drawn(self, allowed: list[Indices], count: int, rng: np.random.Generator) -> Indices:
        """As many changes as are allowed, on features drawn at random."""
        drawn = np.zeros((count, len(allowed)), np.intp)
        able = np.array([len(mine) > 0 for mine in allowed])
        rank = (rng.random(drawn.shape) + ~able).argsort(axis=1).argsort(axis=1)
        chosen = (rank < self.most_steps) & able
        for feature, mine in enumerate(allowed):
            if len(mine):
                values = mine[rng.integers(len(mine), size=count)]
                drawn[:, feature] = np.where(chosen[:, feature], values, 0)
        return drawn

    def _changed(
        self, allowed: list[Indices], parents: Indices, count: int, rng: np.random.Generator
    ) -> Indices:
        """Each parent several times, with another option for one feature; one change too many is
        undone elsewhere."""
        drawn = parents[np.arange(count) % len(parents)]
        able = np.flatnonzero([len(mine) > 0 for mine in allowed])
        turned = able[rng.integers(len(able), size=count)]
        for feature in able.tolist():
            here, mine = np.flatnonzero(turned == feature), allowed[feature]
            drawn[here, feature] = mine[rng.integers(len(mine), size=len(here))]
        changed: NDArray[np.bool_] = drawn > 0
        excess = changed.sum(axis=1) > self.most_steps
        lots = rng.random(drawn.shape) * changed
        lots[np.arange(count), turned] = 0.0
        dropped = np.where(excess, lots.argmax(axis=1), -1)
        for feature in able.tolist():
            drawn[dropped == feature, feature] = 0
        return drawn

    def local_search(
        self, assignment: Indices, max_rows: int
    ) -> Generator[Floats, Floats, Favourable]:
        """From an assignment to its cheapest favourable neighbour, and on from there.

        Neighbours differ in one feature, or leave one change out and make another instead.
        Returns all the favourable ones found, the last and cheapest first.
        """
        bound = bounds_of(self.options, assignment[None])[0, self.query]
        found, scores_found = [np.zeros((0, len(assignment)), np.intp)], [np.zeros(0)]
        most = min(max_rows, MOST_ROWS)
        for _ in range(MOST_MOVES):
            near = self.cheaper_neighbours(assignment, bound)[:most]
            better = None
            for first in range(0, len(near), BLOCK):
                block = near[first : first + BLOCK]
                most -= len(block)
                scores = yield from self.ask(block)
                good = np.flatnonzero(scores > self.required)
                if len(good):
                    better, score = block[good[0]], scores[good[:1]]
                    break
            if better is None:
                break
            assignment, bound = better, bounds_of(self.options, better[None])[0, self.query]
            found.insert(0, better[None])
            scores_found.insert(0, score)
        return Favourable(np.concatenate(found), np.concatenate(scores_found))

    def cheaper_neighbours(self, assignment: Indices, below: float) -> Indices:
        """The neighbours of an assignment with a bound below something, cheapest first."""
        bases = [assignment]
        for changed in np.flatnonzero(assignment).tolist():
            bases.append(assignment.copy())
            bases[-1][changed] = 0
        choices = self.options.choices
        row = choices.own[:, :, self.query * choices.n_samples]
        near = [np.array(bases)]
        for base in bases:
            for feature in range(len(assignment)):
                options = np.flatnonzero(np.isfinite(row[feature]))
                options = options[(options != assignment[feature]) & (options != 0)]
                turned = np.repeat(base[None], len(options), axis=0)
                turned[:, feature] = options
                near.append(turned)
        found = np.concatenate(near)
        found = found[(found > 0).any(axis=1)]
        bounds = bounds_of(self.options, found)[:, self.query]
        least = np.flatnonzero(bounds < below - EQUAL * abs(below))
        least = least[first_of_each(found[least].astype(float))]
        order = np.lexsort((*self.options.ranks(found[least]).T[::-1], bounds[least]))
        return np.asarray(found[least[order]])


def _one_more(kept: Indices, allowed: list[Indices]) -> Indices:
    """All assignments with one more changed feature than one of those kept."""
    parts = []
    for feature, mine in enumerate(allowed):
        able = kept[kept[:, feature] == 0]
        turned = np.repeat(able, len(mine), axis=0)
        turned[:, feature] = np.tile(mine, len(able))
        parts.append(turned)
    following = np.concatenate(parts) if parts else kept[:0]
    return following[first_of_each(following.astype(float))] if len(following) else following
