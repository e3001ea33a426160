"""Which plans does an audit read, and of whom are they?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import FingerprintMismatch, InvalidData, InvalidRecord
from pear.portfolio.output import COLUMNS
from pear.portfolio.tables import open_table
from pear.problem import Problem

NEEDED = ("row", "decision", "success", "cost", "length", "start", "problem_fingerprint")
CHUNK = 10_000


@dataclass(frozen=True)
class Plans:
    """Plans of n people: ``rows`` ``(n,)``, ``refused``, ``success`` ``(n,)``, ``cost`` and
    ``length`` ``(n,)`` with NaN for none, ``states`` ``(n, d)``; ``weights`` as the plans state
    them, or None."""

    rows: NDArray[np.int64]
    refused: NDArray[np.bool_]
    success: NDArray[np.bool_]
    cost: NDArray[np.float64]
    length: NDArray[np.float64]
    states: NDArray[np.float64]
    weights: Sequence[str] | None
    model_fingerprint: str

    def __len__(self) -> int:
        return len(self.rows)


def read_plans(path: str | Path, problem: Problem) -> Plans:
    """The plans that ``pear plan`` wrote, refused when they are of another problem."""
    source = open_table(path)
    absent = [name for name in NEEDED if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{path}' lacks the columns {', '.join(absent)}; give the plans of 'pear plan' "
            f"(columns {', '.join(COLUMNS)})"
        )
    parts: list[pd.DataFrame] = []
    states: list[NDArray[np.float64]] = []
    weights: list[str] = []
    for chunk in source.chunks(CHUNK):
        frame = chunk.frame
        if chunk.broken:
            row, reason = next(iter(chunk.broken.items()))
            raise InvalidData(f"'{path}', row {row}: {reason}")
        try:
            records = [json.loads(text) for text in frame["start"]]
            states.append(problem.space.encode(records))
            if "weights" in frame:
                # The same draws of the prior stand in most rows: kept once.
                weights += [sys.intern(str(text)) for text in frame["weights"]]
        except (InvalidRecord, ValueError, TypeError) as error:
            raise InvalidData(
                f"'{path}', about row {chunk.first}: the person cannot be read ({error})"
            ) from None
        parts.append(frame[[n for n in (*NEEDED, "model_fingerprint") if n in frame]])
    if not parts:
        raise InvalidData(f"'{path}' holds no plans")
    table = pd.concat(parts)
    _check_same(path, table, problem)
    try:
        return Plans(
            rows=pd.to_numeric(table["row"]).to_numpy(np.int64),
            refused=(table["decision"].astype(str) == "refused").to_numpy(bool),
            success=table["success"].map(_truth).to_numpy(bool),
            cost=_numbers(table["cost"]),
            length=_numbers(table["length"]),
            states=np.concatenate(states),
            weights=weights or None,
            model_fingerprint=str(table["model_fingerprint"].iloc[0])
            if "model_fingerprint" in table
            else "",
        )
    except (ValueError, TypeError) as error:
        raise InvalidData(f"'{path}' cannot be read as plans: {error}") from None


def _check_same(path: str | Path, table: pd.DataFrame, problem: Problem) -> None:
    for fingerprint in table["problem_fingerprint"].unique():
        if fingerprint != problem.fingerprint:
            raise FingerprintMismatch(
                f"the plans in '{path}' are of another problem (fingerprint {fingerprint}, "
                f"this one is {problem.fingerprint}); plan again with 'pear plan'"
            )
    again = table["row"][table["row"].astype(str).duplicated()]
    if len(again):
        raise InvalidData(
            f"'{path}' has row {again.iloc[0]} more than once; nobody may count twice: give the "
            "plans of one run"
        )
    if "model_fingerprint" in table and table["model_fingerprint"].nunique() > 1:
        raise FingerprintMismatch(
            f"the plans in '{path}' are of more than one model; plan again with 'pear plan'"
        )


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    return np.asarray(pd.to_numeric(column.replace("", None)).to_numpy(float))


def _truth(value: object) -> bool:
    return str(value).strip().lower() in ("true", "1")
