"""What did people answer, for whoever runs the service: to fit a prior, to audit it?

Not for the lender's side, which never sees answers: this is read from the database itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import select

from pear.elicitation.says import FORMAT
from pear.elicitation.settings import Settings as SessionSettings
from pear.errors import InvalidSetting
from pear.problem import NO_LIMITS, Problem
from pear.service.database import Database
from pear.service.tables import conversations

TALKED = ("question", "plan", "no_plan")
"""Stages of those who had something to say."""

NEEDED = ("id", "reference", "stage", "record", "said", "problem_fingerprint")


def stored_answers(database: Database, problem: Problem) -> Iterator[str]:
    """Conversations about a problem, oldest first, each a line of JSON as ``pear fit-prior``,
    ``pear plan`` and ``pear audit`` read them, with the limits that stand at its end.

    People who were asked something and have not answered are there too: they count among
    those who did not come to a plan. Links never opened, and people who need no plan, do not.
    """
    columns = [conversations.c[name] for name in NEEDED]
    query = (
        select(*columns)
        .where(
            (conversations.c.problem_fingerprint == problem.fingerprint)
            & conversations.c.stage.in_(TALKED)
        )
        .order_by(conversations.c.created_at, conversations.c.id)
    )
    with database.reading() as connection:
        for row in connection.execution_options(yield_per=500).execute(query).mappings():
            yield json.dumps(_line(dict(row)), ensure_ascii=False)


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    events = list(row["said"])
    if row["stage"] == "plan":
        events.append({"kind": "accept", "moves": []})
    return {
        "format": FORMAT,
        "id": row["reference"] or row["id"],
        "person": row["record"],
        "limits": NO_LIMITS.to_dict(),
        "events": events,
        "settings": {"response": SessionSettings().response.to_dict()},
        "problem_fingerprint": row["problem_fingerprint"],
    }


def write_answers(database: Database, problem: Problem, path: Path) -> int:
    """The lines in a file that only its owner may read; how many there are."""
    temporary = path.with_name(f".{path.name}.tmp")
    count = 0
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            for line in stored_answers(database, problem):
                stream.write(line + "\n")
                count += 1
        os.replace(temporary, path)
    except OSError as error:
        raise InvalidSetting(f"'{path}' cannot be written ({error.strerror or error})") from error
    return count
