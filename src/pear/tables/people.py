"""Which rows of a table are people the problem understands, and what is wrong with the rest?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.arrays import Indices
from pear.errors import InvalidData, InvalidRecord
from pear.problem.features import Feature, FeatureSpace, States
from pear.problem.values import is_missing
from pear.tables.reading import Chunk, Source, open_table, require_columns, typed

ROWS_AT_A_TIME = 16_384

NO_FEATURES = FeatureSpace((Feature("no column of a table"),))
"""With these, pandas guesses nothing: every column holds what its cells say."""


class BadRow(NamedTuple):
    """A row that does not fit the problem: its number in the table, its id and the reason."""

    row: int
    id: str
    reason: str


@dataclass(frozen=True)
class People:
    """n people of a table.

    ``rows`` ``(n,)`` are their numbers in the whole table, from 0; ``ids`` their names in it,
    ``states`` ``(n, d)``. ``bad`` lists the other rows.
    """

    rows: NDArray[np.int64]
    ids: list[str]
    states: States
    bad: list[BadRow]

    def __len__(self) -> int:
        return len(self.rows)

    def bad_words(self) -> str:
        """How many rows do not fit the problem, and why the first does not; empty if all do."""
        if not self.bad:
            return ""
        first = self.bad[0]
        return (
            f"{len(self.bad):,} of {len(self.bad) + len(self):,} rows do not fit the problem and "
            f"are passed over; the first: row {first.row}: {first.reason}"
        )


def read_people(
    path: str | os.PathLike[str], space: FeatureSpace, id_name: str | None = None
) -> People:
    """Everybody in a table; refused where no row fits the problem, or two rows have the same id."""
    source = open_table(path)
    require_columns(source, space)
    name = id_column(source, space, id_name)
    refuse_same_ids(source, space, name)
    people = people_of(source.whole(), space, name)
    if not len(people):
        first = people.bad[0]
        raise InvalidData(f"no row of '{path}' fits the problem; row {first.row}: {first.reason}")
    return people


def labels_of(
    path: str | os.PathLike[str], target: str, rows: NDArray[np.int64]
) -> list[Any] | None:
    """The values of a column for these people; None where the table has no such column."""
    source = open_table(path)
    if target not in source.columns:
        return None
    column = typed(source.whole().frame[[target]], NO_FEATURES)[target]
    return column[column.index.isin(rows)].tolist()


def people_of(chunk: Chunk, space: FeatureSpace, id_name: str | None) -> People:
    """The people of a chunk; a row that does not fit the features is listed with its reason."""
    frame = typed(chunk.frame, space)
    numbers = frame.index.to_numpy(np.int64)
    ids = _ids(frame, id_name)
    bad = [BadRow(row, str(row), why.reason) for row, why in chunk.broken.items()]
    states, good, refused = fitting_states(space, frame)
    bad += [BadRow(int(numbers[i]), ids[i], reason) for i, reason in refused.items()]
    return People(numbers[good], [ids[i] for i in good], states, sorted(bad))


def fitting_states(
    space: FeatureSpace, table: pd.DataFrame
) -> tuple[States, Indices, dict[int, str]]:
    """States of the rows that fit the features, and why the others do not.

    Returns states ``(n, d)``, the places ``(n,)`` of their rows, and the reasons by place.
    """
    try:
        return space.encode(table), np.arange(len(table)), {}
    except InvalidRecord as error:
        if not str(error).startswith("row "):
            raise InvalidData(str(error)) from None
    reasons: dict[int, str] = {}
    for feature in space.features:
        if feature.name in table.columns:
            for place, reason in _misfits(feature, table[feature.name]):
                reasons.setdefault(place, reason)
    good = np.array([i for i in range(len(table)) if i not in reasons], np.intp)
    kept = table.iloc[good]
    states = space.encode(kept) if len(kept) else np.zeros((0, len(space)))
    return states, good, dict(sorted(reasons.items()))


def _misfits(feature: Feature, column: pd.Series) -> list[tuple[int, str]]:
    known: dict[Any, str] = {}
    found = []
    for place, value in enumerate(column.to_numpy(dtype=object)):
        key = (type(value), value if isinstance(value, (str, int, float)) else place)
        if key not in known:
            try:
                feature.code(value)
                known[key] = ""
            except InvalidRecord as error:
                known[key] = str(error)
        if known[key]:
            found.append((place, known[key]))
    return found


def id_column(source: Source, space: FeatureSpace, asked: str | None) -> str | None:
    """The column that names people: the one asked for, else ``id`` where there is one."""
    if asked is not None and asked not in source.columns:
        raise InvalidData(
            f"'{source.path}' has no column '{asked}' to name people by; "
            f"it has {', '.join(source.columns)}"
        )
    if asked is None and "id" in source.columns and "id" not in space.names:
        return "id"
    return asked


def refuse_same_ids(source: Source, space: FeatureSpace, id_name: str | None) -> None:
    """Refuse a table in which two rows have one id: whose plan or answers would be whose?"""
    if id_name is None:
        return
    seen: dict[str, int] = {}
    for chunk in source.chunks(ROWS_AT_A_TIME):
        for row, name in zip(chunk.frame.index, ids_of(chunk, space, id_name), strict=True):
            before = seen.setdefault(name, row) if name else row
            if before != row:
                raise InvalidData(
                    f"'{source.path}' has the id '{name}' twice in '{id_name}', in rows {before} "
                    f"and {row} (counted from 0); give everybody an id of their own, or name "
                    "another column with --id"
                )


def ids_of(chunk: Chunk, space: FeatureSpace, id_name: str | None) -> list[str]:
    """The names of the people of a chunk, as :func:`people_of` reads them."""
    named = chunk.frame[[id_name]] if id_name is not None else chunk.frame[[]]
    return _ids(typed(named, space), id_name)


def _ids(frame: pd.DataFrame, id_name: str | None) -> list[str]:
    if id_name is None:
        return [str(number) for number in frame.index]
    return [name_of(value) for value in frame[id_name].tolist()]


def name_of(value: Any) -> str:
    """The name of a person as text, empty where there is none.

    A column of whole numbers with a gap arrives as floats; the names stay those of the numbers.

    >>> name_of(7.0), name_of(" A7 "), name_of(None)
    ('7', 'A7', '')
    """
    if is_missing(value):
        return ""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


@dataclass(frozen=True)
class Person:
    """A person's record, and the name their conversation is stored under."""

    record: Mapping[str, Any]
    key: Mapping[str, Any]


def person_of(
    path: str | Path,
    space: FeatureSpace,
    *,
    row: int | None = None,
    id: str | None = None,
    id_name: str | None = None,
) -> Person:
    """One person of a table, by the number of their row, from 0, or by their id.

    Raises
    ------
    InvalidData
        Where nobody has this row or id, or their data do not fit the problem.
    """
    source = open_table(path)
    require_columns(source, space)
    name = id_column(source, space, id_name)
    if id is not None and name is None:
        raise InvalidData(
            f"'{path}' has no column 'id' to find '{id}' in; name the column with --id-column, or "
            "say who is asked with --row"
        )
    refuse_same_ids(source, space, name)
    wanted = name_of(id)
    for chunk in source.chunks(ROWS_AT_A_TIME):
        people = people_of(chunk, space, name)
        for bad in people.bad:
            if bad.row == row or (id is not None and bad.id == wanted):
                raise InvalidData(f"'{path}', row {bad.row}: {bad.reason}")
        for number, own, state in zip(people.rows.tolist(), people.ids, people.states, strict=True):
            if number == row or (id is not None and own == wanted):
                by_row = {"row": number, "people": source.digest}
                return Person(space.decode(state)[0], by_row if name is None else {"id": own})
    who = f"row {row}; its {source.rows:,} rows count from 0" if id is None else f"the id '{id}'"
    raise InvalidData(f"'{path}' has nobody with {who}")
