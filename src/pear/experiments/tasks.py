"""What is one piece of work of an experiment, and what rows does it give?

A task is plain data; its rows depend on it and on the world alone, not on the worker.
"""

from __future__ import annotations

import time
import traceback
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.errors import InvalidSetting, PearError
from pear.experiments.registry import find_method, in_words
from pear.experiments.worlds import World, world_key

AssetKey = tuple[str, str, float, str]
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

    ``k`` and ``corruption`` are 0 for a method that asks no questions.
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

    def generator(self, user: int, *purpose: int) -> np.random.Generator:
        """Randomness of one user in this run."""
        return np.random.default_rng([self.run, user, zlib.crc32(self.method.encode()), *purpose])


@dataclass(frozen=True)
class Shared:
    """What tasks share: worlds by key, and what was trained, by :func:`asset_key`."""

    worlds: dict[str, World]
    assets: dict[AssetKey, Any]


def asset_key(task: Task, name: str) -> AssetKey:
    """Data set, classifier, share of edges removed and name of a trained part."""
    return task.dataset, task.classifier, task.corruption, name


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
