"""Who has asked the model how much, and which scores are known?"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np

from pear.planning.exact.assignments import Rows
from pear.planning.exact.clock import Clock
from pear.planning.exact.known import Keys, KnownScores, state_keys
from pear.planning.exact.levels import Floats, Indices
from pear.planning.exact.tables import Tables


@dataclass
class Ledger:
    """Rows asked by each of G groups, within a budget; and scores that lanes of a group share.

    ``known`` is None for a group that meets no state twice.
    """

    tables: Tables
    max_rows: int
    reserve: int
    clock: Clock
    known: list[KnownScores | None]
    asked: Indices = field(init=False)

    def __post_init__(self) -> None:
        self.asked = np.zeros(len(self.known), np.intp)

    def left(self, group: int) -> int:
        """Rows a group may still ask during the search."""
        return max(0, self.max_rows - self.reserve - int(self.asked[group]))

    def ask(
        self, states: Floats, owners: Indices, *, whatever_the_time: bool = False
    ) -> Generator[Floats, Floats, Floats]:
        """Scores of states ``(n, d)`` on behalf of groups ``(n,)``; NaN once time is up."""
        scores = np.full(len(states), np.nan)
        at = 0
        while at < len(states) and (whatever_the_time or self.clock.left > 0):
            end = at + self.clock.rows(len(states) - at)
            began = time.monotonic()
            scores[at:end] = yield states[at:end]
            self.clock.took(end - at, time.monotonic() - began)
            self.asked += np.bincount(owners[at:end], minlength=len(self.asked))
            at = end
        return scores

    def scores(self, batches: list[tuple[int, Rows]]) -> Generator[Floats, Floats, list[Floats]]:
        """Scores of the rows of each (group, rows), asked where not known.

        NaN from where the group's budget, or the time, ends. No group is named twice unless
        its scores are shared.
        """
        members: dict[int, list[int]] = {}
        for number, (group, _) in enumerate(batches):
            members.setdefault(group, []).append(number)
        keys: dict[int, Keys] = {}
        parts: list[Floats] = []
        news: list[tuple[int, Keys, int]] = []
        for group, numbers in members.items():
            known = self.known[group]
            if known is None:
                rows = batches[numbers[0]][1].part(0, self.left(group))
                news.append((group, rows.lanes, len(rows)))
            else:
                for number in numbers:
                    keys[number] = state_keys(self.tables, batches[number][1])
                rows, fresh = self._unknown(
                    known, [(batches[i][1], keys[i]) for i in numbers], group
                )
                news.append((group, fresh, len(rows)))
            parts.append(self.tables.states(rows.lanes, rows.words))
        if not parts:
            return []
        owners = np.repeat([group for group, _, _ in news], [size for _, _, size in news])
        answers = yield from self.ask(np.concatenate(parts), owners)
        at, results = 0, [np.zeros(0)] * len(batches)
        for group, fresh, size in news:
            mine, at = answers[at : at + size], at + size
            known = self.known[group]
            if known is None:
                results[members[group][0]] = mine
                continue
            told = ~np.isnan(mine)
            known.add(fresh[told], mine[told])
            for number in members[group]:
                results[number] = known.scores(keys[number])
        return results

    def _unknown(
        self, known: KnownScores, members: list[tuple[Rows, Keys]], group: int
    ) -> tuple[Rows, Keys]:
        """Distinct states of one group with no score yet, smallest bound first."""
        keys = np.concatenate([keys for _, keys in members])
        first = known.first_unknown(keys)
        bounds = np.concatenate([rows.bounds for rows, _ in members])
        first = first[np.argsort(bounds[first], kind="stable")][: self.left(group)]
        lanes = np.concatenate([rows.lanes for rows, _ in members])[first]
        words = tuple(
            np.concatenate(word)[first] for word in zip(*(r.words for r, _ in members), strict=True)
        )
        empty = np.zeros(len(first), np.int16)
        return Rows(lanes, words, bounds[first], empty), keys[first]
