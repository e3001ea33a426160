"""What is done already, and how does it become one table without losing anybody's files?

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from pear.errors import InvalidSetting
from pear.portfolio.plans import BAD_SCHEMA, SCHEMA
from pear.tables.reading import is_parquet
from pear.writing import replacing

try:
    import fcntl
except ImportError:  # pragma: no cover - a system without file locks
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
OURS = re.compile(r"(\.[0-9a-f]{8}-)?((part|bad)-\d{7,}\.parquet|journal\.jsonl)|lock")
"""Names of the files a run keeps in a folder of its own."""

ROWS_AT_A_TIME = 1_000
"""Rows of a row group of the output, or of one part of a folder."""

COUNTS = (
    "rows", "people", "refused", "planned", "bounded", "unknown", "said", "bad", "joined_lines"
)  # fmt: skip
"""What is counted over all groups, see :class:`Summary`."""


@dataclass(frozen=True)
class Summary:
    """A finished run, in numbers.

    ``rows`` were read; ``people`` of them understood, of whom ``refused`` were refused by the
    model and ``planned`` of those have a plan. ``bounded`` of the plans are not proved to be the
    cheapest; of those without one, ``unknown`` are not proved to have none. ``bad`` rows stand
    in ``bad_file``, if any; some of them are ``joined_lines`` lines read as one row.
    ``resumed`` rows had been done by an earlier, unfinished run. Of ``conversations`` that were
    given, ``nameless`` do not say whose they are; what ``said`` people said in them was used.
    ``beside_labels`` compares scores with the decisions in the table; ``doubts`` are of the model.
    """

    rows: int
    people: int
    refused: int
    planned: int
    bad: int
    resumed: int
    output: Path
    bad_file: Path | None
    bounded: int = 0
    unknown: int = 0
    said: int = 0
    joined_lines: int = 0
    conversations: int = 0
    nameless: int = 0
    beside_labels: str = ""
    doubts: tuple[str, ...] = ()

    @property
    def verdicts(self) -> dict[str, int]:
        """What is proved of the refused: how many have which verdict."""
        return {
            "optimal": self.planned - self.bounded,
            "bounded": self.bounded,
            "infeasible": self.refused - self.planned - self.unknown,
            "unknown": self.unknown,
        }

    def words(self) -> str:
        """The summary as sentences."""
        text = (
            f"{self.rows:,} rows: {self.people - self.refused:,} approved already, "
            f"{self.refused:,} refused, {self.planned:,} of them with a plan. "
            f"{self._proved()}Plans are in {self.output}."
        )
        if not self.people:
            text = f"{self.rows:,} rows: none could be used, and no plans were written."
        if self.conversations:
            text += self._conversation_words()
        if self.beside_labels:
            text += f" {self.beside_labels}"
        if self.resumed:
            text += f" {self.resumed:,} rows were done before."
        if self.bad_file is not None:
            text += f" {self.bad:,} rows could not be used: see {self.bad_file}."
        if self.joined_lines:
            text += (
                f" Beware: {self.joined_lines:,} lines are in bad rows of several lines, joined by "
                "a quote left open; close the quotes and plan again, or these people are lost."
            )
        return text + "".join(f" Beware: {doubt}." for doubt in self.doubts)

    def _proved(self) -> str:
        counts = self.verdicts
        text = ""
        if proved := [
            *_said(counts["optimal"], "plan is the cheapest", "plans are each the cheapest"),
            *_said(counts["infeasible"], "person has none", "people have none"),
        ]:
            text += f"Proved, among the steps considered: {', '.join(proved)}. "
        if unproved := [
            *_said(self.bounded, "plan", "plans", " may not be the cheapest (bounded)"),
            *_said(self.unknown, "person", "people", " without one may have one (unknown)"),
        ]:
            text += f"Not proved: {', '.join(unproved)}. A higher --max-rows tells more. "
        return text

    def _conversation_words(self) -> str:
        [given] = _said(self.conversations, "conversation", "conversations")
        text = f" Of {given} given, "
        if self.nameless:
            text += f"{self.nameless:,} without 'id' do not say whose they are and are not used; "
        for people in _said(self.said, "person", "people", " of the table said"):
            return text + f"what {people} in them was used."
        return text + (
            "none says anything of a person of the table: everybody was planned under the prior. "
            "Their 'id' must be the one of the column 'id', or of the one named by --id."
        )


def _said(count: int, one: str, many: str, what: str = "") -> list[str]:
    return [f"{count:,} {one if count == 1 else many}{what}"] if count else []


@dataclass(frozen=True)
class Progress:
    """How far a run is: ``done`` of about ``rows`` rows, ``resumed`` of them by an earlier run.

    ``stopping``: Ctrl-C was pressed, and the people being searched are the last.
    """

    done: int
    rows: int
    resumed: int
    planned: int
    bad: int
    stopping: bool = False


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
        # A run that finished nothing has nothing to lose: its command may have been mistyped.
        if len(lines) > 1:
            self._check_same(lines[0])
            self.done = {int(line["group"]): line for line in lines[1:] if self._is_whole(line)}
        for line in self.done.values():
            self._totals.update({key: line[key] for key in COUNTS})
        # Rewritten whole, so that a line cut off by a kill never stands in front of a new one.
        kept = [self.settings, *self.done.values()]
        with replacing(self._file) as part:
            part.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
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
            _append(self._file, json.dumps(line) + "\n")
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
        """Put the groups together in their order, as the output and the file of bad rows.

        Where no row could be used, there is no output.
        """
        with writing(output):
            bad_file.unlink(missing_ok=True)
            if self.total("bad"):
                bad = [self._bad(group) for group in sorted(self.done) if self.done[group]["bad"]]
                _assemble(bad, bad_file, BAD_SCHEMA)
            if self.total("people"):
                _assemble([self._plans(group) for group in sorted(self.done)], output, SCHEMA)
            else:
                _remove(output)
            shutil.rmtree(self.folder)
        self._begun = False

    def _take_lock(self) -> None:
        """Two runs never write into one folder. The lock is released when its process ends."""
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


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def check_output(path: Path) -> None:
    """Refuse an output whose format we do not write."""
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
    with replacing(path) as part:
        parquet.write_table(table, part, compression="zstd")
    return path.stat().st_size


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
