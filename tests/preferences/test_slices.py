"""The ensemble slice posterior follows the interface, and its estimates are what they say."""

import numpy as np
import pytest

from pear.errors import InvalidSetting
from pear.preferences import (
    Chosen,
    EnsembleSlicePosterior,
    GaussianMixturePrior,
    Logistic,
    Noiseless,
    Question,
    UnknownSharpness,
)

from .people import importance_reference

PRIOR = GaussianMixturePrior([[2.0, 3.0]], [[1.0, 1.0]])
QUESTION = Question.from_plans([[[1.0, 0.0]], [[0.0, 1.0]]])
OTHER = Question.from_plans([[[2.0, 0.0]], [[0.0, 1.0]]])


def begin(response, **settings):
    settings = {"burn_in": 30, "steps": 60, "global_share": 0.0, **settings}
    return EnsembleSlicePosterior.start(PRIOR, response, np.random.default_rng(0), **settings)


def converse(posterior, *answered):
    for number, (question, answer) in enumerate(answered):
        posterior = posterior.update(question, answer, np.random.default_rng(number))
    return posterior


@pytest.mark.parametrize("response", [Noiseless(), Logistic(1.0)])
def test_it_agrees_with_weighted_draws_of_the_prior(response):
    answered = [(QUESTION, Chosen(1)), (OTHER, Chosen(0))]
    if isinstance(response, Noiseless):
        answered[1] = (OTHER, Chosen(1))
    posterior = converse(begin(response, steps=300), *answered)
    mean, deviation, _, _ = importance_reference(
        PRIOR, answered, response, 200_000, np.random.default_rng(0)
    )
    assert (np.abs(posterior.mean() - mean) < 0.15 * deviation).all()
    assert np.allclose(posterior.standard_deviation(), deviation, rtol=0.15)
    assert np.bincount(posterior.components, posterior.weights).sum() == pytest.approx(1.0)


def test_the_papers_estimate_is_the_mean_of_the_densest_quarter():
    posterior = converse(begin(Logistic(1.0), estimate="best_quarter"), (QUESTION, Chosen(1)))
    order = np.argsort(-posterior.log_densities)
    densest = posterior.samples[order[: len(order) // 4]]
    assert posterior.mean() == pytest.approx(densest.mean(axis=0))
    assert posterior.mean() != pytest.approx(posterior.samples.mean(axis=0), abs=1e-6)


def test_log_densities_are_prior_times_likelihood():
    posterior = converse(begin(Logistic(1.0)), (QUESTION, Chosen(1)))
    likelihood = Chosen(1).log_likelihood(QUESTION.costs(posterior.samples), Logistic(1.0))
    expected = PRIOR.log_density(posterior.samples) + likelihood
    assert np.allclose(posterior.log_densities, expected)


def test_the_sharpness_is_inferred_too():
    # Thrice a plan of cost 10 is preferred to one of cost 5: this person hardly looks.
    prior = GaussianMixturePrior([[5.0, 5.0]], [[0.01, 0.01]], background_weight=0.0)
    response = UnknownSharpness(median=1.0, spread=1.0)
    before = EnsembleSlicePosterior.start(
        prior, response, np.random.default_rng(0), burn_in=40, steps=100, global_share=0.0
    )
    after = converse(before, *[(OTHER, Chosen(0))] * 3)
    draws = response.given(np.random.default_rng(1).standard_normal(200_000))
    likelihood = (1 + np.exp(5 * draws.sharpness)) ** -3
    expected = (likelihood @ draws.sharpness) / likelihood.sum()
    assert after.sharpness.mean() == pytest.approx(expected, rel=0.1)
    assert after.samples.shape[1] == 2


def test_a_contradiction_falls_back_to_noise_and_says_so():
    posterior = converse(begin(Noiseless()), (QUESTION, Chosen(0)), (QUESTION, Chosen(1)))
    assert posterior.health.contradiction == 1
    assert isinstance(posterior.response, Logistic)
    assert "contradicts" in str(posterior.health)
    assert np.isfinite(posterior.samples).all()
    further = converse(posterior, (OTHER, Chosen(1)))
    assert further.health.contradiction == 1
    assert further.n_answers == 3


def test_the_same_seed_gives_the_same_samples():
    first, second = (converse(begin(Logistic(1.0)), (QUESTION, Chosen(1))) for _ in range(2))
    assert np.array_equal(first.samples, second.samples)


def test_correlated_samples_count_for_less():
    posterior = converse(begin(Logistic(1.0)), (QUESTION, Chosen(1)))
    health = posterior.health
    assert health.n_samples == len(posterior.weights) == 40 * 60
    assert 50 < health.effective_sample_size < health.n_samples


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_walkers": 4}, "'n_walkers' must be even and at least 6"),
        ({"n_walkers": 41}, "'n_walkers' must be even"),
        ({"steps": 0}, "'burn_in' and 'steps' must be at least 1"),
        ({"estimate": "mode"}, "'estimate' must be 'mean' or 'best_quarter'"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        begin(Noiseless(), **settings)
