"""Elliptical slice moves must leave the posterior of each component as it is."""

import numpy as np
import pytest
from scipy.stats import kstest, norm, truncnorm

from pear.preferences.answers import Chosen, Evidence, NoneOfThese, Question, Relaxation
from pear.preferences.moves import Particles, elliptical_moves
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import Logistic, Noiseless, UnknownSharpness

# One weight w; plan 0 costs 2 w and plan 1 costs w: choosing plan 0 says that w is negative.
NEGATIVE = (Question.from_plans([[[2.0]], [[1.0]]]), Chosen(0))
TWO = GaussianMixturePrior([[1.0], [-4.0]], [[1.0], [4.0]], background_weight=0.0)


def start(prior, component, samples, standard=None):
    samples = np.asarray(samples, dtype=float)[:, None]
    return Particles(samples, np.full(len(samples), component), standard)


def test_from_one_place_the_moves_reach_the_truncated_normal():
    # Component 0 is N(1, 1), cut off at 0 by the answer.
    rng = np.random.default_rng(0)
    particles, moved = elliptical_moves(
        start(TWO, 0, np.full(2000, -0.01)), TWO, Noiseless(), Evidence((NEGATIVE,)), rng, sweeps=60
    )
    for _ in range(6):
        particles, moved = elliptical_moves(
            particles, TWO, Noiseless(), Evidence((NEGATIVE,)), rng, sweeps=10
        )
    expected = truncnorm(-np.inf, -1.0, loc=1.0, scale=1.0)
    assert moved > 0.99
    assert kstest(particles.samples[:, 0], expected.cdf).pvalue > 0.01


def test_particles_of_the_posterior_stay_particles_of_the_posterior():
    # Component 1 is N(-4, 2^2), cut off at 0.
    rng = np.random.default_rng(1)
    exact = truncnorm(-np.inf, 2.0, loc=-4.0, scale=2.0)
    particles, _ = elliptical_moves(
        start(TWO, 1, exact.rvs(4000, random_state=rng)),
        TWO,
        Noiseless(),
        Evidence((NEGATIVE,)),
        rng,
        sweeps=5,
    )
    assert kstest(particles.samples[:, 0], exact.cdf).pvalue > 0.01
    assert (particles.components == 1).all()


def test_a_smooth_likelihood_is_met_too():
    # Against numerical integration of N(w; 1, 1) / (1 + exp(-(w - 2) / 0.5)).
    rng = np.random.default_rng(2)
    evidence = Evidence(((Question.from_plans([[[1.0]]]), NoneOfThese(2.0, 0.5)),))
    particles = start(TWO, 0, rng.normal(1, 1, 4000))
    for _ in range(20):
        particles, _ = elliptical_moves(particles, TWO, Noiseless(), evidence, rng, sweeps=2)
    grid = np.linspace(-6, 9, 4001)
    density = norm.pdf(grid, 1, 1) / (1 + np.exp(-(grid - 2) / 0.5))
    cumulative = np.cumsum(density) / density.sum()
    place = np.interp(particles.samples[:, 0], grid, cumulative)
    assert kstest(place, "uniform").pvalue > 0.01


def test_a_relaxed_answer_moves_the_bound():
    # Plan 0 costs 2 w, plan 1 costs w: slack 0.5 allows w up to 0.5.
    rng = np.random.default_rng(3)
    particles = start(TWO, 0, np.full(2000, 0.0))
    for _ in range(8):
        particles, _ = elliptical_moves(
            particles,
            TWO,
            Noiseless(),
            Evidence((NEGATIVE,)),
            rng,
            sweeps=10,
            relaxed=Relaxation(slack=0.5),
        )
    expected = truncnorm(-np.inf, -0.5, loc=1.0, scale=1.0)
    assert kstest(particles.samples[:, 0], expected.cdf).pvalue > 0.01


def test_the_sharpness_moves_with_the_weights():
    # A plan of cost 1 against one of cost 2, whatever the weights, as good as: the posterior of
    # the standard normal z of the sharpness e^z is N(z) / (1 + exp(-e^z)).
    rng = np.random.default_rng(4)
    prior = GaussianMixturePrior([[1.0]], [[1e-12]], background_weight=0.0)
    evidence = Evidence(((Question.from_plans([[[1.0]], [[2.0]]]), Chosen(1)),))
    particles = start(prior, 0, np.ones(4000), rng.standard_normal(4000))
    response = UnknownSharpness(median=1.0, spread=1.0)
    for _ in range(20):
        particles, _ = elliptical_moves(particles, prior, response, evidence, rng, sweeps=2)
    grid = np.linspace(-6, 6, 4001)
    density = norm.pdf(grid) / (1 + np.exp(np.exp(grid)))
    place = np.interp(particles.standard, grid, np.cumsum(density) / density.sum())
    assert kstest(place, "uniform").pvalue > 0.01


@pytest.mark.parametrize("response", [Noiseless(), Logistic(3.0)])
def test_full_covariances_keep_their_correlation(response):
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    prior = GaussianMixturePrior([[0.0, 0.0]], covariance[None], background_weight=0.0)
    question = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0]]])
    evidence = Evidence(((question, Chosen(0)),))
    rng = np.random.default_rng(5)
    particles = Particles(np.full((5000, 2), [-0.1, 0.1]), np.zeros(5000, dtype=int))
    for _ in range(6):
        particles, _ = elliptical_moves(particles, prior, response, evidence, rng, sweeps=10)
    draws, _ = prior.sample(200_000, rng)
    weights = np.exp(response.log_probabilities(question.costs(draws))[:, 0])
    expected = np.cov(draws.T, aweights=weights)
    assert np.allclose(np.cov(particles.samples.T), expected, atol=0.06)
