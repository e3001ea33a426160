"""Simulation-based calibration: truths drawn from the prior rank evenly among posterior draws.

For a person drawn from the prior who answers by the response model, the rank of any function of
their weights among independent draws of a right posterior is uniform. A posterior too narrow,
too wide or shifted makes it uneven.

References: Talts, Betancourt, Simpson, Vehtari and Gelman (2018), Validating Bayesian inference
algorithms with simulation-based calibration.
"""

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from pear.preferences import (
    EnsembleSlicePosterior,
    GaussianMixturePrior,
    Logistic,
    Noiseless,
    ParticlePosterior,
    UnknownSharpness,
)

from .people import choice, random_question

WIDTH = 3
DRAWS = 9
ONE = GaussianMixturePrior([[2.0, 3.0, 1.0]], [[1.0, 4.0, 0.5]], background_weight=0.0)
# Twelve and more standard deviations apart, one of them rare.
SEPARATED = GaussianMixturePrior(
    [[2.0, 3.0, 1.0], [14.0, 9.0, 1.0], [4.0, 18.0, 12.0]],
    np.ones((3, 3)),
    [0.45, 0.45, 0.1],
    background_weight=0.0,
)


def simulate(prior, response, start, *, people, questions, seed):
    """Ranks ``(people, quantities)`` of the truth, the components of the people, and the
    probabilities ``(people, c)`` they were given."""
    rng = np.random.default_rng(seed)
    ranks, labels, shares = [], [], []
    for _ in range(people):
        [truth], [label] = prior.sample(1, rng)
        told = response
        if isinstance(response, UnknownSharpness):
            told = Logistic(float(response.sharpness(rng.standard_normal())))
        posterior = start(prior, response, rng)
        for _ in range(questions):
            question = random_question(rng, WIDTH, plans=2, longest=2, floor=1.0)
            posterior = posterior.update(question, choice(question, truth, told, rng), rng)
        chosen = rng.choice(len(posterior.weights), size=DRAWS, p=posterior.weights)
        draws = posterior.samples[chosen]
        quantities = [draws[:, 0] < truth[0], draws[:, 1] < truth[1], draws.sum(1) < truth.sum()]
        if isinstance(response, UnknownSharpness):
            quantities.append(posterior.sharpness[chosen] < told.sharpness)
        ranks.append([np.count_nonzero(quantity) for quantity in quantities])
        labels.append(label)
        shares.append(posterior.component_shares())
    return np.array(ranks), np.array(labels), np.array(shares)


def smallest_p_value(ranks):
    """Of the quantities' chi-square tests for uniform ranks, times their number (Bonferroni)."""
    counts = [np.bincount(own, minlength=DRAWS + 1) for own in ranks.T]
    return len(counts) * min(chisquare(count).pvalue for count in counts)


def particles(prior, response, rng):
    return ParticlePosterior.start(prior, response, rng, n_particles=150, reservoir=1)


@pytest.mark.parametrize("response", [Noiseless(), Logistic(2.0), UnknownSharpness(2.0, 0.7)])
def test_particles_are_calibrated_on_one_component(response):
    ranks, _, _ = simulate(ONE, response, particles, people=300, questions=5, seed=1)
    assert smallest_p_value(ranks) > 0.01


@pytest.mark.parametrize("response", [Noiseless(), Logistic(0.3)])
def test_particles_are_calibrated_on_separated_components(response):
    ranks, labels, shares = simulate(
        SEPARATED, response, particles, people=300, questions=4, seed=2
    )
    assert smallest_p_value(ranks) > 0.01
    # The kind of person is predicted as often as it occurs: sum of differences, standardised.
    happened = labels[:, None] == np.arange(3)
    variance = (shares * (1 - shares)).sum(axis=0)
    scores = (happened - shares).sum(axis=0) / np.sqrt(np.maximum(variance, 1.0))
    assert (2 * norm.sf(np.abs(scores)) * 3 > 0.01).all()
    # And better than from the prior alone: the answers do tell the kinds apart.
    assert shares[happened].mean() > SEPARATED.shares @ SEPARATED.shares + 0.08


@pytest.mark.slow
def test_ensemble_slices_are_calibrated_on_one_component():
    def start(prior, response, rng):
        return EnsembleSlicePosterior.start(
            prior, response, rng, n_walkers=20, burn_in=10, steps=4, global_share=0.0
        )

    ranks, _, _ = simulate(ONE, Logistic(2.0), start, people=100, questions=2, seed=3)
    assert smallest_p_value(ranks) > 0.01


@pytest.mark.slow
def test_the_check_notices_answers_that_are_counted_three_times():
    class Gullible(ParticlePosterior):
        def update(self, question, answer, rng):
            for _ in range(3):
                self = ParticlePosterior.update(self, question, answer, rng)
            return self

    def start(prior, response, rng):
        return Gullible.start(prior, response, rng, n_particles=150, reservoir=1)

    ranks, _, _ = simulate(ONE, Logistic(0.7), start, people=300, questions=5, seed=4)
    assert smallest_p_value(ranks) < 0.01
