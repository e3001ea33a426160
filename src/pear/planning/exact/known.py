"""Which states of a person have been scored already, and with what score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pear.planning.exact.options import Floats, Indices, Tables

Keys = NDArray[np.generic]
"""One exact key per state: integers, or pairs of integers where one is too small."""

LARGEST_WORD = 2**62


def assignment_keys(tables: Tables, lanes: Indices, options: Sequence[NDArray[np.int16]]) -> Keys:
    """Keys of n assignments; within a group of lanes equal keys mean equal states."""
    words: list[NDArray[np.int64]] = [np.zeros(len(lanes), np.int64)]
    room = 1
    for level, chosen in zip(tables.levels, options, strict=True):
        size = level.value_ids.shape[1] + 1
        if room * size > LARGEST_WORD:
            words.append(np.zeros(len(lanes), np.int64))
            room = 1
        words[-1] = words[-1] * size + level.value_ids[lanes, chosen]
        room *= size
    if len(words) == 1:
        return words[0]
    keys = np.empty(len(lanes), dtype=[(f"word{i}", np.int64) for i in range(len(words))])
    for i, word in enumerate(words):
        keys[f"word{i}"] = word
    return keys


def key_words(keys: Keys) -> list[Keys]:
    """The integers a key is made of, the most significant first."""
    return [keys[name] for name in keys.dtype.names] if keys.dtype.names else [keys]


class KnownScores:
    """Scores by key, in sorted arrays."""

    def __init__(self) -> None:
        self._keys: Keys | None = None
        self._scores: Floats = np.zeros(0)

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
        return unknown[first]

    def add(self, keys: Keys, scores: Floats) -> None:
        """Remember the scores of distinct new states."""
        if self._keys is not None:
            keys = np.concatenate([self._keys, keys])
            scores = np.concatenate([self._scores, scores])
        order = np.argsort(keys, kind="stable")
        self._keys, self._scores = keys[order], scores[order]
