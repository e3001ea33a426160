"""Which plans does an audit read, and of whom are they?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import FingerprintMismatch, InvalidData, InvalidRecord, PearError
from pear.portfolio.ledger import COLUMNS
from pear.portfolio.run import beside
from pear.problem import Limits, Problem
from pear.problem.tables import Source, open_table

NEEDED = (
    "row", "decision", "verdict", "success", "cost", "length", "start", "problem_fingerprint",
)  # fmt: skip
OTHERS = ("id", "limits", "model_fingerprint")
CHUNK = 10_000
TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Plans:
    """Plans of n people: ``rows`` ``(n,)``, ``refused``, ``success`` ``(n,)``, ``cost`` and
    ``length`` ``(n,)`` with NaN for none, ``states`` ``(n, d)``; ``weights`` as the plans state
    them, ``verdicts`` ``(n,)``, ``ids`` and ``limits``, or None. ``bad`` rows of people are not
    among the plans."""

    rows: NDArray[np.int64]
    refused: NDArray[np.bool_]
    success: NDArray[np.bool_]
    cost: NDArray[np.float64]
    length: NDArray[np.float64]
    states: NDArray[np.float64]
    weights: Sequence[str] | None
    model_fingerprint: str
    verdicts: NDArray[np.object_] | None = None
    ids: Sequence[str] | None = None
    limits: Sequence[Limits] | None = None
    bad: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Refused people for whom neither a plan nor a proof that there is none was found."""
        if self.verdicts is None:
            return np.zeros(len(self), bool)
        return np.asarray(self.refused & ~self.success & (self.verdicts != "infeasible"))

    def counts(self) -> dict[str, int]:
        """How many of the refused got each verdict."""
        if self.verdicts is None:
            return {}
        names, counts = np.unique(self.verdicts[self.refused].astype(str), return_counts=True)
        return {str(name): int(count) for name, count in zip(names, counts, strict=True)}


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
            row, broken = next(iter(chunk.broken.items()))
            raise InvalidData(f"'{path}', row {row}: {broken.reason}")
        # Before anything else is read: features of another problem only confuse.
        _check_problem(path, frame, problem)
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
        parts.append(frame[[n for n in (*NEEDED, *OTHERS) if n in frame]])
    if not parts:
        raise InvalidData(f"'{path}' holds no plans")
    table = pd.concat(parts)
    _check_same(path, table)
    rows = _numbers(path, table["row"])
    if np.isnan(rows).any() or (rows % 1 != 0).any():
        raise InvalidData(f"'{path}': 'row' must be the number of a row everywhere; it is not")
    decisions = _words(path, table["decision"], {"approved": False, "refused": True})
    success = _words(path, table["success"], TRUTHS, str.lower)
    cost = _numbers(path, table["cost"])
    if (lost := np.flatnonzero(success & np.isnan(cost))).size:
        raise InvalidData(f"'{path}', row {rows[lost[0]]:.0f}: a plan without its cost; plan again")
    return Plans(
        rows=rows.astype(np.int64),
        refused=decisions,
        success=success,
        cost=cost,
        length=_numbers(path, table["length"]),
        states=np.concatenate(states),
        weights=weights or None,
        model_fingerprint=str(table["model_fingerprint"].iloc[0])
        if "model_fingerprint" in table
        else "",
        verdicts=table["verdict"].astype(str).to_numpy(object),
        ids=["" if pd.isna(i) else str(i) for i in table["id"]] if "id" in table else None,
        limits=_limits(path, table["limits"]) if "limits" in table else None,
        bad=_bad_rows(source, rows),
    )


def _bad_rows(source: Source, rows: NDArray[np.float64]) -> int:
    """Rows of people that are not among the plans: as the side file says, or the gaps."""
    side = beside(source.path, ".bad.csv")
    listed = sum(chunk.size for chunk in open_table(side).chunks(CHUNK)) if side.is_file() else 0
    return max(listed, int(rows.max()) + 1 - len(rows))


def _limits(path: str | Path, column: pd.Series) -> list[Limits]:
    known: dict[str, Limits] = {}
    texts = ["{}" if pd.isna(value) or value == "" else str(value) for value in column]
    for row, text in zip(column.index, texts, strict=True):
        if text not in known:
            try:
                known[text] = Limits.from_dict(json.loads(text))
            except (PearError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise InvalidData(
                    f"'{path}', row {row}: 'limits' cannot be read ({error}); give the plans as "
                    "'pear plan' wrote them"
                ) from None
    return [known[text] for text in texts]


def _check_problem(path: str | Path, frame: pd.DataFrame, problem: Problem) -> None:
    for fingerprint in frame["problem_fingerprint"].unique():
        if fingerprint != problem.fingerprint:
            raise FingerprintMismatch(
                f"the plans in '{path}' are of another problem (fingerprint {fingerprint}, "
                f"this one is {problem.fingerprint}); plan again with 'pear plan'"
            )


def _check_same(path: str | Path, table: pd.DataFrame) -> None:
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


def _numbers(path: str | Path, column: pd.Series) -> NDArray[np.float64]:
    """A column of numbers, NaN where it is empty."""
    stated = column.replace("", None)
    numbers = pd.to_numeric(stated, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(np.isnan(numbers) & stated.notna().to_numpy())
    if len(wrong):
        raise InvalidData(
            f"'{path}', row {column.index[wrong[0]]}: '{column.name}' must be a number or empty "
            f"(got {column.iloc[wrong[0]]!r})"
        )
    return np.asarray(numbers)


def _words(
    path: str | Path,
    column: pd.Series,
    known: Mapping[str, bool],
    read: Callable[[str], str] = str,
) -> NDArray[np.bool_]:
    """A column of two words as truth values; any other word is refused."""
    texts = [read(str(value).strip()) for value in column]
    for row, text, value in zip(column.index, texts, column, strict=True):
        if text not in known:
            raise InvalidData(
                f"'{path}', row {row}: '{column.name}' must be {' or '.join(list(known))} "
                f"(got {value!r}); give the plans as 'pear plan' wrote them"
            )
    return np.array([known[text] for text in texts], bool)
