"""How are conversations kept in a file, and whose is each?

One line of JSON per conversation, as ``Session.to_json`` writes it; further keys are allowed,
and ``id`` (or ``reference``) says whose it is; else ``row``, in the table whose digest is
``people``. The terminal keeps conversations so, and ``pear plan --conversations`` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pear.elicitation.says import Answered, Position, as_mapping, read_stored
from pear.elicitation.session import Session
from pear.errors import ConversationError, FingerprintMismatch, InvalidData, PearError
from pear.planning import Planner
from pear.preferences import (
    Answer,
    GaussianMixturePrior,
    Logistic,
    Question,
    ResponseModel,
    response_from_dict,
)
from pear.problem import Limits, Problem
from pear.problem.limits import as_limits
from pear.problem.values import is_missing, is_number, shown
from pear.tables.people import name_of
from pear.writing import write_text

try:
    import fcntl
except ImportError:  # pragma: no cover - a system without file locks
    fcntl = None  # type: ignore[assignment]

KEYS = ("id", "row", "people")
"""What may say whose a conversation is."""


@dataclass(frozen=True, eq=False)
class Conversation:
    """What one person answered. ``answered`` holds questions and answers in their order."""

    id: str
    person: Mapping[str, Any]
    answered: tuple[tuple[Question, Answer], ...]
    response: ResponseModel = field(default_factory=Logistic)
    finished: bool = False
    named: bool = True
    """Whether ``id`` is the person's own name, and not the number of a line."""
    limits_stated: tuple[Limits, ...] = ()
    """What they said they cannot do, each time as a whole; the last one stands."""

    @property
    def n_questions(self) -> int:
        """Questions answered."""
        return len(self.answered)


def read_conversations(path: str | Path, problem: Problem) -> list[Conversation]:
    """The conversations of a file; those about another problem are refused by line."""
    try:
        # Not splitlines(): a name may hold one of the other signs that it parts lines at.
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise InvalidData(f"there is no file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidData(f"'{path}' cannot be read as text: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(conversation_from_dict(json.loads(line), problem, f"line {number}"))
        except (json.JSONDecodeError, RecursionError) as error:
            place = f" from character {error.pos + 1} on" if hasattr(error, "pos") else ""
            raise InvalidData(
                f"'{path}', line {number}: this is not JSON{place}; "
                "store Session.to_json(), one per line"
            ) from None
        except PearError as error:
            raise InvalidData(f"'{path}', line {number}: {error}") from None
    if not found:
        raise InvalidData(f"'{path}' holds no conversation; store Session.to_json(), one per line")
    return found


def conversation_from_dict(data: Any, problem: Problem, name: str) -> Conversation:
    """The conversation that ``Session.to_dict`` stored, refused where it cannot have been so."""
    try:
        return _read(data, problem, name)
    except ConversationError as error:
        raise InvalidData(f"{error}; store Session.to_json(), one per line") from None


def _read(data: Any, problem: Problem, name: str) -> Conversation:
    content = as_mapping(data, "a line")
    stored = content.get("problem_fingerprint", problem.fingerprint)
    if stored != problem.fingerprint:
        raise InvalidData(
            f"the conversation is about another problem (fingerprint {stored}, "
            f"this one is {problem.fingerprint})"
        )
    if "events" not in content:
        raise ConversationError("this is not a stored conversation: it has no 'events'")
    response = as_mapping(content.get("settings", {}), "'settings'").get("response")
    person = as_mapping(content.get("person"), "'person'")
    known = {name: person.get(name) for name in problem.space.names}
    said = read_stored({**_with_moves(content), "person": known}, problem)
    position = Position.first(problem.state(known), said.limits)
    stated = [said.limits] if content.get("limits") is not None else []
    for event in said.events:
        before, position = position, event.effect(problem, position)
        if position.limits != before.limits or position.rest != before.rest:
            stated.append(as_limits(position.limits, problem, position.start, position.rest))
    own = person_name(content) or row_name(content.get("row"), content.get("people"))
    return Conversation(
        id=own or name,
        named=bool(own),
        person=dict(person),
        answered=tuple(
            (event.question(problem), event.answer)
            for event in said.events
            if isinstance(event, Answered)
        ),
        response=Logistic()
        if response is None
        else response_from_dict(as_mapping(response, "'response'")),
        finished=position.accepted is not None,
        limits_stated=tuple(stated),
    )


def _with_moves(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The conversation as older services exported it, whose plans accepted have no moves."""
    events = content.get("events")
    if not isinstance(events, list):
        return content
    bare = {"kind": "accept"}
    return {**content, "events": [{**bare, "moves": []} if e == bare else e for e in events]}


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


def row_name(row: Any, digest: Any) -> str:
    """The name of somebody known only by their row in the table of a digest; else empty.

    >>> row_name(7, "0f3a"), row_name(None, "0f3a")
    ('row 7 of the table 0f3a', '')
    """
    known = is_number(row) and isinstance(digest, str) and digest
    return f"row {row} of the table {digest}" if known else ""


@dataclass(frozen=True)
class KeptConversation:
    """The conversation of one person in a file of conversations, found by its ``key``."""

    path: Path
    key: Mapping[str, Any]

    def read(self) -> dict[str, Any] | None:
        """The last conversation of this person; None without one."""
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
        """Replace this person's last conversation; other lines stay as they are."""
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
        except (json.JSONDecodeError, RecursionError):
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
