"""Simulated people: how good is the plan after each question?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.elicitation.says import check_seed, costed_question
from pear.elicitation.session import Session
from pear.elicitation.settings import Settings
from pear.errors import InvalidSetting
from pear.parallel import run_tasks
from pear.planning.planner import Planner
from pear.preferences import GaussianMixturePrior, Question, ResponseModel
from pear.problem import Plan


@dataclass(frozen=True)
class SimulatedPerson:
    """Answers questions by true weights ``(p,)`` and a response model."""

    weights: Floats
    response: ResponseModel

    def choose(self, question: Question, rng: np.random.Generator) -> int:
        """The plan this person picks."""
        probabilities = np.exp(self.response.log_probabilities(question.costs(self.weights[None])))
        return int(rng.choice(question.n_plans, p=probabilities[0] / probabilities[0].sum()))


def question_of(session: Session, plans: Sequence[Plan]) -> Question:
    """The open question of a session as its cost features."""
    state = session.question_state()
    return costed_question(session.planner.problem, state, [plan.moves for plan in plans])


def converse(
    session: Session,
    person: SimulatedPerson,
    n_questions: int,
    rng: np.random.Generator,
    on_question: Callable[[Session, Any, int], None] | None = None,
) -> Iterator[Plan | None]:
    """Hold a conversation; yields the best plan before the first and after every answer.

    When nothing is left to ask, the best plan stays what it is.
    """
    yield session.best()
    for _ in range(n_questions):
        asked = session.ask()
        if asked is not None:
            question = question_of(session, asked.plans)
            choice = person.choose(question, rng)
            if on_question is not None:
                on_question(session, asked, choice)
            session.answer(choice)
        yield session.best()


@dataclass(frozen=True)
class Simulation:
    """One set of conversations to simulate; pickled to worker processes."""

    planner: Planner
    prior: GaussianMixturePrior
    settings: Settings
    response: ResponseModel
    n_questions: int
    seed: int

    def run(self, task: tuple[int, Floats, Floats]) -> list[dict[str, float]]:
        """Rows of one person: (number, state, true weights)."""
        number, state, weights = task
        planner, costs = self.planner, self.planner.problem.costs

        def true_cost(plan: Plan | None) -> float:
            if plan is None or not plan.success:
                return np.nan
            return float(costs.sequence_cost(state, planner.problem.actions, plan.moves, weights))

        rng = np.random.default_rng([self.seed, number])
        optimum = true_cost(planner.plan(state, weights, rng=rng))
        for_mean = true_cost(planner.plan(state, self.prior.mean(), rng=rng))
        session = Session(
            planner, state, self.prior, settings=self.settings, seed=self.seed * 100_003 + number
        )
        person = SimulatedPerson(weights, self.response)
        plans = converse(session, person, self.n_questions, rng)
        return [
            {
                "person": number,
                "questions": asked,
                "success": float(plan is not None and plan.success),
                "cost": true_cost(plan),
                "length": float(plan.length) if plan is not None else np.nan,
                "optimum": optimum,
                "cost_for_mean": for_mean,
            }
            for asked, plan in enumerate(plans)
        ]


def simulate(
    planner: Planner,
    states: Floats,
    weights: Floats,
    prior: GaussianMixturePrior,
    *,
    response: ResponseModel,
    believed: ResponseModel | None = None,
    settings: Settings | None = None,
    n_questions: int = 10,
    seed: int = 0,
    workers: int | None = 1,
    progress: bool | Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Conversations with people of true ``weights`` ``(n, p)`` at ``states`` ``(n, d)``.

    One row per person and number of questions: the true cost of the plan then recommended,
    the cost of the planner's plan for the true weights (``optimum``: the true one when the
    planner is exact) and for the prior mean. Every question is asked that has any gain.

    People answer by ``response``. The conversation judges them by ``believed``, or, where it is
    left out, by the very same, which is more than one can know of somebody.

    ``workers`` are processes, None for one per core. ``progress`` is True for a bar, or is
    called with how many people are done and how many there are. The rows depend on neither.
    """
    if len(states) != len(weights):
        raise InvalidSetting(f"{len(states)} states do not go with {len(weights)} weight vectors")
    if not len(states):
        raise InvalidSetting("'states' must have at least one person (got none)")
    settings = replace(
        settings or Settings(),
        response=believed or response,
        max_questions=n_questions,
        min_gain=0.0,
    )
    simulation = Simulation(planner, prior, settings, response, n_questions, check_seed(seed))
    tasks = [
        (i, state, weight) for i, (state, weight) in enumerate(zip(states, weights, strict=True))
    ]
    results: list[list[dict[str, float]]] = [[] for _ in tasks]
    with _reported(progress) as report:
        for done, (number, rows) in enumerate(
            run_tasks(simulation.run, tasks, workers=workers), start=1
        ):
            results[number] = rows
            report(done, len(tasks))
    return pd.DataFrame([row for rows in results for row in rows])


@contextmanager
def _reported(
    progress: bool | Callable[[int, int], None] | None,
) -> Iterator[Callable[[int, int], None]]:
    """What to call when one more person is done."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, people: None
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = BarColumn(), MofNCompleteColumn(), "people", TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, people: bar.update(task, completed=done, total=people)


def regret_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per number of questions: mean cost, excess over the optimum, the paper's normalised regret.

    ``validity`` is over everybody, the rest over people for whom a plan was found.
    ``excess`` is the mean cost over the mean optimum, less 1. ``normalised_regret`` is the
    mean of (cost - optimum) / (cost for the prior mean - optimum) over people with room
    between the two; ``without_room`` counts the others (paper, section 5, Q1). A person with
    hardly any room weighs heavily in it; ``normalised_average_regret`` is the same of the
    mean costs, over everybody.
    """
    validity = rows.groupby("questions")["success"].mean()
    # A person without a plan must not lower the cost and leave the optimum as it is.
    rows = rows[rows["cost"].notna() & rows["optimum"].notna()]
    rows = rows.assign(room=rows["cost_for_mean"] - rows["optimum"])
    rows["regret"] = np.where(
        rows["room"] > 1e-6, (rows["cost"] - rows["optimum"]) / rows["room"], np.nan
    )
    grouped = rows.groupby("questions")
    return pd.DataFrame(
        {
            "validity": validity,
            "cost": grouped["cost"].mean(),
            "optimum": grouped["optimum"].mean(),
            "excess": grouped["cost"].mean() / grouped["optimum"].mean() - 1.0,
            "normalised_regret": grouped["regret"].mean(),
            "normalised_average_regret": (grouped["cost"].mean() - grouped["optimum"].mean())
            / grouped["room"].mean(),
            "without_room": grouped["regret"].apply(lambda regret: int(regret.isna().sum())),
        }
    )
