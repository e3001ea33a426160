"""How does a person answer a choice question?

A response model turns the costs of the plans on offer into the probability that each is
chosen. The posterior uses it as a likelihood; simulated people use it to answer.

References: paper, eqn. logistic and eqn. noiseless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pear.arrays import Floats
from pear.errors import InvalidSetting
from pear.problem.values import is_finite

Costs = Floats
"""Costs of k plans under n weight samples, shape ``(n, k)`` or with leading axes."""

TIE = 1e-9
"""Costs that differ by less than this, or this share of their size, are a tie."""


class ResponseModel(Protocol):
    """Probability of each answer, given what the plans cost this person."""

    def log_probabilities(self, costs: Costs) -> Floats:
        """Log probability that each plan is chosen, same shape as ``costs``."""
        ...

    def log_choice(self, chosen: Costs, others: Costs) -> Floats:
        """Log probability of the choices made, shape ``(..., n)``: plans of cost ``chosen``,
        that shape, over ``others``, shape ``(k - 1, ..., n)``. Samples come last here: it is
        the innermost loop of every sampler."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON; ``response_from_dict`` reads them."""
        ...


@dataclass(frozen=True)
class Logistic:
    """Cheaper plans are likelier, the more so the larger ``sharpness`` (λ in the paper).

    Of two plans whose costs differ by ``1 / sharpness``, the cheaper one is chosen e times as
    often as the other.

    >>> model = Logistic(sharpness=1.0)
    >>> np.exp(model.log_probabilities(np.array([[10.0, 10.0]])))
    array([[0.5, 0.5]])
    """

    sharpness: float = 0.9

    def __post_init__(self) -> None:
        _require_sharpness(self.sharpness)

    def log_probabilities(self, costs: Costs) -> Floats:
        return _log_softmax(costs, self.sharpness)

    def log_choice(self, chosen: Costs, others: Costs) -> Floats:
        return _log_first(chosen, others, self.sharpness)

    def to_dict(self) -> dict[str, Any]:
        return {"model": "logistic", "sharpness": self.sharpness}


@dataclass(frozen=True)
class Noiseless:
    """The cheapest plan is always chosen; ties are broken uniformly."""

    def log_probabilities(self, costs: Costs) -> Floats:
        least = costs.min(axis=-1, keepdims=True)
        cheapest = costs <= least + TIE * np.maximum(1.0, np.abs(least))
        return np.where(cheapest, -np.log(cheapest.sum(axis=-1, keepdims=True)), -np.inf)

    def log_choice(self, chosen: Costs, others: Costs) -> Floats:
        allowance = TIE * np.maximum(1.0, np.abs(chosen))
        never = (others < chosen - allowance).any(axis=0)
        ties = (others <= chosen + allowance).sum(axis=0)
        return np.where(never, -np.inf, -np.log1p(ties))

    def to_dict(self) -> dict[str, Any]:
        return {"model": "noiseless"}


@dataclass(frozen=True)
class UnknownSharpness:
    """A logistic person of whom we do not know how careful they are; answers will tell.

    The sharpness is log-normal: ``median`` times ``exp(spread * z)`` with z standard normal.
    A posterior infers it together with the weights. Asked without a posterior, the model
    averages over the values it thinks possible. ``lapses`` is the share of answers given without
    looking at costs at all, by a slip or by a habit, for the median sharpness: the odds of a lapse
    are inversely proportional to the sharpness. No single answer then says more than that, and
    somebody who answers by habit alone is somebody of whom next to nothing is learnt.

    >>> model = UnknownSharpness(median=1.0, spread=0.5)
    >>> np.exp(model.log_probabilities(np.array([[3.0, 3.0]]))).round(6)
    array([[0.5, 0.5]])
    """

    median: float = 0.9
    spread: float = 1.0
    lapses: float = 0.0

    def __post_init__(self) -> None:
        _require_sharpness(self.median, "median")
        if not (is_finite(self.lapses) and 0 <= self.lapses < 1):
            raise InvalidSetting(
                f"'lapses' must be a share below 1 (got {self.lapses!r}); write 0 for no lapses"
            )
        if not (is_finite(self.spread) and self.spread > 0):
            raise InvalidSetting(
                f"'spread' must be a positive number (got {self.spread!r}); use "
                "Logistic(sharpness) when the sharpness is known"
            )

    def sharpness(self, standard: Floats) -> Floats:
        """The sharpness that belongs to each standard normal value."""
        return np.asarray(self.median * np.exp(self.spread * standard))

    def given(self, standard: Floats) -> PerSampleLogistic:
        """The response model of n people whose sharpness is known, standard values ``(n,)``."""
        sharpness = self.sharpness(standard)
        odds = self.lapses / (1 - self.lapses) * self.median / sharpness
        return PerSampleLogistic(sharpness, odds / (1 + odds))

    def log_probabilities(self, costs: Costs) -> Floats:
        nodes, masses = np.polynomial.hermite_e.hermegauss(15)
        given = self.given(nodes)
        terms = [
            np.log(mass / masses.sum())
            + _with_lapses(_log_softmax(costs, sharpness), lapses, costs.shape[-1])
            for sharpness, lapses, mass in zip(given.sharpness, given.lapses, masses, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))

    def log_choice(self, chosen: Costs, others: Costs) -> Floats:
        costs = np.moveaxis(np.concatenate([chosen[None], others]), 0, -1)
        return np.asarray(self.log_probabilities(costs)[..., 0])

    def to_dict(self) -> dict[str, Any]:
        stored = {"model": "unknown_sharpness", "median": self.median, "spread": self.spread}
        return {**stored, "lapses": self.lapses} if self.lapses else stored


@dataclass(frozen=True, eq=False)
class PerSampleLogistic:
    """Logistic answers of n people, each with a sharpness and a share of lapses of their own, both
    of shape ``(n,)``."""

    sharpness: Floats
    lapses: Floats

    def log_probabilities(self, costs: Costs) -> Floats:
        """As for the others; the axis before the last is the people's, of length n."""
        by_costs = _log_softmax(costs, self.sharpness[:, None])
        return _with_lapses(by_costs, self.lapses[:, None], costs.shape[-1])

    def log_choice(self, chosen: Costs, others: Costs) -> Floats:
        by_costs = _log_first(chosen, others, self.sharpness)
        return _with_lapses(by_costs, self.lapses, 1 + len(others))

    def to_dict(self) -> dict[str, Any]:
        lists = {"sharpness": self.sharpness.tolist(), "lapses": self.lapses.tolist()}
        return {"model": "per_sample_logistic", **lists}


def response_from_dict(stored: Mapping[str, Any]) -> ResponseModel:
    """The response model that ``to_dict`` wrote.

    >>> response_from_dict(Logistic(2.0).to_dict())
    Logistic(sharpness=2.0)
    """
    settings = {_RENAMED.get(key, key): value for key, value in dict(stored).items()}
    name = settings.pop("model", None)
    name = _RENAMED.get(str(name), name)
    if name == "per_sample_logistic":
        sharpness = np.asarray(settings["sharpness"], dtype=float)
        lapses = np.broadcast_to(np.asarray(settings.get("lapses", 0.0), float), sharpness.shape)
        return PerSampleLogistic(sharpness, lapses)
    models = {
        "logistic": Logistic,
        "noiseless": Noiseless,
        "unknown_sharpness": UnknownSharpness,
    }
    if name not in models:
        raise InvalidSetting(
            f"'model' must be one of {', '.join(sorted(models))} (got {name!r}); "
            "store response models with their to_dict()"
        )
    try:
        model: ResponseModel = models[name](**settings)
    except TypeError as error:
        raise InvalidSetting(f"the response model '{name}' cannot be read: {error}") from None
    return model


_RENAMED = {
    "temperature": "sharpness",
    "temperatures": "sharpness",
    "unknown_temperature": "unknown_sharpness",
}
"""Words of conversations stored by earlier versions."""


def _log_softmax(costs: Costs, sharpness: float | Floats) -> Floats:
    utilities = -sharpness * (costs - costs.min(axis=-1, keepdims=True))
    return np.asarray(utilities - np.log(np.exp(utilities).sum(axis=-1, keepdims=True)))


def _with_lapses(log_probabilities: Floats, lapses: float | Floats, k: int) -> Floats:
    """The same where a share of the answers is any of the k plans, by chance."""
    if not np.any(lapses):
        return log_probabilities
    return np.asarray(np.log((1 - lapses) * np.exp(log_probabilities) + lapses / k))


def _log_first(chosen: Costs, others: Costs, sharpness: float | Floats) -> Floats:
    utilities = sharpness * (chosen - others)
    largest = np.maximum(utilities.max(axis=0, initial=0.0), 0.0)
    utilities -= largest
    np.exp(utilities, out=utilities)
    return np.asarray(-largest - np.log(np.exp(-largest) + utilities.sum(axis=0)))


def _require_sharpness(value: float, name: str = "sharpness") -> None:
    if not (is_finite(value) and value > 0):
        raise InvalidSetting(
            f"'{name}' must be a positive number (got {value!r}); "
            "use Noiseless() for a person who never errs"
        )
