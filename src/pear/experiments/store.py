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

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pear.errors import FingerprintMismatch
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
        self.rows.mkdir(parents=True, exist_ok=True)
        stated = {name: asdict(profile)[name] for name in DECIDING}
        path = folder / "run.json"
        if path.is_file():
            known = json.loads(path.read_text())
            differing = [name for name in DECIDING if known.get(name) != stated[name]]
            if differing:
                raise FingerprintMismatch(
                    f"'{folder}' holds a run with {differing[0]} = {known.get(differing[0])!r}, "
                    f"not {stated[differing[0]]!r}; give another folder, or the same settings"
                )
        path.write_text(json.dumps(stated, indent=1))

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
                table = pq.read_table(self.path(task))
                seconds = float(table.schema.metadata[SECONDS])
                part = table.to_pandas()
                parts.append(part.assign(seconds=seconds / (task.last - task.first)))
        empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
        return pd.concat(parts, ignore_index=True) if parts else empty.assign(seconds=0.0)
