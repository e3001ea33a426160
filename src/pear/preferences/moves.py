"""How do particles spread out again without leaving what the answers allow?

Elliptical slice sampling: a particle moves on the ellipse through itself and a fresh draw of
its own Gaussian component, to a point whose likelihood is above a random fraction of its own.
The prior needs no accept step, nothing is tuned, and a hard constraint is a likelihood that is
zero somewhere. All particles move at once; those that have found their place drop out.

References: Murray, Adams and MacKay (2010), Elliptical slice sampling, figure 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pear.preferences.evidence import Evidence, Projection, Relaxation
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import ResponseModel, UnknownTemperature

MAX_SHRINKS = 60
"""Each shrink halves the bracket on average: after 60 it is as narrow as rounding."""

REFRESHED = 0.5
"""Particles have moved enough when this much of their old place is left in the new one (root
mean square over the particles; their deviation is multiplied by a cosine each time)."""


@dataclass(frozen=True)
class Particles:
    """Where the particles stand.

    ``samples`` ``(n, p)``; ``components`` ``(n,)``, the Gaussian each moves within;
    ``standard``, the standard normal value of each particle's temperature ``(n,)``, or None
    where the temperature is not inferred.
    """

    samples: NDArray[np.float64]
    components: NDArray[np.intp]
    standard: NDArray[np.float64] | None = None

    def take(self, indices: NDArray[np.intp]) -> Particles:
        """The particles with these indices, repeated where they are."""
        standard = None if self.standard is None else self.standard[indices]
        return Particles(self.samples[indices], self.components[indices], standard)


def response_at(response: ResponseModel, standard: NDArray[np.float64] | None) -> ResponseModel:
    """The response model of particles with these standard normal temperatures."""
    if standard is None or not isinstance(response, UnknownTemperature):
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
    samples, components, standard = particles.samples, particles.components, particles.standard
    centres = prior.centres[components]
    middle = (evidence.rows @ prior.centres.T)[:, components]
    offset = evidence.project(samples)
    current = evidence.log_likelihood(offset.copy(), response_at(response, standard), relaxed)
    offset -= middle
    across, memory = np.empty_like(offset), np.empty((2, offset.size))
    moved, made, kept = 0, 0, np.ones(len(samples))
    while made < sweeps and np.sqrt(np.mean(kept**2)) > REFRESHED:
        made += 1
        direction = prior.deviations(components, rng)
        np.matmul(evidence.rows, direction.T, out=across)
        other = None if standard is None else rng.standard_normal(len(samples))
        ellipses = _Ellipses(
            middle, offset, across, standard, other, response, evidence, relaxed, memory
        )
        angles, current = ellipses.angles(current, rng)
        moved += int(np.count_nonzero(angles))
        cosine, sine = np.cos(angles), np.sin(angles)
        kept *= cosine
        offset *= cosine
        across *= sine
        offset += across
        samples = centres + (samples - centres) * cosine[:, None] + direction * sine[:, None]
        if standard is not None and other is not None:
            standard = standard * cosine + other * sine
    return Particles(samples, components, standard), moved / (made * len(samples))


@dataclass(frozen=True)
class _Ellipses:
    """One ellipse per particle: at an angle a, its terms are
    ``middle + offset * cos(a) + across * sin(a)``, all of shape ``(r, n)``."""

    middle: Projection
    offset: Projection
    across: Projection
    standard: NDArray[np.float64] | None
    other: NDArray[np.float64] | None
    response: ResponseModel
    evidence: Evidence
    relaxed: Relaxation | None
    memory: NDArray[np.float64]
    """Room for two projections ``(2, r * n)``: fresh ones cost more than the arithmetic."""

    def take(self, kept: NDArray[np.intp]) -> _Ellipses:
        """The ellipses with these indices."""
        return replace(
            self,
            middle=self.middle.take(kept, axis=1),
            offset=self.offset.take(kept, axis=1),
            across=self.across.take(kept, axis=1),
            standard=None if self.standard is None else self.standard[kept],
            other=None if self.other is None else self.other[kept],
        )

    def log_likelihood(self, angles: NDArray[np.float64]) -> NDArray[np.float64]:
        """At one angle per ellipse, shape ``(n,)``."""
        cosine, sine = np.cos(angles), np.sin(angles)
        size, shape = self.offset.size, self.offset.shape
        terms, term = (part[:size].reshape(shape) for part in self.memory)
        np.multiply(self.offset, cosine, out=terms)
        terms += np.multiply(self.across, sine, out=term)
        terms += self.middle
        there = None
        if self.standard is not None and self.other is not None:
            there = self.standard * cosine + self.other * sine
        return self.evidence.log_likelihood(terms, response_at(self.response, there), self.relaxed)

    def angles(
        self, current: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where each particle goes ``(n,)``, and its log likelihood there.

        Invariant: angle 0 is the particle itself, lies in every bracket and above the level.
        Particles that have found their place are dropped once they are half of those kept:
        judging them again is cheaper than copying the others each time.
        """
        ellipses, kept = self, np.arange(len(current))
        angles, reached = np.zeros(len(current)), current.copy()
        level = current - rng.standard_exponential(len(current))
        trial = rng.uniform(0, 2 * np.pi, len(current))
        low, high = trial - 2 * np.pi, trial.copy()
        searching = np.ones(len(current), dtype=bool)
        for _ in range(MAX_SHRINKS):
            value = ellipses.log_likelihood(trial)
            found = searching & (value > level)
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
