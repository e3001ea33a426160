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

__all__ = [
    "AboutTheSame",
    "Answer",
    "CannotDoStep",
    "Chosen",
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
    "response_from_dict",
]
