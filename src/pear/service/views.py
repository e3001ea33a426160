"""What does a person see? Plans as plain data, with what was measured about each step.

Runs in the search processes. Words for people are put to it later, in their language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.problem import Plan, Problem, walk
from pear.problem.actions import Requirement
from pear.service.limits import refusals


def card(problem: Problem, plan: Plan, *, easiest: float | None = None) -> dict[str, Any]:
    """A plan as it is shown; ``easiest`` is the cost that counts as an effort of 1."""
    return {
        "steps": [
            {
                "words": step.words,
                "feature": step.feature,
                "before": step.before,
                "after": step.after,
                "score_before": step.score_before,
                "score_after": step.score_after,
                "reason": step.reason,
                "refusals": refusals(problem, step),
            }
            for step in plan.steps
        ],
        "score": plan.score,
        "effort": plan.cost / easiest if easiest else 1.0,
    }


def differences(plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """What sets each plan of a question apart from the others, feature by feature.

    ``only`` it changes, ``spared`` it leaves alone though another changes it, ``values`` it
    changes to something else than the plans at the places ``others``.
    """
    changes = [{step.feature: step.after for step in plan.steps} for plan in plans]
    found = []
    for place, own in enumerate(changes):
        others = {i: change for i, change in enumerate(changes) if i != place}
        elsewhere = list(dict.fromkeys(name for change in others.values() for name in change))
        values = [
            {
                "feature": name,
                "value": value,
                "others": [[i, change[name]] for i, change in others.items() if name in change],
            }
            for name, value in own.items()
            if any(name in change and change[name] != value for change in others.values())
        ]
        found.append(
            {
                "only": [name for name in own if name not in elsewhere],
                "spared": [name for name in elsewhere if name not in own],
                "values": values,
                "order": any(change == own for change in others.values()),
            }
        )
    return found


def with_reasons(
    problem: Problem,
    black_box: BlackBox,
    plan: Plan,
    shown: Mapping[str, Any],
    weights: NDArray[np.float64],
) -> dict[str, Any]:
    """The card of a plan, with what each step is for.

    ``without`` is the final score if this one step were left out; ``opens`` and ``eases``
    are the numbers of a later step that needs this one first, or is easier after it under
    the ``weights`` ``(p,)``.
    """
    if not plan.steps:
        return dict(shown)
    start = problem.state(plan.start)
    columns = [problem.space.index(step.feature) for step in plan.steps]
    final = start.copy()
    for column, step in zip(columns, plan.steps, strict=True):
        final[column] = problem.space.features[column].code(step.after)
    left_out = np.repeat(final[None], len(columns), axis=0)
    left_out[np.arange(len(columns)), columns] = start[columns]
    scores = black_box.score(left_out)
    steps = []
    for number, step in enumerate(shown["steps"]):
        why = {
            "without": float(scores[number]) if scores[number] <= problem.goal.bar() else None,
            "opens": _opens(problem, plan, number),
            "eases": _eases(problem, plan, number, weights),
        }
        steps.append({**step, "why": why})
    return {**shown, "steps": steps}


def _opens(problem: Problem, plan: Plan, number: int) -> int | None:
    """The later step, counted from 1, that the value reached here makes possible."""
    feature = plan.steps[number].feature
    by_name = {action.name: action for action in problem.actions.actions}
    for later in range(number + 1, len(plan.steps)):
        action = by_name.get(plan.steps[later].action)
        for requirement in action.requires if action else ():
            if requirement.feature == feature and not _met(
                problem, requirement, plan.start[feature]
            ):
                return later + 1
    return None


def _met(problem: Problem, requirement: Requirement, value: Any) -> bool:
    column = problem.space.index(requirement.feature)
    code = np.array([problem.space.features[column].code(value)])
    return bool(problem.actions.requirement_met(column, requirement, code)[0])


def _eases(problem: Problem, plan: Plan, number: int, weights: NDArray[np.float64]) -> int | None:
    """The later step, counted from 1, that costs less because of what is changed here."""
    column = problem.space.index(plan.steps[number].feature)
    states = walk(problem.state(plan.start), problem.actions, plan.moves)
    for later in range(number + 1, len(plan.moves)):
        pair = np.stack([states[later], states[later]])
        pair[1, column] = states[number, column]
        moves = np.repeat(plan.moves[later], 2)
        cost = problem.costs.costs(pair, problem.actions, moves, weights)
        if cost[0] < cost[1] - 1e-6:
            return later + 1
    return None


def alternatives(problem: Problem, best: Plan, plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """The easiest plans with fewer steps than the best, each once."""
    found = []
    seen = {len(best.steps)}
    easiest = plans[-1].cost if plans and plans[-1].success else None
    for plan in plans:
        if plan.success and len(plan.steps) < len(best.steps) and len(plan.steps) not in seen:
            seen.add(len(plan.steps))
            found.append({"steps": len(plan.steps), "plan": card(problem, plan, easiest=easiest)})
    return found
