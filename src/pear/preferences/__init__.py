"""What does this person find costly?

A prior over weights, what a person's answers say about them, and the posterior that follows.
"""

from pear.preferences.answers import (
    AboutTheSame,
    Answer,
    Chosen,
    NoneOfThese,
    Question,
    answer_from_dict,
    answer_to_dict,
)
from pear.preferences.posterior import ParticlePosterior, Posterior
from pear.preferences.prior import GaussianMixturePrior, default_prior, stored_prior
from pear.preferences.response import (
    Logistic,
    Noiseless,
    ResponseModel,
    UnknownSharpness,
    response_from_dict,
)
from pear.preferences.slices import EnsembleSlicePosterior

__all__ = [
    "AboutTheSame",
    "Answer",
    "Chosen",
    "EnsembleSlicePosterior",
    "GaussianMixturePrior",
    "Logistic",
    "Noiseless",
    "NoneOfThese",
    "ParticlePosterior",
    "Posterior",
    "Question",
    "ResponseModel",
    "UnknownSharpness",
    "answer_from_dict",
    "answer_to_dict",
    "default_prior",
    "response_from_dict",
    "stored_prior",
]
