"""How are rows kept, so that a killed run goes on where it was?

One Parquet file per task, written whole or not at all; the seconds it took are in the
file's metadata, since they differ from run to run while rows do not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.experiments.profiles import Profile
from pear.experiments.tasks import COLUMNS, Outcome, Task

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
            unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
            unfinished.write_text(json.dumps(stated, indent=1), encoding="utf-8")
            os.replace(unfinished, path)
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
        unfinished = self.path(task).with_suffix(f".{os.getpid()}.unfinished")
        pq.write_table(table.replace_schema_metadata(metadata), unfinished)
        os.replace(unfinished, self.path(task))

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
