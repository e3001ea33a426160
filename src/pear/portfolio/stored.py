"""Is this what a conversation stores? Its parts in our own types, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidData, InvalidRecord
from pear.preferences import Answer, Question, ResponseModel, answer_from_dict, response_from_dict
from pear.problem import Limits, Problem
from pear.problem.checks import is_finite, is_missing, is_number, is_whole, shown
from pear.problem.features import Feature
from pear.problem.people import name_of

REMEDY = "store Session.to_json(), one per line"


def a_mapping(value: Any, what: str) -> Mapping[str, Any]:
    """A JSON object, or a refusal."""
    if not isinstance(value, Mapping):
        raise InvalidData(
            f"this is not a stored conversation: {what} must be a JSON object "
            f"(got {shown(value)}); {REMEDY}"
        )
    return value


def a_list(content: Mapping[str, Any], key: str) -> Sequence[Any]:
    """The list under a key, or a refusal."""
    if key not in content:
        raise InvalidData(f"this is not a stored conversation: it has no '{key}'; {REMEDY}")
    value = content[key]
    if not isinstance(value, (list, tuple)):
        raise InvalidData(
            f"this is not a stored conversation: '{key}' must be a list (got {shown(value)}); "
            f"{REMEDY}"
        )
    return value


def person_name(content: Mapping[str, Any]) -> str:
    """Whose conversation it is: ``id``, else ``reference``; empty where neither says.

    >>> person_name({"id": 0}), person_name({"id": None, "reference": "A7"}), person_name({})
    ('0', 'A7', '')
    """
    for key in ("id", "reference"):
        value = content.get(key)
        if not is_missing(value) and not isinstance(value, str) and not is_number(value):
            raise InvalidData(f"'{key}' must be a text or a number (got {shown(value)})")
        if name_of(value):
            return name_of(value)
    return ""


def an_answer(event: Mapping[str, Any], problem: Problem) -> tuple[Question, Answer]:
    """A question and the answer to it."""
    state = a_state(event.get("state"), problem)
    plans = [a_plan(moves, problem) for moves in a_list(event, "plans")]
    if not plans:
        raise InvalidData("a question of the conversation offers no plans ('plans' is empty)")
    features = [problem.costs.sequence_features(state, problem.actions, moves) for moves in plans]
    question = Question.from_plans(features, problem.costs.floor)
    content = a_mapping(event.get("answer"), "'answer'")
    try:
        answer = answer_from_dict(content)
    except TypeError:
        raise InvalidData(f"this is no answer to a question: {dict(content)!r}; {REMEDY}") from None
    answer.check(question)
    return question, answer


def a_state(values: Any, problem: Problem) -> NDArray[np.float64]:
    """The state ``(d,)`` a question started from: of somebody who could be."""
    features = problem.space.features
    if not isinstance(values, (list, tuple)) or len(values) != len(features):
        raise InvalidData(
            f"'state' of a question must be {len(features)} numbers, one per feature "
            f"(got {shown(values)})"
        )
    for feature, code in zip(features, values, strict=True):
        if not is_finite(code) or not _possible(feature, float(code)):
            raise InvalidData(
                f"'state' of a question has an impossible '{feature.name}' (got {code!r})"
            )
    return np.array(values, float)


def _possible(feature: Feature, code: float) -> bool:
    if feature.is_categorical:
        return code.is_integer() and 0 <= code < len(feature.categories)
    whole = feature.kind == "integer" and code.is_integer()
    try:
        feature.code(int(code) if whole else code)
    except InvalidRecord:
        return False
    return True


def a_plan(moves: Any, problem: Problem) -> Sequence[int]:
    """The moves of a plan that was offered."""
    most = len(problem.actions)
    known = isinstance(moves, (list, tuple)) and all(is_whole(m) and 0 <= m < most for m in moves)
    if not known or not moves:
        raise InvalidData(
            f"a plan of a question must list the numbers of its moves, below {most} (got {moves!r})"
        )
    return list(moves)


def a_response(content: Any) -> ResponseModel:
    """How the person was taken to answer."""
    return response_from_dict(a_mapping(content, "'response'"))


def all_limits(
    content: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    person: Mapping[str, Any],
    problem: Problem,
) -> tuple[Limits, ...]:
    """The limits a conversation began with, if it says, and each it was changed to; checked."""
    stated = [content["limits"]] if content.get("limits") is not None else []
    stated += [event.get("limits") for event in events if event.get("kind") == "limits"]
    found = tuple(Limits.from_dict(one) for one in stated)
    start = problem.state({name: person.get(name) for name in problem.space.names})
    for limits in found:
        problem.actions.allowed(start[None], limits)
    return found
