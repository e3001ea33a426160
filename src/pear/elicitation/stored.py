"""A stored conversation, checked before it is replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.elicitation.settings import Settings
from pear.errors import (
    ConversationError,
    FingerprintMismatch,
    InvalidInput,
    InvalidRecord,
    InvalidSetting,
)
from pear.planning.planner import Planner
from pear.preferences import GaussianMixturePrior, Question, answer_from_dict
from pear.problem import Limits, Problem
from pear.problem.checks import is_whole

KINDS = ("answer", "limits", "accept")

FORMAT = 1
"""Version of the form a conversation is stored in; those of a later one are not read."""


@dataclass(frozen=True)
class StoredSession:
    """What a stored conversation says, in our own types."""

    seed: int
    settings: Settings
    person: dict[str, Any]
    limits: Limits
    events: tuple[dict[str, Any], ...]


def check_stored(data: Any, planner: Planner, prior: GaussianMixturePrior) -> StoredSession:
    """The parts of a stored conversation that fits this problem, model and prior."""
    if not isinstance(data, Mapping) or not isinstance(data.get("events"), list | tuple):
        raise ConversationError("this is not a stored conversation: it has no 'events'")
    if data.get("format", FORMAT) != FORMAT:
        raise ConversationError(
            f"the conversation is stored in format {data['format']!r} and this version reads "
            f"{FORMAT}; open it with the version that wrote it"
        )
    for name, present in (
        ("problem", planner.problem.fingerprint),
        ("model", planner.black_box.fingerprint),
        ("prior", prior_fingerprint(prior)),
    ):
        stored = data.get(f"{name}_fingerprint")
        if stored != present:
            raise FingerprintMismatch(
                f"the conversation was held with another {name} (fingerprint {stored}, "
                f"this one is {present}); start a new one"
            )
    try:
        return StoredSession(
            seed=check_seed(data["seed"]),
            settings=Settings.from_dict(data["settings"]),
            person=dict(data["person"]),
            limits=Limits.from_dict(data["limits"]),
            events=tuple(_event(event, planner) for event in data["events"]),
        )
    except InvalidInput as error:
        raise ConversationError(f"the stored conversation cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConversationError(f"the stored conversation cannot be read: {error!r}") from None


def prior_fingerprint(prior: GaussianMixturePrior) -> str:
    """A short hash of a prior: the same answers under another prior mean something else."""
    text = json.dumps(prior.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_seed(seed: Any) -> int:
    """A seed as an integer, or a clear refusal."""
    if not is_whole(seed) or seed < 0:
        raise InvalidSetting(f"'seed' must be a whole number of at least 0 (got {seed!r})")
    return int(seed)


def check_person(problem: Problem, person: Any) -> NDArray[np.float64]:
    """The state ``(d,)`` of a record, or a state given as such, or a clear refusal."""
    if isinstance(person, Mapping):
        return problem.state(person)
    try:
        state = np.array(person, float)
    except (TypeError, ValueError):
        state = np.zeros(0)
    if state.shape != (len(problem.space),) or not np.isfinite(state).all():
        raise InvalidRecord(
            f"'person' must be a record or a state of {len(problem.space)} finite numbers "
            f"(got {person!r}); use problem.state(record)"
        )
    return state


def _event(event: Any, planner: Planner) -> dict[str, Any]:
    if not isinstance(event, Mapping) or event.get("kind") not in KINDS:
        raise ConversationError(
            f"an event of a conversation must be one of {KINDS} (got {event!r})"
        )
    if event["kind"] == "answer":
        check_person(planner.problem, event["state"])
        plans = [_moves(moves, planner.problem) for moves in event["plans"]]
        if not plans or not all(plans):
            raise ConversationError(f"a question needs plans with steps (got {plans!r})")
        answer_from_dict(event["answer"]).check(
            Question.from_plans([[[0.0]] * len(m) for m in plans])
        )
    elif event["kind"] == "limits":
        Limits.from_dict(event["limits"])
    else:
        _moves(event["moves"], planner.problem)
    return dict(event)


def _moves(moves: Any, problem: Problem) -> list[int]:
    most = len(problem.actions)
    if not isinstance(moves, list) or not all(is_whole(m) and 0 <= m < most for m in moves):
        raise ConversationError(f"a plan of a conversation names unknown moves: {moves!r}")
    return moves
