"""How do particles spread out again without leaving what the answers allow?

Elliptical slice sampling: a particle moves on the ellipse through itself and a fresh draw of
its own Gaussian component, to a point whose likelihood is above a random fraction of its own.
The prior needs no accept step, nothing is tuned, and a hard constraint is a likelihood that is
zero somewhere. All particles move at once; those that have found their place drop out.

References: Murray, Adams and MacKay (2010), Elliptical slice sampling, figure 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.preferences.evidence import Evidence, Relaxation
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import ResponseModel, UnknownTemperature

MAX_SHRINKS = 60
"""Each shrink halves the bracket on average: after 60 it is as narrow as rounding."""


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
    """Moves every particle ``sweeps`` times; also the share of moves that left their place.

    Leaves the posterior given the particle's component as it is: prior of the component times
    the likelihood of ``evidence``.
    """
    samples, components, standard = particles.samples, particles.components, particles.standard
    centres = prior.centres[components]
    middle = (evidence.rows @ prior.centres.T)[:, components]
    offset = evidence.project(samples) - middle
    current = evidence.log_likelihood(middle + offset, response_at(response, standard), relaxed)
    moved = 0
    for _ in range(sweeps):
        direction = prior.deviations(components, rng)
        other = None if standard is None else rng.standard_normal(len(samples))
        across = evidence.project(direction)
        lines = (middle, offset, across)
        angles, current = _angles(
            lines, (standard, other), current, response, evidence, rng, relaxed
        )
        moved += int(np.count_nonzero(angles))
        cosine, sine = np.cos(angles), np.sin(angles)
        offset = offset * cosine + across * sine
        samples = centres + (samples - centres) * cosine[:, None] + direction * sine[:, None]
        if standard is not None and other is not None:
            standard = standard * cosine + other * sine
    return Particles(samples, components, standard), moved / (sweeps * len(samples))


def _angles(
    lines: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    temperatures: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None],
    current: NDArray[np.float64],
    response: ResponseModel,
    evidence: Evidence,
    rng: np.random.Generator,
    relaxed: Relaxation | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where on its ellipse each particle goes ``(n,)``, and its log likelihood there.

    Invariant: angle 0 is the particle itself, lies in every bracket and above the level.
    """
    n = len(current)
    middle, offset, across = lines
    standard, other = temperatures
    level = current - rng.standard_exponential(n)
    trial = rng.uniform(0, 2 * np.pi, n)
    low, high = trial - 2 * np.pi, trial.copy()
    angles, reached = np.zeros(n), current.copy()
    active = np.arange(n)
    for _ in range(MAX_SHRINKS):
        cosine, sine = np.cos(trial), np.sin(trial)
        terms = offset * cosine
        terms += across * sine
        terms += middle
        there = None
        if standard is not None and other is not None:
            there = standard[active] * cosine + other[active] * sine
        value = evidence.log_likelihood(terms, response_at(response, there), relaxed)
        above = value > level[active]
        angles[active[above]] = trial[above]
        reached[active[above]] = value[above]
        stay = np.flatnonzero(~above)
        if not len(stay):
            break
        active = active[stay]
        middle, offset, across = middle[:, stay], offset[:, stay], across[:, stay]
        trial = trial[stay]
        low = np.where(trial < 0, trial, low[stay])
        high = np.where(trial < 0, high[stay], trial)
        trial = rng.uniform(low, high)
    return angles, reached
