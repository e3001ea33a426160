"""What do we believe about a person's weights before asking anything?

A mixture of Gaussians: each component is a kind of person. One more component, wide and of
small weight, stands for a person unlike anyone before, so that answers which fit no known
kind are believed rather than forced into the nearest one.

References: paper, section 4.1 (the prior as a mixture of M Gaussians).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pear.arrays import Floats, Indices
from pear.errors import InvalidSetting
from pear.problem import Problem
from pear.problem.problem import UNLIKE_ANYONE

Samples = Floats
"""Weight vectors, shape ``(n, p)``."""

BACKGROUND_WEIGHT = UNLIKE_ANYONE
"""Prior probability of a person unlike anyone before."""

BACKGROUND_SPREAD = 1.25
"""Standard deviation of the background, as a multiple of the mixture's own."""


@dataclass(frozen=True, eq=False)
class GaussianMixturePrior:
    """Kinds of people, each a Gaussian over weights, and a wide background for the rest.

    Parameters
    ----------
    means
        Mean weights of each component, shape ``(m, p)``.
    covariances
        Shape ``(m, p, p)`` for full ones, ``(m, p)`` for variances per weight (diagonal).
    component_weights
        Relative share of each component, shape ``(m,)``; equal when not given.
    background_weight
        Probability of the background component; 0 for none. It is the last component:
        ``centres``, ``shares`` and the labels of ``sample`` count it as number ``m``.
    background_mean, background_deviation, background_spread
        Mean and standard deviation per weight of the background, both of shape ``(p,)``; left out,
        those of the whole mixture, the latter times ``background_spread``.

    Raises
    ------
    InvalidSetting
        Where shapes do not match, or shares or covariances are not valid.

    Examples
    --------
    >>> prior = GaussianMixturePrior([[0.0, 0.0], [10.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]])
    >>> prior.n_components, prior.background, prior.mean()
    (3, 2, array([5., 0.]))
    """

    means: Floats
    covariances: Floats
    component_weights: Floats | None = None
    background_weight: float = BACKGROUND_WEIGHT
    background_spread: float = BACKGROUND_SPREAD
    background_mean: Floats | None = None
    background_deviation: Floats | None = None

    centres: Floats = field(init=False, repr=False)
    """Means of all components, the background last, shape ``(c, p)``."""
    factors: Floats = field(init=False, repr=False)
    """Standard deviations ``(c, p)``, or lower Cholesky factors ``(c, p, p)``."""
    shares: Floats = field(init=False, repr=False)
    """Prior probability of each component, shape ``(c,)``, summing to 1."""
    background: int | None = field(init=False)
    """Label of the background component, or None."""

    def __post_init__(self) -> None:
        means, covariances, shares = _validated(
            self.means, self.covariances, self.component_weights
        )
        if not 0 <= self.background_weight < 1:
            raise InvalidSetting(
                f"'background_weight' must be at least 0 and below 1 (got "
                f"{self.background_weight!r}); use 0 for no background component"
            )
        if not self.background_spread > 0:
            raise InvalidSetting(
                f"'background_spread' must be a positive number (got "
                f"{self.background_spread!r}); 1 is as wide as the mixture itself"
            )
        self._store("means", means)
        self._store("covariances", covariances)
        self._store("component_weights", shares)
        if self.background_weight > 0:
            centre, variance = _overall(means, covariances, shares)
            variance = variance * self.background_spread**2
            if self.background_mean is not None:
                centre = _one_each("background_mean", self.background_mean, means.shape[1])
                self._store("background_mean", centre)
            if self.background_deviation is not None:
                deviation = _one_each(
                    "background_deviation", self.background_deviation, means.shape[1]
                )
                self._store("background_deviation", deviation)
                variance = deviation**2
            wide = np.diag(variance) if covariances.ndim == 3 else variance
            means = np.vstack([means, centre])
            covariances = np.concatenate([covariances, wide[None]])
            shares = np.append(shares * (1 - self.background_weight), self.background_weight)
        self._store("centres", means)
        self._store("shares", shares)
        self._store("factors", _factors(covariances))
        object.__setattr__(
            self, "background", len(self.means) if self.background_weight > 0 else None
        )

    def _store(self, name: str, array: Floats) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    @property
    def n_weights(self) -> int:
        """Number of weights p of a person."""
        return int(self.means.shape[1])

    @property
    def n_components(self) -> int:
        """Number of components, the background included."""
        return len(self.shares)

    def with_background(
        self, weight: float = BACKGROUND_WEIGHT, spread: float = BACKGROUND_SPREAD
    ) -> GaussianMixturePrior:
        """The same kinds of people with another background; weight 0 removes it."""
        return replace(self, background_weight=weight, background_spread=spread)

    def mean(self) -> Floats:
        """Mean weights over everybody, shape ``(p,)``."""
        return np.asarray(self.shares @ self.centres)

    def standard_deviation(self) -> Floats:
        """Standard deviation of each weight over everybody, shape ``(p,)``."""
        within = self.factors**2 if self.factors.ndim == 2 else (self.factors**2).sum(axis=2)
        second = self.shares @ (within + (self.centres - self.mean()) ** 2)
        return np.asarray(np.sqrt(second))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Samples, Indices]:
        """Weights of n people, shape ``(n, p)``, and the component of each, shape ``(n,)``."""
        components = rng.choice(self.n_components, size=n, p=self.shares)
        return self.sample_given(components, rng), components

    def sample_given(self, components: Indices, rng: np.random.Generator) -> Samples:
        """One person from each of the components named, shape ``(n, p)``."""
        standard = rng.standard_normal((len(components), self.n_weights))
        return self.centres[components] + self.coloured(standard, components)

    def coloured(self, standard: Samples, components: Indices) -> Samples:
        """Standard normal values ``(n, p)`` given the covariance of the components named."""
        if self.factors.ndim == 2:
            return np.asarray(standard * self.factors[components])
        out = np.empty_like(standard)
        for component in np.unique(components):
            own = components == component
            out[own] = standard[own] @ self.factors[component].T
        return out

    def standardised(self, samples: Samples, components: Indices) -> Samples:
        """Samples ``(n, p)`` in units of the components named: the inverse of ``coloured``,
        their means taken off first."""
        out = samples - self.centres[components]
        if self.factors.ndim == 2:
            return np.asarray(out / self.factors[components])
        for component in np.unique(components):
            own = components == component
            out[own] = np.linalg.solve(self.factors[component], out[own].T).T
        return out

    def log_component_densities(self, samples: Samples) -> Floats:
        """Log of share times density of every component at every sample, shape ``(n, c)``."""
        constant = 0.5 * self.n_weights * np.log(2 * np.pi)
        squares = np.empty((len(samples), self.n_components))
        if self.factors.ndim == 2:
            # The square is not multiplied out: far from a narrow component no digit would stay.
            for first in range(0, len(samples), 256):
                block = slice(first, first + 256)
                whitened = (samples[block, None] - self.centres) / self.factors
                squares[block] = np.einsum("ncp,ncp->nc", whitened, whitened)
            log_volumes = np.log(self.factors).sum(axis=1)
        else:
            for own, centre, factor in zip(squares.T, self.centres, self.factors, strict=True):
                whitened = np.linalg.solve(factor, (samples - centre).T)
                own[:] = np.einsum("pn,pn->n", whitened, whitened)
            log_volumes = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(-0.5 * squares - log_volumes - constant + np.log(self.shares))

    def log_density(self, samples: Samples) -> Floats:
        """Log density of the whole mixture at each sample, shape ``(n,)``."""
        return np.asarray(np.logaddexp.reduce(self.log_component_densities(samples), axis=1))

    @classmethod
    def fit(
        cls,
        population_weights: ArrayLike,
        n_components: int | None,
        rng: np.random.Generator,
        *,
        covariance: Literal["full", "diagonal"] = "diagonal",
        background_weight: float = BACKGROUND_WEIGHT,
        background_spread: float = BACKGROUND_SPREAD,
    ) -> GaussianMixturePrior:
        """Kinds of people found in the weights of a population, shape ``(n, p)``.

        With ``n_components=None`` the number of kinds, from 1 to 8, is the one with the
        lowest Bayesian information criterion.
        """
        from sklearn.mixture import GaussianMixture

        population = np.asarray(population_weights, dtype=float)
        if population.ndim != 2 or len(population) < 2:
            raise InvalidSetting(
                "'population_weights' must have one row per person and at least two people "
                f"(got an array of shape {population.shape}); stack the weight vectors"
            )
        counts = range(1, min(8, len(population)) + 1) if n_components is None else [n_components]
        if n_components is not None and not 1 <= n_components <= len(population):
            raise InvalidSetting(
                f"'n_components' must lie between 1 and the number of people, "
                f"{len(population)} (got {n_components!r}); use None to have it chosen"
            )
        scale = np.maximum(population.std(axis=0), 1e-12)
        seed = int(rng.integers(2**31))
        models = [
            GaussianMixture(
                count,
                covariance_type="diag" if covariance == "diagonal" else "full",
                n_init=3,
                reg_covar=1e-4,
                random_state=seed,
            ).fit(population / scale)
            for count in counts
        ]
        best = min(models, key=lambda model: float(model.bic(population / scale)))
        outer = scale if covariance == "diagonal" else np.outer(scale, scale) / scale
        return cls(
            means=best.means_ * scale,
            covariances=best.covariances_ * outer * scale,
            component_weights=best.weights_,
            background_weight=background_weight,
            background_spread=background_spread,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        stored = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in stored.items()
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> GaussianMixturePrior:
        """The prior that ``to_dict`` wrote."""
        return cls(**stored)


def _validated(
    means: ArrayLike, covariances: ArrayLike, component_weights: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    means = np.array(means, dtype=float)
    if means.ndim != 2 or 0 in means.shape or not np.isfinite(means).all():
        raise InvalidSetting(
            f"'means' must be finite numbers of shape (components, weights) (got shape "
            f"{means.shape}); for a single component write [[...]]"
        )
    covariances = np.array(covariances, dtype=float)
    count, width = means.shape
    if covariances.shape not in {(count, width), (count, width, width)}:
        raise InvalidSetting(
            f"'covariances' must have shape {(count, width)} (variances) or "
            f"{(count, width, width)} (full) to go with 'means' (got {covariances.shape})"
        )
    shares = np.ones(count) if component_weights is None else np.array(component_weights, float)
    if shares.shape != (count,) or not (shares >= 0).all() or not 0 < shares.sum() < np.inf:
        raise InvalidSetting(
            f"'component_weights' must be {count} non-negative numbers that are not all 0 (got "
            f"{shares.tolist()!r}); give one per component, or None for equal ones"
        )
    return means, covariances, shares / shares.sum()


def _one_each(name: str, values: ArrayLike, count: int) -> Floats:
    array = np.array(values, dtype=float)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InvalidSetting(
            f"'{name}' must be {count} finite numbers, one per weight (got shape {array.shape}); "
            "leave it out to have it follow from the components"
        )
    return array


def _overall(means: Floats, covariances: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Mean and variance per weight of the mixture, both of shape ``(p,)``."""
    centre = shares @ means
    within = covariances if covariances.ndim == 2 else np.diagonal(covariances, axis1=1, axis2=2)
    return centre, shares @ (within + (means - centre) ** 2)


def _factors(covariances: Floats) -> Floats:
    if covariances.ndim == 2:
        if not (covariances > 0).all() or not np.isfinite(covariances).all():
            raise InvalidSetting(
                f"'covariances' must be positive variances (smallest got {covariances.min()!r}); "
                "give a small positive one to a weight that is nearly known"
            )
        return np.sqrt(covariances)
    try:
        return np.asarray(np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError as error:
        raise InvalidSetting(
            "'covariances' must be symmetric and positive definite (got one that is not); "
            "add a small multiple of the identity"
        ) from error


CENTRAL_90 = 1.6448536269514722
"""A normal variable lies within this many standard deviations nine times in ten."""


def default_prior(
    problem: Problem, *, background_weight: float = BACKGROUND_WEIGHT
) -> GaussianMixturePrior:
    """The prior a problem implies.

    With archetypes: one component each, and the ranges as the background for everybody else.
    Without: a single component, each weight independent, nine tenths of it within its range.

    Parameters
    ----------
    problem
        Its ranges of weights and its kinds of people are used.
    background_weight
        The share of people who are like none of the components.

    Returns
    -------
    GaussianMixturePrior
        Over all weights of the problem.

    Raises
    ------
    InvalidSetting
        Where the share is not in [0, 1).

    Examples
    --------
    >>> from pear.datasets import loan_book_problem
    >>> default_prior(loan_book_problem()).n_weights == len(loan_book_problem().weight_names)
    True
    """
    low, high = problem.weight_ranges.T
    middle, deviation = (low + high) / 2, (high - low) / (2 * CENTRAL_90)
    if not problem.archetypes:
        return GaussianMixturePrior(
            middle[None], deviation[None] ** 2, background_weight=background_weight
        )
    return GaussianMixturePrior(
        np.array([archetype.mean for archetype in problem.archetypes]),
        np.array([archetype.spread for archetype in problem.archetypes]) ** 2,
        np.array([archetype.share for archetype in problem.archetypes]),
        background_weight=background_weight,
        background_mean=middle,
        background_deviation=deviation,
    )


def stored_prior(place: str | os.PathLike[str], problem: Problem) -> GaussianMixturePrior:
    """The prior of a file that ``pear fit-prior`` wrote, for a problem.

    Raises
    ------
    InvalidSetting
        Where there is none, or it is one over other weights.
    """
    name = os.fspath(place)
    try:
        content = json.loads(Path(name).read_text(encoding="utf-8"))
        found = GaussianMixturePrior.from_dict(content.get("prior", content))
    except FileNotFoundError:
        raise InvalidSetting(f"there is no prior '{name}'; 'pear fit-prior' makes one") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        foreign = isinstance(error, TypeError | AttributeError)
        why = "it does not hold what a prior does" if foreign else error
        raise InvalidSetting(
            f"'{name}' cannot be read as a prior ({why}); 'pear fit-prior' makes one"
        ) from None
    if found.n_weights != len(problem.weight_names):
        raise InvalidSetting(
            f"the prior '{name}' is about {found.n_weights} weights and the problem has "
            f"{len(problem.weight_names)}; fit one for this problem with 'pear fit-prior'"
        )
    return found
