"""What has a run done already, so that a killed one goes on where it stopped?

A folder beside the output. Its first line says which run it belongs to; each further line is
one finished chunk, written after the chunk's own files are safely on disk. A line cut off by a
kill is the chunk that is done again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from pear.errors import InvalidSetting
from pear.portfolio.output import write_part
from pear.portfolio.places import check_ours, writing
from pear.portfolio.worker import Result

try:
    import fcntl
except ImportError:  # pragma: no cover - a system without file locks
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
COUNTS = (
    "rows", "people", "refused", "planned", "bounded", "unknown", "said", "bad", "joined_lines"
)  # fmt: skip
"""What is counted over all chunks, see :class:`pear.portfolio.run.Summary`."""


class Journal:
    """Finished chunks of one run, kept in ``folder``."""

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
            self.done = {int(line["chunk"]): line for line in lines[1:] if self._is_whole(line)}
        for line in self.done.values():
            self._totals.update({key: line[key] for key in COUNTS})
        # Rewritten whole, so that a line cut off by a kill never stands in front of a new one.
        kept = [self.settings, *self.done.values()]
        temporary = self._file.with_suffix(".tmp")
        _write_safely(temporary, "".join(json.dumps(line) + "\n" for line in kept), "w")
        os.replace(temporary, self._file)
        self._begun = True

    def plans(self, chunk: int) -> Path:
        """Where the plans of a chunk stand."""
        return self.folder / f"part-{chunk:07d}.parquet"

    def bad(self, chunk: int) -> Path:
        """Where the bad rows of a chunk stand."""
        return self.folder / f"bad-{chunk:07d}.parquet"

    def add(self, result: Result, rows: int) -> None:
        """Keep a finished chunk: its files first, then its line."""
        with writing(self.folder):
            self._add(result, rows)

    def _add(self, result: Result, rows: int) -> None:
        line = {
            "chunk": result.chunk,
            "rows": rows,
            "bad": len(result.bad),
            **{key: getattr(result, key) for key in COUNTS if key not in ("rows", "bad")},
            "bytes": write_part(result.plans, self.plans(result.chunk)),
            "bad_bytes": write_part(result.bad, self.bad(result.chunk)),
        }
        _write_safely(self._file, json.dumps(line) + "\n", "a")
        self.done[result.chunk] = line
        self._totals.update({key: line[key] for key in COUNTS})

    def total(self, key: str) -> int:
        """Sum of one of the counts over all finished chunks."""
        return self._totals[key]

    def close(self) -> None:
        """Let another run take the folder; one in which nothing is done is removed."""
        if self._begun and not self.done:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def end(self) -> None:
        """Everything is in the output: the folder is of no more use."""
        shutil.rmtree(self.folder)
        self._begun = False
        self.close()

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
        chunk = int(line["chunk"])
        pairs = ((self.plans(chunk), line["bytes"]), (self.bad(chunk), line["bad_bytes"]))
        return all(path.is_file() and path.stat().st_size == size for path, size in pairs)

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
