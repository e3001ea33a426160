"""What is done already, and how does it become one table, with nothing of anybody else lost?

A run keeps a folder beside its output. The first line of the journal in it says which run it
belongs to; each further line is one group of people done, written after the group's own files are
safely on disk. A line cut off by a kill is a group that is done again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from pear.errors import InvalidSetting
from pear.portfolio.beliefs import as_json
from pear.problem import NO_LIMITS, Limits, Plan
from pear.problem.people import People
from pear.problem.tables import Chunk, is_parquet

try:
    import fcntl
except ImportError:  # pragma: no cover - a system without file locks
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
OURS = re.compile(r"\.?(part|bad)-\d{7,}\.parquet(\.tmp)?|journal\.(jsonl|tmp)|lock")
"""Names of the files a run keeps in a folder of its own."""

ROWS_AT_A_TIME = 1_000
"""Rows of a row group of the output, or of one part of a folder."""

COLUMNS: dict[str, Any] = {
    "row": pa.int64(),
    "id": pa.string(),
    "decision": pa.string(),
    "verdict": pa.string(),
    "success": pa.bool_(),
    "cost": pa.float64(),
    "length": pa.int32(),
    "lower_bound": pa.float64(),
    "rows_asked": pa.int64(),
    "max_length": pa.int32(),
    "changes_per_feature": pa.int32(),
    "blocking": pa.string(),
    "start_score": pa.float64(),
    "final_score": pa.float64(),
    "steps": pa.string(),
    "start": pa.string(),
    "weights": pa.string(),
    "limits": pa.string(),
    "problem_fingerprint": pa.string(),
    "model_fingerprint": pa.string(),
}
"""Columns of the plans. ``row`` counts from 0 over all files of people. ``decision`` is
``approved`` or ``refused``, as the model decides today; ``verdict`` what is proven of the plan.
``cost``, ``length`` and ``final_score`` are empty where there is no plan; under samples of
weights, costs and bounds are means over them. ``max_length`` and ``changes_per_feature`` say which
plans the verdict is about. ``blocking`` (the limits that stand in the way), ``steps``, ``start``
(the person), ``weights`` and ``limits`` (what they said they cannot do) are JSON;
:func:`pear.portfolio.stored.plans_of` reads them."""

SCHEMA = pa.schema(list(COLUMNS.items()))

BAD_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("file", pa.string()),
        ("row_in_file", pa.int64()),
        ("id", pa.string()),
        ("reason", pa.string()),
    ]
)


COUNTS = (
    "rows", "people", "refused", "planned", "bounded", "unknown", "said", "bad", "joined_lines"
)  # fmt: skip
"""What is counted over all groups, see :class:`pear.portfolio.run.Summary`."""


@dataclass(frozen=True)
class Done:
    """A group of people, done: its plans and its bad rows as Arrow tables, and its counts."""

    number: int
    plans: Any
    bad: Any
    counts: Mapping[str, int]


class Ledger:
    """Finished groups of one run, kept in ``folder``."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.settings = json.loads(json.dumps(settings))
        self.done: dict[int, dict[str, Any]] = {}
        self._file = folder / "journal.jsonl"
        self._totals: Counter[str] = Counter()
        self._lock: TextIO | None = None
        self._begun = False

    def begin(self, restart: bool = False) -> None:
        """Go on with an earlier run if it is the same; refuse if it is another."""
        check_ours(self.folder)
        with writing(self.folder):
            self._begin(restart)

    def _begin(self, restart: bool) -> None:
        self._take_lock()
        if restart:
            for entry in self.folder.iterdir():
                if entry.name != LOCK:
                    entry.unlink()
        lines = self._lines()
        # One that has finished nothing loses nothing: its command may have been mistyped.
        if len(lines) > 1:
            self._check_same(lines[0])
            self.done = {int(line["group"]): line for line in lines[1:] if self._is_whole(line)}
        for line in self.done.values():
            self._totals.update({key: line[key] for key in COUNTS})
        # Rewritten whole, so that a line cut off by a kill never stands in front of a new one.
        kept = [self.settings, *self.done.values()]
        temporary = self._file.with_suffix(".tmp")
        _write_safely(temporary, "".join(json.dumps(line) + "\n" for line in kept), "w")
        os.replace(temporary, self._file)
        self._begun = True

    def _plans(self, group: int) -> Path:
        return self.folder / f"part-{group:07d}.parquet"

    def _bad(self, group: int) -> Path:
        return self.folder / f"bad-{group:07d}.parquet"

    def add(self, done: Done) -> None:
        """Keep a finished group: its files first, then its line."""
        with writing(self.folder):
            line = {
                "group": done.number,
                **done.counts,
                "bytes": _write_part(done.plans, self._plans(done.number)),
                "bad_bytes": _write_part(done.bad, self._bad(done.number)),
            }
            _write_safely(self._file, json.dumps(line) + "\n", "a")
        self.done[done.number] = line
        self._totals.update({key: line[key] for key in COUNTS})

    def total(self, key: str) -> int:
        """Sum of one of the counts over all finished groups."""
        return self._totals[key]

    def close(self) -> None:
        """Let another run take the folder; one in which nothing is done is removed."""
        if self._begun and not self.done:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def finish(self, output: Path, bad_file: Path) -> None:
        """Put the groups together in their order, as the output and the file of bad rows."""
        with writing(output):
            bad_file.unlink(missing_ok=True)
            if self.total("bad"):
                bad = [self._bad(group) for group in sorted(self.done) if self.done[group]["bad"]]
                _assemble(bad, bad_file, BAD_SCHEMA)
            _assemble([self._plans(group) for group in sorted(self.done)], output, SCHEMA)
            shutil.rmtree(self.folder)
        self._begun = False

    def _take_lock(self) -> None:
        """Two runs never write into one folder. The lock ends with its process."""
        self.folder.mkdir(exist_ok=True)
        if fcntl is None:
            return
        self._lock = (self.folder / LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise InvalidSetting(
                f"another run is writing to '{self.folder}'; wait for it, or give another output"
            ) from None

    def _lines(self) -> list[dict[str, Any]]:
        if not self._file.exists():
            return []
        lines = []
        for text in self._file.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                break
        return lines

    def _is_whole(self, line: Mapping[str, Any]) -> bool:
        group = int(line["group"])
        pairs = ((self._plans(group), line["bytes"]), (self._bad(group), line["bad_bytes"]))
        return all(_size(path) == size for path, size in pairs)

    def _check_same(self, found: Mapping[str, Any]) -> None:
        keys = sorted({*found, *self.settings})
        different = [key for key in keys if found.get(key) != self.settings.get(key)]
        if different:
            raise InvalidSetting(
                f"'{self.folder}' holds an unfinished run that differs in "
                f"{' and '.join(different)}; finish that one, or use --restart to discard it"
            )


def _write_safely(path: Path, text: str, mode: str) -> None:
    with path.open(mode, encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def plans_table(
    people: People, weights: Sequence[str], plans: Sequence[Plan], kept: Sequence[int]
) -> Any:
    """One row per plan; ``kept`` are the positions in ``people`` the plans belong to, and
    ``weights`` what is stated of each person's there."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for position, plan in zip(kept, plans, strict=True):
        certificate = plan.certificate
        approved = plan.success and not plan.steps
        row = {
            "row": int(people.rows[position]),
            "id": people.ids[position],
            "decision": "approved" if approved else "refused",
            "verdict": certificate.verdict,
            "success": plan.success,
            "cost": plan.cost if plan.success else None,
            "length": plan.length if plan.success else None,
            "lower_bound": certificate.lower_bound,
            "rows_asked": certificate.rows,
            "max_length": certificate.max_length,
            "changes_per_feature": certificate.max_changes_per_feature,
            "blocking": as_json(certificate.blocking),
            "start_score": plan.steps[0].score_before if plan.steps else plan.score,
            "final_score": plan.score if plan.success else None,
            "steps": as_json([_step(step) for step in plan.steps]),
            "start": as_json(dict(plan.start)),
            "weights": weights[position],
            "limits": as_json(_limits(plan.limits)),
            "problem_fingerprint": plan.problem_fingerprint,
            "model_fingerprint": plan.model_fingerprint,
        }
        for name, value in row.items():
            columns[name].append(value)
    return pa.table(columns, schema=SCHEMA)


def bad_table(bad: Iterable[tuple[int, str, str]], chunk: Chunk) -> Any:
    """Rows of a chunk without a plan, each with its file and the reason."""
    rows = [(row, *chunk.place(row), name, reason) for row, name, reason in sorted(bad)]
    return pa.table(
        {name: [row[i] for row in rows] for i, name in enumerate(BAD_SCHEMA.names)},
        schema=BAD_SCHEMA,
    )


def _limits(limits: Limits) -> dict[str, Any]:
    """The limits as plain data, without those that are none."""
    none = NO_LIMITS.to_dict()
    return {key: value for key, value in limits.to_dict().items() if value != none[key]}


def _step(step: Any) -> dict[str, Any]:
    return {
        "action": step.action,
        "argument": step.argument,
        "feature": step.feature,
        "before": step.before,
        "after": step.after,
        "cost": step.cost,
        "score_after": step.score_after,
        "words": step.words,
        "reason": step.reason,
    }


def check_output(path: Path) -> None:
    """Refuse a name whose kind we do not write."""
    if path.suffix and not is_parquet(path) and not path.name.lower().endswith(".csv"):
        raise InvalidSetting(
            f"the output '{path}' must end in .parquet or .csv, or have no ending for a folder"
        )
    if not path.parent.is_dir():
        raise InvalidSetting(f"there is no folder '{path.parent}' for the output; make it first")


def check_free(output: Path, given: tuple[Path, ...], restart: bool) -> None:
    """Refuse an output that is there already, or that would replace something that is not ours.

    ``given`` are the tables that are read; neither may lie in the other.
    """
    if output.name in ("", ".."):
        raise InvalidSetting(f"the output '{output}' must have a name of its own")
    place = output.resolve()
    for table in given:
        own = table.resolve()
        if place == own or own in place.parents or place in own.parents:
            raise InvalidSetting(
                f"the output '{output}' and the table '{table}' must not be the same place, nor "
                "one inside the other; give another output"
            )
    if not output.exists():
        return
    if not restart:
        raise InvalidSetting(f"'{output}' exists already; use --restart to replace it")
    if output.is_dir():
        if output.suffix:
            raise InvalidSetting(f"'{output}' is a folder; give another name for the file")
        check_ours(output)


def check_ours(folder: Path) -> None:
    """Refuse a folder that holds anything a run did not put there: it will be removed."""
    with writing(folder):
        others = sorted(
            entry.name
            for entry in (folder.iterdir() if folder.is_dir() else ())
            if not OURS.fullmatch(entry.name) or entry.is_dir()
        )
    if others:
        raise InvalidSetting(
            f"the folder '{folder}' holds '{others[0]}', which no run of 'pear plan' wrote; "
            "give another output, or move it away"
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A disk that is full, or a folder that may not be written to, as one clear error."""
    try:
        yield
    except OSError as error:
        raise InvalidSetting(
            f"'{path}' cannot be written ({error.strerror or error}); what is done is kept: make "
            "room or give rights, and start the same command again"
        ) from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _write_part(table: Any, path: Path) -> int:
    """Write a table in one go, if it has rows, and tell its size in bytes."""
    if not len(table):
        return 0
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as stream:
        parquet.write_table(table, stream, compression="zstd")
        stream.flush()
        os.fsync(stream.fileno())
    size = temporary.stat().st_size
    os.replace(temporary, path)
    return size


def _assemble(parts: Sequence[Path], output: Path, schema: Any) -> None:
    """Parts in their order as one file, or as a folder of them; whole or not there at all."""
    temporary = output.with_name(f".{output.name}.tmp")
    _remove(temporary)
    if output.name.lower().endswith(".csv"):
        with arrow_csv.CSVWriter(temporary, schema) as writer:
            for table in _joined(parts, schema):
                writer.write_table(table)
    elif is_parquet(output):
        with parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for table in _joined(parts, schema):
                writer.write_table(table)
    else:
        temporary.mkdir()
        for number, table in enumerate(_joined(parts, schema)):
            parquet.write_table(table, temporary / f"part-{number:07d}.parquet", compression="zstd")
        _remove(output)
    os.replace(temporary, output)


def _joined(parts: Sequence[Path], schema: Any) -> Iterator[Any]:
    """The rows of all parts in their order, about ``ROWS_AT_A_TIME`` at a time."""
    held: list[Any] = [schema.empty_table()]
    for place, part in enumerate(parts):
        if part.is_file():
            held.append(parquet.read_table(part))
        if sum(map(len, held)) >= ROWS_AT_A_TIME or place == len(parts) - 1:
            yield pa.concat_tables(held).combine_chunks()
            held = [schema.empty_table()]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
