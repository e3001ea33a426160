"""How would a study come out with people we made up? The same way through it, without a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.elicitation import Standing
from pear.preferences import Logistic
from pear.problem import Plan
from pear.study.design import AFTER_TASK, AT_THE_END, POINTS, Participant, Study, export
from pear.study.engine import StudyEngine

SHARPNESS = 0.3
"""How carefully simulated participants choose."""


def simulate_study(study: Study, engine: StudyEngine, n: int, seed: int = 0) -> pd.DataFrame:
    """What n simulated participants leave behind, as :func:`export` gives it.

    Their true weights are drawn from the engine's prior for each task. They choose by costs, with
    some noise; the more their plan costs them above the cheapest there is for them, the worse they
    rate it. ``excess`` is added as a column: that share, which nobody knows of a real participant.
    """
    found = []
    for number in range(n):
        one, excess = _through(study, engine, study.participant(number), seed)
        table = export([one])
        found.append(table.assign(participant=number, excess=excess))
    return pd.concat(found, ignore_index=True)


def _through(
    study: Study, engine: StudyEngine, one: Participant, seed: int
) -> tuple[Participant, list[float]]:
    """One participant from consent to thanks, and what each plan cost them too much."""
    rng, at, excess = np.random.default_rng([seed, 3, one.number]), 0.0, list[float]()
    weights = engine.prior.sample(len(one.tasks), rng)[0]
    while (page := study.next(one)).kind != "thanks":
        said: dict[str, Any] = {"agree": True}
        shown: Any = None
        if page.kind == "plans":
            case = study.case(one, page.task)
            shown = engine.ways(case) if one.arm == "list" else engine.look(case).standing
            said, seconds = _choice(engine, shown, weights[page.task], rng)
            at += seconds
        elif page.kind == "items":
            took = one.of("took", page.task)
            assert took is not None
            start = engine.problem.state(study.record(one, page.task))
            excess.append(_excess(engine, start, took["moves"], weights[page.task]))
            said = _rated(AFTER_TASK, excess[-1], rng)
        elif page.kind == "end":
            said = _rated(AT_THE_END, float(np.mean(excess)), rng)
        events = [{**event, "at": at} for event in study.take(one, said, shown)]
        one = replace(one, events=(*one.events, *events))
    return one, excess


def _plans(shown: Any) -> list[Plan]:
    if isinstance(shown, Standing):
        return list(shown.question.plans) if shown.question is not None else []
    return list(shown)


def _choice(
    engine: StudyEngine, shown: Any, weights: Floats, rng: np.random.Generator
) -> tuple[dict[str, Any], float]:
    """What somebody of these weights says to the plans shown, and the seconds it takes to read."""
    plans = _plans(shown)
    if not plans:
        return {}, 10.0
    problem = engine.problem
    start = problem.state(plans[0].start)
    costs = [
        problem.costs.sequence_cost(start, problem.actions, plan.moves, weights) for plan in plans
    ]
    chances = np.exp(Logistic(SHARPNESS).log_probabilities(np.array(costs)[None])[0])
    steps = sum(plan.length for plan in plans)
    return {"choice": int(rng.choice(len(plans), p=chances / chances.sum()))}, 5.0 + 4.0 * steps


def _excess(
    engine: StudyEngine, start: Floats, moves: Sequence[int] | None, weights: Floats
) -> float:
    """What a plan costs somebody above the cheapest there is for them, as a share."""
    best = engine.planner.plan(start, weights)
    if moves is None or not best.success or best.cost <= 0:
        return 0.0
    problem = engine.problem
    cost = problem.costs.sequence_cost(start, problem.actions, tuple(moves), weights)
    return max(0.0, float(cost) / best.cost - 1.0)


def _rated(items: tuple[str, ...], excess: float, rng: np.random.Generator) -> dict[str, int]:
    """Ratings that fall with the excess, and differ by chance; frustration and thinking rise."""
    middle = 6.0 - 4.0 * min(excess, 1.0)
    found = {}
    for name in items:
        mean = 8.0 - middle if name in ("frustration", "thinking") else middle
        found[name] = int(np.clip(np.rint(mean + rng.normal(0, 0.8)), 1, POINTS))
    return found
