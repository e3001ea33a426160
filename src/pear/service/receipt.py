"""What can a person keep? The plan as ``pear verify`` checks it."""

from __future__ import annotations

from typing import Any

from pear.service.store import Conversation


def receipt_of(conversation: Conversation) -> dict[str, Any] | None:
    """The plan with the fingerprints of problem and model; None while there is none."""
    result = (conversation.view or {}).get("result")
    if result is None:
        return None
    plan: dict[str, Any] = dict(result["receipt"])
    return plan
