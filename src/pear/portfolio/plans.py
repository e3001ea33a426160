"""How does a plan become a row of a table, and a row a plan again?

``pear plan`` writes one row per person; ``pear show`` and ``pear verify`` read a row as a plan, the
audit reads all of them as columns. :func:`plans_frame` is the short form for a DataFrame.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from pear.arrays import Flags, Floats
from pear.errors import FingerprintMismatch, InvalidData, InvalidInput, InvalidRecord, PearError
from pear.portfolio.beliefs import as_json, weights_from
from pear.preferences import GaussianMixturePrior
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem, Step
from pear.problem.features import value_column
from pear.problem.values import is_missing
from pear.tables.people import People, name_of
from pear.tables.reading import Chunk, Source, open_table

ROWS_AT_A_TIME = 5_000

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
    "max_length": pa.int32(),
    "changes_per_feature": pa.int32(),
    "blocking": pa.string(),
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
weights, costs and bounds are means over them. ``max_length`` and ``changes_per_feature`` say which
plans the verdict is about. ``blocking`` (the limits that stand in the way), ``steps``, ``start``
(the person), ``weights`` and ``limits`` (what they said they cannot do) are JSON;
:func:`plans_of` reads them."""

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


NEEDED = (
    "row", "decision", "verdict", "success", "cost", "length", "start", "problem_fingerprint",
)  # fmt: skip
OTHERS = ("id", "limits", "model_fingerprint")
"""Columns that an audit cannot do without, and those it uses where they are."""

TRUTHS = {"true": True, "1": True, "false": False, "0": False}

IN_SHORT = {
    "decision": "object",
    "success": "bool",
    "verdict": "object",
    "cost": "float64",
    "lower_bound": "float64",
    "length": "Int64",
    "steps": "object",
    "score_before": "float64",
    "score_after": "float64",
}
"""Columns of the short form, and their kinds."""

OF_A_STEP = (
    "action", "argument", "feature", "before", "after", "cost", "score_after", "words", "reason",
)  # fmt: skip


def beside(output: Path, ending: str) -> Path:
    """A path beside the output: ``plans.parquet`` and ``.bad.csv`` give ``plans.bad.csv``.

    >>> beside(Path("plans.parquet"), ".bad.csv").name, beside(Path("plans"), ".parts").name
    ('plans.bad.csv', 'plans.parts')
    """
    return output.with_name(output.stem + ending)


def plans_table(
    people: People, weights: Sequence[str], plans: Sequence[Plan], kept: Sequence[int]
) -> Any:
    """One row per plan; ``kept`` are the positions in ``people`` the plans belong to, and
    ``weights`` what is stated of each person's there."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for position, plan in zip(kept, plans, strict=True):
        certificate = plan.certificate
        row = {
            **_in_common(plan),
            "row": int(people.rows[position]),
            "id": people.ids[position],
            "rows_asked": certificate.rows,
            "max_length": certificate.max_length,
            "changes_per_feature": certificate.max_changes_per_feature,
            "blocking": as_json(certificate.blocking),
            "start_score": _first_score(plan),
            "final_score": plan.score if plan.success else None,
            "steps": as_json([{name: getattr(s, name) for name in OF_A_STEP} for s in plan.steps]),
            "start": as_json(dict(plan.start)),
            "weights": weights[position],
            "limits": as_json(_stated_limits(plan.limits)),
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


def _in_common(plan: Plan) -> dict[str, Any]:
    """What every table says of a plan."""
    return {
        "decision": "approved" if plan.success and not plan.steps else "refused",
        "verdict": plan.certificate.verdict,
        "success": plan.success,
        "cost": plan.cost if plan.success else None,
        "length": plan.length if plan.success else None,
        "lower_bound": plan.certificate.lower_bound,
    }


def _first_score(plan: Plan) -> float:
    return plan.steps[0].score_before if plan.steps else plan.score


def _stated_limits(limits: Limits) -> dict[str, Any]:
    """The limits as plain data, without those that are not set."""
    none = NO_LIMITS.to_dict()
    return {key: value for key, value in limits.to_dict().items() if value != none[key]}


def plans_frame(plans: list[Plan], problem: Problem, index: pd.Index | None = None) -> pd.DataFrame:
    """Plans of n people as a table with a row each: see :func:`pear.recourse`."""
    rows = [
        {
            **_in_common(plan),
            "steps": "; ".join(step.words for step in plan.steps) if plan.success else None,
            "score_before": _first_score(plan),
            "score_after": plan.score,
        }
        for plan in plans
    ]
    frame = pd.DataFrame(rows, index=index, columns=list(IN_SHORT)).astype(IN_SHORT)
    space, pairs = problem.space, {}
    before = space.encode([plan.start for plan in plans]) if plans else np.zeros((0, len(space)))
    after = before.copy()
    for row, plan in enumerate(plans):
        for step in plan.steps:
            column = space.index(step.feature)
            after[row, column] = space.features[column].code(step.after)
    for column in problem.actions.actionable:
        feature = space.features[column]
        for name, states in (("before", before), ("after", after)):
            pairs[f"{feature.name}_{name}"] = value_column(feature, states[:, column])
    return pd.concat([frame, pd.DataFrame(pairs, index=frame.index)], axis=1)


class StoredPlan(NamedTuple):
    """A plan of a table, the number of its row in the table of people, and their id."""

    row: int
    id: str
    plan: Plan

    @property
    def name(self) -> str:
        """What messages call the person: "row 7", "row 7 (A-12)"."""
        return f"row {self.row}" + (f" ({self.id})" if self.id not in ("", str(self.row)) else "")


def plan_of(
    path: str | Path,
    problem: Problem | None = None,
    prior: GaussianMixturePrior | None = None,
    *,
    row: int | None = None,
    id: str | None = None,
) -> StoredPlan:
    """The plan of one person of a table that ``pear plan`` wrote: see :func:`plans_of`.

    Raises
    ------
    InvalidData
        Where nobody has this row or this id.
    """
    source = _opened(path, tuple(COLUMNS))
    for frame in _frames(source):
        if row is not None:
            here = pd.to_numeric(frame["row"], errors="coerce") == row
        else:
            here = frame["id"].map(name_of) == name_of(id)
        for cells in frame[here].to_dict("records"):
            return _stored(source.path, cells, problem, prior)
    who = f"row {row}" if row is not None else f"the id '{id}'"
    raise InvalidData(
        f"'{path}' has no plan for {who}; its {source.rows:,} rows count the people of the table "
        "planned for from 0, and rows that could not be used are in the .bad.csv beside it"
    )


def plans_of(
    path: str | Path, problem: Problem | None = None, prior: GaussianMixturePrior | None = None
) -> Iterator[StoredPlan]:
    """Every plan of a table that ``pear plan`` wrote, in order.

    Parameters
    ----------
    problem
        The problem they were made for. Without it the plans can be shown but not verified:
        they have no weights and no moves.
    prior
        The prior they were made under, where costs are means over its draws.

    Raises
    ------
    InvalidData
        Where a row does not hold a plan, naming it.
    FingerprintMismatch
        Where the plans were made under another prior.
    """
    source = _opened(path, tuple(COLUMNS))
    for frame in _frames(source):
        for cells in frame.to_dict("records"):
            yield _stored(source.path, cells, problem, prior)


def _opened(path: str | Path, needed: Sequence[str]) -> Source:
    source = open_table(path)
    absent = [name for name in needed if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{path}' lacks the columns {', '.join(absent)}; give plans as this version of "
            "'pear plan' writes them"
        )
    return source


def _frames(source: Source) -> Iterator[pd.DataFrame]:
    for chunk in source.chunks(ROWS_AT_A_TIME):
        for row, broken in chunk.broken.items():
            raise InvalidData(f"'{source.path}', row {row}: {broken.reason}")
        yield chunk.frame


def _stored(
    path: Path,
    cells: Mapping[Any, Any],
    problem: Problem | None,
    prior: GaussianMixturePrior | None,
) -> StoredPlan:
    try:
        return StoredPlan(int(cells["row"]), name_of(cells["id"]), _plan(cells, problem, prior))
    except InvalidInput as error:
        raise InvalidData(f"'{path}', row {cells['row']}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidData(
            f"'{path}', row {cells['row']}: the plan cannot be read ({error!r}); give the table "
            "as 'pear plan' wrote it"
        ) from None


def _plan(
    cells: Mapping[Any, Any], problem: Problem | None, prior: GaussianMixturePrior | None
) -> Plan:
    success = str(cells["success"]).lower() in ("true", "1")
    cost = _number(cells["cost"])
    if success and cost is None:
        raise ValueError("it has no cost")
    score = _number(cells["start_score"]) or 0.0
    steps, moves = [], []
    for content in json.loads(cells["steps"]):
        move = _move(content, problem)
        facts = {} if problem is None or move is None else problem.actions.facts(move)
        after = float(content["score_after"])
        steps.append(Step(**{**content, "score_before": score, "score_after": after, **facts}))
        moves += [] if move is None else [move]
        score = after
    width = 0 if problem is None else len(problem.weight_names)
    weights = weights_from(str(cells["weights"]), width, prior) if problem is not None else ()
    longest, repeats = _number(cells["max_length"]), _number(cells["changes_per_feature"])
    return Plan(
        start=json.loads(cells["start"]),
        steps=tuple(steps),
        cost=cost or 0.0,
        score=score,
        success=success,
        certificate=Certificate(
            verdict=cells["verdict"],
            lower_bound=_number(cells["lower_bound"]),
            upper_bound=cost,
            rows=int(_number(cells["rows_asked"]) or 0),
            max_length=None if longest is None else int(longest),
            max_changes_per_feature=int(repeats or 1),
            blocking=tuple(tuple(group) for group in json.loads(cells["blocking"])),
        ),
        moves=tuple(moves) if len(moves) == len(steps) else (),
        problem_fingerprint=str(cells["problem_fingerprint"]),
        model_fingerprint=str(cells["model_fingerprint"]),
        weights=tuple(tuple(own) for own in weights),
        limits=Limits.from_dict(json.loads(cells["limits"])),
    )


def _move(content: Mapping[str, Any], problem: Problem | None) -> int | None:
    """The number of a step among the problem's moves; None where it has no such step."""
    if problem is None:
        return None
    try:
        return problem.actions.move(content["action"], content["argument"])
    except InvalidInput:
        return None


def _number(cell: Any) -> float | None:
    return None if is_missing(cell) or cell == "" else float(cell)


@dataclass(frozen=True)
class Plans:
    """Plans of n people: ``rows`` ``(n,)``, ``refused``, ``success`` ``(n,)``, ``cost`` and
    ``length`` ``(n,)`` with NaN for none, ``states`` ``(n, d)``; ``weights`` as the plans state
    them, ``verdicts`` ``(n,)``, ``ids`` and ``limits``, or None. ``bad`` rows of people are not
    among the plans."""

    rows: NDArray[np.int64]
    refused: Flags
    success: Flags
    cost: Floats
    length: Floats
    states: Floats
    weights: Sequence[str] | None
    model_fingerprint: str
    verdicts: NDArray[np.object_] | None = None
    ids: Sequence[str] | None = None
    limits: Sequence[Limits] | None = None
    bad: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def undecided(self) -> Flags:
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
    source = _opened(path, NEEDED)
    parts: list[pd.DataFrame] = []
    states: list[Floats] = []
    weights: list[str] = []
    for frame in _frames(source):
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
                f"'{path}', about row {frame.index[0]}: the person cannot be read ({error})"
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


def _bad_rows(source: Source, rows: Floats) -> int:
    """Rows of people that are not among the plans: as the side file says, or the gaps."""
    side = beside(source.path, ".bad.csv")
    listed = open_table(side).rows if side.is_file() else 0
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


def _numbers(path: str | Path, column: pd.Series) -> Floats:
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
) -> Flags:
    """A column of two words as truth values; any other word is refused."""
    texts = [read(str(value).strip()) for value in column]
    for row, text, value in zip(column.index, texts, column, strict=True):
        if text not in known:
            raise InvalidData(
                f"'{path}', row {row}: '{column.name}' must be {' or '.join(list(known))} "
                f"(got {value!r}); give the plans as 'pear plan' wrote them"
            )
    return np.array([known[text] for text in texts], bool)
