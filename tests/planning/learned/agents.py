"""Small policies for the tests, trained on the small problem in a second or two."""

from functools import cache

import numpy as np

from pear.planning.learned.training import Trainer, TrainingSettings
from tests.planning.small_problems import random_people, small_model, small_problem

QUICK = {
    "iterations": 12,
    "batch_people": 24,
    "shard_people": 12,
    "simulations": 8,
    "gradient_steps": 6,
    "gradient_batch": 32,
    "hidden": 16,
    "pool": 120,
    "validation_people": 20,
    "validate_every": 4,
    "learning_rate": 0.01,
}


def sample_weights(n, rng):
    return rng.uniform(1, 60, (n, small_problem().costs.n_weights))


def quick_trainer(kind="wfare", workers=1, **settings):
    """A trainer on the small problem."""
    problem = small_problem()
    people, _ = random_people(problem, 300, np.random.default_rng(11))
    mean = np.full(problem.costs.n_weights, 30.5)
    chosen = TrainingSettings(kind=kind, **{**QUICK, **settings})
    model = small_model(problem)
    return Trainer(problem, model, people, sample_weights, mean, chosen, workers=workers)


@cache
def trained_policy(kind):
    """A trained policy of each kind."""
    return quick_trainer(kind, iterations=20).run()
