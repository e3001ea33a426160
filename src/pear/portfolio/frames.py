"""What would it take for everyone in a DataFrame?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.decision import load_model
from pear.errors import InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.planning.planner import confirm, one_per_person
from pear.portfolio.beliefs import SAMPLES, prior_draws
from pear.preferences import default_prior
from pear.problem import NO_LIMITS, Limits, Plan, Problem
from pear.problem.feature_space import value_column
from pear.problem.features import PeopleLike

TOGETHER = 64
"""People searched at a time: their states go to the model in one call."""

COLUMNS = {
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


def recourse(
    model: Any,
    people: PeopleLike,
    problem: Problem,
    *,
    weights: pd.DataFrame | Mapping[str, float] | Floats | None = None,
    limits: Limits | Sequence[Limits] = NO_LIMITS,
    max_length: int | None = None,
    max_rows: int = 200_000,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """The cheapest plan for each of n people, as a table: what to change, in which order, and why
    it can be relied on.

    Parameters
    ----------
    model
        Whatever :func:`load_model` takes: a fitted estimator or pipeline, a torch module, a
        function of states, a file, an address, or a :class:`BlackBox`.
    people
        A DataFrame, one of its rows, a record, or a list of records. A DataFrame keeps its index
        and may have further columns.
    problem
        What people can change, and what decision they need.
    weights
        What changes cost them: a number for each weight by name, a vector ``(p,)``, a row per
        person ``(n, p)`` (an array, or a DataFrame with the index of ``people``), or samples
        ``(n, s, p)``. Left out: draws of the prior that the problem implies, as ``pear plan``
        does, and costs are means over them.
    limits
        What they cannot do: everybody's, or one per person.
    max_length, max_rows
        As for :class:`ExactPlanner`.
    progress
        Called after each group of people with how many are done and how many there are.

    Returns
    -------
    DataFrame
        A row per person: ``decision`` (``approved`` already, or ``refused``), ``success``,
        ``verdict`` (see :class:`Certificate`), ``cost``, ``lower_bound``, ``length``, ``steps``
        in words, ``score_before`` and ``score_after``; then, for every feature that some action
        changes, ``NAME_before`` and ``NAME_after``. Where there is no plan, cost and steps are
        missing and nothing differs.

    Raises
    ------
    InvalidRecord
        Where somebody does not fit the problem, naming the row, the feature and the value.
    ModelError
        Where the model cannot be used.

    Examples
    --------
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> problem = loan_book_problem()
    >>> people = pd.DataFrame(loan_book_people()).T.loc[["Amina"]]
    >>> table = recourse(loan_book_classifier(problem), people, problem)
    >>> table[["decision", "verdict", "length"]]
          decision  verdict  length
    Amina  refused  optimal       4
    """
    black_box = load_model(model, problem)
    states = problem.states(people)
    index = people.index if isinstance(people, pd.DataFrame) else pd.RangeIndex(len(states))
    own = _weights(weights, problem, index)
    everyones = one_per_person(limits, len(states))
    planner = ExactPlanner(problem, black_box, max_length=max_length, max_rows=max_rows)
    plans: list[Plan] = []
    for first in range(0, len(states), TOGETHER):
        group = slice(first, first + TOGETHER)
        found = planner.plan_many(states[group], own[group], everyones[group])
        confirm(problem, black_box, found)
        plans += found
        if progress is not None:
            progress(len(plans), len(states))
    return plans_frame(plans, problem, index)


def _weights(given: Any, problem: Problem, index: pd.Index) -> Floats:
    """Samples of weights for each of n people, ``(n, s, p)``."""
    if given is None:
        draws = prior_draws(default_prior(problem), SAMPLES)
        return np.broadcast_to(draws, (len(index), *draws.shape))
    if isinstance(given, pd.DataFrame):
        absent = [name for name in problem.weight_names if name not in given.columns]
        strangers = index.difference(given.index)
        if absent or len(strangers) or not given.index.is_unique:
            what = f"the columns {', '.join(absent)}" if absent else "one row per person"
            raise InvalidSetting(
                f"the table of weights must have {what}; its columns are the problem's weights "
                f"({', '.join(problem.weight_names)}), its index that of the people"
            )
        given = given.loc[index, list(problem.weight_names)].to_numpy(float)
    return problem.weights_of(len(index), given)


def plans_frame(plans: list[Plan], problem: Problem, index: pd.Index | None = None) -> pd.DataFrame:
    """Plans of n people as a table with a row each: see :func:`recourse`."""
    rows = [
        {
            "decision": "approved" if plan.success and not plan.steps else "refused",
            "success": plan.success,
            "verdict": plan.certificate.verdict,
            "cost": plan.cost if plan.success else np.nan,
            "lower_bound": np.nan
            if plan.certificate.lower_bound is None
            else plan.certificate.lower_bound,
            "length": plan.length if plan.success else None,
            "steps": "; ".join(step.words for step in plan.steps) if plan.success else None,
            "score_before": plan.steps[0].score_before if plan.steps else plan.score,
            "score_after": plan.score,
        }
        for plan in plans
    ]
    frame = pd.DataFrame(rows, index=index, columns=list(COLUMNS)).astype(COLUMNS)
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
