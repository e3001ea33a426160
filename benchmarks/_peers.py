"""Counterfactuals of DiCE for the same people, classifier and actionable features."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from pear.decision import BlackBox
from pear.problem import Problem
from pear.problem.costs import roll_out


@dataclass(frozen=True)
class Answer:
    """One counterfactual for one person: seconds taken, and what it is worth.

    ``found`` says whether its decision is favourable, ``legal`` whether the problem's actions
    lead to it, ``cost`` is that of its cheapest legal order (NaN where there is none).
    """

    seconds: float
    found: bool
    legal: bool
    cost: float


class Classifier:
    """A black box as DiCE wants it: ``predict_proba`` of a table of records.

    DiCE takes what is above one half for favourable: the required score is brought there.
    """

    def __init__(self, problem: Problem, black_box: BlackBox) -> None:
        self.problem, self.black_box = problem, black_box

    def predict_proba(self, table: Any) -> Any:
        frame = pd.DataFrame(table, columns=list(self.problem.space.names))
        scores = self.black_box.score(self.problem.space.encode(frame))
        required = self.problem.goal.required()
        scores = np.interp(scores, [0.0, required, 1.0], [0.0, 0.5, 1.0])
        return np.column_stack([1 - scores, scores])

    def predict(self, table: Any) -> Any:
        return (self.predict_proba(table)[:, 1] > 0.5).astype(int)


def dice_answers(
    problem: Problem,
    black_box: BlackBox,
    people: Any,
    states: Any,
    weights: Any,
    method: str,
    seed: int,
) -> list[Answer]:
    """What DiCE ``random`` or ``genetic`` answers for each of n people.

    ``people`` ``(m, d)`` are the training people it may look at.
    """
    answers = []
    found = dice_tables(problem, black_box, people, states, method, seed)
    for state, weight, (table, seconds) in zip(states, weights, found, strict=True):
        answers.append(judge(problem, black_box, state, weight, table, seconds))
    return answers


def dice_tables(
    problem: Problem, black_box: BlackBox, people: Any, states: Any, method: str, seed: int
) -> Iterator[tuple[Any, float]]:
    """What DiCE gives for each of n people as a table (None: nothing), and the seconds it took."""
    import dice_ml

    space = problem.space
    table = space.frame(people)
    table["favourable"] = (black_box.score(people) > problem.goal.required()).astype(int)
    numbers = [feature.name for feature in space.features if feature.is_number]
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name="favourable")
    model = dice_ml.Model(model=Classifier(problem, black_box), backend="sklearn")
    explainer = dice_ml.Dice(data, model, method=method)
    varied = [space.names[column] for column in problem.actions.actionable]
    for state in states:
        query = space.frame(state[None])
        extra = {"random_seed": seed} if method == "random" else {"verbose": False}
        began = time.perf_counter()
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                result = explainer.generate_counterfactuals(
                    query, total_CFs=1, desired_class=1, features_to_vary=varied, **extra
                )
                found = result.cf_examples_list[0].final_cfs_df
            except Exception:
                found = None
        yield found, time.perf_counter() - began


def dice_targets(
    problem: Problem, black_box: BlackBox, people: Any, states: Any, method: str, seed: int
) -> Iterator[Any]:
    """The state that DiCE would have each of n people reach, ``(d,)``; None where it has none."""
    for found, _ in dice_tables(problem, black_box, people, states, method, seed):
        try:
            yield problem.space.encode(found[list(problem.space.names)].iloc[:1])[0]
        except (TypeError, ValueError, IndexError):
            yield None


def judge(
    problem: Problem, black_box: BlackBox, state: Any, weights: Any, found: Any, seconds: float
) -> Answer:
    """Whether an answer is favourable, whether the actions lead to it, and at what cost."""
    if found is None or not len(found):
        return Answer(seconds, False, False, np.nan)
    try:
        target = problem.space.encode(found[list(problem.space.names)].iloc[:1])[0]
    except ValueError:
        return Answer(seconds, False, False, np.nan)
    favourable = bool(black_box.score(target[None])[0] > problem.goal.required())
    legal = problem.actions.changes_legally(state[None])[0]
    results = problem.actions.results(state[None])[0]
    moves = []
    for column in np.flatnonzero(~np.isclose(target, state)):
        mine = (problem.actions.feature_of == column) & legal & np.isclose(results, target[column])
        if not mine.any():
            return Answer(seconds, favourable, False, np.nan)
        moves.append(int(np.flatnonzero(mine)[0]))
    if len(moves) > problem.max_length:
        return Answer(seconds, favourable, False, np.nan)
    orders = np.array(list(permutations(moves)), np.intp)
    made = roll_out(problem.costs, problem.actions, state[None], orders)
    costs = made.costs(weights)[made.illegal == 0]
    cost = float(costs.min(initial=np.inf))
    return Answer(seconds, favourable, bool(np.isfinite(cost)), cost)
