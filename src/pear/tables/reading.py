"""How is a table of people read from files, so that every command sees the same cells?

Text separated by commas, semicolons or tabs (also gzipped), Parquet, or a folder of them. At most
one chunk is in memory. Chunks are cut by the number of rows alone, across files, so that chunk 17
holds the same rows in every run. Text is typed by the features of the problem, cell by cell: one
wrong cell never changes how its neighbours are read.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from pear.errors import InvalidData
from pear.problem.features import Feature, FeatureSpace
from pear.problem.values import is_missing

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
OTHER_TABLES = (".json", ".jsonl", ".feather", ".arrow", ".orc", ".avro", ".zip", ".gz", ".bz2",
                ".xz", ".zst")  # fmt: skip
"""Endings of other files that may well hold people, and that we do not read."""

MISSING_TEXTS = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"})
"""Texts that stand for a missing value, unless the feature has a category of that name."""

UNKNOWN = "?"
"""A value of its own among texts: pandas reads it so, and a model takes it for a category."""

BLOCK = 1 << 20
"""Bytes of text parsed at a time."""

PIECE = 8_192
"""Rows of Parquet read at a time."""

DECIMAL_COMMA = r"^\s*(-?\d+),(\d+)\s*$"


class UnreadableRow(NamedTuple):
    """Why a row could not be read, and how many lines of the file it runs over."""

    reason: str
    lines: int = 1


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows.

    ``first`` is the number of the first row, counted from 0 over all files. ``frame`` holds
    the rows that could be read, indexed by their number; ``broken`` the reason for the others.
    """

    number: int
    first: int
    size: int
    frame: pd.DataFrame
    broken: Mapping[int, UnreadableRow] = field(default_factory=dict)
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
    """The files of a table, in the order they are read, with the columns they share.

    ``digest`` is a hash of the content of all files in their order; empty lines of text are not
    counted as ``rows``.
    """

    path: Path
    files: tuple[Path, ...]
    columns: tuple[str, ...]
    rows: int
    digest: str

    def chunks(self, size: int | Iterable[int]) -> Iterator[Chunk]:
        """Chunks of ``size`` rows, or of one size after the other; the last may be smaller."""
        sizes = itertools.repeat(size) if isinstance(size, int) else iter(size)
        size = next(sizes)
        number = first = start = end = 0
        held: list[pd.DataFrame] = []
        broken: dict[int, UnreadableRow] = {}
        starts: list[tuple[int, str]] = []
        for file in self.files:
            starts.append((start, file.name))
            for piece in _pieces(file):
                frame = piece.frame[list(self.columns)]
                held.append(frame.set_axis(frame.index + start, axis=0))
                broken.update({start + row: why for row, why in piece.broken.items()})
                end = start + piece.end
                while end - first >= size:
                    whole = _joined(held)
                    cut = int(np.searchsorted(whole.index, first + size))
                    held = [whole.iloc[cut:]]
                    yield _chunk(number, first, size, whole.iloc[:cut], broken, starts)
                    number, first, size = number + 1, first + size, next(sizes)
            start = end
        if end > first:
            yield _chunk(number, first, end - first, _joined(held), broken, starts)

    def whole(self) -> Chunk:
        """All rows at once; a table without any is refused."""
        if not self.rows:
            raise InvalidData(
                f"'{self.path}' holds no rows; give a table with a header and people in it"
            )
        return next(self.chunks(self.rows))


def open_table(path: str | os.PathLike[str]) -> Source:
    """The table at a path. Every file is checked first, so that nothing starts on a broken one."""
    place = Path(path)
    if place.is_dir():
        files = _files_in(place)
    elif place.is_file():
        _check_ending(place)
        files = (place,)
    else:
        raise InvalidData(
            f"there is no file or folder '{place}'; give a CSV or Parquet file, or a folder of them"
        )
    columns: tuple[str, ...] | None = None
    rows, digest = 0, hashlib.sha256()
    for file in files:
        with _reading(file), file.open("rb") as raw:
            while block := raw.read(BLOCK):
                digest.update(block)
        own, count = _header(file)
        if columns is not None and set(own) != set(columns):
            differing = ", ".join(sorted(set(own) ^ set(columns)))
            raise InvalidData(
                f"'{file.name}' and '{files[0].name}' must have the same columns "
                f"(only one has: {differing}); put them in separate folders"
            )
        columns = columns or own
        rows += count
    return Source(place, files, columns or (), rows, digest.hexdigest())


def read_table(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, Mapping[int, UnreadableRow]]:
    """A whole table with the kinds of its columns guessed, and the rows that cannot be read.

    A column of text is one of numbers where every cell is a number or missing; in others a
    question mark is a text.
    """
    source = open_table(path)
    chunk = source.whole()
    from_text = all(is_text(file) for file in source.files)
    columns = {name: _guessed(chunk.frame[name], from_text) for name in chunk.frame.columns}
    return pd.DataFrame(columns, index=chunk.frame.index), chunk.broken


def typed(frame: pd.DataFrame, space: FeatureSpace) -> pd.DataFrame:
    """Cells as values: numbers for features that are numbers, texts for categories. What is not a
    number stays text, so that only its row is refused, and the message shows it.

    >>> space = FeatureSpace((Feature("age", "integer"),))
    >>> typed(pd.DataFrame({"age": ["39", "old", "NA"]}, dtype=object), space)["age"].tolist()
    [39, 'old', None]
    """
    columns: dict[str, Any] = {}
    for name in frame.columns:
        feature = space[name] if name in space.names else None
        columns[name] = _typed(frame[name], feature)
    return pd.DataFrame(columns, index=frame.index)


def require_columns(source: Source, space: FeatureSpace) -> None:
    """Refuse a table that lacks columns the problem needs."""
    absent = [name for name in space.names if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{source.path}' lacks the columns {', '.join(absent)}; it has "
            f"{', '.join(source.columns)}. Rename its columns, or add empty ones"
        )


def is_text(path: Path) -> bool:
    """Whether a file is a table in text by its name.

    >>> is_text(Path("people.csv.gz")), is_text(Path("people.parquet"))
    (True, False)
    """
    return path.name.lower().endswith(TEXT_ENDINGS)


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file by its name."""
    return path.name.lower().endswith(PARQUET_ENDINGS)


def _check_ending(file: Path) -> None:
    if is_text(file) or is_parquet(file):
        return
    if file.suffix.lower() in SPREADSHEETS:
        raise InvalidData(
            f"'{file}' is a spreadsheet, which cannot be read; open it where it was made, save the "
            "sheet with the people as CSV (UTF-8), and give that file"
        )
    raise InvalidData(
        f"'{file}' must be a .csv, .tsv or .parquet file (text also gzipped), or a folder of them"
    )


def _files_in(folder: Path) -> tuple[Path, ...]:
    """The tables in a folder by name; a file that would be passed over is refused, so that nobody
    is left out."""
    with _reading(folder):
        entries = [e for e in sorted(folder.iterdir()) if not e.name.startswith((".", "_"))]
    # Notes may lie beside tables: in a folder, a .txt file is not taken for a table.
    entries = [entry for entry in entries if ".txt" not in entry.suffixes]
    for entry in entries:
        known = is_text(entry) or is_parquet(entry)
        if entry.is_dir() or (not known and entry.suffix.lower() in SPREADSHEETS + OTHER_TABLES):
            raise InvalidData(
                f"the folder '{folder}' holds '{entry.name}', which is not read; move it away, or "
                "put its people into .csv, .tsv or .parquet files of the folder itself"
            )
    files = tuple(entry for entry in entries if is_text(entry) or is_parquet(entry))
    if not files:
        raise InvalidData(f"the folder '{folder}' holds no .csv, .tsv or .parquet file")
    return files


def _header(file: Path) -> tuple[tuple[str, ...], int]:
    """The columns of a file and the number of its rows."""
    if is_parquet(file):
        with _reading(file), parquet.ParquetFile(file) as opened:
            _refuse_twice(file, opened.schema_arrow.names)
            return tuple(opened.schema_arrow.names), int(opened.metadata.num_rows)
    rows = 0
    with _reading(file), _Text(file) as text:
        for piece in text.pieces():
            rows = piece.end
        return tuple(text.header), rows


def _refuse_twice(file: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidData(f"'{file}' has the column '{twice[0]}' twice; rename one of them")


@dataclass(frozen=True)
class _Piece:
    """Rows of one file up to ``end``: ``frame`` is indexed by their number in the file."""

    frame: pd.DataFrame
    broken: Mapping[int, UnreadableRow]
    end: int


def _pieces(file: Path) -> Iterator[_Piece]:
    if is_text(file):
        with _reading(file), _Text(file) as text:
            yield from text.pieces()
        return
    end = 0
    with _reading(file), parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=PIECE):
            frame = batch.to_pandas(ignore_metadata=True, integer_object_nulls=True)
            end += len(frame)
            yield _Piece(frame.set_axis(pd.RangeIndex(end - len(frame), end), axis=0), {}, end)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)] or frames[:1]
    if len(filled) == 1:
        return filled[0]
    same = all((frame.dtypes == filled[0].dtypes).all() for frame in filled)
    return pd.concat(filled if same else [frame.astype(object) for frame in filled])


def _chunk(
    number: int,
    first: int,
    size: int,
    frame: pd.DataFrame,
    broken: dict[int, UnreadableRow],
    starts: list[tuple[int, str]],
) -> Chunk:
    """A chunk; what is broken in it leaves ``broken``."""
    before = max((start for start in starts if start[0] <= first), default=(first, ""))
    inside = (start for start in starts if first < start[0] < first + size)
    own = {row: broken.pop(row) for row in sorted(broken) if row < first + size}
    return Chunk(number, first, size, frame, own, (before, *inside))


class _Text:
    """One table in text, opened past its header."""

    def __init__(self, file: Path) -> None:
        self.file = file
        encoding = _encoding(file)
        # A byte that is invalid in this encoding spoils its own cell, not the file.
        self.text = io.TextIOWrapper(_binary(file), encoding, errors="replace", newline="")
        first = self.text.readline()
        usual = "\t;," if ".tsv" in file.suffixes else ",;\t"
        self.separator = max(usual, key=first.count)
        lines = [first]
        names = next(csv.reader([first], delimiter=self.separator), [])
        while first and names and _left_open(lines) and (more := self.text.readline()):
            lines.append(more)
            names = next(csv.reader(lines, delimiter=self.separator))
        self.header = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(names)]
        self.header_lines = len(lines)
        if not any(name.strip() for name in names):
            raise InvalidData(f"'{file}' is empty; its first line must name the columns")
        _refuse_twice(file, self.header)

    def __enter__(self) -> _Text:
        return self

    def __exit__(self, *problem: object) -> None:
        self.text.close()

    def pieces(self) -> Iterator[_Piece]:
        """The rows that follow the header, a block of text at a time."""
        odd: list[Any] = []
        places = [str(place) for place in range(len(self.header))]

        def keep(row: Any) -> str:
            odd.append(row)
            return "skip"

        stream = io.BufferedReader(_AsUtf8(self.text))
        if not stream.peek(1):
            return
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=places
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=keep,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=False
            ),
        )
        count = _Count(line=self.header_lines + 1)
        for batch in reader:
            piece, count = self._piece(batch, odd, count)
            yield piece
        if odd:
            empty = pa.record_batch([pa.array([], pa.string())] * len(places), places)
            yield self._piece(empty, odd, count, last=True)[0]

    def _piece(
        self, batch: Any, odd: list[Any], count: _Count, *, last: bool = False
    ) -> tuple[_Piece, _Count]:
        """The rows of a batch, with the ``odd`` ones of other widths that stand among them."""
        width, n = len(self.header), batch.num_rows
        lines = np.ones(n, np.int64)
        blank = np.ones(n, bool)
        for column in batch.columns:
            lines += compute.count_substring(column, "\n").to_numpy(zero_copy_only=False)
            blank &= compute.equal(column, "").to_numpy(zero_copy_only=False)
        parsed = np.array([row.number for row in odd], np.int64)
        numbers = np.setdiff1d(np.arange(count.parsed, count.parsed + n + len(odd)), parsed)[:n]
        among = [row for row in odd if last or (n and row.number < numbers[-1])]
        odd[:] = [row for row in odd if row not in among]
        order = np.argsort(np.concatenate([numbers, [row.number for row in among]]), kind="stable")
        all_lines = np.concatenate([lines, [1 + row.text.count("\n") for row in among]])[order]
        people = ~np.concatenate([blank, [not row.text.strip() for row in among]]).astype(bool)
        back = np.argsort(order)
        first_line = (count.line + np.cumsum(all_lines) - all_lines)[back].astype(np.int64)
        row_number = (count.row + np.cumsum(people[order]) - 1)[back]
        broken: dict[int, UnreadableRow] = {}
        for i, row in enumerate(among, n):
            if people[i]:
                reason = f"line {first_line[i]} has {row.actual_columns} cells and the header "
                broken[int(row_number[i])] = _broken(
                    f"{reason}{width}", int(first_line[i]), 1 + row.text.count("\n")
                )
        kept = people[:n].copy()
        for place in np.flatnonzero(lines > 1).tolist() if width > 2 else ():
            cells = [column[place].as_py() for column in batch.columns]
            if kept[place] and _holds_rows(cells, width, self.separator):
                broken[int(row_number[place])] = _broken(
                    "a cell holds what look like further rows",
                    int(first_line[place]),
                    int(lines[place]),
                )
                kept[place] = False
        frame = pd.DataFrame(
            {
                name: self._cells(column).to_pandas()
                for name, column in zip(self.header, batch.columns, strict=True)
            }
        ).set_axis(row_number[:n], axis=0)
        after = _Count(
            count.parsed + n + len(among),
            count.row + int(people.sum()),
            count.line + int(all_lines.sum()),
        )
        return _Piece(frame if kept.all() else frame[kept], broken, after.row), after

    def _cells(self, column: Any) -> Any:
        if self.separator != ";":
            return column
        # Where ';' separates the columns, a comma stands before the decimals.
        return compute.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2")


class _Count(NamedTuple):
    """What comes next in a text: the parser's number, the number of the row, the line."""

    parsed: int = 1
    row: int = 0
    line: int = 1


def _broken(reason: str, line: int, lines: int) -> UnreadableRow:
    if lines > 1:
        last = line + lines - 1
        reason += f'; lines {line} to {last} were read as one: close the quote (") in them'
    return UnreadableRow(reason, lines)


def _left_open(lines: list[str]) -> bool:
    return "".join(lines).count('"') % 2 == 1


def _holds_rows(cells: list[str], width: int, separator: str) -> bool:
    """Whether a line within a cell has as many separators as a row, or the last one as many as
    stand before the cell: then it was a row.

    >>> _holds_rows(["1", "2", "a\\n3,4,b\\n5,6,c"], 3, ",")
    True
    """
    for place, cell in enumerate(cells):
        counts = [line.count(separator) for line in cell.splitlines()[1:]]
        if width - 1 in counts or (place > 1 and place in counts[-1:]):
            return True
    return False


class _AsUtf8(io.RawIOBase):
    """A text as a stream of UTF-8 bytes."""

    def __init__(self, text: io.TextIOBase) -> None:
        self._text = text
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._text.read(len(buffer)).encode(errors="replace")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def _encoding(file: Path) -> str:
    """UTF-8, or the encoding of older spreadsheets where most non-ASCII characters are not
    UTF-8."""
    with _reading(file), _binary(file) as stream:
        if stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        spoiled = sound = 0
        while block := stream.read(BLOCK):
            if b"\0" in block:
                raise InvalidData(
                    f"'{file}' cannot be read as a table: it is not text; save it as CSV (UTF-8)"
                )
            text = decoder.decode(block)
            if not text.isascii():
                wrong = text.count("\N{REPLACEMENT CHARACTER}")
                spoiled += wrong
                sound += len(text.encode()) - len(text) - 2 * wrong
    return "cp1252" if spoiled > sound else "utf-8-sig"


def _binary(file: Path) -> Any:
    return gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb")


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Any failure to read a file, as one clear error."""
    try:
        yield
    except (OSError, EOFError, zlib.error, csv.Error, pa.ArrowException) as error:
        remedy = "it may be cut off: write or copy it again"
        if "straddling" in str(error):
            remedy = 'a quote (") is left open in it: close it'
        raise InvalidData(f"'{file}' cannot be read as a table ({error}); {remedy}") from error


def _typed(column: pd.Series, feature: Feature | None) -> pd.Series:
    missing = MISSING_TEXTS.difference(feature.categories if feature is not None else ())
    number = feature is not None and feature.is_number
    if number and column.dtype.kind in "iuf":
        return column
    known: dict[Any, Any] = {}
    values: list[Any] = []
    for cell in column.tolist():
        # The type is part of the key: True == 1, but it is not a number.
        key = (type(cell), cell) if isinstance(cell, (str, int, float, bool)) else None
        value = known.get(key, known) if key is not None else known
        if value is known:
            value = _value(cell, number, missing)
            if feature is not None and isinstance(cell, str) and cell in feature.categories:
                value = cell  # With the spaces around it, if that is how it is declared.
            if key is not None:
                known[key] = value
        values.append(value)
    return pd.Series(values, index=column.index, dtype=object)


def _value(cell: Any, number: bool, missing: frozenset[str]) -> Any:
    if is_missing(cell):
        return None
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if text in missing:
        return None
    parsed = _number(text) if number else None
    return text if parsed is None else parsed


def _number(text: str) -> int | float | None:
    """The number a text is; Python reads 1_000 as one, a bank's export never means that.

    >>> _number("39"), _number("1e3"), _number("1_000"), _number("old")
    (39, 1000.0, None, None)
    """
    if "_" in text:
        return None
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return None


def _guessed(column: pd.Series, from_text: bool) -> pd.Series:
    if not (pd.api.types.is_string_dtype(column) or column.dtype == object):
        return column
    values = [_value(cell, False, MISSING_TEXTS) for cell in column.tolist()]
    if from_text:
        numbers: list[float | None] = []
        for value in values:
            number = None if value is None else _number(value)
            if value is not None and number is None:
                break
            numbers.append(number)
        else:
            return pd.Series(numbers, index=column.index, dtype=float)
    # With the spaces around them, which pandas keeps, so that a model has learnt them.
    values = [
        None if _value(cell, False, MISSING_TEXTS - {UNKNOWN}) is None else cell
        for cell in column.tolist()
    ]
    return pd.Series(values, index=column.index, dtype=object)
