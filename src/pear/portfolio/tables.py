"""Where do the rows of a portfolio come from, a chunk at a time?

CSV (also gzipped), Parquet, or a folder of them. Chunks are cut by the number of rows alone,
across files, so that chunk 17 holds the same rows in every run. At most one chunk stands in
memory. A CSV is read as text and typed by the features of the problem, value by value: one
wrong cell never changes how its neighbours are read.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from pear.errors import InvalidData
from pear.problem.features import FeatureSpace

CSV_ENDINGS = (".csv", ".csv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
PIECE = 1_024
"""Rows read at a time."""

Piece = tuple[pd.DataFrame, "list[str | None]"]
"""Rows as they are read, and for each the reason why it could not be, or None."""


@dataclass(frozen=True)
class Chunk:
    """Some rows that follow each other.

    ``first`` is the number of the first row, counted from 0 over all files. ``frame`` holds
    the rows that could be read, indexed by their number; ``broken`` the reason for the others.
    """

    number: int
    first: int
    size: int
    frame: pd.DataFrame
    broken: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """The files of a table, in the order they are read, with the columns they share."""

    path: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...]
    rows: int
    """Rows in all; for CSV the number of lines, which is more where a cell holds a line break."""
    digest: str
    """Hash of the content of all files in their order."""

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Chunks of ``size`` rows; the last one may be smaller."""
        number = first = 0
        held: list[Piece] = []
        for piece in self._pieces(min(size, PIECE)):
            held.append(piece)
            while sum(len(reasons) for _, reasons in held) >= size:
                frame, reasons = _joined(held)
                yield _chunk(number, first, frame.iloc[:size], reasons[:size])
                held = [(frame.iloc[size:], reasons[size:])]
                number, first = number + 1, first + size
        frame, reasons = _joined(held)
        if reasons:
            yield _chunk(number, first, frame, reasons)

    def _pieces(self, size: int) -> Iterator[Piece]:
        for file in self.files:
            read = _csv_pieces if is_csv(file) else _parquet_pieces
            yield from read(file, self.columns, size)


def _joined(pieces: list[Piece]) -> Piece:
    frames = [frame for frame, _ in pieces if len(frame)]
    if len(frames) < 2:
        frame = frames[0] if frames else pd.DataFrame()
    else:
        frame = pd.concat([frame.astype(object) for frame in frames], ignore_index=True)
    return frame, [reason for _, reasons in pieces for reason in reasons]


def _chunk(number: int, first: int, frame: pd.DataFrame, reasons: list[str | None]) -> Chunk:
    frame = frame.set_axis(pd.RangeIndex(first, first + len(reasons)), axis=0)
    broken = {first + i: reason for i, reason in enumerate(reasons) if reason is not None}
    return Chunk(number, first, len(reasons), frame.drop(index=list(broken)), broken)


def is_csv(path: Path) -> bool:
    """Whether a file is a CSV by its name.

    >>> is_csv(Path("people.csv.gz")), is_csv(Path("people.parquet"))
    (True, False)
    """
    return path.name.lower().endswith(CSV_ENDINGS)


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file by its name."""
    return path.name.lower().endswith(PARQUET_ENDINGS)


def open_table(path: str | Path) -> Source:
    """The table at a path, after a look at every file of it: nothing starts on a broken one."""
    place = Path(path)
    if place.is_dir():
        files = tuple(
            file
            for file in sorted(place.iterdir())
            if file.is_file() and not file.name.startswith((".", "_")) and _known(file)
        )
        if not files:
            raise InvalidData(f"the folder '{place}' holds no .csv, .csv.gz or .parquet file")
    elif place.is_file():
        if not _known(place):
            raise InvalidData(
                f"'{place}' must be a .csv, .csv.gz or .parquet file, or a folder of them"
            )
        files = (place,)
    else:
        raise InvalidData(f"there is no file or folder '{place}'")
    columns: tuple[str, ...] | None = None
    rows, digest = 0, hashlib.sha256()
    for file in files:
        own, count = _csv_header(file, digest) if is_csv(file) else _parquet_header(file, digest)
        if columns is not None and set(own) != set(columns):
            differing = ", ".join(sorted(set(own) ^ set(columns)))
            raise InvalidData(
                f"'{file.name}' and '{files[0].name}' must have the same columns "
                f"(only one has: {differing}); put them in separate folders"
            )
        columns = columns or own
        rows += count
    return Source(place, files, columns or (), rows, digest.hexdigest())


def require_columns(source: Source, space: FeatureSpace) -> None:
    """Refuse a table that lacks columns the problem needs."""
    absent = [
        feature.name
        for feature in space.features
        if feature.name not in source.columns and feature.missing is None
    ]
    if absent:
        raise InvalidData(
            f"'{source.path}' lacks the columns {', '.join(absent)}; it has "
            f"{', '.join(source.columns)}. Rename its columns, or declare 'missing' in the problem"
        )


def _known(file: Path) -> bool:
    return is_csv(file) or is_parquet(file)


def _csv_header(file: Path, digest: Any) -> tuple[tuple[str, ...], int]:
    lines, last = 0, b"\n"
    with _reading(file), file.open("rb") as raw:
        while block := raw.read(1 << 20):
            digest.update(block)
    with _reading(file), _binary(file) as stream:
        while block := stream.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    with _reading(file), _text(file) as text:
        header = next(csv.reader(text), [])
    if not header:
        raise InvalidData(f"'{file}' is empty; its first line must name the columns")
    return _once(file, header), lines - 1 + (last != b"\n")


def _parquet_header(file: Path, digest: Any) -> tuple[tuple[str, ...], int]:
    import pyarrow.parquet as parquet

    with _reading(file):
        with file.open("rb") as raw:
            while block := raw.read(1 << 20):
                digest.update(block)
        with parquet.ParquetFile(file) as opened:
            return _once(file, opened.schema_arrow.names), int(opened.metadata.num_rows)


def _once(file: Path, columns: list[str]) -> tuple[str, ...]:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise InvalidData(f"'{file}' has the column '{twice[0]}' twice; rename or drop one")
    return tuple(columns)


def _csv_pieces(file: Path, columns: tuple[str, ...], size: int) -> Iterator[Piece]:
    with _reading(file), _text(file) as text:
        reader = csv.reader(text)
        header = next(reader)
        lines = (cells for cells in reader if cells)
        while rows := list(islice(lines, size)):
            reasons = [
                None
                if len(cells) == len(header)
                else f"the line has {len(cells)} cells and the header {len(header)}"
                for cells in rows
            ]
            whole = [
                cells if reason is None else [""] * len(header)
                for cells, reason in zip(rows, reasons, strict=True)
            ]
            yield pd.DataFrame(whole, columns=header, dtype=object)[list(columns)], reasons


def _parquet_pieces(file: Path, columns: tuple[str, ...], size: int) -> Iterator[Piece]:
    import pyarrow.parquet as parquet

    with _reading(file), parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=size, columns=list(columns)):
            frame = batch.to_pandas(ignore_metadata=True)[list(columns)]
            yield frame, [None] * len(frame)


def _binary(file: Path) -> Any:
    return gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb")


def _text(file: Path) -> Any:
    # A byte that is no UTF-8 spoils its own cell, not the file.
    return io.TextIOWrapper(_binary(file), encoding="utf-8-sig", errors="replace", newline="")


class _reading:
    """Any failure to read a file, as one clear error."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> None:
        csv.field_size_limit(1 << 24)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, (OSError, EOFError, zlib.error, csv.Error)):
            raise _unreadable(self.file, error) from error
        if error is not None and type(error).__module__.startswith("pyarrow"):
            raise _unreadable(self.file, error) from error


def _unreadable(file: Path, error: Exception) -> InvalidData:
    return InvalidData(
        f"'{file}' cannot be read ({error}); it may be cut off: write or copy it again"
    )


def typed(frame: pd.DataFrame, space: FeatureSpace) -> pd.DataFrame:
    """Text cells of a CSV as values: numbers where a feature is one, empty cells as missing.

    What is no number stays text, so that its row alone is refused with what it says.

    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("age", "integer"),))
    >>> typed(pd.DataFrame({"age": ["39", "old", ""]}, dtype=object), space)["age"].tolist()
    [39, 'old', None]
    """
    columns: dict[str, Any] = {}
    for name in frame.columns:
        cells = frame[name].tolist()
        number = name in space.names and space[name].is_number
        values = [_cell(cell, number) if isinstance(cell, str) else cell for cell in cells]
        columns[name] = pd.Series(values, index=frame.index, dtype=object)
    return pd.DataFrame(columns, index=frame.index)


def _cell(text: str, number: bool) -> Any:
    stripped = text.strip()
    if not stripped:
        return None
    if not number:
        return stripped
    for convert in (int, float):
        try:
            # Python reads 1_000 as a number; a bank's export never means that.
            return convert(stripped) if "_" not in stripped else text
        except ValueError:
            continue
    return text
