"""Does a plan last? How many of tomorrow's models accept it, and which margin keeps it valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import InvalidSetting
from pear.planning.planner import Planner
from pear.problem import Limits, Plan, Problem

MARGINS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4)
"""Margins that are tried, from none upwards."""


def accepted(plans: Sequence[Plan], problem: Problem, models: Sequence[BlackBox]) -> Floats:
    """Which models accept where each plan leads, shape ``(plans, models)``: 1 yes, 0 no.

    A plan is held to what it promised: the threshold, not the margin it was made with. A row is
    NaN for somebody without a plan.
    """
    answers = np.full((len(plans), len(models)), np.nan)
    found = [number for number, plan in enumerate(plans) if plan.success]
    if not found:
        return answers
    ends = np.stack([_end(plans[number], problem) for number in found])
    for column, model in enumerate(models):
        answers[found, column] = model.score(ends) > problem.goal.threshold
    return answers


def _end(plan: Plan, problem: Problem) -> Floats:
    """The state a plan leads to ``(d,)``."""
    start = problem.state(plan.start)
    for step in plan.steps:
        start[problem.space.index(step.feature)] = problem.space[step.feature].code(step.after)
    return start


@dataclass(frozen=True)
class Robustness:
    """How well n plans last: ``answers`` ``(n, m)`` of m models, without people without a plan."""

    answers: Floats

    @classmethod
    def of(cls, plans: Sequence[Plan], problem: Problem, models: Sequence[BlackBox]) -> Robustness:
        """What these models say of these plans."""
        if not models:
            raise InvalidSetting("'models' must name at least one model (got none)")
        answers = accepted(plans, problem, models)
        return cls(answers[~np.isnan(answers).any(axis=1)])

    @property
    def share(self) -> float:
        """The share of all pairs of a plan and a model in which the model accepts; NaN without a
        plan."""
        return float(self.answers.mean()) if len(self.answers) else float("nan")

    def lasting(self, demanded: float) -> float:
        """The share of plans that at least the share ``demanded`` of the models accept."""
        if not len(self.answers):
            return float("nan")
        return float((self.answers.mean(axis=1) >= demanded - 1e-9).mean())

    def words(self, demanded: float = 0.95) -> str:
        """The result as a sentence."""
        plans, models = self.answers.shape
        if not plans:
            return "There is no plan to try."
        if plans == 1:
            yes = int(self.answers.sum())
            return f"{yes} of {models} models accept this plan ({self.share:.0%})."
        return (
            f"A plan is accepted by {self.share:.1%} of {models} models on average; "
            f"{self.lasting(demanded):.0%} of {plans:,} plans by at least {demanded:.0%} of them."
        )


@dataclass(frozen=True)
class Calibration:
    """The smallest margin tried with which plans stay valid in the share of models demanded.

    ``margin`` is None where none of those tried is enough. ``share`` is the share of models that
    accept a plan made with it, ``cost_ratio`` what plans then cost relative to plans without, by
    people who have both, and ``planned`` the share of people with a plan who still have one.
    """

    margin: float | None
    demanded: float
    share: float
    cost_ratio: float
    planned: float
    people: int
    models: int

    def words(self) -> str:
        """In a sentence."""
        of = f"(measured on {self.people:,} people and {self.models} models)"
        if self.margin is None:
            return (
                f"No margin up to {MARGINS[-1]} keeps plans valid in {self.demanded:.0%} of the "
                f"models; with the largest, {self.share:.1%} accept a plan {of}."
            )
        return (
            f"Plans with margin {self.margin:g} stay valid in {self.share:.1%} of the models, cost "
            f"{self.cost_ratio:.2f} times as much, and {self.planned:.0%} of the people who have "
            f"a plan without it still have one {of}."
        )


@dataclass(frozen=True)
class Rehearsal:
    """A planner for a model of today, and the models that decide tomorrow about its plans."""

    planner: Planner
    models: Sequence[BlackBox]


def calibrated_margin(
    rehearsals: Sequence[Rehearsal],
    states: Floats,
    weights: Floats,
    demanded: float = 0.95,
) -> Calibration:
    """Which margin keeps plans valid in a share of the models?

    Plans exploit what a model likes, its mistakes included. Models that share people with the one
    planned for share some of its mistakes, and promise too much: :func:`.halves` of
    :mod:`pear.decision.several_models` makes pairs that share nobody.

    Parameters
    ----------
    rehearsals
        Each plans for those of its people whom its own model refuses. The people are dealt out to
        the rehearsals in turn.
    states, weights
        People ``(n, d)``, and their weights ``(p,)`` or ``(n, p)``.
    demanded
        The share of the models that must accept a plan, on average over the plans.
    """
    if not 0 < demanded <= 1:
        raise InvalidSetting(f"'demanded' must be a share above 0, at most 1 (got {demanded!r})")
    if not len(states):
        raise InvalidSetting("'states' must have at least one person (got none)")
    if not rehearsals:
        raise InvalidSetting("'rehearsals' must have at least one (got none)")
    problem = rehearsals[0].planner.problem
    each = np.broadcast_to(weights, (len(states), np.shape(weights)[-1]))
    dealt = []
    for number, rehearsal in enumerate(rehearsals):
        mine = np.arange(number, len(states), len(rehearsals))
        mine = mine[~rehearsal.planner.black_box.favourable(states[mine])]
        dealt.append((rehearsal, states[mine], each[mine]))

    def plans_with(margin: float) -> list[list[Plan]]:
        limits = Limits(margin=margin)
        return [one.planner.plan_many(own, theirs, limits) for one, own, theirs in dealt]

    def share_of(plans: Sequence[Sequence[Plan]]) -> float:
        found = [
            answers.mean(axis=1)
            for mine, (rehearsal, _, _) in zip(plans, dealt, strict=True)
            if len(answers := Robustness.of(mine, problem, rehearsal.models).answers)
        ]
        return float(np.concatenate(found).mean()) if found else float("nan")

    plain = plans_with(0.0)
    margins = [one for one in MARGINS if problem.goal.threshold + one < 1]
    # Validity grows with the margin but for chance: the first place where it is enough.
    low, high, made = 0, len(margins), {0: plain}
    while low < high:
        middle = (low + high) // 2
        made[middle] = made.get(middle) or plans_with(margins[middle])
        if share_of(made[middle]) >= demanded:
            high = middle
        else:
            low = middle + 1
    chosen = made[min(low, len(margins) - 1)]
    both = [
        (before, after)
        for mine, theirs in zip(plain, chosen, strict=True)
        for before, after in zip(mine, theirs, strict=True)
        if before.success and after.success
    ]
    spent = sum(before.cost for before, _ in both)
    return Calibration(
        margin=margins[low] if low < len(margins) else None,
        demanded=demanded,
        share=share_of(chosen),
        cost_ratio=sum(after.cost for _, after in both) / spent if spent else 1.0,
        planned=len(both) / max(1, sum(plan.success for mine in plain for plan in mine)),
        people=sum(len(own) for _, own, _ in dealt),
        models=len({id(model) for one in rehearsals for model in one.models}),
    )
