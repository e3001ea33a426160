"""The mixture prior against scipy, against its own samples, and what it refuses."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from pear.errors import InvalidSetting
from pear.preferences.prior import GaussianMixturePrior


def random_prior(seed, full, background_weight=0.1):
    rng = np.random.default_rng(seed)
    count, width = rng.integers(1, 4), rng.integers(1, 4)
    spread = rng.uniform(0.5, 2.0, (count, width))
    if full:
        mixing = rng.normal(size=(count, width, width))
        covariances = mixing @ mixing.transpose(0, 2, 1) + 0.5 * np.eye(width)
    else:
        covariances = spread**2
    means = rng.normal(0, 5, (count, width))
    return GaussianMixturePrior(
        means, covariances, rng.random(count) + 0.1, background_weight=background_weight
    )


@given(st.integers(0, 1000), st.booleans(), st.sampled_from([0.0, 0.1]))
def test_the_density_is_that_of_the_mixture(seed, full, background_weight):
    prior = random_prior(seed, full, background_weight)
    samples, _ = prior.sample(5, np.random.default_rng(seed))
    expected = 0.0
    for share, centre, factor in zip(prior.shares, prior.centres, prior.factors, strict=True):
        covariance = factor @ factor.T if full else np.diag(factor**2)
        expected = expected + share * np.atleast_1d(
            multivariate_normal(centre, covariance).pdf(samples)
        )
    assert np.allclose(prior.log_density(samples), np.log(expected))


@pytest.mark.parametrize("full", [False, True])
def test_samples_have_the_mean_and_spread_the_prior_says(full):
    prior = random_prior(3, full)
    samples, components = prior.sample(200_000, np.random.default_rng(0))
    error = prior.standard_deviation() / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - prior.mean()) < 5 * error).all()
    assert np.allclose(samples.std(axis=0), prior.standard_deviation(), rtol=0.02)
    assert np.allclose(np.bincount(components) / len(components), prior.shares, atol=0.005)


def test_samples_of_a_full_covariance_are_correlated_as_it_says():
    covariance = np.array([[2.0, -1.2], [-1.2, 1.0]])
    prior = GaussianMixturePrior([[1.0, 2.0]], covariance[None], background_weight=0.0)
    samples, _ = prior.sample(100_000, np.random.default_rng(0))
    assert np.allclose(np.cov(samples.T), covariance, atol=0.03)


def test_the_background_is_as_wide_as_everybody_together():
    # Means 0 and 10, variance 1: mean 5, variance 1 + 25; twice as wide: 104.
    prior = GaussianMixturePrior([[0.0], [10.0]], [[1.0], [1.0]], background_spread=2.0)
    assert prior.background == 2
    assert prior.centres[2] == pytest.approx([5.0])
    assert prior.factors[2] ** 2 == pytest.approx([104.0])
    assert prior.shares == pytest.approx([0.45, 0.45, 0.1])


def test_the_background_can_be_given_or_left_out():
    prior = GaussianMixturePrior([[0.0], [10.0]], [[1.0], [1.0]])
    none = prior.with_background(0.0)
    assert none.background is None
    assert none.n_components == 2
    assert none.with_background(0.3).shares[-1] == pytest.approx(0.3)
    own = GaussianMixturePrior([[0.0]], [[1.0]], background_mean=[7.0], background_deviation=[3.0])
    assert own.centres[1] == pytest.approx([7.0])
    assert own.factors[1] == pytest.approx([3.0])


@pytest.mark.parametrize("full", [False, True])
def test_a_prior_survives_json(full):
    prior = random_prior(1, full)
    read = GaussianMixturePrior.from_dict(json.loads(json.dumps(prior.to_dict())))
    samples, _ = prior.sample(4, np.random.default_rng(0))
    assert np.array_equal(read.log_density(samples), prior.log_density(samples))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_fit_finds_the_kinds_of_people_there_are(covariance):
    rng = np.random.default_rng(0)
    truth = GaussianMixturePrior(
        [[0.0, 50.0], [80.0, -20.0]], [[4.0, 9.0], [1.0, 25.0]], [0.25, 0.75], 0.0
    )
    population, _ = truth.sample(2000, rng)
    fitted = GaussianMixturePrior.fit(population, None, rng, covariance=covariance)
    assert len(fitted.means) == 2
    order = np.argsort(fitted.means[:, 0])
    variances = fitted.covariances
    if covariance == "full":
        variances = np.diagonal(variances, axis1=1, axis2=2)
    assert np.allclose(fitted.means[order], truth.means, atol=0.6)
    assert np.allclose(variances[order], truth.covariances, rtol=0.2)
    assert fitted.component_weights[order] == pytest.approx([0.25, 0.75], abs=0.03)
    assert fitted.background is not None


def test_fit_keeps_correlations():
    rng = np.random.default_rng(0)
    covariance = np.array([[4.0, 30.0], [30.0, 400.0]])
    population = rng.multivariate_normal([1.0, 2.0], covariance, 5000)
    fitted = GaussianMixturePrior.fit(population, 1, rng, covariance="full")
    assert np.allclose(fitted.covariances[0], covariance, rtol=0.1)


def test_the_density_of_a_narrow_component_far_away_keeps_its_digits():
    prior = GaussianMixturePrior([[0.0], [100.0]], np.full((2, 1), 1e-14), background_weight=0.0)
    # One standard deviation from the second mean; 100.0000001 - 100 is itself rounded.
    [value] = prior.log_density(np.array([[100.0 + 1e-7]]))
    exact = np.log(0.5) - 0.5 * np.log(2 * np.pi * 1e-14) - 0.5
    assert value == pytest.approx(exact, abs=1e-5)


def test_fit_of_the_same_population_and_seed_is_the_same():
    population = np.random.default_rng(0).normal(size=(50, 3))
    fits = [GaussianMixturePrior.fit(population, 2, np.random.default_rng(5)) for _ in range(2)]
    assert np.array_equal(fits[0].means, fits[1].means)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"means": [1.0, 2.0]}, "'means' must be finite numbers of shape"),
        ({"means": [[np.inf, 0.0]]}, "'means' must be finite"),
        ({"covariances": [[1.0]]}, r"'covariances' must have shape \(1, 2\)"),
        ({"covariances": [[1.0, 0.0]]}, "positive variances"),
        ({"covariances": [[[1.0, 2.0], [2.0, 1.0]]]}, "positive definite"),
        ({"component_weights": [0.0]}, "'component_weights' must be 1 non-negative"),
        ({"component_weights": [1.0, 1.0]}, "'component_weights' must be 1 non-negative"),
        ({"background_weight": 1.0}, "'background_weight' must be at least 0"),
        ({"background_spread": 0.0}, "'background_spread' must be a positive"),
        ({"background_mean": [1.0]}, "'background_mean' must be 2 finite numbers"),
    ],
)
def test_what_is_no_prior_is_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        GaussianMixturePrior(**{"means": [[0.0, 0.0]], "covariances": [[1.0, 1.0]], **settings})


def test_a_population_too_small_to_fit_is_refused():
    with pytest.raises(InvalidSetting, match="at least two people"):
        GaussianMixturePrior.fit([[1.0, 2.0]], 1, np.random.default_rng(0))
    with pytest.raises(InvalidSetting, match="between 1 and the number of people, 3"):
        GaussianMixturePrior.fit(np.ones((3, 2)), 4, np.random.default_rng(0))


@given(st.integers(0, 1000), st.booleans())
def test_standardised_samples_are_coloured_back(seed, full):
    prior = random_prior(seed, full)
    samples, components = prior.sample(6, np.random.default_rng(seed))
    standard = prior.standardised(samples, components)
    back = prior.centres[components] + prior.coloured(standard, components)
    assert np.allclose(back, samples)
