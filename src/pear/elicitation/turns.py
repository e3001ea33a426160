"""What is asked, what is answered, what is recommended: the turns of a conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pear.errors import ConversationError
from pear.preferences import AboutTheSame, Answer, Chosen, NoneOfThese
from pear.problem import Limits, Plan, Problem
from pear.problem.checks import is_whole
from pear.problem.features import Value


@dataclass(frozen=True)
class ChoiceSet:
    """One question: k plans, and in words what differs between them.

    ``gain`` is what the question is expected to be worth, in cost units.
    """

    number: int
    plans: tuple[Plan, ...]
    differences: tuple[str, ...]
    gain: float


@dataclass(frozen=True)
class Recommendation:
    """The best plan by what the person told us.

    ``confidence`` is the probability that it is within 5% of their best. ``questions_left``
    is how many more are likely to be worth asking, ``gain`` what the next one is worth.
    """

    plan: Plan
    confidence: float
    questions_left: int
    gain: float


def more_limits(
    problem: Problem,
    limits: Limits,
    feature: str | None,
    action: str | None,
    value: tuple[str, Value] | None,
) -> Limits:
    """The limits, and what a person says they cannot do besides."""
    if feature is not None:
        problem.space.index(feature)
        limits = limits.without_features(feature)
    if action is not None:
        limits = limits.without_actions(action)
    return limits if value is None else limits.without_value(*_known(problem, value))


def fewer_limits(
    problem: Problem,
    limits: Limits,
    feature: str | None,
    action: str | None,
    value: tuple[str, Value] | None,
) -> Limits:
    """The limits without those that a person lifts again."""
    lifted = None if value is None else _known(problem, value)
    return replace(
        limits,
        features=tuple(name for name in limits.features if name != feature),
        actions=tuple(name for name in limits.actions if name != action),
        values=tuple(pair for pair in limits.values if pair != lifted),
    )


def _known(problem: Problem, value: tuple[str, Value]) -> tuple[str, Value]:
    """A feature and its value as the problem writes it."""
    feature = problem.space[value[0]]
    stated = feature.value(feature.code(value[1]))
    return feature.name, value[1] if stated is None else stated


def read_choice(choice: Any, n_plans: int) -> Answer:
    """The answer a person gave: a plan's place from 0, ``same`` or ``none``."""
    if isinstance(choice, str) and choice in ("same", "none"):
        return AboutTheSame() if choice == "same" else NoneOfThese()
    if is_whole(choice) and 0 <= choice < n_plans:
        return Chosen(int(choice))
    raise ConversationError(
        f"an answer must be a plan from 0 to {n_plans - 1}, 'same' or 'none' (got {choice!r})"
    )
