"""Thirty weights, six kinds of people, ten answers: the posteriors against a long reference.

The reference draws from the prior and weights by the likelihood: slow and certain. The kinds
are about fifteen standard deviations apart, and two remain possible after the answers.
"""

import numpy as np
import pytest

from pear.preferences import (
    EnsembleSlicePosterior,
    GaussianMixturePrior,
    Logistic,
    Noiseless,
    ParticlePosterior,
)

from .people import choice, importance_reference, random_question

WIDTH = 30


def case(response):
    rng = np.random.default_rng(20)
    means = 3 + rng.normal(0, 2.0, (6, WIDTH))
    prior = GaussianMixturePrior(means, np.ones((6, WIDTH)))
    [truth], _ = prior.sample(1, rng)
    questions = [
        random_question(rng, WIDTH, plans=2 + number % 3, floor=1.0, sparsity=0.3)
        for number in range(10)
    ]
    answered = [(question, choice(question, truth, response, rng)) for question in questions]
    return prior, answered


def converse(posterior, answered, rng):
    for question, answer in answered:
        posterior = posterior.update(question, answer, rng)
    return posterior


def error(posterior, mean, deviation):
    """Distance of the posterior mean from the reference, in posterior standard deviations."""
    return np.abs((posterior.mean() - mean) / deviation)


@pytest.mark.parametrize("response", [Noiseless(), Logistic(0.9)])
def test_particles_agree_with_the_reference(response):
    prior, answered = case(response)
    mean, deviation, shares, size = importance_reference(
        prior, answered, response, 400_000, np.random.default_rng(0)
    )
    assert size > 20_000
    assert (shares > 0.05).sum() >= 2
    for seed in range(3):
        rng = np.random.default_rng(seed)
        posterior = converse(ParticlePosterior.start(prior, response, rng), answered, rng)
        assert posterior.rejuvenations >= 1
        assert error(posterior, mean, deviation).max() < 0.1
        assert posterior.component_shares() == pytest.approx(shares, abs=0.05)


@pytest.mark.slow
def test_ensemble_slices_do_not(record_property):
    response = Noiseless()
    prior, answered = case(response)
    mean, deviation, _, _ = importance_reference(
        prior, answered, response, 300_000, np.random.default_rng(0)
    )
    rng = np.random.default_rng(0)
    slices = EnsembleSlicePosterior.start(prior, response, rng, burn_in=40, steps=40)
    errors = error(converse(slices, answered, rng), mean, deviation)
    record_property("ensemble_slices_largest_error", float(errors.max()))
    print(f"ensemble slices: {errors.max():.2f} posterior standard deviations off at most")
    assert errors.max() > 0.1
