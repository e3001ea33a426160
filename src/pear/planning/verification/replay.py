"""What does each step of a plan do, may it be done, and what does it cost?

Worked out one step at a time from the declarations in the problem. It shares no code with
the searches, nor with the arrays they work on, so that an error there does not repeat here.

References: paper, eqn. cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pear.problem import Action, Feature, Limits, Problem, Requirement

Record = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """One step done by the book: the record after it, its cost, and what forbids it."""

    after: Record
    cost: float
    forbidden: str = ""


def action_named(problem: Problem, name: str) -> Action | None:
    """The declared action of this name."""
    return next((action for action in problem.actions.actions if action.name == name), None)


def move_number(problem: Problem, action: Action, argument: Any) -> int | None:
    """The number of an action with an argument, counting action by action."""
    number = 0
    for declared in problem.actions.actions:
        for candidate in declared.arguments:
            if declared.name == action.name and candidate == argument:
                return number
            number += 1
    return None


def record_problem(problem: Problem, record: Record) -> str:
    """What is wrong with a starting record; empty if nothing is."""
    names = [feature.name for feature in problem.space.features]
    if sorted(record) != sorted(names):
        return f"it must hold exactly {', '.join(names)}"
    for feature in problem.space.features:
        value = record[feature.name]
        if feature.kind == "categorical" and value not in feature.categories:
            return f"'{feature.name}' has no category {value!r}"
        if feature.kind == "boolean" and not isinstance(value, bool):
            return f"'{feature.name}' must be true or false (it is {value!r})"
        if feature.kind in ("numeric", "integer"):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return f"'{feature.name}' must be a number (it is {value!r})"
            if not _within(value, feature.lower, feature.upper):
                return f"'{feature.name}' must be within its bounds (it is {value!r})"
    return ""


def do_step(
    problem: Problem,
    record: Record,
    action: Action,
    argument: Any,
    limits: Limits,
    weights: tuple[tuple[float, ...], ...],
) -> Done:
    """Do one step, whether or not it is allowed."""
    feature = _feature(problem, action.feature)
    before = record[feature.name]
    after = before + argument if action.mode == "add" else argument
    changed = {**record, feature.name: after}
    costs = [_cost(problem, record, feature, before, after, row) for row in weights]
    forbidden = _forbidden(record, action, feature, before, after, limits)
    return Done(changed, sum(costs) / len(costs) if costs else 0.0, forbidden)


def _forbidden(
    record: Record, action: Action, feature: Feature, before: Any, after: Any, limits: Limits
) -> str:
    """Why a step may not be done; empty if it may."""
    if after == before:
        return f"'{feature.name}' is {before!r} already"
    for lower, upper in ((feature.lower, feature.upper), (action.lower, action.upper)):
        if not feature.is_categorical and not _within(after, lower, upper):
            return f"{after!r} is out of bounds"
    rises = _position(feature, after) - _position(feature, before)
    if (action.direction == "increase" and rises < 0) or (
        action.direction == "decrease" and rises > 0
    ):
        return f"'{action.name}' may only {action.direction} '{feature.name}'"
    for requirement in action.requires:
        if not _met(requirement, record[requirement.feature]):
            return f"'{requirement.feature}' is {record[requirement.feature]!r} at that point"
    if feature.name in limits.features:
        return f"the person excluded '{feature.name}'"
    if action.name in limits.actions:
        return f"the person excluded '{action.name}'"
    if (feature.name, after) in limits.values:
        return f"the person excluded {feature.name} = {after!r}"
    return ""


def _cost(
    problem: Problem, record: Record, feature: Feature, before: Any, after: Any, row: Any
) -> float:
    """max(floor, w_k |change| + sum over parents of w_jk (offset + value))."""
    graph = problem.costs
    weight = dict(zip(graph.weight_names, row, strict=True))
    cost = weight[feature.name] * _size_of_change(problem, feature, before, after)
    for parent, child in graph.edges:
        if child == feature.name:
            seen = _seen_by_costs(_feature(problem, parent), record[parent])
            cost += weight[f"{parent}->{child}"] * (graph.offset + seen)
    return float(cost if graph.floor is None else max(graph.floor, cost))


def _size_of_change(problem: Problem, feature: Feature, before: Any, after: Any) -> float:
    if feature.is_categorical:
        return 1.0
    size = abs(_seen_by_costs(feature, after) - _seen_by_costs(feature, before))
    zero_change = problem.costs.zero_change
    return float(zero_change) if size == 0 and zero_change is not None else size


def _seen_by_costs(feature: Feature, value: Any) -> float:
    """Numbers on their scale, clipped to [0, 1]; categories 1, or their declared level."""
    if feature.is_categorical:
        return float(feature.levels[feature.categories.index(value)]) if feature.levels else 1.0
    if feature.scale is None:
        return float(value)
    low, high = feature.scale
    return min(1.0, max(0.0, (float(value) - low) / (high - low)))


def _feature(problem: Problem, name: str) -> Feature:
    return next(feature for feature in problem.space.features if feature.name == name)


def _position(feature: Feature, value: Any) -> float:
    return float(feature.categories.index(value) if feature.is_categorical else value)


def _within(value: Any, lower: float | None, upper: float | None) -> bool:
    return (lower is None or value >= lower) and (upper is None or value <= upper)


def _met(requirement: Requirement, value: Any) -> bool:
    if requirement.values and value not in requirement.values:
        return False
    if requirement.lower is None and requirement.upper is None:
        return True
    return _within(value, requirement.lower, requirement.upper)
