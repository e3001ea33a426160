"""What is an experiment made of: tasks, methods and data sets by name, and the report of its rows.

A task is plain data; its rows depend on it and on the world alone, not on the worker. A method or
a data set of somebody else's joins by its import path, ``package.module:object``, wherever a name
of ours is taken. A data set is a function of (classifier, users) that returns a :class:`World`; a
method is an object with ``label`` and ``solve``, and any other attribute of
:class:`pear.experiments.methods.Method`.
"""

from __future__ import annotations

import importlib
import inspect
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.errors import InvalidSetting, PearError
from pear.experiments.drawing import Picture, Table
from pear.experiments.profiles import Profile
from pear.experiments.worlds import World, world_key

AssetKey = tuple[str, str, float, int, str]
"""Data set, classifier, share of edges removed, which draw of them, and name of a trained part."""

COLUMNS = {
    "dataset": "str",
    "classifier": "str",
    "users": "str",
    "method": "str",
    "k": "int64",
    "corruption": "float64",
    "run": "int64",
    "user": "int64",
    "questions": "int64",
    "answered": "int64",
    "score": "float64",
    "success": "bool",
    "cost": "float64",
    "length": "float64",
    "rows": "float64",
    "cost_for_mean": "float64",
    "cost_for_truth": "float64",
}
"""One row is one user after a number of questions. ``score`` is the classifier's of the user,
``answered`` how many questions were answered, ``cost`` and ``length`` of the plan under the true
weights (NaN without success; STOP never counted), ``rows`` asked of the classifier so far; the last
two are what the method's planner does with the prior mean and with the true weights."""


NEEDED = "every row needs user, questions, success, cost and length"


@dataclass(frozen=True)
class Task:
    """Users ``first`` to ``last`` (not included) of a world, for one method and run.

    ``k`` and ``corruption``, the share of edges removed, are 0 for a method that asks no questions.
    """

    dataset: str
    classifier: str
    users: str
    method: str
    run: int
    first: int
    last: int
    questions: int = 0
    k: int = 0
    corruption: float = 0.0

    @property
    def world(self) -> str:
        return world_key(self.dataset, self.classifier, self.users)

    @property
    def name(self) -> str:
        """A file name."""
        parts = [self.world, self.method.replace(":", ".")]
        if self.k:
            parts += [f"k{self.k}", f"q{self.questions}", f"c{round(100 * self.corruption):03d}"]
        return "-".join([*parts, f"run{self.run}", f"{self.first:03d}to{self.last:03d}"])

    @property
    def draw(self) -> int:
        """Which edges are removed: other ones in each run, where a choice is left."""
        return self.run if 0 < self.corruption < 1 else 0

    def generator(self, user: int, *purpose: int) -> np.random.Generator:
        """Randomness of one user in this run."""
        return np.random.default_rng([self.run, user, zlib.crc32(self.method.encode()), *purpose])


@dataclass(frozen=True)
class Shared:
    """What tasks share: worlds by key, and what was trained, by :func:`asset_key`."""

    worlds: dict[str, World]
    assets: dict[AssetKey, Any]


def asset_key(task: Task, name: str) -> AssetKey:
    """What a task's trained part of this name is called."""
    return task.dataset, task.classifier, task.corruption, task.draw, name


_shared: list[Shared] = []


def share(shared: Shared) -> None:
    """Run once in every worker, before its first task."""
    _shared[:] = [shared]


def shared_here() -> Shared:
    """What this worker was given."""
    [shared] = _shared
    return shared


@dataclass(frozen=True)
class Outcome:
    """The rows of a task, and the seconds they took."""

    rows: pd.DataFrame
    seconds: float


def run_task(task: Task) -> Outcome:
    """The rows of one task."""
    shared = shared_here()
    world = shared.worlds[task.world]
    method = find_method(task.method)
    assets = {name: shared.assets[asset_key(task, name)] for name in getattr(method, "assets", ())}
    started = time.perf_counter()
    try:
        rows = method.solve(world, assets, task)
    except PearError as error:
        error.args = (f"{error} (method '{task.method}', task {task.name})",)
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise InvalidSetting(
            f"the method '{task.method}' failed in the task {task.name} ({in_words(error)}; "
            f"{Path(place.filename).name}, line {place.lineno}); fix it, or leave it out, and "
            "start again: rows of other tasks are kept"
        ) from error
    seconds = time.perf_counter() - started
    try:
        return Outcome(_table(task, world, rows), seconds)
    except PearError:
        raise
    except Exception as error:
        raise InvalidSetting(
            f"the method '{task.method}' gave rows that cannot be read in the task {task.name} "
            f"({in_words(error)}); 'solve' must return a list of dicts, {NEEDED}"
        ) from error


def _table(task: Task, world: World, rows: list[dict[str, Any]]) -> pd.DataFrame:
    known = asdict(task)
    users = np.array([row["user"] for row in rows], int)
    if set(users.tolist()) != set(range(task.first, task.last)):
        raise InvalidSetting(
            f"the method '{task.method}' gave rows of other users than {task.first} to "
            f"{task.last - 1} in the task {task.name}; each user from task.first to "
            "task.last - 1 needs one"
        )
    table = pd.DataFrame(rows).assign(
        score=world.scores[users],
        **{name: known[name] for name in COLUMNS if name in known and name != "questions"},
    )
    for name in COLUMNS:
        if name not in table:
            table[name] = 0 if name == "answered" else np.nan
    if table["success"].isna().any() or (table["success"] & table["cost"].isna()).any():
        raise InvalidSetting(
            f"the method '{task.method}' gave a row without 'success', or a success without "
            f"'cost'; {NEEDED}"
        )
    return table[list(COLUMNS)].astype(COLUMNS)


@dataclass(frozen=True)
class Material:
    """What an experiment reports on: its own rows, the worlds by key, the profile."""

    profile: Profile
    rows: pd.DataFrame
    worlds: dict[str, World]


@dataclass(frozen=True)
class Report:
    """What an experiment found: words, tables, pictures, and tidy data."""

    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    data: dict[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper: its tasks, and the report made of their rows."""

    name: str
    tasks: Callable[[Profile], list[Task]]
    report: Callable[[Material], Report]


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
