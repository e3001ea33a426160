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
import re
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
OTHER_TABLES = (".xlsx", ".xls", ".ods", ".tsv", ".json", ".jsonl", ".feather", ".arrow", ".orc",
                ".avro", ".zip", ".gz", ".bz2", ".xz", ".zst")  # fmt: skip
"""Endings of files that may well hold people, and that we do not read."""
PIECE = 1_024
"""Rows read at a time."""

DECIMAL = re.compile(r"^\s*(-?\d+),(\d+)\s*$")

Piece = tuple[pd.DataFrame, "list[str | None]"]
"""Rows as they are read, and for each the reason why it could not be, or None."""


class JoinedLines(str):
    """Why a row could not be read whose cells run over several lines: people may be in them."""

    lines: int

    def __new__(cls, reason: str, lines: int = 1) -> JoinedLines:
        made = super().__new__(cls, reason)
        made.lines = lines
        return made


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
    starts: tuple[tuple[int, str], ...] = ()
    """Files these rows are from: the number of each file's first row, and its name."""

    def place(self, row: int) -> tuple[str, int]:
        """The file a row is from, and its number in that file, from 0.

        >>> chunk = Chunk(2, 4, 2, pd.DataFrame(), starts=((3, "a.csv"), (5, "b.csv")))
        >>> chunk.place(4), chunk.place(5)
        (('a.csv', 1), ('b.csv', 0))
        """
        first, name = max((start for start in self.starts if start[0] <= row), default=(0, ""))
        return name, row - first


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
        number = first = read = 0
        held: list[Piece] = []
        starts: list[tuple[int, str]] = []
        for file, piece in self._pieces(min(size, PIECE)):
            if not starts or starts[-1][1] != file.name:
                starts.append((read, file.name))
            held.append(piece)
            read += len(piece[1])
            while read - first >= size:
                frame, reasons = _joined(held)
                yield _chunk(number, first, frame.iloc[:size], reasons[:size], starts)
                held = [(frame.iloc[size:], reasons[size:])]
                number, first = number + 1, first + size
        frame, reasons = _joined(held)
        if reasons:
            yield _chunk(number, first, frame, reasons, starts)

    def _pieces(self, size: int) -> Iterator[tuple[Path, Piece]]:
        for file in self.files:
            read = _csv_pieces if is_csv(file) else _parquet_pieces
            for piece in read(file, self.columns, size):
                yield file, piece


def _joined(pieces: list[Piece]) -> Piece:
    frames = [frame for frame, _ in pieces if len(frame)]
    if len(frames) < 2:
        frame = frames[0] if frames else pd.DataFrame()
    else:
        frame = pd.concat([frame.astype(object) for frame in frames], ignore_index=True)
    return frame, [reason for _, reasons in pieces for reason in reasons]


def _chunk(
    number: int,
    first: int,
    frame: pd.DataFrame,
    reasons: list[str | None],
    starts: list[tuple[int, str]],
) -> Chunk:
    before = max((start for start in starts if start[0] <= first), default=(first, ""))
    inside = (start for start in starts if first < start[0] < first + len(reasons))
    frame = frame.set_axis(pd.RangeIndex(first, first + len(reasons)), axis=0)
    broken = {first + i: reason for i, reason in enumerate(reasons) if reason is not None}
    kept = frame.drop(index=list(broken))
    return Chunk(number, first, len(reasons), kept, broken, (before, *inside))


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
        files = _files_in(place)
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
    absent = [name for name in space.names if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{source.path}' lacks the columns {', '.join(absent)}; it has "
            f"{', '.join(source.columns)}. Rename its columns, or add empty ones"
        )


def _known(file: Path) -> bool:
    return is_csv(file) or is_parquet(file)


def _files_in(folder: Path) -> tuple[Path, ...]:
    """The tables of a folder by name; people in a file we would pass over are never lost."""
    with _reading(folder):
        entries = [e for e in sorted(folder.iterdir()) if not e.name.startswith((".", "_"))]
    for entry in entries:
        if entry.is_dir() or (not _known(entry) and entry.suffix.lower() in OTHER_TABLES):
            raise InvalidData(
                f"the folder '{folder}' holds '{entry.name}', which is not read; move it away, or "
                "put its people into .csv, .csv.gz or .parquet files of the folder itself"
            )
    files = tuple(entry for entry in entries if _known(entry))
    if not files:
        raise InvalidData(f"the folder '{folder}' holds no .csv, .csv.gz or .parquet file")
    return files


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
        _, header = _open_csv(text)
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
        reader, header = _open_csv(text)
        lines = _csv_rows(reader, len(header))
        while rows := list(islice(lines, size)):
            frame = pd.DataFrame([cells for cells, _ in rows], columns=header, dtype=object)
            yield frame[list(columns)], [reason for _, reason in rows]


def _open_csv(text: Any) -> tuple[Any, list[str]]:
    """A reader past the header, whose most frequent separator it uses, and the header."""
    first = text.readline()
    text.seek(0)
    reader = csv.reader(text, delimiter=max(",;\t", key=first.count))
    return reader, [name.strip() for name in next(reader, [])]


def _csv_rows(reader: Any, width: int) -> Iterator[tuple[list[str], str | None]]:
    """Cells of each line, and what is wrong with it or None; empty lines are passed over."""
    # Where ';' parts the columns, a comma stands before the decimals.
    separator = reader.dialect.delimiter
    commas = separator == ";"
    last = reader.line_num
    for cells in reader:
        first, last = last + 1, reader.line_num
        if not cells:
            continue
        joined = f'; lines {first} to {last} were read as one: close the quote (") in them'
        if last > first and width > 2 and _swallowed(cells, width, separator):
            reason = f"a cell holds what look like further rows{joined}"
            yield [""] * width, JoinedLines(reason, last - first + 1)
            continue
        if len(cells) == width:
            yield [DECIMAL.sub(r"\1.\2", c) for c in cells] if commas else cells, None
            continue
        reason = f"line {first} has {len(cells)} cells and the header {width}"
        if last > first:
            reason = JoinedLines(reason + joined, last - first + 1)
        yield [""] * width, reason


def _swallowed(cells: list[str], width: int, separator: str) -> bool:
    """Whether a line within a cell has as many separators as a row, or the last one as many as
    stand before the cell: then it was a row.

    >>> _swallowed(["1", "2", "a\\n3,4,b\\n5,6,c"], 3, ",")
    True
    """
    for place, cell in enumerate(cells):
        counts = [line.count(separator) for line in cell.splitlines()[1:]]
        if width - 1 in counts or (place > 1 and place in counts[-1:]):
            return True
    return False


def _parquet_pieces(file: Path, columns: tuple[str, ...], size: int) -> Iterator[Piece]:
    import pyarrow.parquet as parquet

    with _reading(file), parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=size, columns=list(columns)):
            frame = batch.to_pandas(ignore_metadata=True, integer_object_nulls=True)[list(columns)]
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
