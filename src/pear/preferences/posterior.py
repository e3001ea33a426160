"""What do we believe about a person's weights after their answers?

Two samplers follow this interface: ``ParticlePosterior`` (the default) and
``EnsembleSlicePosterior`` (the paper's). A posterior is never changed: an answer makes a new
one, so that going back is keeping the old one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidSetting
from pear.preferences.answers import Answer, Chosen, Evidence, Question
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import ResponseModel


@dataclass(frozen=True)
class Health:
    """Can the samples be trusted?

    Attributes
    ----------
    n_samples
        Number of samples kept.
    effective_sample_size
        How many equally weighted independent samples these are worth.
    unique_samples
        Number of different samples among them.
    moved
        Share of attempted moves that left their place, of the latest rejuvenation; 1 before.
    rejuvenations
        How often the samples were resampled and moved since the first question.
    bridges
        Intermediate steps taken, in all, for answers that few samples could explain.
    contradiction
        Number, from 0, of the first answer that contradicted earlier ones under the noiseless
        model, or None. From then on all the answers are judged with a small noise.
    fallback_sharpness
        The sharpness of that noise, or None.
    """

    n_samples: int
    effective_sample_size: float
    unique_samples: int
    moved: float = 1.0
    rejuvenations: int = 0
    bridges: int = 0
    contradiction: int | None = None
    fallback_sharpness: float | None = None

    @property
    def good(self) -> bool:
        """Enough different samples, all of them able to move."""
        enough = min(100.0, 0.05 * self.n_samples)
        return self.effective_sample_size >= enough and self.moved >= 0.9

    def __str__(self) -> str:
        words = [
            f"{self.effective_sample_size:.0f} effective of {self.n_samples} samples "
            f"({self.unique_samples} different)"
        ]
        if self.rejuvenations:
            words.append(f"rejuvenated {self.rejuvenations} times, {self.moved:.0%} moved")
        if self.bridges:
            words.append(f"{self.bridges} intermediate steps")
        if self.contradiction is not None:
            words.append(
                f"answer {self.contradiction + 1} contradicts earlier ones: all answers are "
                f"judged with a small noise (sharpness {self.fallback_sharpness:.3g})"
            )
        return "; ".join(words)


class Posterior(Protocol):
    """Weighted samples of a person's weights, given the answers so far."""

    @property
    def prior(self) -> GaussianMixturePrior:
        """What was believed before the first answer."""
        ...

    @property
    def response(self) -> ResponseModel:
        """How answers are judged; after a contradiction, the small noise fallen back to."""
        ...

    @property
    def n_answers(self) -> int:
        """Number of answers taken in."""
        ...

    @property
    def samples(self) -> NDArray[np.float64]:
        """Weight vectors, shape ``(n, p)``."""
        ...

    @property
    def weights(self) -> NDArray[np.float64]:
        """Probability of each sample, shape ``(n,)``, summing to 1."""
        ...

    @property
    def components(self) -> NDArray[np.intp]:
        """Component of the prior each sample belongs to, shape ``(n,)``."""
        ...

    @property
    def health(self) -> Health:
        """Whether the samples can be trusted."""
        ...

    def update(self, question: Question, answer: Answer, rng: np.random.Generator) -> Self:
        """What is believed after one more answer; this posterior stays as it is."""
        ...

    def mean(self) -> NDArray[np.float64]:
        """The estimate of the person's weights, shape ``(p,)``."""
        ...

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Equally weighted samples, shape ``(n, p)``."""
        ...

    def sample_response(self) -> ResponseModel:
        """The response model line by line with ``samples``: where the sharpness is inferred,
        each sample answers with its own."""
        ...

    def component_shares(self) -> NDArray[np.float64]:
        """Probability of each component of the prior, shape ``(c,)``."""
        ...


def systematic(weights: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of n draws, in order: each weight w is drawn n * w times, rounded at random."""
    edges = np.cumsum(weights)
    positions = (np.arange(n) + rng.random()) * (edges[-1] / n)
    last = np.flatnonzero(weights)[-1]
    return np.asarray(np.minimum(np.searchsorted(edges, positions, side="right"), last))


def effective_sample_size(weights: NDArray[np.float64]) -> float:
    """Number of equal weights with the same sum of squares (Kish); 0 for no weight at all.

    >>> effective_sample_size(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    total = weights.sum()
    return float(total**2 / (weights @ weights)) if total > 0 else 0.0


def taken(
    evidence: Evidence,
    question: Question,
    answer: Answer,
    samples: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[Evidence, Answer, NDArray[np.float64]]:
    """The evidence with one more answer, the answer as it counts, and the costs ``(n, k)`` of
    the plans asked about under samples ``(n, p)`` of probability ``weights``.

    Refuses a question about other weights, and an answer to another question.
    """
    if question.rows.shape[1] != samples.shape[1]:
        raise InvalidSetting(
            f"'question' must have features of {samples.shape[1]} weights, as the prior has (got "
            f"{question.rows.shape[1]}); build prior and question from the same problem"
        )
    answer.check(question)
    costs = question.costs(samples)
    answer = answer.resolve(costs, weights)
    return evidence.adding(question, answer), answer, costs


LEAST_CHANCE = 1e-4
"""An answer is not taken to be less probable than this when surprise is measured."""


def surprise(posterior: Posterior, question: Question, answer: Chosen) -> tuple[float, float]:
    """How much less probable a choice was than choices from this question are, by what was
    believed before it: in nats, with its variance.

    Over a conversation with a person like those believed in, the sum is zero but for chance, with
    the sum of the variances: each term is a martingale difference.
    """
    log_chances = posterior.sample_response().log_probabilities(question.costs(posterior.samples))
    chances = np.maximum(posterior.weights @ np.exp(log_chances), LEAST_CHANCE)
    chances /= chances.sum()
    logs = np.log(chances)
    expected = float(chances @ logs)
    variance = float(chances @ (logs - expected) ** 2)
    return expected - float(logs[answer.plan]), variance


def fallback_sharpness(costs: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Sharpness of a small noise.

    Of two plans whose costs differ by a twentieth of what the plans cost on average, the
    cheaper one is chosen e times as often. Costs ``(n, k)`` are under samples of probability
    ``weights``.
    """
    typical = float(weights @ np.abs(costs).mean(axis=1))
    return 20.0 / max(typical, 1e-6)
