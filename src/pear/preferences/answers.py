"""What was asked, what was answered, and how likely is that answer?

A question is k plans, each the cost features of its steps. An answer is one of three things a
person can say; each has a likelihood, written in its own class, given the costs of the plans
under a weight sample and the response model in use. :class:`Evidence` holds all the questions
and answers of a conversation: the cost of a step is linear in the weights, so the features of
all the steps ever asked about form one matrix, and every likelihood is a function of its product
with the samples. Samplers keep that product and combine it instead of multiplying again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pear.arrays import Floats, Indices
from pear.errors import ConversationError, InvalidSetting
from pear.preferences.response import TIE, Costs, ResponseModel
from pear.problem import costs_under
from pear.problem.values import is_finite, is_whole


@dataclass(frozen=True, eq=False)
class Question:
    """The plans a person was asked to choose from.

    Attributes
    ----------
    features
        Cost features of every step, padded with zeros, shape ``(k, L, p)``.
    lengths
        Number of steps of each plan, shape ``(k,)``.
    floor
        Least cost of a step, or None. A plan costs ``sum_l max(floor, features[l] @ w)``.

    >>> question = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]]], floor=1.0)
    >>> question.costs(np.array([[5.0, 0.6]]))  # 5 against max(1, 0.6) + max(1, 1.2)
    array([[5. , 2.2]])
    """

    features: Floats
    lengths: Indices
    floor: float | None = None
    rows: Floats = field(init=False, repr=False)
    """Terms of all the plans, one after the other, shape ``(r, p)``. With a floor a term is
    a step; without one a plan is linear in the weights and needs a single term."""
    starts: Indices = field(init=False, repr=False)
    """Where each plan's terms begin in ``rows``, shape ``(k,)``."""

    def __post_init__(self) -> None:
        features = np.array(self.features, dtype=float)
        lengths = np.array(self.lengths, dtype=np.intp)
        if features.ndim != 3 or features.shape[0] < 1 or not np.isfinite(features).all():
            raise InvalidSetting(
                "'features' must be finite numbers of shape (plans, steps, weights) (got shape "
                f"{features.shape}); Question.from_plans pads plans of different lengths"
            )
        if (
            lengths.shape != features.shape[:1]
            or not ((lengths >= 1) & (lengths <= features.shape[1])).all()
        ):
            raise InvalidSetting(
                f"'lengths' must hold between 1 and {features.shape[1]} steps for each of the "
                f"{features.shape[0]} plans (got {lengths.tolist()}); leave out empty plans"
            )
        steps = np.arange(features.shape[1]) < lengths[:, None]
        features[~steps] = 0.0
        if self.floor is None:
            rows, starts = features.sum(axis=1), np.arange(len(lengths))
        else:
            rows, starts = features[steps], np.append(0, np.cumsum(lengths)[:-1])
        for name, value in zip(
            ("features", "lengths", "rows", "starts"),
            (features, lengths, rows, starts),
            strict=True,
        ):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def from_plans(cls, plans: Sequence[ArrayLike], floor: float | None = None) -> Question:
        """From one array of cost features per plan, each of shape ``(length, p)``."""
        arrays = [np.asarray(plan, dtype=float) for plan in plans]
        widths = {array.shape[1:] for array in arrays}
        if not arrays or len(widths) != 1 or any(array.ndim != 2 for array in arrays):
            raise InvalidSetting(
                "'plans' must be arrays of shape (steps, weights) with the same number of "
                f"weights (got shapes {[array.shape for array in arrays]})"
            )
        lengths = np.array([len(array) for array in arrays], dtype=np.intp)
        features = np.zeros((len(arrays), max(1, lengths.max()), arrays[0].shape[1]))
        for padded, array in zip(features, arrays, strict=True):
            padded[: len(array)] = array
        return cls(features, lengths, floor)

    @property
    def n_plans(self) -> int:
        """Number of plans k on offer."""
        return len(self.lengths)

    def costs(self, samples: Floats) -> Costs:
        """Cost of each plan under each weight sample ``(n, p)``, shape ``(n, k)``."""
        return costs_under(self.rows, np.asarray(samples, float), self.floor, self.starts)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        plans = [
            plan[:length].tolist() for plan, length in zip(self.features, self.lengths, strict=True)
        ]
        return {"plans": plans, "floor": self.floor}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Question:
        """The question that ``to_dict`` wrote."""
        return cls.from_plans(stored["plans"], stored["floor"])


@dataclass(frozen=True)
class Chosen:
    """ "I would rather do this one."

    Likelihood: the response model's probability of this plan among those on offer.
    """

    plan: int

    def check(self, question: Question) -> None:
        if not _is_place(self.plan, question.n_plans):
            raise ConversationError(
                f"'plan' must be one of the {question.n_plans} plans on offer, counted from 0 "
                f"(got {self.plan!r})"
            )

    def resolve(self, costs: Costs, weights: Floats) -> Chosen:
        return self

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> Floats:
        return np.asarray(response.log_probabilities(costs)[..., self.plan])


@dataclass(frozen=True)
class AboutTheSame:
    """ "They are about the same to me."

    Likelihood: ``exp(-(d / tolerance)^2 / 2)``, where d is what the dearest plan costs this
    person above the cheapest: 1 when they cost the same, 0.6 when they differ by the
    tolerance, nothing at a few times that. The same under every response model.

    ``tolerance`` is in units of cost; when not given it is a tenth of what the cheapest plan
    is expected to cost at the time of the answer.
    """

    tolerance: float | None = None

    def check(self, question: Question) -> None:
        if self.tolerance is not None and not (is_finite(self.tolerance) and self.tolerance > 0):
            raise InvalidSetting(
                f"'tolerance' must be a positive difference of costs (got {self.tolerance!r}); "
                "leave it out for a tenth of the expected cost"
            )

    def resolve(self, costs: Costs, weights: Floats) -> AboutTheSame:
        if self.tolerance is not None:
            return self
        return AboutTheSame(max(0.1 * abs(float(weights @ costs.min(axis=1))), 1e-6))

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> Floats:
        assert self.tolerance is not None
        difference = costs.max(axis=-1) - costs.min(axis=-1)
        return np.asarray(-0.5 * (difference / self.tolerance) ** 2)


@dataclass(frozen=True)
class NoneOfThese:
    """ "I would do none of these."

    Likelihood: the person has a reservation cost R, the most they would pay for the decision;
    they decline when the cheapest plan on offer costs more. R is not known: it follows a
    logistic distribution with mean ``reservation`` and scale ``spread``, so that the
    likelihood is ``1 / (1 + exp(-(cheapest - reservation) / spread))``. The same under every
    response model. That somebody did choose says nothing about R, on purpose: the choice keeps
    the paper's likelihood.

    When not given, ``reservation`` is the cost expected of the cheapest plan at the time of
    the answer and ``spread`` its standard deviation: "dearer to me than you think".
    """

    reservation: float | None = None
    spread: float | None = None

    def check(self, question: Question) -> None:
        if self.reservation is not None and not is_finite(self.reservation):
            raise InvalidSetting(
                f"'reservation' must be a cost (got {self.reservation!r}); leave it out to have "
                "it follow from what is known"
            )
        if self.spread is not None and not (is_finite(self.spread) and self.spread > 0):
            raise InvalidSetting(
                f"'spread' must be a positive number (got {self.spread!r}); leave it out to "
                "have it follow from what is known"
            )

    def resolve(self, costs: Costs, weights: Floats) -> NoneOfThese:
        cheapest = costs.min(axis=1)
        mean = float(weights @ cheapest)
        deviation = float(np.sqrt(weights @ (cheapest - mean) ** 2))
        return NoneOfThese(
            mean if self.reservation is None else self.reservation,
            max(deviation, 1e-3 * abs(mean), 1e-6) if self.spread is None else self.spread,
        )

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> Floats:
        assert self.reservation is not None
        assert self.spread is not None
        return np.asarray(
            -np.logaddexp(0.0, -(costs.min(axis=-1) - self.reservation) / self.spread)
        )


def _is_place(number: Any, count: int) -> bool:
    return is_whole(number) and 0 <= number < count


Answer = Chosen | AboutTheSame | NoneOfThese

_KINDS: dict[str, type[Answer]] = {
    "chosen": Chosen,
    "about_the_same": AboutTheSame,
    "none_of_these": NoneOfThese,
}


def answer_to_dict(answer: Answer) -> dict[str, Any]:
    """Plain numbers and words, for JSON.

    >>> answer_to_dict(Chosen(1))
    {'kind': 'chosen', 'plan': 1}
    """
    kind = next(name for name, known in _KINDS.items() if isinstance(answer, known))
    return {"kind": kind, **asdict(answer)}


def answer_from_dict(stored: Mapping[str, Any]) -> Answer:
    """The answer that ``answer_to_dict`` wrote."""
    settings = dict(stored)
    kind = settings.pop("kind", None)
    if kind not in _KINDS:
        raise ConversationError(
            f"'kind' of an answer must be one of {', '.join(_KINDS)} (got {kind!r})"
        )
    return _KINDS[kind](**settings)


Projection = Floats
"""Every term of every plan asked about, under n samples, shape ``(r, n)``."""


@dataclass(frozen=True)
class Relaxation:
    """An answer taken less than seriously, on the way to it from the answers before.

    Either its likelihood to the power ``exponent``, or, for a noiseless choice, a chosen plan
    that may be dearer than the cheapest by up to ``slack``.
    """

    exponent: float = 0.0
    slack: float | None = None

    def log_likelihood(self, costs: Costs, answer: Answer, response: ResponseModel) -> Floats:
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
        """This evidence and one more answer."""
        return Evidence((*self.answered, (question, answer)))

    @cached_property
    def _lengths(self) -> Indices:
        """Number of terms of each plan, one question after the other."""
        ends = [np.append(question.starts[1:], len(question.rows)) for question, _ in self.answered]
        starts = [question.starts for question, _ in self.answered]
        return np.concatenate(ends) - np.concatenate(starts)

    @cached_property
    def _places(self) -> list[Indices]:
        """Row of the cost of each plan, one array ``(k,)`` per question."""
        order = np.argsort(-self._lengths, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        counts = [question.n_plans for question, _ in self.answered]
        return np.split(place, np.cumsum(counts)[:-1])

    @cached_property
    def _row_order(self) -> Indices:
        lengths = self._lengths
        position = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.lexsort((np.repeat(np.concatenate(self._places), lengths), position))

    @cached_property
    def _block_sizes(self) -> list[int]:
        """How many plans have a first, a second, ... term."""
        return [int((self._lengths > step).sum()) for step in range(self._lengths.max())]

    @cached_property
    def rows(self) -> Floats:
        """Features of all terms, shape ``(r, p)``."""
        return np.concatenate([question.rows for question, _ in self.answered])[self._row_order]

    @cached_property
    def _floors(self) -> float | Floats | None:
        """One floor for all, or one per term ``(r, 1)``; None where nobody has one."""
        floors = [question.floor for question, _ in self.answered]
        if len(set(floors)) == 1:
            return floors[0]
        values = [-np.inf if floor is None else floor for floor in floors]
        lengths = [len(question.rows) for question, _ in self.answered]
        return np.repeat(values, lengths)[self._row_order][:, None]

    @cached_property
    def _choices(self) -> list[tuple[Indices, Indices]]:
        return _choice_tables(self.answered, self._places)

    @cached_property
    def _earlier_choices(self) -> list[tuple[Indices, Indices]]:
        return _choice_tables(self.answered[:-1], self._places)

    def project(self, samples: Floats) -> Projection:
        """All terms under the samples ``(n, p)``, shape ``(r, n)``."""
        return np.asarray(self.rows @ samples.T)

    def log_likelihood(
        self, projection: Projection, response: ResponseModel, relaxed: Relaxation | None = None
    ) -> Floats:
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

    def _plan_costs(self, projection: Projection) -> Floats:
        """Costs of all plans asked about, in the order of ``_places``, shape ``(plans, n)``."""
        if self._floors is not None:
            np.maximum(projection, self._floors, out=projection)
        costs = projection[: len(self._lengths)]
        first = len(costs)
        for size in self._block_sizes[1:]:
            costs[:size] += projection[first : first + size]
            first += size
        return costs


def violation(costs: Costs, plan: int) -> Floats:
    """How much dearer than the cheapest the chosen plan is, shape ``(n,)``; 0 for a tie."""
    least = costs.min(axis=1)
    excess = costs[:, plan] - least
    return np.where(excess <= TIE * np.maximum(1.0, np.abs(least)), 0.0, excess)


def _choice_tables(
    answered: Sequence[tuple[Question, Answer]], places: Sequence[Indices]
) -> list[tuple[Indices, Indices]]:
    """For each number of plans k: rows of the chosen ones ``(q,)``, of the others ``(k-1, q)``."""
    groups: dict[int, list[Indices]] = {}
    for (question, answer), own in zip(answered, places, strict=False):
        if isinstance(answer, Chosen):
            chosen_first = np.append(own[answer.plan], np.delete(own, answer.plan))
            groups.setdefault(question.n_plans, []).append(chosen_first)
    tables = [np.stack(group, axis=1) for _, group in sorted(groups.items())]
    return [(table[0], table[1:]) for table in tables]
