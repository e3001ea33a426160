"""What does a row of a table of plans say, as a plan again?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pear.errors import InvalidData, InvalidInput
from pear.portfolio.beliefs import weights_from
from pear.portfolio.ledger import COLUMNS
from pear.preferences import GaussianMixturePrior
from pear.problem import Certificate, Limits, Plan, Problem, Step
from pear.problem.checks import is_missing
from pear.problem.people import name_of
from pear.problem.tables import Source, open_table

ROWS_AT_A_TIME = 5_000


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
    source = _opened(path)
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
    source = _opened(path)
    for frame in _frames(source):
        for cells in frame.to_dict("records"):
            yield _stored(source.path, cells, problem, prior)


def _opened(path: str | Path) -> Source:
    source = open_table(path)
    absent = [name for name in COLUMNS if name not in source.columns]
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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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
