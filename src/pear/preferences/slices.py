"""The posterior by ensemble slice sampling: the paper's sampler.

Kept for comparison and for reproducing the paper. Where the prior's components are far apart
the walkers of this sampler do not move between them in the time there is, and what it says
about their probabilities is an accident of where they started; ``ParticlePosterior`` is the
default for that reason.

The ensemble is split in two; each walker of one half is slice sampled along a line whose
direction the other half suggests. The differential move takes the difference of two walkers; the
global move, meant for several modes, the difference of the centres of two clusters. The length
scale of the lines is tuned while burning in.

References: paper, section 4.4 (ensemble slice sampling, then averaging over the samples with
the highest posterior density); Karamanis and Beutler (2020), Ensemble slice sampling, algorithms
1 to 4; Neal (2003), Slice sampling, figures 3 and 5, for stepping out and shrinking.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from pear.arrays import Floats, Indices
from pear.errors import InvalidSetting
from pear.preferences.answers import Answer, Evidence, Question
from pear.preferences.moves import response_at
from pear.preferences.posterior import Health, fallback_sharpness, systematic, taken
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import Logistic, ResponseModel, UnknownSharpness

Estimate = Literal["mean", "best_quarter"]

LogDensity = Callable[[Floats], Floats]
"""Log density, up to a constant, of points ``(n, d)``, shape ``(n,)``."""

MAX_EXPANSIONS = 100
MAX_CONTRACTIONS = 100
TIGHT = 0.001
"""Covariance of a cluster's point in a global move, as a share of the cluster's."""

SEARCH = 20_000
"""Draws of the prior looked through when too few samples explain a new answer."""


@dataclass(frozen=True, eq=False)
class EnsembleSlicePosterior:
    """Walkers that slice sample the whole posterior, all components at once.

    Begin with ``EnsembleSlicePosterior.start``; ``update`` runs the ensemble again. ``mean`` is
    the mean of all samples, or, with ``estimate="best_quarter"``, the paper's: the mean of the
    quarter of the samples with the highest posterior density.

    >>> rng = np.random.default_rng(0)
    >>> prior = GaussianMixturePrior([[1.0, 1.0]], [[1.0, 1.0]])
    >>> before = EnsembleSlicePosterior.start(prior, Logistic(5.0), rng)
    >>> from pear.preferences.answers import Chosen
    >>> question = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> after = before.update(question, Chosen(0), rng)
    >>> bool(after.mean()[0] < after.mean()[1])
    True
    """

    prior: GaussianMixturePrior
    response: ResponseModel
    points: Floats = field(repr=False)
    """Samples, with the standard normal sharpness as a last column where it is inferred."""
    log_densities: Floats = field(repr=False)
    """Log posterior density of each sample, up to a constant, shape ``(n,)``."""
    evidence: Evidence = field(default_factory=Evidence, repr=False)
    n_walkers: int = 80
    burn_in: int = 100
    steps: int = 100
    global_share: float = 0.5
    estimate: Estimate = "mean"
    effective: float = 0.0
    scale: float = 1.0
    """Length of the lines, tuned at the last answer; the next one goes on from it."""
    contradiction: int | None = None

    @classmethod
    def start(
        cls,
        prior: GaussianMixturePrior,
        response: ResponseModel,
        rng: np.random.Generator,
        *,
        n_walkers: int | None = None,
        burn_in: int = 100,
        steps: int = 100,
        global_share: float = 0.5,
        estimate: Estimate = "mean",
    ) -> EnsembleSlicePosterior:
        """Before the first answer: draws of the prior. The number of walkers is at least twice
        the number of weights, and even."""
        least = 2 * (prior.n_weights + 1)
        n_walkers = max(least, 40) if n_walkers is None else n_walkers
        if n_walkers < least or n_walkers % 2:
            raise InvalidSetting(
                f"'n_walkers' must be even and at least {least} for {prior.n_weights} weights "
                f"(got {n_walkers!r}); leave it out to have it chosen"
            )
        if burn_in < 1 or steps < 1:
            raise InvalidSetting(
                f"'burn_in' and 'steps' must be at least 1 (got {burn_in!r} and {steps!r}); "
                "100 each is the default"
            )
        if estimate not in ("mean", "best_quarter"):
            raise InvalidSetting(
                f"'estimate' must be 'mean' or 'best_quarter' (got {estimate!r}); "
                "'best_quarter' is the paper's"
            )
        points, _ = prior.sample(n_walkers * steps, rng)
        if isinstance(response, UnknownSharpness):
            points = np.column_stack([points, rng.standard_normal(len(points))])
        return cls(
            prior,
            response,
            points,
            _log_target(points, prior, response, Evidence()),
            n_walkers=n_walkers,
            burn_in=burn_in,
            steps=steps,
            global_share=global_share,
            estimate=estimate,
            effective=float(len(points)),
        )

    @property
    def samples(self) -> Floats:
        """Weight vectors, shape ``(n, p)``."""
        return self.points[:, : self.prior.n_weights]

    @property
    def weights(self) -> Floats:
        """Probability of each sample, all the same, shape ``(n,)``."""
        return np.full(len(self.points), 1 / len(self.points))

    @property
    def components(self) -> Indices:
        """The component of the prior each sample most probably belongs to, shape ``(n,)``."""
        return np.asarray(self.prior.log_component_densities(self.samples).argmax(axis=1))

    @property
    def n_answers(self) -> int:
        """Number of answers taken in."""
        return len(self.evidence.answered)

    @property
    def sharpness(self) -> Floats | None:
        """Sharpness of each sample, shape ``(n,)``, where it is inferred; else None."""
        if not isinstance(self.response, UnknownSharpness):
            return None
        return self.response.sharpness(self.points[:, -1])

    @property
    def health(self) -> Health:
        """Whether the samples can be trusted."""
        noise = self.response.sharpness if isinstance(self.response, Logistic) else None
        return Health(
            n_samples=len(self.points),
            effective_sample_size=self.effective,
            unique_samples=len(np.unique(self.points[:, 0])),
            rejuvenations=len(self.evidence.answered),
            contradiction=self.contradiction,
            fallback_sharpness=None if self.contradiction is None else noise,
        )

    def mean(self) -> Floats:
        """The estimate of the person's weights, shape ``(p,)``."""
        if self.estimate == "mean":
            return np.asarray(self.samples.mean(axis=0))
        quarter = max(1, len(self.points) // 4)
        best = np.argpartition(-self.log_densities, quarter - 1)[:quarter]
        return np.asarray(self.samples[best].mean(axis=0))

    def standard_deviation(self) -> Floats:
        """Posterior standard deviation of each weight, shape ``(p,)``."""
        return np.asarray(self.samples.std(axis=0))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Equally weighted samples in random order, shape ``(n, p)``."""
        return self.samples[self.draw_indices(n, rng)]

    def draw_indices(self, n: int, rng: np.random.Generator) -> Indices:
        """Which samples an equally weighted draw consists of, shape ``(n,)``."""
        return rng.permutation(systematic(self.weights, n, rng))

    def sample_response(self) -> ResponseModel:
        """The response model line by line with ``samples``."""
        return _response_of(self.points, self.prior, self.response)

    def component_shares(self) -> Floats:
        """Share of the samples in each component of the prior, shape ``(c,)``."""
        counts = np.bincount(self.components, minlength=self.prior.n_components)
        return counts / len(self.points)

    def update(
        self, question: Question, answer: Answer, rng: np.random.Generator
    ) -> EnsembleSlicePosterior:
        """What is believed after one more answer; this posterior stays as it is."""
        evidence, _, costs = taken(self.evidence, question, answer, self.samples, self.weights)
        after = replace(self, evidence=evidence)
        walkers = after._walkers(rng)
        if walkers is None:
            noise = Logistic(fallback_sharpness(costs, self.weights))
            after = replace(
                after, response=noise, points=self.samples, contradiction=self.n_answers
            )
            walkers = after._walkers(rng)
            assert walkers is not None
        return after._run(walkers, rng)

    def _walkers(self, rng: np.random.Generator) -> Floats | None:
        """Where to start: samples that explain all the answers, by how well they do; None
        where neither the samples nor many draws of the prior hold one that does."""
        pool = self.points
        value = _log_likelihood(pool, self.prior, self.response, self.evidence)
        if np.isfinite(value).sum() < self.n_walkers:
            fresh, _ = self.prior.sample(SEARCH, rng)
            if isinstance(self.response, UnknownSharpness):
                fresh = np.column_stack([fresh, rng.standard_normal(SEARCH)])
            pool = np.concatenate([pool, fresh])
            value = _log_likelihood(pool, self.prior, self.response, self.evidence)
        if not np.isfinite(value).any():
            return None
        chances = np.exp(value - value.max())
        walkers = pool[rng.permutation(systematic(chances, self.n_walkers, rng))]
        # Walkers on one spot would span no directions: each is moved a little where it may be.
        scale = 1e-3 * np.append(self.prior.standard_deviation(), 1.0)[: pool.shape[1]]
        nudged = walkers + scale * rng.standard_normal(walkers.shape)
        allowed = np.isfinite(_log_likelihood(nudged, self.prior, self.response, self.evidence))
        return np.asarray(np.where(allowed[:, None], nudged, walkers))

    def _run(self, walkers: Floats, rng: np.random.Generator) -> EnsembleSlicePosterior:
        chain = sample_ensemble(
            lambda points: _log_target(points, self.prior, self.response, self.evidence),
            walkers,
            rng,
            burn_in=self.burn_in,
            steps=self.steps,
            global_share=self.global_share,
            scale=self.scale,
        )
        return replace(
            self,
            scale=chain.scale,
            points=chain.points.reshape(-1, walkers.shape[1]),
            log_densities=chain.log_densities.ravel(),
            effective=_effective_size(chain.points),
        )


def _response_of(
    points: Floats, prior: GaussianMixturePrior, response: ResponseModel
) -> ResponseModel:
    standard = points[:, -1] if points.shape[1] > prior.n_weights else None
    return response_at(response, standard)


def _log_likelihood(
    points: Floats,
    prior: GaussianMixturePrior,
    response: ResponseModel,
    evidence: Evidence,
) -> Floats:
    if not evidence.answered:
        return np.zeros(len(points))
    terms = evidence.project(points[:, : prior.n_weights])
    return evidence.log_likelihood(terms, _response_of(points, prior, response))


def _log_target(
    points: Floats,
    prior: GaussianMixturePrior,
    response: ResponseModel,
    evidence: Evidence,
) -> Floats:
    value = _log_likelihood(points, prior, response, evidence)
    value = value + prior.log_density(points[:, : prior.n_weights])
    if points.shape[1] > prior.n_weights:
        value = value - 0.5 * points[:, -1] ** 2
    return value


def _effective_size(points: Floats) -> float:
    """Number of independent samples the chain ``(steps, walkers, d)`` is worth, for the
    coordinate that mixes worst: autocorrelations within walkers, added up to the first lag at
    which they vanish. What no walker visited it cannot know."""
    steps, walkers, _ = points.shape
    centred = points - points.mean(axis=(0, 1))
    spectrum = np.fft.rfft(centred, 2 * steps, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:steps].sum(axis=1)
    covariance /= np.arange(steps, 0, -1)[:, None]
    correlation = covariance / np.maximum(covariance[0], 1e-300)
    positive = np.cumprod(correlation > 0.05, axis=0)
    times = 2 * (correlation * positive).sum(axis=0) - 1
    return float(steps * walkers / np.maximum(times, 1.0).max())


@dataclass(frozen=True)
class Clusters:
    """Groups the walkers fall into: ``means`` ``(g, d)`` and Cholesky factors ``(g, d, d)``."""

    means: Floats
    factors: Floats


@dataclass(frozen=True)
class Chain:
    """What an ensemble visited.

    ``points`` ``(steps, walkers, d)`` and their log densities ``(steps, walkers)``; ``scale``,
    the tuned length of the lines.
    """

    points: Floats
    log_densities: Floats
    scale: float


def sample_ensemble(
    log_density: LogDensity,
    walkers: Floats,
    rng: np.random.Generator,
    *,
    burn_in: int,
    steps: int,
    global_share: float = 0.5,
    scale: float = 1.0,
) -> Chain:
    """Runs an ensemble ``(walkers, d)`` from these places, all of positive density.

    ``global_share`` of the steps are global moves, the rest differential ones.
    """
    values = log_density(walkers)
    points = np.empty((steps, *walkers.shape))
    log_densities = np.empty((steps, len(walkers)))
    visited, clusters, tuning = [], None, True
    for step in range(burn_in + steps):
        globally = clusters is not None and rng.random() < global_share
        expansions = contractions = 0
        order = rng.permutation(len(walkers))
        half = len(walkers) // 2
        for own, others in ((order[:half], order[half:]), (order[half:], order[:half])):
            if globally and clusters is not None:
                lines = _global_directions(clusters, len(own), scale, rng)
            else:
                lines = scale * _differences(walkers[others], len(own), rng)
            moved, reached, out, back = _slice_along(
                log_density, walkers[own], values[own], lines, rng
            )
            walkers = walkers.copy()
            values = values.copy()
            walkers[own], values[own] = moved, reached
            expansions, contractions = expansions + out, contractions + back
        if step < burn_in:
            visited.append(walkers)
            if tuning and not globally:
                # Invariant of the tuning: as many expansions as contractions.
                ratio = max(1, expansions) / (max(1, expansions) + contractions)
                scale *= 2 * ratio
                tuning = abs(ratio - 0.5) > 0.05
            if global_share > 0 and step == burn_in // 2:
                clusters = _clusters(np.concatenate(visited[step // 2 :]), rng)
        else:
            points[step - burn_in], log_densities[step - burn_in] = walkers, values
    return Chain(points, log_densities, scale)


def _differences(others: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Differences of two different walkers each, shape ``(count, d)``."""
    first = rng.integers(len(others), size=count)
    second = (first + rng.integers(1, len(others), size=count)) % len(others)
    return np.asarray(others[first] - others[second])


def _global_directions(
    clusters: Clusters, count: int, scale: float, rng: np.random.Generator
) -> Floats:
    """From one cluster to another, or within one where the two are the same ``(count, d)``."""
    groups, width = clusters.means.shape
    first, second = rng.integers(groups, size=(2, count))
    noise = rng.standard_normal((2, count, width))
    near = np.einsum("nij,nj->ni", clusters.factors[first], noise[0])
    far = np.einsum("nij,nj->ni", clusters.factors[second], noise[1])
    between = clusters.means[first] - clusters.means[second]
    between += np.sqrt(TIGHT) * (near - far)
    within = scale * near
    return np.asarray(2 * np.where((first == second)[:, None], within, between))


def _clusters(points: Floats, rng: np.random.Generator) -> Clusters:
    """A Dirichlet process mixture of the points visited, its empty clusters left out."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    if len(points) > 1000:
        points = points[rng.choice(len(points), 1000, replace=False)]
    model = BayesianGaussianMixture(
        n_components=6,
        weight_concentration_prior_type="dirichlet_process",
        reg_covar=1e-6,
        max_iter=100,
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(points)
    used = np.unique(labels)
    return Clusters(model.means_[used], np.linalg.cholesky(model.covariances_[used]))


def _slice_along(
    log_density: LogDensity,
    walkers: Floats,
    values: Floats,
    lines: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, int, int]:
    """One slice step of each walker ``(m, d)`` along its line; also how many expansions and
    contractions it took. A walker whose bracket shrinks to nothing stays."""
    n = len(walkers)
    level = values - rng.standard_exponential(n)
    low = -rng.random(n)
    high = low + 1
    ends = np.concatenate([low, high])
    below = rng.integers(MAX_EXPANSIONS, size=n)
    budget = np.concatenate([below, MAX_EXPANSIONS - 1 - below])
    expansions = _step_out(log_density, walkers, lines, level, ends, budget)
    low, high = ends[:n], ends[n:]

    walkers, values = walkers.copy(), values.copy()
    active, contractions = np.arange(n), 0
    for _ in range(MAX_CONTRACTIONS):
        trial = rng.uniform(low[active], high[active])
        place = walkers[active] + trial[:, None] * lines[active]
        value = log_density(place)
        found = value > level[active]
        walkers[active[found]], values[active[found]] = place[found], value[found]
        active, trial = active[~found], trial[~found]
        if not len(active):
            break
        contractions += len(active)
        low[active] = np.where(trial < 0, trial, low[active])
        high[active] = np.where(trial < 0, high[active], trial)
    return walkers, values, expansions, contractions


def _step_out(
    log_density: LogDensity,
    walkers: Floats,
    lines: Floats,
    level: Floats,
    ends: Floats,
    budget: Indices,
) -> int:
    """Moves the ends ``(2 m,)`` of the brackets, all lower ones and then all upper ones,
    outwards in place until they leave the slice or have used up their budget ``(2 m,)``."""
    n = len(walkers)
    expansions, active = 0, np.flatnonzero(budget > 0)
    while len(active):
        own = active % n
        value = log_density(walkers[own] + ends[active, None] * lines[own])
        active = active[value > level[own]]
        ends[active] += np.where(active < n, -1.0, 1.0)
        budget[active] -= 1
        expansions += len(active)
        active = active[budget[active] > 0]
    return expansions
