"""How are the tasks of experiments run, resumed, followed, and kept?

One Parquet file per task, written whole or not at all, so that a killed run goes on where it was;
the seconds it took and the version of the code are in the file's metadata, since they differ from
run to run while rows do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting, PearError
from pear.experiments.experiment import (
    COLUMNS,
    AssetKey,
    Outcome,
    Shared,
    Task,
    build_world,
    find_method,
    run_task,
    share,
    shared_here,
)
from pear.experiments.profiles import SLOW, Profile
from pear.experiments.trained import (
    assets_of,
    at_hand,
    make_asset,
    seen_world,
    still_to_make,
    teachable,
    teacher_of,
)
from pear.experiments.worlds import World, world_key
from pear.parallel import run_tasks, sendable
from pear.writing import replacing

Follow = Callable[[int, int, str], None]
SECONDS, COMMIT = b"seconds", b"commit"
CONVERSATIONS = ["dataset", "classifier", "users", "method", "k", "corruption", "run"]
"""What the rows of the same users and another task differ in."""
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
    """The folder of a run: ``rows/`` with a file per task, ``run.json`` with the settings.

    ``kept`` are rows that an earlier report left (:func:`keep_rows`): reports read from them what
    the folder does not have, and nothing is left out of a run because of them.
    """

    def __init__(self, folder: Path, profile: Profile, kept: pd.DataFrame | None = None) -> None:
        self.folder, self.rows, self.commit = folder, folder / "rows", code_version()
        self.kept = {} if kept is None else dict(iter(kept.groupby(CONVERSATIONS)))
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

    def kept_rows(self, task: Task) -> pd.DataFrame | None:
        """The rows of a task that an earlier report left, where all its users are there."""
        rows = self.kept.get(tuple(asdict(task)[name] for name in CONVERSATIONS))
        if rows is None:
            return None
        rows = rows[rows["user"].between(task.first, task.last - 1)]
        whole = rows["user"].nunique() == task.last - task.first
        return rows if whole and rows["questions"].max() == task.questions else None

    def knows(self, task: Task) -> bool:
        """Whether a report has the rows of a task."""
        return self.has(task) or self.kept_rows(task) is not None

    def write(self, task: Task, outcome: Outcome) -> None:
        """Keep a task's rows; a file is either whole or absent."""
        table = pa.Table.from_pandas(outcome.rows, preserve_index=False)
        metadata = {
            **(table.schema.metadata or {}),
            SECONDS: repr(outcome.seconds).encode(),
            COMMIT: self.commit.encode(),
        }
        with replacing(self.path(task)) as part:
            pq.write_table(table.replace_schema_metadata(metadata), part)

    def read(self, tasks: Iterable[Task]) -> pd.DataFrame:
        """The rows of tasks, in their order; ``seconds`` per user of the task and the ``commit``
        of the code are added."""
        parts = []
        for task in dict.fromkeys(tasks):
            if self.has(task):
                table, seconds = _read(self.path(task))
                commit = (table.schema.metadata.get(COMMIT) or b"").decode()
                each = seconds / (task.last - task.first)
                parts.append(table.to_pandas().assign(seconds=each, commit=commit))
            elif (rows := self.kept_rows(task)) is not None:
                parts.append(rows)
        empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
        nothing = empty.assign(seconds=0.0, commit="")
        return pd.concat(parts, ignore_index=True) if parts else nothing


def keep_rows(rows: pd.DataFrame, path: Path) -> None:
    """Leave the rows of a report in one small file, from which it can be made again: those after
    the last question, and where regret is drawn those after each."""
    last = rows.groupby(CONVERSATIONS)["questions"].transform("max")
    drawn = (rows["classifier"] == "network") & (rows["users"] == "all") & (rows["corruption"] == 0)
    small = rows[(rows["questions"] == last) | drawn].drop_duplicates(
        [*CONVERSATIONS, "user", "questions"]
    )
    kinds = {"str": "category", "int64": "int16", "float64": "float32", "bool": "bool"}
    exact = {"corruption": "float64", "commit": "category", "seconds": "float32"}
    types = {name: kinds[kind] for name, kind in COLUMNS.items()} | exact
    with replacing(path) as part:
        small.astype(types).to_parquet(part, index=False, compression="zstd")


def kept_rows(path: Path) -> pd.DataFrame | None:
    """The rows that a report left, None where there are none."""
    if not path.is_file():
        return None
    try:
        return pd.read_parquet(path).astype(COLUMNS | {"commit": "str", "seconds": "float64"})
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise InvalidData(
            f"'{path}' holds no rows of a report ({' '.join(str(error).split())}); delete it"
        ) from error


def code_version() -> str:
    """The commit of the code that runs: ``PEAR_COMMIT``, else what git says of its folder."""
    if told := os.environ.get("PEAR_COMMIT"):
        return told
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        here = Path(__file__).parent
        found = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


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
    """A run's folder, its tasks (those of all experiments asked for) and its worlds; ``late``
    when its time was up before all was done."""

    store: Store
    tasks: tuple[Task, ...]
    shared: Shared
    late: bool = False


def make_tasks(
    profile: Profile,
    methods: Iterable[str],
    *,
    classifier: str = "network",
    user_sets: Iterable[str] | None = None,
    ks: Iterable[int] = (2,),
    corruptions: Iterable[float] = (0.0,),
    runs: int | None = None,
    users: int | None = None,
) -> list[Task]:
    """Every chunk of users for every run, method and world of a profile.

    A method that a run does not change is run once. ``users`` are at most so many of each set.
    """
    tasks = []
    people = min(profile.people(classifier), users or profile.users)
    for name in methods:
        method = find_method(name)
        asks = bool(getattr(method, "asks", False))
        size = profile.chunk if name not in SLOW else max(1, profile.chunk // 3)
        once = str(getattr(method, "reseeds", "")).startswith("nothing")
        count = 1 if once else runs or profile.runs
        seeds = range(profile.seed, profile.seed + count)
        tasks += [
            Task(
                dataset,
                classifier,
                kind,
                name,
                run,
                first,
                min(first + size, people),
                profile.questions if asks else 0,
                k if asks else 0,
                corruption if asks else 0.0,
            )
            for dataset in profile.datasets
            for kind in (profile.user_sets if user_sets is None else user_sets)
            for run in seeds
            for k in (tuple(ks) if asks else (0,))
            for corruption in (tuple(corruptions) if asks else (0.0,))
            for first in range(0, people, size)
        ]
    return tasks


@dataclass(frozen=True)
class Work:
    """What a worker is given: a task, or a trained part to make for tasks to come."""

    profile: Profile
    task: Task | None = None
    part: AssetKey | None = None

    @property
    def words(self) -> str:
        return self.task.name if self.task is not None else self.source

    @property
    def source(self) -> str:
        """What fails as a whole when this fails: a method, or the making of a part."""
        if self.task is not None:
            return self.task.method
        return f"training {' '.join(str(value) for value in self.part or () if value)}"


def do_work(work: Work) -> Any:
    """The outcome of a task, the part made, or the error of ours that says why there is none."""
    try:
        return _done(work)
    except PearError as error:
        return sendable(error)


def _done(work: Work) -> Any:
    if work.task is not None:
        return run_task(work.task)
    assert work.part is not None
    shared, (_, _, corruption, draw, name) = shared_here(), work.part
    world = seen_world(_world_of(work.part, shared.worlds), corruption, draw)
    teacher = teacher_of(work.part)
    policy = None if teacher is None else shared.assets[teacher]
    return make_asset(world, name, work.profile, policy)


def run_experiments(
    tasks: Iterable[Task],
    profile: Profile,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    follow: Follow | None = None,
    run: bool = True,
    minutes: float | None = None,
    kept: pd.DataFrame | None = None,
) -> Finished:
    """Run what is not in the folder yet; rows are written as tasks end.

    First run of everything before the second, and slow methods last within each, so that a run
    that is stopped, or whose ``minutes`` are up, has done what is worth most. A method that fails
    is not tried again, and its error is raised when the others are done. With ``run=False``
    nothing is run, and what is there already stands. ``kept`` are rows that only reports read.
    """
    follow = follow or _silent
    until = None if minutes is None else time.monotonic() + 60 * minutes
    store = Store(folder, profile, kept)
    wanted = list(dict.fromkeys(tasks))
    if not wanted:
        raise InvalidSetting("there is nothing to run; name at least one method and data set")
    worlds: dict[str, World] = {}
    for task in wanted:
        if task.world not in worlds:
            follow(0, len(wanted), f"preparing {task.world}")
            worlds[task.world] = build_world(task.dataset, task.classifier, task.users)
    shared = Shared(worlds, {})
    wanted = [fitted for task in wanted if (fitted := fit(task, shared))]
    missing = [task for task in wanted if run and not store.has(task)]
    missing.sort(key=lambda task: (task.run, task.method in SLOW))
    _fetch(missing, shared, profile)
    total = len(missing) + len(still_to_make(missing, shared.assets))
    done = 0
    failed: dict[str, Exception] = {}
    follow(done, total, "running")
    while (ready := _ready(missing, shared, profile, failed)) and not _late(until):
        begun: list[Work] = []

        def in_time(ready: list[Work], begun: list[Work] = begun) -> Iterator[Work]:
            # Until all parts are made: what had to wait for them comes before what follows here.
            parts = [work for work in ready if work.part is not None]
            for work in ready:
                ended = [one.part in shared.assets or one.source in failed for one in parts]
                if _late(until) or (parts and all(ended)):
                    return
                if work.source not in failed:
                    begun.append(work)
                    yield work

        results = run_tasks(
            do_work,
            in_time(ready),
            workers=workers,
            cluster=cluster,
            initializer=share,
            initargs=(Shared(worlds, dict(shared.assets)),),
        )
        for index, result in results:
            work = begun[index]
            if isinstance(result, Exception):
                failed[work.source] = result
            elif work.task is not None:
                store.write(work.task, result)
            elif work.part is not None:
                shared.assets[work.part] = result
            done += 1
            follow(done, total, work.words)
            if _late(until):
                break
        missing = [task for task in missing if not store.has(task)]
    if failed:
        raise next(iter(failed.values()))
    return Finished(store, tuple(wanted), shared, late=bool(missing))


def _fetch(missing: list[Task], shared: Shared, profile: Profile) -> None:
    """What need not be made, because it is in the cache, or is settings."""
    for key in still_to_make(missing, ()):
        found = at_hand(key, _world_of(key, shared.worlds), profile)
        if found is not None:
            shared.assets[key] = found


def _ready(
    missing: list[Task], shared: Shared, profile: Profile, failed: Collection[str]
) -> list[Work]:
    """What can be begun: parts first, since others wait for them, then tasks."""
    parts = still_to_make(missing, shared.assets)
    making = [Work(profile, part=key) for key in parts if teachable(key, shared.assets)]
    able = [task for task in missing if all(key in shared.assets for key in assets_of(task))]
    work = making + [Work(profile, task=task) for task in able]
    return [one for one in work if one.source not in failed]


def _world_of(key: AssetKey, worlds: dict[str, World]) -> World:
    start = world_key(key[0], key[1], "")
    return next(world for name, world in worlds.items() if name.startswith(start))


def _late(until: float | None) -> bool:
    return until is not None and time.monotonic() > until


def fit(task: Task, shared: Shared) -> Task | None:
    """The task with the users its world has; None when it has none of them."""
    people = len(shared.worlds[task.world].states)
    if task.first >= people:
        return None
    return replace(task, last=min(task.last, people))


def _silent(done: int, total: int, note: str) -> None:
    pass
