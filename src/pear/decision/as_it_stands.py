"""Does the model give the raw rows of a table the same scores as the records made from them?

A table becomes records by the problem, and records become the model's input by its adapter. Where
both are right, the model gives the same scores for the table itself, which is how its owner asks
it. Otherwise nothing is proved about it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from pear.arrays import Flags, Floats
from pear.decision.blackbox import BlackBox
from pear.decision.first_look import SAME
from pear.errors import ModelOutput, ModelWarning
from pear.problem import Plan
from pear.problem.features import States, Value
from pear.problem.people import People
from pear.problem.tables import UNKNOWN
from pear.problem.values import is_missing, plain

ROUNDED = 0.02
"""Rows in which single precision or a tie at a threshold of a tree may make a difference."""

READ = 500
"""Rows of a file that are compared."""


def scores_as_it_stands(black_box: BlackBox, table: pd.DataFrame, states: States) -> Floats | None:
    """The model's own scores of a table whose rows are ``states`` ``(n, d)``, shape ``(n,)``.

    None where the model takes no table, or the table lacks columns or cannot be read by the model:
    then its owner cannot ask it that way either.
    """
    function = black_box.function
    maker = getattr(function, "maker", None)
    of_table, columns = getattr(function, "of_table", None), getattr(maker, "columns", ())
    if of_table is None or not len(states) or getattr(maker, "declared", True):
        return None
    if not set(columns) <= set(table.columns) or not table.columns.is_unique:
        return None
    try:
        answered = of_table(table[list(columns)])
        return black_box.probe_with(states, lambda _: answered)
    except Exception:
        return None


def doubt_as_it_stands(black_box: BlackBox, table: pd.DataFrame, states: States) -> str:
    """A warning where the model gives the table itself other scores; empty where it does not."""
    return _compared(black_box, table, states)[0]


def doubt_of_cells(black_box: BlackBox, cells: pd.DataFrame, people: People) -> str:
    """The same for a file whose ``cells`` are indexed by row, as pandas reads it by default."""
    shown = np.isin(people.rows, cells.index)
    rows, states = people.rows[shown][:READ], people.states[shown][:READ]
    table = cells.loc[rows]
    texts = [name for name in table.columns if pd.api.types.is_string_dtype(table[name])]
    if texts:  # Text files hold only text; what pandas makes of a column depends on all its rows.
        table = pd.read_csv(io.StringIO(table.to_csv(index=False))).set_axis(table.index, axis=0)
    # A question mark may be a missing value that its owner's program replaces first.
    certain = ~(table.astype(str) == UNKNOWN).any(axis=1).to_numpy()
    return doubt_as_it_stands(black_box, table[certain], states[certain])


def _compared(black_box: BlackBox, table: pd.DataFrame, states: States) -> tuple[str, bool]:
    """The doubt, and whether it is more than rounding at a few thresholds."""
    own = scores_as_it_stands(black_box, table, states)
    if own is None:
        return "", False
    ours, required = black_box.probe(states), black_box.goal.required()
    differs = np.abs(own - ours) > SAME
    if not differs.any():
        return "", False
    row = int(np.argmax(np.abs(own - ours)))
    grave = bool(differs.mean() > ROUNDED or ((own > required) != (ours > required)).any())
    return (
        f"model '{black_box.name}' gives row {table.index[row]} of the table {own[row]:.4g} as it "
        f"stands and {ours[row]:.4g} as the problem describes it ({int(differs.sum()):,} of "
        f"{len(own):,} rows differ{_culprits(black_box, table, states, differs)}): check the "
        "kinds and categories of the features, or declare under [model.inputs] what the columns are"
    ), grave


def _culprits(black_box: BlackBox, table: pd.DataFrame, states: States, differs: Flags) -> str:
    """The columns whose raw values alone change the score, in words."""
    function = black_box.function
    made, ours = function.table(states[differs]), black_box.probe(states[differs])  # type: ignore[attr-defined]
    found = []
    for column in made.columns:
        mixed = made.assign(**{column: table[column].to_numpy()[differs]})
        mixed[column] = mixed[column].astype(table[column].dtype)
        own = scores_as_it_stands(black_box, mixed, states[differs])
        if own is None or (np.abs(own - ours) > SAME).any():
            found.append(repr(column))
    return f", by {', '.join(found[:4])}" if found else ""


def refuse_what_the_table_refuses(
    black_box: BlackBox, table: pd.DataFrame, states: States, plans: Sequence[Plan]
) -> None:
    """Refuse plans for the rows of a table if the model gives the rows themselves other scores.

    Checked are the rows as they stand, and each with the changes of its plan, in columns of the
    same types.
    """
    doubt, grave = _compared(black_box, table, states)
    if grave:
        raise ModelOutput(f"{doubt}; nothing is proved about what it says of records")
    if doubt:
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    some = [place for place, plan in enumerate(plans) if plan.steps]
    changed = table.iloc[some].copy()
    for column in {step.feature for place in some for step in plans[place].steps}:
        values = changed[column].tolist() if column in changed.columns else []
        for row, place in enumerate(some):
            for step in plans[place].steps if values else ():
                if step.feature == column:
                    values[row] = _as_in(table[column], step.after)
        if values:
            changed[column] = _like(table[column], values, changed.index)
    ends = black_box.space.encode([_end(plans[place]) for place in some]) if some else states[:0]
    own = scores_as_it_stands(black_box, changed, ends)
    if own is None:
        return
    for place, score in zip(some, own, strict=True):
        required = black_box.goal.required(plans[place].limits)
        if plans[place].success and not score > required:
            raise ModelOutput(
                f"model '{black_box.name}' gives row {table.index[place]} with the changes of its "
                f"plan {score:.6g}, where more than {required:g} is needed; such a plan is not "
                "handed out: check how the table holds what the plan changes "
                f"({', '.join(step.feature for step in plans[place].steps)})"
            )


def _end(plan: Plan) -> dict[str, Value | None]:
    return dict(plan.start) | {step.feature: step.after for step in plan.steps}


def _as_in(column: pd.Series, value: Value | None) -> object:
    """A value as the column writes it: the number 2 where it has no text "2"."""
    if not isinstance(value, str):
        return value
    known = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    values = list(pd.unique(known.dropna()))
    same = [other for other in values if str(plain(other)).removesuffix(".0") == value]
    return value if value in values or len(same) != 1 else same[0]


def _like(column: pd.Series, values: list[object], index: pd.Index) -> pd.Series:
    """Values as a column of the same kind, where it can hold them."""
    made = pd.Series([None if is_missing(v) else v for v in values], index=index, dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = dict.fromkeys([*column.cat.categories, *made.dropna()])
        return made.astype(pd.CategoricalDtype(list(known), column.cat.ordered))
    try:
        same = made.astype(column.dtype)
    except (TypeError, ValueError):
        return made.infer_objects()
    return same if (same.astype(object) == made)[made.notna()].all() else made.infer_objects()
