"""Which rows of a chunk are people the problem understands, and what is wrong with the rest?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import InvalidData, InvalidRecord
from pear.portfolio.tables import Chunk, Source, typed
from pear.problem import Problem
from pear.problem.checks import is_missing


@dataclass(frozen=True)
class People:
    """n people of a chunk.

    ``rows`` ``(n,)`` are their numbers in the whole table, ``ids`` their own names for
    themselves, ``states`` ``(n, d)``. ``bad`` lists the other rows: number, id and reason.
    """

    rows: NDArray[np.int64]
    ids: list[str]
    states: NDArray[np.float64]
    bad: list[tuple[int, str, str]]

    def __len__(self) -> int:
        return len(self.rows)


def id_column(source: Source, problem: Problem, asked: str | None) -> str | None:
    """The column that names people: the one asked for, else ``id`` where there is one."""
    if asked is not None and asked not in source.columns:
        raise InvalidData(
            f"'{source.path}' has no column '{asked}' to name people by; "
            f"it has {', '.join(source.columns)}"
        )
    if asked is None and "id" in source.columns and "id" not in problem.space.names:
        return "id"
    return asked


def read_people(chunk: Chunk, problem: Problem, id_name: str | None) -> People:
    """The people of a chunk; a row that does not fit the features is listed with its reason."""
    frame = typed(chunk.frame, problem.space)
    numbers = frame.index.to_numpy(np.int64)
    ids = _ids(frame, id_name)
    bad = [(row, str(row), reason) for row, reason in chunk.broken.items()]
    try:
        states = problem.space.encode(frame)
        good = np.arange(len(frame))
    except InvalidRecord:
        states, good, refused = _one_by_one(frame, problem)
        bad += [(int(numbers[i]), ids[i], reason) for i, reason in refused]
    return People(numbers[good], [ids[i] for i in good], states, sorted(bad))


def ids_of(chunk: Chunk, problem: Problem, id_name: str | None) -> list[str]:
    """The names of the people of a chunk, as :func:`read_people` reads them."""
    named = chunk.frame[[id_name]] if id_name is not None else chunk.frame[[]]
    return _ids(typed(named, problem.space), id_name)


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


def _one_by_one(
    frame: pd.DataFrame, problem: Problem
) -> tuple[NDArray[np.float64], NDArray[np.intp], list[tuple[int, str]]]:
    columns = [name for name in problem.space.names if name in frame.columns]
    records: list[dict[str, Any]] = frame[columns].to_dict("records")  # type: ignore[assignment]
    states: list[NDArray[np.float64]] = []
    good: list[int] = []
    refused: list[tuple[int, str]] = []
    for i, record in enumerate(records):
        try:
            states.append(problem.state(record))
            good.append(i)
        except InvalidRecord as error:
            refused.append((i, str(error)))
    found = np.array(states) if states else np.zeros((0, len(problem.space)))
    return found, np.array(good, np.intp), refused
