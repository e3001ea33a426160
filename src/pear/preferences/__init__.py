"""What does this person find costly?

A prior over weights, what a person's answers say about them, and the posterior that follows.
"""

from pear.preferences.answers import (
    AboutTheSame,
    Answer,
    CannotDoStep,
    Chosen,
    NoneOfThese,
    Question,
    answer_from_dict,
    answer_to_dict,
)
from pear.preferences.default_prior import default_prior
from pear.preferences.particles import ParticlePosterior
from pear.preferences.posterior import Health, Posterior
from pear.preferences.prior import GaussianMixturePrior
from pear.preferences.response import (
    Logistic,
    Noiseless,
    ResponseModel,
    UnknownTemperature,
    response_from_dict,
)
from pear.preferences.slices import EnsembleSlicePosterior

__all__ = [
    "AboutTheSame",
    "Answer",
    "CannotDoStep",
    "Chosen",
    "EnsembleSlicePosterior",
    "GaussianMixturePrior",
    "Health",
    "Logistic",
    "Noiseless",
    "NoneOfThese",
    "ParticlePosterior",
    "Posterior",
    "Question",
    "ResponseModel",
    "UnknownTemperature",
    "answer_from_dict",
    "answer_to_dict",
    "default_prior",
    "response_from_dict",
]
