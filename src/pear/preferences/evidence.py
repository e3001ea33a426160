"""How well does a weight vector explain all the answers so far?

The cost of a step is linear in the weights, so the features of all the steps ever asked about
form one matrix, and every likelihood is a function of its product with the samples. Samplers
keep that product and combine it instead of multiplying again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pear.preferences.answers import Answer, CannotDoStep, Chosen, Question
from pear.preferences.response import TIE, Costs, ResponseModel

Projection = NDArray[np.float64]
"""Every term of every plan asked about, under n samples, shape ``(r, n)``."""


@dataclass(frozen=True)
class Relaxation:
    """An answer taken less than seriously, on the way to it from the answers before.

    Either its likelihood to the power ``exponent``, or, for a noiseless choice, a chosen plan
    that may be dearer than the cheapest by up to ``slack``.
    """

    exponent: float = 0.0
    slack: float | None = None

    def log_likelihood(
        self, costs: Costs, answer: Answer, response: ResponseModel
    ) -> NDArray[np.float64]:
        """Log of the relaxed likelihood, shape ``(n,)``."""
        if self.slack is None:
            return self.exponent * answer.log_likelihood(costs, response)
        assert isinstance(answer, Chosen)
        return np.where(violation(costs, answer.plan) <= self.slack, 0.0, -np.inf)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Questions and their answers, ready to be judged for many samples at once.

    The terms are kept in the order: first terms of all plans, second terms of those that have
    one, and so on, plans with more terms first. Adding up a plan is then adding blocks of rows.
    """

    answered: tuple[tuple[Question, Answer], ...] = ()

    def adding(self, question: Question, answer: Answer) -> Evidence:
        """This evidence and one more answer; one with no likelihood adds nothing."""
        if isinstance(answer, CannotDoStep):
            return self
        return Evidence((*self.answered, (question, answer)))

    @cached_property
    def _lengths(self) -> NDArray[np.intp]:
        """Number of terms of each plan, one question after the other."""
        ends = [np.append(question.starts[1:], len(question.rows)) for question, _ in self.answered]
        starts = [question.starts for question, _ in self.answered]
        return np.concatenate(ends) - np.concatenate(starts)

    @cached_property
    def _places(self) -> list[NDArray[np.intp]]:
        """Row of the cost of each plan, one array ``(k,)`` per question."""
        order = np.argsort(-self._lengths, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        counts = [question.n_plans for question, _ in self.answered]
        return np.split(place, np.cumsum(counts)[:-1])

    @cached_property
    def _row_order(self) -> NDArray[np.intp]:
        lengths = self._lengths
        position = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.lexsort((np.repeat(np.concatenate(self._places), lengths), position))

    @cached_property
    def _block_sizes(self) -> list[int]:
        """How many plans have a first, a second, ... term."""
        return [int((self._lengths > step).sum()) for step in range(self._lengths.max())]

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        """Features of all terms, shape ``(r, p)``."""
        return np.concatenate([question.rows for question, _ in self.answered])[self._row_order]

    @cached_property
    def _floors(self) -> float | NDArray[np.float64] | None:
        """One floor for all, or one per term ``(r, 1)``; None where nobody has one."""
        floors = [question.floor for question, _ in self.answered]
        if len(set(floors)) == 1:
            return floors[0]
        values = [-np.inf if floor is None else floor for floor in floors]
        lengths = [len(question.rows) for question, _ in self.answered]
        return np.repeat(values, lengths)[self._row_order][:, None]

    @cached_property
    def _choices(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        return _choice_tables(self.answered, self._places)

    @cached_property
    def _earlier_choices(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        return _choice_tables(self.answered[:-1], self._places)

    def project(self, samples: NDArray[np.float64]) -> Projection:
        """All terms under the samples ``(n, p)``, shape ``(r, n)``."""
        return np.asarray(self.rows @ samples.T)

    def log_likelihood(
        self, projection: Projection, response: ResponseModel, relaxed: Relaxation | None = None
    ) -> NDArray[np.float64]:
        """Log probability of all the answers under each sample, shape ``(n,)``.

        With ``relaxed``, the last answer counts as little as that says. Writes into
        ``projection``, to need no memory of its size again.
        """
        costs = self._plan_costs(projection)
        total = np.zeros(costs.shape[1])
        for chosen, others in self._choices if relaxed is None else self._earlier_choices:
            total += response.log_choice(costs[chosen], costs[others]).sum(axis=0)
        judged = len(self.answered) - (relaxed is not None)
        for (_, answer), places in zip(self.answered[:judged], self._places, strict=False):
            if not isinstance(answer, Chosen):
                total += answer.log_likelihood(costs[places].T, response)
        if relaxed is not None:
            last = costs[self._places[-1]].T
            total += relaxed.log_likelihood(last, self.answered[-1][1], response)
        return total

    def _plan_costs(self, projection: Projection) -> NDArray[np.float64]:
        """Costs of all plans asked about, in the order of ``_places``, shape ``(plans, n)``."""
        if self._floors is not None:
            np.maximum(projection, self._floors, out=projection)
        costs = projection[: len(self._lengths)]
        first = len(costs)
        for size in self._block_sizes[1:]:
            costs[:size] += projection[first : first + size]
            first += size
        return costs


def violation(costs: Costs, plan: int) -> NDArray[np.float64]:
    """How much dearer than the cheapest the chosen plan is, shape ``(n,)``; 0 for a tie."""
    least = costs.min(axis=1)
    excess = costs[:, plan] - least
    return np.where(excess <= TIE * np.maximum(1.0, np.abs(least)), 0.0, excess)


def _choice_tables(
    answered: Sequence[tuple[Question, Answer]], places: Sequence[NDArray[np.intp]]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each number of plans k: rows of the chosen ones ``(q,)``, of the others ``(k-1, q)``."""
    groups: dict[int, list[NDArray[np.intp]]] = {}
    for (question, answer), own in zip(answered, places, strict=False):
        if isinstance(answer, Chosen):
            chosen_first = np.append(own[answer.plan], np.delete(own, answer.plan))
            groups.setdefault(question.n_plans, []).append(chosen_first)
    tables = [np.stack(group, axis=1) for _, group in sorted(groups.items())]
    return [(table[0], table[1:]) for table in tables]
