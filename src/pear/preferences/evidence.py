"""How well does a weight vector explain all the answers so far?

The cost of a step is linear in the weights, so the features of all the steps ever asked about
form one matrix, and every likelihood is a function of its product with the samples. Samplers
keep that product and combine it instead of multiplying again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pear.preferences.answers import Answer, CannotDoStep, Chosen, Question
from pear.preferences.response import TIE, Costs, ResponseModel

Projection = NDArray[np.float64]
"""Every term of every plan asked about, under n samples, shape ``(r, n)``."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Questions and their answers, ready to be judged for many samples at once."""

    answered: tuple[tuple[Question, Answer], ...] = ()

    def adding(self, question: Question, answer: Answer) -> Evidence:
        """This evidence and one more answer; one with no likelihood adds nothing."""
        if isinstance(answer, CannotDoStep):
            return self
        return Evidence((*self.answered, (question, answer)))

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        """Features of all terms, shape ``(r, p)``."""
        return np.concatenate([question.rows for question, _ in self.answered])

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        offsets = np.cumsum([0] + [len(question.rows) for question, _ in self.answered])
        return np.concatenate(
            [
                question.starts + offset
                for (question, _), offset in zip(self.answered, offsets[:-1], strict=True)
            ]
        )

    @cached_property
    def _floors(self) -> float | NDArray[np.float64] | None:
        """One floor for all, or one per term ``(r, 1)``; None where nobody has one."""
        floors = [question.floor for question, _ in self.answered]
        if len(set(floors)) == 1:
            return floors[0]
        values = [-np.inf if floor is None else floor for floor in floors]
        lengths = [len(question.rows) for question, _ in self.answered]
        return np.repeat(values, lengths)[:, None]

    @cached_property
    def _first_plans(self) -> NDArray[np.intp]:
        return np.cumsum([0] + [question.n_plans for question, _ in self.answered])

    @cached_property
    def _choices(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Plans of each choice question ``(q, k)``, the chosen one first; where a question has
        fewer than k plans, the number of plans in all stands for a plan of infinite cost."""
        chosen = [
            (first, question.n_plans, answer.plan)
            for (question, answer), first in zip(self.answered, self._first_plans[:-1], strict=True)
            if isinstance(answer, Chosen)
        ]
        width = max((count for _, count, _ in chosen), default=0)
        table = np.full((len(chosen), width), self._first_plans[-1], dtype=np.intp)
        for row, (first, count, plan) in zip(table, chosen, strict=True):
            others = [number for number in range(count) if number != plan]
            row[:count] = first + np.array([plan, *others])
        padded = np.array([count < width for _, count, _ in chosen], dtype=bool)
        return table, np.flatnonzero(padded)

    @cached_property
    def _others(self) -> list[tuple[slice, Answer]]:
        return [
            (slice(first, first + question.n_plans), answer)
            for (question, answer), first in zip(self.answered, self._first_plans[:-1], strict=True)
            if not isinstance(answer, Chosen)
        ]

    def project(self, samples: NDArray[np.float64]) -> Projection:
        """All terms under the samples ``(n, p)``, shape ``(r, n)``."""
        return np.asarray(self.rows @ samples.T)

    def plan_costs(self, projection: Projection) -> NDArray[np.float64]:
        """Costs of all plans asked about, one question after the other, shape ``(plans, n)``.

        Writes into ``projection``.
        """
        if self._floors is not None:
            np.maximum(projection, self._floors, out=projection)
        if len(self._starts) == len(projection):
            return projection
        return np.add.reduceat(projection, self._starts, axis=0)

    @cached_property
    def before_last(self) -> Evidence:
        """All the answers but the last."""
        return Evidence(self.answered[:-1])

    def judge(self, costs: NDArray[np.float64], response: ResponseModel) -> NDArray[np.float64]:
        """Log probability of all the answers, given the costs of all plans ``(plans, n)``."""
        total = np.zeros(costs.shape[1])
        table, padded = self._choices
        if len(table):
            known = costs
            if len(padded):
                known = np.vstack([costs, np.full((1, costs.shape[1]), np.inf)])
            offered = known[table.T].transpose(1, 2, 0)
            total += response.log_probabilities(offered)[..., 0].sum(axis=0)
        for plans, answer in self._others:
            total += answer.log_likelihood(costs[plans].T, response)
        return total

    def log_likelihood(
        self,
        projection: Projection,
        response: ResponseModel,
        relaxed: Relaxation | None = None,
    ) -> NDArray[np.float64]:
        """Log probability of all the answers under each sample, shape ``(n,)``.

        With ``relaxed``, the last answer counts as little as that says. Writes into
        ``projection``.
        """
        costs = self.plan_costs(projection)
        if relaxed is None:
            return self.judge(costs, response)
        question, answer = self.answered[-1]
        last = relaxed.log_likelihood(costs[-question.n_plans :].T, answer, response)
        past = self.before_last
        if not past.answered:
            return last
        return last + past.judge(costs[: -question.n_plans], response)


@dataclass(frozen=True)
class Relaxation:
    """An answer taken less than seriously, on the way from the answers before it.

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


def violation(costs: Costs, plan: int) -> NDArray[np.float64]:
    """How much dearer than the cheapest the chosen plan is, shape ``(n,)``; 0 for a tie."""
    least = costs.min(axis=1)
    excess = costs[:, plan] - least
    return np.where(excess <= TIE * np.maximum(1.0, np.abs(least)), 0.0, excess)
