"""How do particles spread out again without leaving what the answers allow?

Elliptical slice sampling: a particle moves on an ellipse through itself and a fresh draw of a
Gaussian, to a point that is more probable than a random fraction of its own place. Nothing is
tuned, and a hard constraint is a likelihood that is zero somewhere. The Gaussian is fitted to
the particles of the component themselves: where the answers have cut most of the prior away,
ellipses around the prior's mean would leave the rest at once. What the fit is not, the prior
times the likelihood over it, is what the slice is taken of, so a bad fit costs moves and never
truth. All particles move at once; those that have found their place drop out.

References: Murray, Adams and MacKay (2010), Elliptical slice sampling, figure 2; Nishihara,
Murray and Adams (2014), Parallel MCMC with generalized elliptical slice sampling, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pear.arrays import Floats, Indices
from pear.preferences.answers import Evidence, Projection, Relaxation
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import ResponseModel, UnknownSharpness

MAX_SHRINKS = 60
"""Each shrink halves the bracket on average: after 60 it is as narrow as rounding."""

REFRESHED = 0.5
"""Particles have moved enough when this much of their old place is left in the new one (root
mean square over the particles; their deviation is multiplied by a cosine each time)."""


@dataclass(frozen=True)
class Particles:
    """Where the particles stand.

    ``samples`` ``(n, p)``; ``components`` ``(n,)``, the Gaussian each moves within;
    ``standard``, the standard normal value of each particle's sharpness ``(n,)``, or None
    where the sharpness is not inferred.
    """

    samples: Floats
    components: Indices
    standard: Floats | None = None

    def take(self, indices: Indices) -> Particles:
        """The particles with these indices, repeated where they are."""
        standard = None if self.standard is None else self.standard[indices]
        return Particles(self.samples[indices], self.components[indices], standard)


def response_at(response: ResponseModel, standard: Floats | None) -> ResponseModel:
    """The response model of particles whose sharpness has these standard normal values."""
    if standard is None or not isinstance(response, UnknownSharpness):
        return response
    return response.given(standard)


def elliptical_moves(
    particles: Particles,
    prior: GaussianMixturePrior,
    response: ResponseModel,
    evidence: Evidence,
    rng: np.random.Generator,
    *,
    sweeps: int,
    relaxed: Relaxation | None = None,
) -> tuple[Particles, float]:
    """Moves every particle until most have left their old place, at most ``sweeps`` times;
    also the share of the moves that got anywhere.

    Leaves the posterior given the particle's component as it is: prior of the component times
    the likelihood of ``evidence``.
    """
    components, inferred = particles.components, particles.standard is not None
    # In these coordinates ``(n, d)`` the prior of every component is standard normal.
    places = prior.standardised(particles.samples, components)
    if particles.standard is not None:
        places = np.column_stack([places, particles.standard])
    fit = _fit(places, components, prior.n_components)
    centres = fit.means[components]
    fitted = fit.standardised(places - centres, components)

    def project(deviations: Floats) -> Projection:
        return evidence.project(prior.coloured(deviations[:, : prior.n_weights], components))

    offset = project(places - centres)
    middle = evidence.project(particles.samples) - offset
    current = evidence.log_likelihood(
        middle + offset, response_at(response, particles.standard), relaxed
    )
    memory = np.empty((2, offset.size))
    moved, made, kept = 0, 0, np.ones(len(places))
    while made < sweeps and np.sqrt(np.mean(kept**2)) > REFRESHED:
        made += 1
        draws = rng.standard_normal(places.shape)
        directions = fit.coloured(draws, components)
        deviations = places - centres
        across = project(directions)
        ellipses = _Ellipses(
            middle,
            offset,
            across,
            _excess(centres, deviations, directions, fitted, draws),
            (centres[:, -1], deviations[:, -1], directions[:, -1]) if inferred else None,
            response,
            evidence,
            relaxed,
            memory,
        )
        angles, current = ellipses.angles(current, rng)
        moved += int(np.count_nonzero(angles))
        cosine, sine = np.cos(angles), np.sin(angles)
        kept *= cosine
        offset *= cosine
        across *= sine
        offset += across
        places = centres + deviations * cosine[:, None] + directions * sine[:, None]
        fitted = fitted * cosine[:, None] + draws * sine[:, None]
    samples = prior.centres[components] + prior.coloured(places[:, : prior.n_weights], components)
    standard = places[:, -1] if inferred else None
    return Particles(samples, components, standard), moved / (made * len(places))


@dataclass(frozen=True)
class _Fit:
    """A Gaussian per component: means ``(c, d)`` and lower Cholesky factors ``(c, d, d)``."""

    means: Floats
    factors: Floats

    def coloured(self, draws: Floats, components: Indices) -> Floats:
        """Standard normal draws ``(n, d)`` with the covariance of their component."""
        out = np.empty_like(draws)
        for component in np.unique(components):
            own = components == component
            out[own] = draws[own] @ self.factors[component].T
        return out

    def standardised(self, deviations: Floats, components: Indices) -> Floats:
        """The inverse of ``coloured``."""
        out = np.empty_like(deviations)
        for component in np.unique(components):
            own = components == component
            out[own] = np.linalg.solve(self.factors[component], deviations[own].T).T
        return out


def _fit(places: Floats, components: Indices, n_components: int) -> _Fit:
    """Mean and covariance of each component's particles, drawn towards the standard normal
    prior as far as the different ones among them are few."""
    width = places.shape[1]
    means = np.zeros((n_components, width))
    factors = np.tile(np.eye(width), (n_components, 1, 1))
    for component in np.unique(components):
        own = places[components == component]
        different = len(np.unique(own[:, 0])) - 1
        trust = different / (different + 2 * width)
        means[component] = trust * own.mean(axis=0)
        centred = own - means[component]
        covariance = trust * (centred.T @ centred) / len(own) + (1 - trust) * np.eye(width)
        factors[component] = np.linalg.cholesky(covariance)
    return _Fit(means, factors)


def _excess(
    centres: Floats,
    deviations: Floats,
    directions: Floats,
    fitted: Floats,
    draws: Floats,
) -> Floats:
    """Log of the prior over the fit along each ellipse, a quadratic form of the angle's cosine
    and sine: its six coefficients, of ``1, c, s, c^2, s^2, c s``, shape ``(6, n)``."""

    def products(first: Floats, second: Floats) -> Floats:
        return np.asarray(np.einsum("nd,nd->n", first, second))

    return -0.5 * np.stack(
        [
            products(centres, centres),
            2 * products(centres, deviations),
            2 * products(centres, directions),
            products(deviations, deviations) - products(fitted, fitted),
            products(directions, directions) - products(draws, draws),
            2 * products(deviations, directions) - 2 * products(fitted, draws),
        ]
    )


@dataclass(frozen=True)
class _Ellipses:
    """One ellipse per particle: at an angle a, its terms are
    ``middle + offset * cos(a) + across * sin(a)``, all of shape ``(r, n)``."""

    middle: Projection
    offset: Projection
    across: Projection
    excess: Floats
    """Log of the prior over the fit, as coefficients ``(6, n)``."""
    sharpness: tuple[Floats, Floats, Floats] | None
    """The same three for the standard normal sharpness, each ``(n,)``, where it is inferred."""
    response: ResponseModel
    evidence: Evidence
    relaxed: Relaxation | None
    memory: Floats
    """Room for two projections ``(2, r * n)``: fresh ones cost more than the arithmetic."""

    def take(self, kept: Indices) -> _Ellipses:
        """The ellipses with these indices."""
        sharpness = None
        if self.sharpness is not None:
            middle, offset, across = self.sharpness
            sharpness = middle[kept], offset[kept], across[kept]
        return replace(
            self,
            middle=self.middle.take(kept, axis=1),
            offset=self.offset.take(kept, axis=1),
            across=self.across.take(kept, axis=1),
            excess=self.excess.take(kept, axis=1),
            sharpness=sharpness,
        )

    def log_excess(self, cosine: Floats, sine: Floats) -> Floats:
        """Log of the prior over the fit at these places, up to a constant, shape ``(n,)``."""
        powers = np.ones_like(cosine), cosine, sine, cosine**2, sine**2, cosine * sine
        return np.asarray(np.einsum("kn,kn->n", self.excess, np.stack(powers)))

    def log_likelihood(self, cosine: Floats, sine: Floats) -> Floats:
        """Log probability of the answers at these places, shape ``(n,)``."""
        size, shape = self.offset.size, self.offset.shape
        terms, term = (part[:size].reshape(shape) for part in self.memory)
        np.multiply(self.offset, cosine, out=terms)
        terms += np.multiply(self.across, sine, out=term)
        terms += self.middle
        there = None
        if self.sharpness is not None:
            middle, offset, across = self.sharpness
            there = middle + offset * cosine + across * sine
        return self.evidence.log_likelihood(terms, response_at(self.response, there), self.relaxed)

    def angles(self, current: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Where each particle goes ``(n,)``, and its log likelihood there.

        Invariant: angle 0 is the particle itself, lies in every bracket and above the level.
        Particles that have found their place are dropped once they are half of those kept:
        judging them again is cheaper than copying the others each time.
        """
        n = len(current)
        ellipses, kept, searching = self, np.arange(n), np.ones(n, dtype=bool)
        angles, reached = np.zeros(n), current.copy()
        level = current + self.log_excess(np.ones(n), np.zeros(n)) - rng.standard_exponential(n)
        trial = rng.uniform(0, 2 * np.pi, n)
        low, high = trial - 2 * np.pi, trial.copy()
        for _ in range(MAX_SHRINKS):
            cosine, sine = np.cos(trial), np.sin(trial)
            value = ellipses.log_likelihood(cosine, sine)
            found = searching & (value + ellipses.log_excess(cosine, sine) > level)
            angles[kept[found]] = trial[found]
            reached[kept[found]] = value[found]
            searching &= ~found
            left = np.flatnonzero(searching)
            if not len(left):
                break
            if len(left) < 0.5 * len(kept):
                ellipses, kept, searching = ellipses.take(left), kept[left], searching[left]
                level, trial, low, high = level[left], trial[left], low[left], high[left]
            low = np.where(searching & (trial < 0), trial, low)
            high = np.where(searching & (trial >= 0), trial, high)
            trial = np.where(searching, rng.uniform(low, high), trial)
        return angles, reached
