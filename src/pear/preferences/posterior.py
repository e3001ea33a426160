"""What do we believe about a person's weights after their answers?

Two samplers follow the interface :class:`Posterior`: :class:`ParticlePosterior`, the default, and
``EnsembleSlicePosterior``, the paper's. A posterior is never changed: an answer makes a new one,
so that going back is keeping the old one.

The particles are sequential Monte Carlo. Each answer reweights them; when their effective number
has halved they are resampled and moved within their own Gaussian component (``moves``). How
probable each component is stands in the particles' weights alone, never in whether a chain
happened to visit it, so components may be far apart.

References: Chopin (2002), A sequential particle filter method for static models; Del Moral,
Doucet and Jasra (2006), Sequential Monte Carlo samplers; Au and Beck (2001) for the
intermediate levels of a hard constraint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from pear.arrays import Floats, Indices
from pear.errors import InvalidSetting
from pear.preferences.answers import Answer, Chosen, Evidence, Question, Relaxation, violation
from pear.preferences.moves import Particles, elliptical_moves, response_at
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import Logistic, Noiseless, ResponseModel, UnknownSharpness

REJUVENATE_AT = 0.5
"""Share of the particles that may stay effective before they are resampled and moved."""

BRIDGE_AT = 0.05
"""Below this share an answer is approached in steps rather than at once."""

EVEN_SHARE = 0.3
"""Share of the particles dealt out evenly to the components still possible."""

NEGLIGIBLE = 1e-6
"""A component less probable than this keeps no particles, unless it is the background."""

BRIDGE_SWEEPS = 3
"""Most moves of each particle at such a step; the next step moves them again."""

MAX_BRIDGES = 20
"""Steps towards one answer. An answer as improbable as a half to this power contradicts."""


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
    def samples(self) -> Floats:
        """Weight vectors, shape ``(n, p)``."""
        ...

    @property
    def weights(self) -> Floats:
        """Probability of each sample, shape ``(n,)``, summing to 1."""
        ...

    @property
    def components(self) -> Indices:
        """Component of the prior each sample belongs to, shape ``(n,)``."""
        ...

    @property
    def health(self) -> Health:
        """Whether the samples can be trusted."""
        ...

    def update(self, question: Question, answer: Answer, rng: np.random.Generator) -> Self:
        """What is believed after one more answer; this posterior stays as it is."""
        ...

    def mean(self) -> Floats:
        """The estimate of the person's weights, shape ``(p,)``."""
        ...

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Equally weighted samples, shape ``(n, p)``."""
        ...

    def sample_response(self) -> ResponseModel:
        """The response model line by line with ``samples``: where the sharpness is inferred,
        each sample answers with its own."""
        ...

    def component_shares(self) -> Floats:
        """Probability of each component of the prior, shape ``(c,)``."""
        ...


def systematic(weights: Floats, n: int, rng: np.random.Generator) -> Indices:
    """Indices of n draws, in order: each weight w is drawn n * w times, rounded at random."""
    edges = np.cumsum(weights)
    positions = (np.arange(n) + rng.random()) * (edges[-1] / n)
    last = np.flatnonzero(weights)[-1]
    return np.asarray(np.minimum(np.searchsorted(edges, positions, side="right"), last))


def effective_sample_size(weights: Floats) -> float:
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
    samples: Floats,
    weights: Floats,
) -> tuple[Evidence, Answer, Floats]:
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


def fallback_sharpness(costs: Floats, weights: Floats) -> float:
    """Sharpness of a small noise.

    Of two plans whose costs differ by a twentieth of what the plans cost on average, the
    cheaper one is chosen e times as often. Costs ``(n, k)`` are under samples of probability
    ``weights``.
    """
    typical = float(weights @ np.abs(costs).mean(axis=1))
    return 20.0 / max(typical, 1e-6)


@dataclass(frozen=True, eq=False)
class ParticlePosterior:
    """Particles, each a weight vector that remembers which kind of person it is.

    Begin with ``ParticlePosterior.start``; ``update`` takes in an answer.

    >>> rng = np.random.default_rng(0)
    >>> prior = GaussianMixturePrior([[1.0, 1.0]], [[1.0, 1.0]])
    >>> before = ParticlePosterior.start(prior, Noiseless(), rng)
    >>> question = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> after = before.update(question, Chosen(0), rng)
    >>> bool((after.samples[:, 0] <= after.samples[:, 1])[after.weights > 0].all())
    True
    """

    prior: GaussianMixturePrior
    response: ResponseModel
    particles: Particles = field(repr=False)
    weights: Floats = field(repr=False)
    """Probability of each particle, shape ``(n,)``, summing to 1."""
    evidence: Evidence = field(default_factory=Evidence, repr=False)
    n_particles: int = 2000
    """Number of particles from the first rejuvenation on; before it there are more."""
    sweeps: int = 8
    """Most elliptical slice moves of each particle at a rejuvenation."""
    moved: float = 1.0
    rejuvenations: int = 0
    bridges: int = 0
    contradiction: int | None = None

    @classmethod
    def start(
        cls,
        prior: GaussianMixturePrior,
        response: ResponseModel,
        rng: np.random.Generator,
        *,
        n_particles: int = 2000,
        sweeps: int = 8,
        reservoir: int = 4,
    ) -> ParticlePosterior:
        """Before the first answer.

        Draws are cheap and moves are not, so one starts with ``reservoir`` times as many
        particles: the first answers then only reweight. Each component gets its share of the
        particles and a bit more where it is rare; the weights make up for it.
        """
        if n_particles < 10 * prior.n_components:
            raise InvalidSetting(
                f"'n_particles' must be at least 10 for each of the {prior.n_components} "
                f"components of the prior (got {n_particles!r}); 2000 is the default"
            )
        if sweeps < 1:
            raise InvalidSetting(f"'sweeps' must be at least 1 (got {sweeps!r}); 8 is the default")
        if reservoir < 1:
            raise InvalidSetting(
                f"'reservoir' must be at least 1 (got {reservoir!r}); 4 is the default"
            )
        n = reservoir * n_particles
        counts = _allocation(prior.shares, n, prior.background)
        components = np.repeat(np.arange(prior.n_components), counts)
        weights = (prior.shares / np.maximum(counts, 1))[components]
        inferred = isinstance(response, UnknownSharpness)
        standard = rng.standard_normal(n) if inferred else None
        particles = Particles(prior.sample_given(components, rng), components, standard)
        weights /= weights.sum()
        return cls(prior, response, particles, weights, n_particles=n_particles, sweeps=sweeps)

    @property
    def samples(self) -> Floats:
        """Weight vectors, shape ``(n, p)``."""
        return self.particles.samples

    @property
    def components(self) -> Indices:
        """Component of the prior of each particle, shape ``(n,)``."""
        return self.particles.components

    @property
    def n_answers(self) -> int:
        """Number of answers taken in."""
        return len(self.evidence.answered)

    @property
    def sharpness(self) -> Floats | None:
        """Sharpness of each particle, shape ``(n,)``, where it is inferred; else None."""
        if self.particles.standard is None or not isinstance(self.response, UnknownSharpness):
            return None
        return self.response.sharpness(self.particles.standard)

    @property
    def health(self) -> Health:
        """Whether the particles can be trusted."""
        noise = self.response.sharpness if isinstance(self.response, Logistic) else None
        return Health(
            n_samples=len(self.weights),
            effective_sample_size=effective_sample_size(self.weights),
            unique_samples=len(np.unique(self.samples[self.weights > 0, 0])),
            moved=self.moved,
            rejuvenations=self.rejuvenations,
            bridges=self.bridges,
            contradiction=self.contradiction,
            fallback_sharpness=None if self.contradiction is None else noise,
        )

    def mean(self) -> Floats:
        """Posterior mean of the weights, shape ``(p,)``."""
        return np.asarray(self.weights @ self.samples)

    def standard_deviation(self) -> Floats:
        """Posterior standard deviation of each weight, shape ``(p,)``."""
        return np.asarray(np.sqrt(self.weights @ (self.samples - self.mean()) ** 2))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Equally weighted samples in random order, shape ``(n, p)``."""
        return self.samples[self.draw_indices(n, rng)]

    def draw_indices(self, n: int, rng: np.random.Generator) -> Indices:
        """Which particles an equally weighted draw consists of, shape ``(n,)``."""
        return rng.permutation(systematic(self.weights, n, rng))

    def sample_response(self) -> ResponseModel:
        """The response model line by line with ``samples``."""
        return response_at(self.response, self.particles.standard)

    def component_shares(self) -> Floats:
        """Probability of each component of the prior, shape ``(c,)``."""
        return self._shares(self.weights)

    def _shares(self, weights: Floats) -> Floats:
        totals = np.bincount(self.components, weights, minlength=self.prior.n_components)
        return np.asarray(totals, dtype=float)

    def update(
        self, question: Question, answer: Answer, rng: np.random.Generator
    ) -> ParticlePosterior:
        """What is believed after one more answer; this posterior stays as it is."""
        evidence, answer, costs = taken(self.evidence, question, answer, self.samples, self.weights)
        after = replace(self, evidence=evidence)
        weights = _reweighted(self.weights, answer.log_likelihood(costs, self.sample_response()))
        size = effective_sample_size(weights) / self.n_particles
        if size >= (REJUVENATE_AT if len(weights) == self.n_particles else 1.0):
            return replace(after, weights=weights)
        if size >= BRIDGE_AT:
            return after._rejuvenated(weights, rng)
        bridged = after._bridged(rng)
        return bridged if bridged is not None else self._with_noise(evidence, costs, rng)

    def _rejuvenated(
        self,
        weights: Floats,
        rng: np.random.Generator,
        relaxed: Relaxation | None = None,
    ) -> ParticlePosterior:
        """Resampled by these weights, component by component, and moved."""
        shares = self._shares(weights)
        counts = _allocation(shares, self.n_particles, self.prior.background)
        order = np.argsort(self.components, kind="stable")
        chosen = np.concatenate(
            [
                own[systematic(weights[own], count, rng)]
                for component, count in enumerate(counts)
                if count and len(own := order[self.components[order] == component])
            ]
        )
        particles, moved = elliptical_moves(
            self.particles.take(chosen),
            self.prior,
            self.response,
            self.evidence,
            rng,
            sweeps=self.sweeps if relaxed is None else min(self.sweeps, BRIDGE_SWEEPS),
            relaxed=relaxed,
        )
        weights = (shares / np.maximum(counts, 1))[particles.components]
        return replace(
            self,
            particles=particles,
            weights=weights / weights.sum(),
            moved=moved,
            rejuvenations=self.rejuvenations + 1,
        )

    def _bridged(self, rng: np.random.Generator) -> ParticlePosterior | None:
        """Led to the last answer in steps that each halve the effective number, or None
        where that takes so many that the answer contradicts what was said before."""
        question, answer = self.evidence.answered[-1]
        hard = isinstance(answer, Chosen) and isinstance(self.response, Noiseless)
        state, relaxed = self, Relaxation(0.0, np.inf if hard else None)
        for made in range(MAX_BRIDGES + 1):
            costs = question.costs(state.samples)
            full = answer.log_likelihood(costs, state.sample_response())
            rest = full if hard else (1 - relaxed.exponent) * full
            weights = _reweighted(state.weights, rest)
            enough = effective_sample_size(weights) >= REJUVENATE_AT / 2 * self.n_particles
            if enough or (made == MAX_BRIDGES and not hard):
                return state._rejuvenated(weights, rng)
            if made == MAX_BRIDGES:
                break
            if hard:
                assert isinstance(answer, Chosen)
                excess = violation(costs, answer.plan)
                slack = _weighted_median(excess, state.weights)
                relaxed = Relaxation(slack=slack)
                weights = _reweighted(state.weights, np.where(excess <= slack, 0.0, -np.inf))
            else:
                step = _halving_step(state.weights, full, 1 - relaxed.exponent)
                relaxed = Relaxation(relaxed.exponent + step)
                weights = _reweighted(state.weights, step * full)
            state = state._rejuvenated(weights, rng, relaxed)
            state = replace(state, bridges=state.bridges + 1)
        return None

    def _with_noise(
        self, evidence: Evidence, costs: Floats, rng: np.random.Generator
    ) -> ParticlePosterior:
        """All the answers judged again, from the prior on, with a small noise."""
        state = ParticlePosterior.start(
            self.prior,
            Logistic(fallback_sharpness(costs, self.weights)),
            rng,
            n_particles=self.n_particles,
            sweeps=self.sweeps,
        )
        for question, answer in evidence.answered:
            state = state.update(question, answer, rng)
        return replace(state, contradiction=self.n_answers)


def _reweighted(weights: Floats, log_likelihood: Floats) -> Floats:
    """Weights times likelihood, summing to 1; all zero where nothing is left."""
    # A particle that is out stays out, however well it explains this one answer.
    value = np.where(weights > 0, log_likelihood, -np.inf)
    largest = value.max()
    if not np.isfinite(largest):
        return np.zeros_like(weights)
    product = weights * np.exp(value - largest)
    return np.asarray(product / product.sum())


def _allocation(shares: Floats, n: int, background: int | None) -> Indices:
    """How many of n particles each component gets, shape ``(c,)``: mostly its probability,
    and an even part so that a rare one that is still possible stays represented."""
    alive = shares > NEGLIGIBLE * shares.sum()
    if background is not None:
        alive[background] = shares[background] > 0
    wanted = (1 - EVEN_SHARE) * shares / shares.sum() + EVEN_SHARE * alive / alive.sum()
    wanted = n * np.where(alive, wanted, 0.0) / wanted[alive].sum()
    counts: Indices = np.floor(wanted).astype(np.intp)
    counts[np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]] += 1
    return counts


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    edges = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(edges, 0.5 * edges[-1])])


def _halving_step(weights: Floats, log_likelihood: Floats, most: float) -> float:
    """The exponent, at most ``most``, that halves the effective number of these weights."""
    goal = REJUVENATE_AT * effective_sample_size(weights)
    low, high = 0.0, most
    for _ in range(30):
        middle = 0.5 * (low + high)
        if effective_sample_size(_reweighted(weights, middle * log_likelihood)) > goal:
            low = middle
        else:
            high = middle
    return high
