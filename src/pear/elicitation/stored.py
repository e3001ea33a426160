"""A stored conversation, checked before it is replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pear.elicitation.settings import Settings
from pear.errors import ConversationError, FingerprintMismatch, PearError
from pear.planning.planner import Planner
from pear.preferences import GaussianMixturePrior, answer_from_dict
from pear.problem import Limits

KINDS = ("answer", "limits", "accept")


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
    if not isinstance(data, Mapping) or "events" not in data:
        raise ConversationError("this is not a stored conversation: it has no 'events'")
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
            seed=int(data["seed"]),
            settings=Settings.from_dict(data["settings"]),
            person=dict(data["person"]),
            limits=Limits.from_dict(data["limits"]),
            events=tuple(_event(event, planner) for event in data["events"]),
        )
    except PearError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ConversationError(f"the stored conversation cannot be read: {error!r}") from None


def prior_fingerprint(prior: GaussianMixturePrior) -> str:
    """A short hash of a prior: the same answers under another prior mean something else."""
    text = json.dumps(prior.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _event(event: Any, planner: Planner) -> dict[str, Any]:
    if not isinstance(event, Mapping) or event.get("kind") not in KINDS:
        raise ConversationError(
            f"an event of a conversation must be one of {KINDS} (got {event!r})"
        )
    if event["kind"] == "answer":
        answer_from_dict(event["answer"])
        most = len(planner.problem.actions)
        for moves in event["plans"]:
            if not moves or not all(isinstance(m, int) and 0 <= m < most for m in moves):
                raise ConversationError(f"a plan of a conversation names unknown moves: {moves!r}")
    elif event["kind"] == "limits":
        Limits.from_dict(event["limits"])
    return dict(event)
