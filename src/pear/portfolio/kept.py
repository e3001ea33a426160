"""Where are the conversations of a terminal kept, and whose is which?

One line of JSON per conversation, as ``pear plan --conversations`` reads it. A line says whose it
is by ``id``; where a table names nobody, by ``row`` and the digest of that very table, ``people``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pear.elicitation import Session
from pear.errors import ConversationError, FingerprintMismatch, InvalidData
from pear.planning import Planner
from pear.preferences import GaussianMixturePrior
from pear.problem.features import FeatureSpace
from pear.problem.people import id_column, name_of, people_of, refuse_same_ids
from pear.problem.tables import open_table, require_columns
from pear.writing import write_text

try:
    import fcntl
except ImportError:  # pragma: no cover - a system without file locks
    fcntl = None  # type: ignore[assignment]

KEYS = ("id", "row", "people")
ROWS_AT_A_TIME = 16_384


@dataclass(frozen=True)
class Person:
    """Somebody's record, and what their conversation is kept under."""

    record: Mapping[str, Any]
    key: Mapping[str, Any]


def person_of(
    path: str | Path,
    space: FeatureSpace,
    *,
    row: int | None = None,
    id: str | None = None,
    id_name: str | None = None,
) -> Person:
    """One person of a table, by the number of their row, from 0, or by their id.

    Raises
    ------
    InvalidData
        Where nobody has this row or id, or their data do not fit the problem.
    """
    source = open_table(path)
    require_columns(source, space)
    name = id_column(source, space, id_name)
    if id is not None and name is None:
        raise InvalidData(
            f"'{path}' has no column 'id' to find '{id}' in; name the column with --id-column, or "
            "say who is asked with --row"
        )
    refuse_same_ids(source, space, name)
    wanted = name_of(id)
    for chunk in source.chunks(ROWS_AT_A_TIME):
        people = people_of(chunk, space, name)
        for bad in people.bad:
            if bad.row == row or (id is not None and bad.id == wanted):
                raise InvalidData(f"'{path}', row {bad.row}: {bad.reason}")
        for number, own, state in zip(people.rows.tolist(), people.ids, people.states, strict=True):
            if number == row or (id is not None and own == wanted):
                by_row = {"row": number, "people": source.digest}
                return Person(space.decode(state)[0], by_row if name is None else {"id": own})
    who = f"row {row}; its {source.rows:,} rows count from 0" if id is None else f"the id '{id}'"
    raise InvalidData(f"'{path}' has nobody with {who}")


@dataclass(frozen=True)
class KeptConversation:
    """The conversation of one person in a file of conversations, found by its ``key``."""

    path: Path
    key: Mapping[str, Any]

    def read(self) -> dict[str, Any] | None:
        """The last conversation of this person; None where there is none."""
        own = [line for line in self._lines() if self._is_own(line)]
        return json.loads(own[-1]) if own else None

    def resumed(
        self, stored: Mapping[str, Any], planner: Planner, prior: GaussianMixturePrior
    ) -> Session:
        """The conversation where it was left, or what is wrong with it and how to start anew."""
        try:
            return Session.from_dict(stored, planner, prior)
        except (ConversationError, FingerprintMismatch) as error:
            raise type(error)(f"'{self.path}': {error}; use --again to start anew") from None

    def write(self, session: Session) -> None:
        """Put the conversation in the place of this person's last; other lines stay as they are."""
        line = json.dumps({**self.key, **session.to_dict()}, ensure_ascii=False)
        with _locked(self.path):
            others = [other for other in self._lines() if not self._is_own(other)]
            write_text("".join(f"{each}\n" for each in [*others, line]), self.path)

    def _lines(self) -> list[str]:
        if not self.path.exists():
            return []
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConversationError(
                f"'{self.path}' cannot be read ({error}); move it away, or keep this conversation "
                "in another file with --conversation"
            ) from None
        return [line for line in text.split("\n") if line.strip()]

    def _is_own(self, line: str) -> bool:
        try:
            content = json.loads(line)
        except json.JSONDecodeError:
            raise ConversationError(
                f"'{self.path}' cannot be read (it must hold a conversation as JSON in each line); "
                "move it away, or keep this conversation in another file with --conversation"
            ) from None
        return isinstance(content, dict) and (
            {name: content[name] for name in KEYS if name in content} == dict(self.key)
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two conversations kept in one file at a time wait for each other."""
    if fcntl is None:
        yield
        return
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
