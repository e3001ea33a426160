"""What may the lender see: how conversations went, and whether all groups fared alike.

Never the person's answers, never their link.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

SMALLEST_GROUP = 5
"""Figures of fewer people are withheld: they would be about someone."""

FIELDS = (
    "id",
    "reference",
    "stage",
    "created_at",
    "updated_at",
    "expires_at",
    "questions",
    "minutes",
    "success",
    "steps",
    "effort",
)


def summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the lender's list."""
    outcome = row.get("outcome") or {}
    return {
        **{name: row[name] for name in FIELDS if name in row},
        "minutes": round((row["updated_at"] - row["created_at"]) / 60, 2),
        "success": outcome.get("success"),
        "steps": outcome.get("steps"),
        "effort": outcome.get("effort"),
    }


def fairness(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Validity, effort and questions by protected group, of conversations that came to an end.

    Validity is the share of people for whom there is a plan; effort and questions are means.
    """
    members: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        outcome = row.get("outcome") or {}
        if outcome.get("success") is None:
            continue
        for feature, group in (row.get("groups") or {}).items():
            members[(feature, group)].append({**outcome, "questions": row["questions"]})
    return [_group(*name, people) for name, people in sorted(members.items())]


def _group(feature: str, group: str, people: list[Mapping[str, Any]]) -> dict[str, Any]:
    shown = len(people) >= SMALLEST_GROUP
    efforts = [p["effort"] for p in people if p["success"] and p.get("effort") is not None]
    return {
        "feature": feature,
        "group": group,
        "people": len(people),
        "validity": float(np.mean([bool(p["success"]) for p in people])) if shown else None,
        "effort": float(np.mean(efforts)) if shown and efforts else None,
        "questions": float(np.mean([p["questions"] for p in people])) if shown else None,
    }


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """The lender's list as a table; a text that a spreadsheet would run is made harmless."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _harmless(row.get(name)) for name in FIELDS})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
