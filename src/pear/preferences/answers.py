"""What was asked, what was answered, and how likely is that answer?

A question is k plans, each the cost features of its steps. An answer is one of four things a
person can say; each has a likelihood, written in its own class, given the costs of the plans
under a weight sample and the response model in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pear.errors import ConversationError, InvalidSetting
from pear.preferences.response import Costs, ResponseModel
from pear.problem.checks import is_finite, is_whole


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

    features: NDArray[np.float64]
    lengths: NDArray[np.intp]
    floor: float | None = None
    rows: NDArray[np.float64] = field(init=False, repr=False)
    """Terms of all the plans, one after the other, shape ``(r, p)``. With a floor a term is
    a step; without one a plan is linear in the weights and needs a single term."""
    starts: NDArray[np.intp] = field(init=False, repr=False)
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

    def costs(self, samples: NDArray[np.float64]) -> Costs:
        """Cost of each plan under each weight sample ``(n, p)``, shape ``(n, k)``."""
        terms = self.rows @ np.asarray(samples, dtype=float).T
        if self.floor is not None:
            np.maximum(terms, self.floor, out=terms)
        return np.asarray(np.add.reduceat(terms, self.starts, axis=0).T)

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

    def resolve(self, costs: Costs, weights: NDArray[np.float64]) -> Chosen:
        return self

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> NDArray[np.float64]:
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

    def resolve(self, costs: Costs, weights: NDArray[np.float64]) -> AboutTheSame:
        if self.tolerance is not None:
            return self
        return AboutTheSame(max(0.1 * abs(float(weights @ costs.min(axis=1))), 1e-6))

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> NDArray[np.float64]:
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

    def resolve(self, costs: Costs, weights: NDArray[np.float64]) -> NoneOfThese:
        cheapest = costs.min(axis=1)
        mean = float(weights @ cheapest)
        deviation = float(np.sqrt(weights @ (cheapest - mean) ** 2))
        return NoneOfThese(
            mean if self.reservation is None else self.reservation,
            max(deviation, 1e-3 * abs(mean), 1e-6) if self.spread is None else self.spread,
        )

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> NDArray[np.float64]:
        assert self.reservation is not None
        assert self.spread is not None
        return np.asarray(
            -np.logaddexp(0.0, -(costs.min(axis=-1) - self.reservation) / self.spread)
        )


@dataclass(frozen=True)
class CannotDoStep:
    """ "I cannot do this step": step number ``step`` of plan number ``plan``, from 0.

    Likelihood: 1. It is a limit on the plans a person may be offered, not a preference; the
    conversation keeps it and the posterior does not change.
    """

    plan: int
    step: int

    def check(self, question: Question) -> None:
        Chosen(self.plan).check(question)
        if not _is_place(self.step, question.lengths[self.plan]):
            raise ConversationError(
                f"'step' must be one of the {question.lengths[self.plan]} steps of plan "
                f"{self.plan}, counted from 0 (got {self.step!r})"
            )

    def resolve(self, costs: Costs, weights: NDArray[np.float64]) -> CannotDoStep:
        return self

    def log_likelihood(self, costs: Costs, response: ResponseModel) -> NDArray[np.float64]:
        return np.zeros(costs.shape[:-1])


def _is_place(number: Any, count: int) -> bool:
    return is_whole(number) and 0 <= number < count


Answer = Chosen | AboutTheSame | NoneOfThese | CannotDoStep

_KINDS: dict[str, type[Answer]] = {
    "chosen": Chosen,
    "about_the_same": AboutTheSame,
    "none_of_these": NoneOfThese,
    "cannot_do_step": CannotDoStep,
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
