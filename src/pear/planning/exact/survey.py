"""What earlier searches from one state have learned, for the next search from there.

Which states are favourable does not depend on the weights. A survey keeps every score and
every favourable set of changes, so that a later question about the same person starts with
good plans and asks the model about new states only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.assignments import Rows, bounds_of
from pear.planning.exact.known import KnownScores
from pear.planning.exact.options import Floats, Indices, Tables

MOST = 20_000
"""Most favourable sets of changes a survey keeps."""


@dataclass(frozen=True)
class Survey:
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

    def rows(self, tables: Tables, lanes: Indices) -> tuple[Rows, Floats]:
        """The favourable sets as assignments of each lane that can make them, with their scores."""
        options = []
        for number, level in enumerate(tables.levels):
            option_of = np.zeros(len(tables.problem.actions) + 1, np.int16)
            moves = level.moves[lanes[0], 1:]
            option_of[moves] = np.arange(1, len(moves) + 1)
            option_of[-1] = 0
            options.append(option_of[self.moves[:, number]])
        count = len(self.scores)
        every_lane = np.repeat(lanes, count)
        columns = tuple(np.tile(column, len(lanes)) for column in options)
        steps = sum((column > 0).astype(np.int16) for column in columns)
        rows = Rows(every_lane, columns, np.zeros(len(every_lane)), np.asarray(steps))
        fine = rows.steps <= tables.max_steps[every_lane]
        for level, column in zip(tables.levels, columns, strict=True):
            fine &= level.valid[every_lane, column]
        where = np.flatnonzero(fine)
        rows = rows.take(where)
        bounds = bounds_of(tables, rows)
        scores = np.tile(self.scores, len(lanes))[where]
        return Rows(rows.lanes, rows.options, bounds, rows.steps), scores


def changed_moves(tables: Tables, rows: Rows) -> Indices:
    """The move of each assignment on each level, -1 for none, shape ``(n, K)``."""
    columns: list[NDArray[np.intp]] = [
        level.moves[rows.lanes, chosen]
        for level, chosen in zip(tables.levels, rows.options, strict=True)
    ]
    return np.column_stack(columns)
