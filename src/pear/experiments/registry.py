"""Which methods and data sets are there, and how does one of somebody else's join?

By its import path, ``package.module:object``, wherever a name of ours is taken. A data set
is a function of (classifier, users) that returns a :class:`World`; a method is an object
with ``label`` and ``solve``, and any other attribute of
:class:`pear.experiments.methods.Method`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from pear.errors import InvalidSetting, PearError
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
    "wfare-true-path": "pear.experiments.methods:WFARE_PATH",
    "fare-path": "pear.experiments.methods:FARE_PATH",
    "mcts-path": "pear.experiments.methods:MCTS_PATH",
    "pear-nl": "pear.experiments.conversations:PEAR_NL",
    "pear-l": "pear.experiments.conversations:PEAR_L",
    "pear-published-l": "pear.experiments.conversations:PEAR_PUBLISHED_L",
    "pear-slices-l": "pear.experiments.conversations:PEAR_SLICES_L",
    "pear-exact-nl": "pear.experiments.conversations:PEAR_EXACT_NL",
    "pear-exact-l": "pear.experiments.conversations:PEAR_EXACT_L",
    "xpear-nl": "pear.experiments.conversations:XPEAR_NL",
    "xpear-l": "pear.experiments.conversations:XPEAR_L",
    "xpear-exact-l": "pear.experiments.conversations:XPEAR_EXACT_L",
}


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
    except Exception as error:  # Importing it runs code of somebody else's.
        raise InvalidSetting(
            f"the {kind} '{name}' cannot be imported: {in_words(error)}; check the path, and that "
            "its package is installed"
        ) from error


def in_words(error: BaseException) -> str:
    """An error in one line.

    >>> in_words(KeyError("fare"))
    "KeyError: 'fare'"
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def find_method(name: str) -> Any:
    """The method of a name or import path."""
    method = resolve("method", name, METHODS)
    label = getattr(method, "label", None)
    solves = callable(getattr(method, "solve", None))
    if isinstance(method, type) or not solves or not isinstance(label, str):
        kind = "class" if isinstance(method, type) else type(method).__name__
        raise InvalidSetting(
            f"the method '{name}' must be an object with a text 'label' and a function 'solve' of "
            f"(world, assets, task) (got a {kind}); see pear.experiments.methods.Method"
        )
    return method


def find_dataset(name: str) -> Callable[[str, str], Any]:
    """The function of a data set's name or import path."""
    function = resolve("data set", name, DATASETS)
    try:
        inspect.signature(function).bind("network", "all")
    except (TypeError, ValueError) as error:
        raise InvalidSetting(
            f"the data set '{name}' must be a function of (classifier, users) that returns a World "
            f"(got a {type(function).__name__}: {error}); see pear.experiments.worlds.World"
        ) from error
    found: Callable[[str, str], Any] = function
    return found


def build_world(dataset: str, classifier: str, users: str) -> World:
    """The world of a data set's name or import path."""
    function = find_dataset(dataset)
    try:
        world = function(classifier, users)
    except PearError:
        raise
    except Exception as error:
        raise InvalidSetting(
            f"the data set '{dataset}' failed for the classifier '{classifier}' and the users "
            f"'{users}' ({in_words(error)}); correct the function"
        ) from error
    if not isinstance(world, World):
        raise InvalidSetting(
            f"the data set '{dataset}' must return a World (got {world!r} that is a "
            f"{type(world).__name__}); see pear.experiments.worlds.World"
        )
    if not len(world.states):
        raise InvalidSetting(
            f"the data set '{dataset}' has no users '{users}' for the classifier '{classifier}'; "
            "its World needs at least one row in 'states'"
        )
    return world


def dataset_label(dataset: str) -> str:
    """A data set's name as tables print it."""
    return LABELS.get(dataset, dataset.rsplit(":", 1)[-1])
