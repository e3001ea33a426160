"""Which states of a person have been scored already, and with what score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.assignments import Rows
from pear.planning.exact.codes import BITS
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.tables import Tables

Keys = NDArray[Any]
"""One exact key per state: integers, or records of integers where one is too small."""


def state_keys(tables: Tables, rows: Rows) -> Keys:
    """Keys of n assignments; within a group of lanes equal keys mean equal states."""
    if tables.max_changes == 1:
        return _keys(list(rows.words))
    # With chains, several options of a level end at the same value.
    words = [np.zeros(len(rows), np.int64)]
    room = 0
    for number, level in enumerate(tables.levels):
        bits = int(level.value_ids.max(initial=1)).bit_length()
        if room + bits > BITS:
            words.append(np.zeros(len(rows), np.int64))
            room = 0
        chosen = tables.codes.option(rows.words, number)
        words[-1] = (words[-1] << bits) | level.value_ids[rows.lanes, chosen]
        room += bits
    return _keys(words)


def _keys(words: list[NDArray[np.int64]]) -> Keys:
    if len(words) == 1:
        return words[0]
    keys = np.empty(len(words[0]), dtype=[(f"word{i}", np.int64) for i in range(len(words))])
    for i, word in enumerate(words):
        keys[f"word{i}"] = word
    return keys


class KnownScores:
    """Scores by key, in sorted arrays."""

    def __init__(self) -> None:
        self._keys: Keys | None = None
        self._scores: Floats = np.zeros(0)

    def __len__(self) -> int:
        return len(self._scores)

    def copy(self) -> KnownScores:
        """One that can learn more without changing this one."""
        twin = KnownScores()
        twin._keys, twin._scores = self._keys, self._scores
        return twin

    def scores(self, keys: Keys) -> Floats:
        """Scores of these states, NaN where not known, shape ``(n,)``."""
        found = np.full(len(keys), np.nan)
        if self._keys is None or not len(keys):
            return found
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        same = self._keys[place] == keys
        found[same] = self._scores[place[same]]
        return found

    def first_unknown(self, keys: Keys) -> Indices:
        """Positions of the states not known, each distinct one once."""
        unknown = np.flatnonzero(np.isnan(self.scores(keys)))
        _, first = np.unique(keys[unknown], return_index=True)
        return np.asarray(unknown[first])

    def add(self, keys: Keys, scores: Floats) -> None:
        """Remember the scores of distinct new states."""
        if self._keys is not None:
            keys = np.concatenate([self._keys, keys])
            scores = np.concatenate([self._scores, scores])
        order = np.argsort(keys, kind="stable")
        self._keys, self._scores = keys[order], scores[order]
