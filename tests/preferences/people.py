"""Made-up people and questions for the tests of the posteriors."""

import numpy as np

from pear.preferences.answers import Chosen, Question


def random_question(rng, width, *, plans=2, longest=3, floor=None, sparsity=1.0):
    """Plans of random steps, each touching some of the weights."""
    return Question.from_plans(
        [
            rng.random((rng.integers(1, longest + 1), width)) * (rng.random((1, width)) < sparsity)
            for _ in range(plans)
        ],
        floor,
    )


def choice(question, weights, response, rng):
    """What a person with these weights ``(p,)`` answers."""
    [log_probabilities] = response.log_probabilities(question.costs(weights[None]))
    chances = np.exp(log_probabilities)
    return Chosen(int(rng.choice(question.n_plans, p=chances / chances.sum())))


def log_likelihood(answered, samples, response):
    """All answers judged one by one, the slow and obvious way, shape ``(n,)``."""
    return sum(
        answer.log_likelihood(question.costs(samples), response) for question, answer in answered
    )


def importance_reference(prior, answered, response, n, rng):
    """Posterior mean, standard deviation, component shares and effective sample size from n
    draws of the prior weighted by the likelihood: no resampling, no moves."""
    total, first, second, squares = 0.0, 0.0, 0.0, 0.0
    shares = np.zeros(prior.n_components)
    for _ in range(max(1, n // 50_000)):
        samples, components = prior.sample(min(n, 50_000), rng)
        weights = np.exp(log_likelihood(answered, samples, response))
        total += weights.sum()
        squares += weights @ weights
        first = first + weights @ samples
        second = second + weights @ samples**2
        shares += np.bincount(components, weights, minlength=prior.n_components)
    mean = first / total
    return mean, np.sqrt(second / total - mean**2), shares / total, total**2 / squares
