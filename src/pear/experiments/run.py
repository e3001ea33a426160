"""How are the tasks of experiments run, resumed, followed, and kept?

One Parquet file per task, written whole or not at all, so that a killed run goes on where it was;
the seconds it took are in the file's metadata, since they differ from run to run while rows do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.experiments.profiles import Profile
from pear.experiments.registry import find_method
from pear.experiments.tasks import COLUMNS, Outcome, Shared, Task, run_task, share
from pear.experiments.trained import prepare
from pear.parallel import run_tasks
from pear.writing import replacing

Follow = Callable[[int, int, str], None]
SECONDS = b"seconds"
DECIDING = (
    "questions",
    "iterations",
    "batch_people",
    "trained_people",
    "judges",
    "taught",
    "population",
    "generations",
)
"""Settings of a profile that a task does not carry but its rows depend on."""


class Store:
    """The folder of a run: ``rows/`` with a file per task, ``run.json`` with the settings."""

    def __init__(self, folder: Path, profile: Profile) -> None:
        self.folder, self.rows = folder, folder / "rows"
        stated = {name: asdict(profile)[name] for name in DECIDING}
        path = folder / "run.json"
        if path.is_file():
            known = _settings(path)
            differing = [name for name in DECIDING if known.get(name) != stated[name]]
            if differing:
                raise FingerprintMismatch(
                    f"'{folder}' holds a run with {differing[0]} = {known.get(differing[0])!r}, "
                    f"not {stated[differing[0]]!r}; give another folder, or the same settings"
                )
        try:
            self.rows.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_text(json.dumps(stated, indent=1), encoding="utf-8")
        except OSError as error:
            raise InvalidSetting(
                f"'output' must be a folder that can be written (got '{folder}': "
                f"{error.strerror or error}); give another"
            ) from error

    def path(self, task: Task) -> Path:
        return self.rows / f"{task.name}.parquet"

    def has(self, task: Task) -> bool:
        return self.path(task).is_file()

    def write(self, task: Task, outcome: Outcome) -> None:
        """Keep a task's rows; a file is either whole or absent."""
        table = pa.Table.from_pandas(outcome.rows, preserve_index=False)
        metadata = {**(table.schema.metadata or {}), SECONDS: repr(outcome.seconds).encode()}
        with replacing(self.path(task)) as part:
            pq.write_table(table.replace_schema_metadata(metadata), part)

    def read(self, tasks: Iterable[Task]) -> pd.DataFrame:
        """The rows of tasks, in their order; ``seconds`` per user of the task are added."""
        parts = []
        for task in dict.fromkeys(tasks):
            if self.has(task):
                table, seconds = _read(self.path(task))
                part = table.to_pandas()
                parts.append(part.assign(seconds=seconds / (task.last - task.first)))
        empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
        return pd.concat(parts, ignore_index=True) if parts else empty.assign(seconds=0.0)


def check_page(page: Path) -> None:
    """Refuse a page that could not be written when the work is done."""
    for folder in (page.parent / "images", page.parent / "images" / "results"):
        if folder.exists() and not folder.is_dir():
            raise InvalidSetting(
                f"the figures of the page '{page}' go into '{folder}', which is a file; "
                "give another 'document'"
            )
    there = page.exists()
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a", encoding="utf-8"):
            pass
        if not there:
            page.unlink()
    except OSError as error:
        raise InvalidSetting(
            f"'document' must be a file that can be written (got '{page}': "
            f"{error.strerror or error}); give another"
        ) from error


def _settings(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        known = " ".join(str(error).split())
    if not isinstance(known, dict):
        raise InvalidData(
            f"'{path}' must hold the settings of a run as a JSON object (got {known!r}); give "
            "another folder, or, if its rows are of the same settings, delete this file"
        )
    return known


def _read(path: Path) -> tuple[pa.Table, float]:
    try:
        table = pq.read_table(path)
        return table, float(table.schema.metadata[SECONDS])
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise InvalidData(
            f"'{path}' holds no rows of a task ({' '.join(str(error).split())}); delete it and "
            "start the run again, which makes it anew"
        ) from error


@dataclass(frozen=True)
class Finished:
    """A run's folder, its tasks (those of all experiments asked for) and its worlds."""

    store: Store
    tasks: tuple[Task, ...]
    shared: Shared


def make_tasks(
    profile: Profile,
    methods: Iterable[str],
    *,
    classifier: str = "network",
    user_sets: Iterable[str] | None = None,
    ks: Iterable[int] = (2,),
    corruptions: Iterable[float] = (0.0,),
    runs: int | None = None,
) -> list[Task]:
    """Every chunk of users for every run, method and world of a profile.

    A method that a run does not change is run once.
    """
    tasks = []
    people = profile.people(classifier)
    for name in methods:
        method = find_method(name)
        asks = bool(getattr(method, "asks", False))
        once = str(getattr(method, "reseeds", "")).startswith("nothing")
        seeds = range(profile.seed, profile.seed + (1 if once else runs or profile.runs))
        tasks += [
            Task(
                dataset,
                classifier,
                users,
                name,
                run,
                first,
                min(first + profile.chunk, people),
                profile.questions if asks else 0,
                k if asks else 0,
                corruption if asks else 0.0,
            )
            for dataset in profile.datasets
            for users in (profile.user_sets if user_sets is None else user_sets)
            for run in seeds
            for k in (tuple(ks) if asks else (0,))
            for corruption in (tuple(corruptions) if asks else (0.0,))
            for first in range(0, people, profile.chunk)
        ]
    return tasks


def run_experiments(
    tasks: Iterable[Task],
    profile: Profile,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    follow: Follow | None = None,
    run: bool = True,
) -> Finished:
    """Run what is not in the folder yet; rows are written as tasks end.

    With ``run=False`` nothing is run, and what is there already stands.
    """
    follow = follow or _silent
    store = Store(folder, profile)
    wanted = list(dict.fromkeys(tasks))
    if not wanted:
        raise InvalidSetting("there is nothing to run; name at least one method and data set")
    missing = [task for task in wanted if run and not store.has(task)]
    shared = prepare(wanted, missing, profile, lambda note: follow(0, len(missing), note), workers)
    wanted = [fitted for task in wanted if (fitted := fit(task, shared))]
    missing = [task for task in wanted if run and not store.has(task)]
    follow(0, len(missing), "running")
    results = run_tasks(
        run_task,
        missing,
        workers=workers,
        cluster=cluster,
        initializer=share,
        initargs=(shared,),
    )
    for done, (index, outcome) in enumerate(results, start=1):
        store.write(missing[index], outcome)
        follow(done, len(missing), missing[index].name)
    return Finished(store, tuple(wanted), shared)


def fit(task: Task, shared: Shared) -> Task | None:
    """The task with the users its world has; None when it has none of them."""
    people = len(shared.worlds[task.world].states)
    if task.first >= people:
        return None
    return replace(task, last=min(task.last, people))


def _silent(done: int, total: int, note: str) -> None:
    pass
