"""What is asked, what is answered, what is recommended: the turns of a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pear.errors import ConversationError
from pear.preferences import AboutTheSame, Answer, Chosen, NoneOfThese
from pear.problem import Plan


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


def read_choice(choice: Any, n_plans: int) -> Answer:
    """The answer a person gave: a plan's place from 0, ``same`` or ``none``."""
    if choice == "same":
        return AboutTheSame()
    if choice == "none":
        return NoneOfThese()
    if (
        isinstance(choice, (int, np.integer))
        and not isinstance(choice, bool)
        and 0 <= choice < n_plans
    ):
        return Chosen(int(choice))
    raise ConversationError(
        f"an answer must be a plan from 0 to {n_plans - 1}, 'same' or 'none' (got {choice!r})"
    )
