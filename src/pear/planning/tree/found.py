"""Which successful plans has a search met?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FoundPlans:
    """n successful plans of at most L moves.

    ``person`` ``(n,)`` is the row of the person in the search, ``moves`` ``(n, L)`` ends in -1,
    ``scores`` ``(n, L + 1)`` in NaN, ``costs`` ``(n,)`` are under the person's weights.
    """

    person: NDArray[np.intp]
    moves: NDArray[np.intp]
    scores: Floats
    costs: Floats

    def __len__(self) -> int:
        return len(self.person)

    @property
    def lengths(self) -> NDArray[np.intp]:
        return np.asarray((self.moves >= 0).sum(axis=1))

    @classmethod
    def none(cls, longest: int) -> FoundPlans:
        return cls(
            np.zeros(0, np.intp),
            np.zeros((0, longest), np.intp),
            np.zeros((0, longest + 1)),
            np.zeros(0),
        )

    @classmethod
    def joined(cls, parts: list[FoundPlans]) -> FoundPlans:
        return cls(
            np.concatenate([part.person for part in parts]),
            np.concatenate([part.moves for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.costs for part in parts]),
        )

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> FoundPlans:
        """Some of the plans, in the order given."""
        return FoundPlans(
            self.person[chosen], self.moves[chosen], self.scores[chosen], self.costs[chosen]
        )

    def best_of_each(self, merit: Floats, people: int) -> NDArray[np.intp]:
        """The plan of highest merit of each person, -1 for none, shape ``(people,)``.

        Ties: the cheaper, then the shorter, then the one with the smaller move numbers.
        """
        keys = [self.moves[:, step] for step in reversed(range(self.moves.shape[1]))]
        order = np.lexsort([*keys, self.lengths, self.costs, -merit, self.person])
        people_of, first = np.unique(self.person[order], return_index=True)
        best = np.full(people, -1, np.intp)
        best[people_of] = order[first]
        return best
