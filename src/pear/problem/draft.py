"""What is a first problem for a table of people, to be reviewed by someone who knows them?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pear.errors import InvalidData
from pear.problem import names
from pear.problem.actions import Action, ActionSpace
from pear.problem.checks import plain
from pear.problem.costs import CostGraph
from pear.problem.draft_features import draft_feature, nice_step
from pear.problem.features import Feature, FeatureSpace
from pear.problem.files import problem_to_toml
from pear.problem.problem import Goal, Problem
from pear.problem.toml_text import toml_path

MOST_CLASSES = 20
STEPS = 10
"""A drafted grid has about this many steps each way."""


@dataclass(frozen=True)
class Draft:
    """A first problem, and what its author should look at, by table of the file."""

    problem: Problem
    comments: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that gave no feature, and why."""

    def text(self) -> str:
        """The draft as the text of a ``problem.toml`` with its comments."""
        return problem_to_toml(self.problem, self.comments)


def draft_problem(table: pd.DataFrame, target: str, name: str = "draft", model: str = "") -> Draft:
    """A first problem from a table with one row per person and the decision in ``target``.

    >>> table = pd.DataFrame({"age": [30, 50, 41], "income": [900.0, 2500.5, 1800.0],
    ...                       "approved": [0, 1, 1]})
    >>> draft = draft_problem(table, "approved")
    >>> [action.name for action in draft.problem.actions.actions]
    ['increase_income', 'reduce_income']
    >>> draft.problem.space["age"].immutable, draft.problem.goal.favourable
    (True, (1,))
    """
    if target not in table.columns:
        raise InvalidData(
            f"the table has no column '{target}'; its columns are {', '.join(table.columns)}"
        )
    favourable, goal_comment = _favourable(table[target], target)
    features: list[Feature] = []
    actions: list[Action] = []
    left_out: dict[str, str] = {}
    comments = {"goal": goal_comment}
    for column in table.columns:
        if column == target:
            continue
        drafted = draft_feature(column, table[column])
        if isinstance(drafted, str):
            left_out[column] = drafted
            continue
        feature, comment = drafted
        features.append(feature)
        if comment:
            comments[toml_path("features", column)] = comment
        taken = {action.name for action in actions}
        for action in _actions(feature, table[column], taken):
            actions.append(action)
            if names.is_debt(feature.name):
                comments[toml_path("actions", action.name)] = (
                    "Review: can this really be brought down, or is it history?"
                )
    if not features or not actions:
        raise InvalidData(
            f"the table has no column that a person could change (got {', '.join(table.columns)}); "
            "give a table with more columns, or write the problem by hand"
        )
    space = FeatureSpace(tuple(features))
    problem = Problem(
        space,
        ActionSpace(space, tuple(actions)),
        CostGraph(space),
        Goal(favourable),
        name=name,
        model=model,
    )
    comments[""] = _head(len(table), left_out)
    comments["costs"] = "Review: add edges, [parent, child], where one thing makes another harder."
    comments["weights"] = "Review: the range in which most people's weights lie."
    return Draft(problem, comments, left_out)


def left_out_words(left_out: dict[str, str]) -> str:
    """Columns that were left out, each with its reason.

    >>> left_out_words({"customer": "names rows", "note": "250 different texts"})
    'Left out: customer (names rows), note (250 different texts).'
    """
    return f"Left out: {', '.join(f'{name} ({why})' for name, why in left_out.items())}."


def _head(rows: int, left_out: dict[str, str]) -> str:
    lines = [
        f"A first draft from a table of {rows:,} people. Read what is marked 'Review', correct it,",
        "and run 'pear check' on the result.",
    ]
    if left_out:
        lines.append(left_out_words(left_out))
    return "\n".join(lines)


def _favourable(column: pd.Series, target: str) -> tuple[tuple[Any, ...], str]:
    values = [plain(value) for value in pd.unique(column.dropna())]
    if not 2 <= len(values) <= MOST_CLASSES:
        raise InvalidData(
            f"the target '{target}' must have 2 to {MOST_CLASSES} classes (got {len(values)} "
            "different values); name the column with the decision"
        )
    classes = sorted((_whole(value) for value in values), key=lambda v: (str(type(v)), v))
    guess = classes[0] if names.is_bad_outcome(target) else classes[-1]
    good = [c for c in classes if str(c).strip().lower() in _GOOD_CLASSES]
    if good and not names.is_bad_outcome(target):
        guess = good[0]
    shown = ", ".join(str(c) for c in classes)
    return (guess,), f"Review: {guess} was taken for the favourable one of {shown}."


_GOOD_CLASSES = {"yes", "true", "approved", "accepted", "good", "granted", "y", "paid"}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value == int(value) else value


def _actions(feature: Feature, column: pd.Series, taken: set[str]) -> list[Action]:
    if feature.immutable:
        return []
    name = "_".join(names.words_of(feature.name)) or feature.name
    plain_name, number = name, 1
    while taken & {f"{verb}_{name}" for verb in ("change", "increase", "reduce")}:
        number += 1
        name = f"{plain_name}_{number}"
    if feature.is_categorical:
        return [Action(f"change_{name}", feature.name, "set", feature.categories)]
    if feature.kind == "boolean":
        return [Action(f"change_{name}", feature.name, "set", (True, False))]
    amounts = _amounts(feature, column.dropna().to_numpy(float))
    down = Action(
        f"reduce_{name}", feature.name, "add", tuple(-a for a in amounts), direction="decrease"
    )
    if names.is_debt(feature.name):
        return [down]
    return [Action(f"increase_{name}", feature.name, "add", amounts, direction="increase"), down]


def _amounts(feature: Feature, values: Any) -> tuple[Any, ...]:
    """Round amounts up to the range in which nearly all people lie."""
    low, high = np.quantile(values, [0.05, 0.95])
    if low == high:
        low, high = values.min(), values.max()
    step = nice_step((high - low) / STEPS, whole=feature.kind == "integer")
    n = max(1, min(STEPS, int((high - low) / step + 1e-9)))
    return tuple(
        step * i if isinstance(step, int) else round(step * i, 12) for i in range(1, n + 1)
    )
