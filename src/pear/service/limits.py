"""What does "I can't do this step" mean, precisely?

A limit is plain data: its ``kind``, what it is about, and an ``id`` to lift it by.

``feature``  leave this feature as it is.
``value``    never this value of this feature.
``beyond``   this value of a number, or anything further in that direction, is out of reach.
``action``   never use this action.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidRecord, InvalidSetting, PearError
from pear.problem import NO_LIMITS, Limits, Problem, Step

KINDS = ("feature", "value", "beyond", "action")
MOST_LIMITS = 40

Limit = Mapping[str, Any]


def check_limit(problem: Problem, limit: Limit) -> dict[str, Any]:
    """The limit with only what its kind needs; one that means nothing here is refused."""
    kind = limit.get("kind")
    if kind not in KINDS:
        raise InvalidSetting(f"'kind' must be one of {', '.join(KINDS)} (got {kind!r})")
    if kind == "action":
        names = [action.name for action in problem.actions.actions]
        if limit.get("action") not in names:
            raise InvalidSetting(
                f"there is no action {limit.get('action')!r}; the actions are {', '.join(names)}"
            )
        return {"kind": "action", "action": limit["action"]}
    changeable = [problem.space.features[column].name for column in problem.actions.actionable]
    name = limit.get("feature")
    if name not in changeable:
        raise InvalidSetting(
            f"'feature' must be one that some step changes (got {name!r}); "
            f"these are {', '.join(changeable)}"
        )
    if kind == "feature":
        return {"kind": "feature", "feature": name}
    feature = problem.space[name]
    value = limit.get("value")
    if isinstance(value, int) and abs(value) > 2**53:
        raise InvalidRecord(f"'{name}' must be a number of reasonable size (got {str(value)[:40]})")
    clean = feature.value(feature.code(value))
    if kind == "value":
        return {"kind": "value", "feature": name, "value": clean}
    if feature.is_categorical or feature.kind == "boolean":
        raise InvalidSetting(f"'{name}' is no number; use a limit of the kind 'value'")
    if limit.get("direction") not in ("up", "down"):
        raise InvalidSetting(f"'direction' must be 'up' or 'down' (got {limit.get('direction')!r})")
    return {"kind": "beyond", "feature": name, "value": clean, "direction": limit["direction"]}


def refusals(problem: Problem, step: Step) -> list[dict[str, Any]]:
    """The limits a person may mean with "I can't do this step", the narrowest first."""
    feature = problem.space[step.feature]
    whole = {"kind": "feature", "feature": step.feature}
    if feature.kind == "boolean" or (step.before is None and not feature.is_categorical):
        return [whole]
    if feature.is_categorical or step.before is None:
        return [{"kind": "value", "feature": step.feature, "value": step.after}, whole]
    direction = "up" if float(step.after) > float(step.before) else "down"
    limit = {"kind": "beyond", "feature": step.feature, "value": step.after}
    return [{**limit, "direction": direction}, whole]


def as_limits(problem: Problem, state: NDArray[np.float64], limits: Iterable[Limit]) -> Limits:
    """A person's limits for the search, from their state ``(d,)``."""
    found = NO_LIMITS
    for limit in limits:
        for name, value in primitives(problem, state, limit):
            if name == "feature":
                found = found.without_features(value)
            elif name == "action":
                found = found.without_actions(value)
            else:
                found = found.without_value(*value)
    return found


def primitives(problem: Problem, state: NDArray[np.float64], limit: Limit) -> list[tuple[str, Any]]:
    """The limit as what a session understands: ("feature", name), ("value", (name, value))…"""
    if limit["kind"] == "feature":
        return [("feature", limit["feature"])]
    if limit["kind"] == "action":
        return [("action", limit["action"])]
    if limit["kind"] == "value":
        return [("value", (limit["feature"], limit["value"]))]
    column = problem.space.index(limit["feature"])
    moves = problem.actions.feature_of == column
    results = np.unique(problem.actions.results(state[None])[0, moves])
    bound = float(limit["value"])
    beyond = results[results >= bound] if limit["direction"] == "up" else results[results <= bound]
    feature = problem.space.features[column]
    return [
        ("value", (limit["feature"], feature.value(code)))
        for code in beyond.tolist()
        if _possible(feature, code)
    ]


def _possible(feature: Any, code: float) -> bool:
    try:
        feature.code(code)
    except PearError:
        return False
    return True


def add_limit(limits: Sequence[Limit], limit: Limit) -> list[dict[str, Any]]:
    """The limits and one more, numbered; the same one twice is kept once."""
    kept = [dict(known) for known in limits]
    if any({k: v for k, v in known.items() if k != "id"} == dict(limit) for known in kept):
        return kept
    if len(kept) >= MOST_LIMITS:
        raise InvalidSetting(f"there can be at most {MOST_LIMITS} limits; remove one first")
    number = 1 + max((int(known["id"]) for known in kept), default=0)
    return [*kept, {"id": str(number), **limit}]
