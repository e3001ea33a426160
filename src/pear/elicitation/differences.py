"""What differs between the plans of a question, in words."""

from __future__ import annotations

from collections.abc import Sequence

from pear.problem import FeatureSpace, Plan, Step


def differences(plans: Sequence[Plan], space: FeatureSpace) -> tuple[str, ...]:
    """One sentence per plan: what it asks for that the others do not, and what it spares.

    The first letters are upper case and there is no cost in it: costs are what we ask about.
    """
    return tuple(
        _difference(plan, [other for other in plans if other is not plan], space) for plan in plans
    )


def _difference(plan: Plan, others: list[Plan], space: FeatureSpace) -> str:
    if not others:
        return "The only plan."
    alone = [step for step in plan.steps if not any(_has(other, step) for other in others)]
    elsewhere = {step.feature for other in others for step in other.steps}
    spared = elsewhere - {step.feature for step in plan.steps}
    parts = []
    if alone:
        parts.append("Only here: " + "; ".join(_lower(step.words) for step in alone))
    if spared:
        names = [space[name].words for name in _in_order(others, spared)]
        parts.append("Leaves as it is: " + ", ".join(names))
    if not parts:
        same = any(_steps(plan) == _steps(other) for other in others)
        if same and any(plan.moves != other.moves for other in others):
            return "The same steps in another order."
        return "Every step of it is in another plan too."
    return ". ".join(parts) + "."


def _has(plan: Plan, step: Step) -> bool:
    return any(own.feature == step.feature and own.after == step.after for own in plan.steps)


def _steps(plan: Plan) -> set[tuple[str, object]]:
    return {(step.feature, step.after) for step in plan.steps}


def _in_order(plans: list[Plan], names: set[str]) -> list[str]:
    ordered = dict.fromkeys(step.feature for plan in plans for step in plan.steps)
    return [name for name in ordered if name in names]


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]
