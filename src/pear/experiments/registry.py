"""Which methods and data sets are there, and how does one of somebody else's join?

By its import path, ``package.module:object``, wherever a name of ours is taken. A data set
is a function of (classifier, users) that returns a :class:`World`; a method is an object
with the attributes of :class:`pear.experiments.methods.Method`.
"""

from __future__ import annotations

import importlib
from typing import Any

from pear.errors import InvalidSetting
from pear.experiments.worlds import World

DATASETS = {
    "adult": "pear.experiments.worlds:adult_world",
    "givemecredit": "pear.experiments.worlds:credit_world",
    "loan_book": "pear.experiments.worlds:loan_book_world",
}
LABELS = {"adult": "Adult", "givemecredit": "GiveMeSomeCredit", "loan_book": "Loan book"}
METHODS = {
    "fare": "pear.experiments.methods:FARE_MEAN",
    "cscf": "pear.experiments.methods:CSCF",
    "efare": "pear.experiments.methods:EFARE",
    "rl": "pear.experiments.methods:RL",
    "mcts": "pear.experiments.methods:MCTS",
    "face": "pear.experiments.methods:FACE",
    "exact-mean": "pear.experiments.methods:EXACT_MEAN",
    "exact-true": "pear.experiments.methods:EXACT_TRUE",
    "exact-repeats": "pear.experiments.methods:EXACT_REPEATS",
    "wfare-true": "pear.experiments.methods:WFARE_TRUE",
    "pear-nl": "pear.experiments.conversations:PEAR_NL",
    "pear-l": "pear.experiments.conversations:PEAR_L",
    "pear-slices-nl": "pear.experiments.conversations:PEAR_SLICES_NL",
    "pear-slices-l": "pear.experiments.conversations:PEAR_SLICES_L",
    "pear-exact-nl": "pear.experiments.conversations:PEAR_EXACT_NL",
    "pear-exact-l": "pear.experiments.conversations:PEAR_EXACT_L",
    "xpear-nl": "pear.experiments.conversations:XPEAR_NL",
    "xpear-l": "pear.experiments.conversations:XPEAR_L",
    "xpear-exact-nl": "pear.experiments.conversations:XPEAR_EXACT_NL",
    "xpear-exact-l": "pear.experiments.conversations:XPEAR_EXACT_L",
}
TRIALS = (
    "pear-random-nl",
    "pear-random-l",
    "pear-once-nl",
    "pear-once-l",
    "pear-path-l",
    "pear-plain-l",
    "wfare-path",
    "wfare-once",
    "mcts-best",
    "mcts-100",
    "mcts-free",
    "mcts-drawn",
    "mcts-drawn-free",
    "mcts-noise",
    "fare-separate",
    "fare-brief",
    "rl-brief",
    "face-short",
    "face-cut",
    "face-hops",
    "cscf-small",
    "cscf-stop",
)
"""Methods for trials, see :mod:`pear.experiments.trials`; no profile runs them."""
METHODS |= {name: f"pear.experiments.trials:{name.replace('-', '_').upper()}" for name in TRIALS}


def resolve(kind: str, name: str, known: dict[str, str]) -> Any:
    """The object of a name of ours, or of an import path.

    >>> resolve("method", "json:dumps", {}).__name__
    'dumps'
    """
    path = known.get(name, name)
    module, _, attribute = path.partition(":")
    if not attribute:
        raise InvalidSetting(
            f"there is no {kind} '{name}'; it must be one of {', '.join(known)}, or an import "
            "path 'package.module:object'"
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidSetting(
            f"the {kind} '{name}' cannot be imported: {error}; check the path, and that its "
            "package is installed"
        ) from error


def find_method(name: str) -> Any:
    """The method of a name or import path."""
    return resolve("method", name, METHODS)


def build_world(dataset: str, classifier: str, users: str) -> World:
    """The world of a data set's name or import path."""
    world: World = resolve("data set", dataset, DATASETS)(classifier, users)
    return world


def dataset_label(dataset: str) -> str:
    """A data set's name as tables print it."""
    return LABELS.get(dataset, dataset.rsplit(":", 1)[-1])
