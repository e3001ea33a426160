"""What is written about each person, and how do parts become one table?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from pear.errors import InvalidSetting
from pear.portfolio.draws import as_json
from pear.problem import NO_LIMITS, Limits, Plan
from pear.problem.people import People
from pear.problem.tables import Chunk, is_parquet

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
weights, costs and bounds are means over them. ``steps``, ``start`` (the person), ``weights`` and
``limits`` (what they said they cannot do) are JSON; see
:func:`pear.portfolio.draws.weights_from` and :meth:`pear.problem.Limits.from_dict`."""

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


def write_part(table: Any, path: Path) -> int:
    """Write a table in one go, and tell its size in bytes: it is whole or not there at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as stream:
        parquet.write_table(table, stream, compression="zstd")
        stream.flush()
        os.fsync(stream.fileno())
    size = temporary.stat().st_size
    os.replace(temporary, path)
    return size


def assemble(parts: Sequence[Path], output: Path, schema: Any) -> None:
    """Parts in their order as one file, or as a folder of them; whole or not there at all."""
    temporary = output.with_name(f".{output.name}.tmp")
    _remove(temporary)
    if output.name.lower().endswith(".csv"):
        with arrow_csv.CSVWriter(temporary, schema) as writer:
            for part in parts:
                writer.write_table(parquet.read_table(part))
    elif is_parquet(output):
        with parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for part in parts:
                writer.write_table(parquet.read_table(part))
    else:
        temporary.mkdir()
        for part in parts:
            shutil.copyfile(part, temporary / part.name)
        _remove(output)
    os.replace(temporary, output)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
