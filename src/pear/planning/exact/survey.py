"""What earlier searches from one state have learned, for the next search from there.

Which states are favourable does not depend on the weights. A survey keeps every score and
every favourable set of changes, so that a later question about the same person starts with
good plans and asks the model about new states only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pear.planning.exact.assignments import Rows, bounds_of
from pear.planning.exact.known import KnownScores
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.tables import Tables
from pear.planning.planner import Memory

MOST = 20_000
"""Most favourable sets of changes a survey keeps."""


@dataclass(frozen=True)
class Survey(Memory):
    """Scores known, and n favourable sets of changes.

    ``moves`` ``(n, K)`` holds the move on each level, -1 for none; ``scores`` ``(n,)``.
    """

    known: KnownScores = field(default_factory=KnownScores)
    moves: Indices = field(default_factory=lambda: np.zeros((0, 0), np.intp))
    scores: Floats = field(default_factory=lambda: np.zeros(0))

    def extended(self, known: KnownScores, moves: list[Indices], scores: list[Floats]) -> Survey:
        """The survey with what one more search found."""
        if not moves:
            return Survey(known, self.moves, self.scores)
        parts = [self.moves, *moves] if len(self.moves) else moves
        everything, values = np.concatenate(parts), np.concatenate([self.scores, *scores])
        _, first = np.unique(everything, axis=0, return_index=True)
        first = np.sort(first)[:MOST]
        return Survey(known, everything[first], values[first])

    def best(self, tables: Tables, lane: int, bar: float, count: int) -> tuple[Rows, Floats]:
        """The favourable sets with the smallest bound that a lane can make, and their scores."""
        options, steps = [], np.zeros(len(self.scores), np.int16)
        fine = self.scores > bar
        for number, level in enumerate(tables.levels):
            option_of = np.full(len(tables.problem.actions) + 1, -1)
            option_of[level.moves[lane, :-1]] = np.arange(level.last)
            option_of[-1] = level.last
            options.append(option_of[self.moves[:, number]])
            # A move the lane has no option for makes the set another one.
            fine &= (options[-1] >= 0) & level.valid[lane, options[-1]]
            steps += (options[-1] < level.last).astype(np.int16)
        where = np.flatnonzero(fine & (steps <= tables.max_steps[lane]))
        words = tuple(word[where] for word in tables.codes.encode(options))
        lanes = np.full(len(where), lane)
        bounds = bounds_of(tables, lanes, words)
        least = np.argsort(bounds, kind="stable")[:count]
        rows = Rows(lanes, words, bounds, steps[where]).take(least)
        return rows, self.scores[where][least]


def changed_moves(tables: Tables, rows: Rows) -> Indices:
    """The move of each assignment on each level, -1 for none, shape ``(n, K)``."""
    return np.column_stack(
        [
            level.moves[rows.lanes, tables.codes.option(rows.words, number)]
            for number, level in enumerate(tables.levels)
        ]
    )


def moves_by_level(tables: Tables, sets: list[tuple[int, ...]]) -> Indices:
    """Sets of moves on distinct features as rows of the same kind, shape ``(n, K)``."""
    level_of = {level.column: number for number, level in enumerate(tables.levels)}
    table = np.full((len(sets), len(tables.levels)), -1, np.intp)
    feature_of = tables.problem.actions.feature_of
    for row, moves in enumerate(sets):
        for move in moves:
            table[row, level_of[int(feature_of[move])]] = move
    return table
