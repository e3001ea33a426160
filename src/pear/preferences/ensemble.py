"""How does an ensemble of walkers sample a density it knows nothing about?

Ensemble slice sampling: the ensemble is split in two; each walker of one half is slice sampled
along a line whose direction the other half suggests. The differential move takes the
difference of two walkers; the global move, meant for several modes, the difference of the
centres of two clusters. The length scale of the lines is tuned while burning in.

References: Karamanis and Beutler (2020), Ensemble slice sampling, algorithms 1 to 4; Neal
(2003), Slice sampling, figures 3 and 5, for stepping out and shrinking.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LogDensity = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Log density, up to a constant, of points ``(n, d)``, shape ``(n,)``."""

MAX_EXPANSIONS = 100
MAX_CONTRACTIONS = 100
TIGHT = 0.001
"""Covariance of a cluster's point in a global move, as a share of the cluster's."""


@dataclass(frozen=True)
class Clusters:
    """Groups the walkers fall into: ``means`` ``(g, d)`` and Cholesky factors ``(g, d, d)``."""

    means: NDArray[np.float64]
    factors: NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """What an ensemble visited.

    ``points`` ``(steps, walkers, d)`` and their log densities ``(steps, walkers)``; ``scale``,
    the tuned length of the lines.
    """

    points: NDArray[np.float64]
    log_densities: NDArray[np.float64]
    scale: float


def sample_ensemble(
    log_density: LogDensity,
    walkers: NDArray[np.float64],
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


def _differences(
    others: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Differences of two different walkers each, shape ``(count, d)``."""
    first = rng.integers(len(others), size=count)
    second = (first + rng.integers(1, len(others), size=count)) % len(others)
    return np.asarray(others[first] - others[second])


def _global_directions(
    clusters: Clusters, count: int, scale: float, rng: np.random.Generator
) -> NDArray[np.float64]:
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


def _clusters(points: NDArray[np.float64], rng: np.random.Generator) -> Clusters:
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
    walkers: NDArray[np.float64],
    values: NDArray[np.float64],
    lines: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int, int]:
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
    walkers: NDArray[np.float64],
    lines: NDArray[np.float64],
    level: NDArray[np.float64],
    ends: NDArray[np.float64],
    budget: NDArray[np.intp],
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
