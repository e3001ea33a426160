"""What do stored conversations tell: who answered what, to which question?

One line of JSON per conversation, as ``Session.to_json`` writes it; further keys are allowed,
and ``id`` (or ``reference``) says whose it is; else ``row``, in the table whose digest is
``people``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.elicitation.says import Answered, Position, read_stored
from pear.errors import ConversationError, InvalidData, PearError
from pear.preferences import (
    Answer,
    Chosen,
    GaussianMixturePrior,
    Logistic,
    ParticlePosterior,
    Question,
    ResponseModel,
    response_from_dict,
)
from pear.problem import NO_LIMITS, Limits, Problem
from pear.problem.checks import is_missing, is_number, shown
from pear.problem.limits import as_limits
from pear.problem.people import name_of

REMEDY = "store Session.to_json(), one per line"

LAPSE = 0.01
"""Share of answers taken as slips when predictions are judged, so that one does not decide all."""


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
        except json.JSONDecodeError as error:
            raise InvalidData(
                f"'{path}', line {number}: this is not JSON from character {error.pos + 1} on; "
                "store Session.to_json(), one per line"
            ) from None
        except PearError as error:
            raise InvalidData(f"'{path}', line {number}: {error}") from None
    if not found:
        raise InvalidData(f"'{path}' holds no conversation; store Session.to_json(), one per line")
    return found


def conversation_from_dict(data: Any, problem: Problem, name: str) -> Conversation:
    """The conversation that ``Session.to_dict`` stored, refused where it cannot have been so."""
    content = _mapping(data, "a line")
    stored = content.get("problem_fingerprint", problem.fingerprint)
    if stored != problem.fingerprint:
        raise InvalidData(
            f"the conversation is about another problem (fingerprint {stored}, "
            f"this one is {problem.fingerprint})"
        )
    response = _mapping(content.get("settings", {}), "'settings'").get("response")
    if "events" not in content:
        raise InvalidData(f"this is not a stored conversation: it has no 'events'; {REMEDY}")
    person = _mapping(content.get("person"), "'person'")
    known = {name: person.get(name) for name in problem.space.names}
    try:
        said = read_stored({**_with_moves(content), "person": known}, problem)
    except ConversationError as error:
        raise InvalidData(f"{error}; {REMEDY}") from None
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
        else response_from_dict(_mapping(response, "'response'")),
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


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidData(
            f"this is not a stored conversation: {what} must be a JSON object "
            f"(got {shown(value)}); {REMEDY}"
        )
    return value


@dataclass(frozen=True, eq=False)
class Reading:
    """One conversation under one prior.

    ``log_likelihoods`` ``(q,)`` of each choice given those before it, and ``chance`` ``(q,)``
    what a guess would get; ``draws`` ``(m, p)`` and ``mean`` ``(p,)`` of the posterior.
    """

    log_likelihoods: NDArray[np.float64]
    chance: NDArray[np.float64]
    draws: NDArray[np.float64]
    mean: NDArray[np.float64]


def read_under(
    conversation: Conversation,
    prior: GaussianMixturePrior,
    rng: np.random.Generator,
    *,
    n_particles: int = 1_000,
    n_draws: int = 16,
) -> Reading:
    """How well each choice was predicted from the prior and the answers before it.

    A choice is predicted by ``(1 - LAPSE) p + LAPSE / k``; other answers inform the posterior
    and are not judged.
    """
    count = max(n_particles, 10 * prior.n_components)
    posterior = ParticlePosterior.start(prior, conversation.response, rng, n_particles=count)
    scores, chance = [], []
    for question, answer in conversation.answered:
        if isinstance(answer, Chosen):
            costs = question.costs(posterior.samples)
            logs = posterior.sample_response().log_probabilities(costs)[:, answer.plan]
            likely = float(posterior.weights @ np.exp(logs))
            scores.append(np.log((1 - LAPSE) * likely + LAPSE / question.n_plans))
            chance.append(-np.log(question.n_plans))
        posterior = posterior.update(question, answer, rng)
    return Reading(
        np.array(scores), np.array(chance), posterior.draw(n_draws, rng), posterior.mean()
    )


def learned_weights(
    conversations: Iterable[Conversation],
    prior: GaussianMixturePrior,
    samples: int,
    seed: int = 0,
) -> dict[str, NDArray[np.float64]]:
    """Draws ``(samples, p)`` of the posterior of everyone who answered something, by id; with
    one sample, its mean. Conversations that do not say whose they are teach about nobody.

    All that one person answered counts, in the order of their conversations.
    """
    said: dict[str, Conversation] = {}
    for conversation in conversations:
        if conversation.named and conversation.answered:
            before = said.get(conversation.id)
            more = conversation.answered
            answered = more if before is None else before.answered + more
            said[conversation.id] = replace(conversation, answered=answered)
    learned = {}
    for number, (name, whole) in enumerate(said.items()):
        rng = np.random.default_rng([seed, number])
        reading = read_under(whole, prior, rng, n_particles=2_000, n_draws=samples)
        learned[name] = reading.draws if samples > 1 else reading.mean[None]
    return learned


def stated_limits(conversations: Iterable[Conversation]) -> dict[str, Limits]:
    """What everyone who said so cannot do, by id. A limit taken back is none.

    What was ruled out in an earlier conversation of the same person still is, unless a later
    one speaks of it and ends without it.
    """
    found: dict[str, Limits] = {}
    for conversation in conversations:
        if conversation.named and conversation.limits_stated:
            before = found.get(conversation.id, NO_LIMITS)
            found[conversation.id] = _limits_after(before, conversation.limits_stated)
    return {name: limits for name, limits in found.items() if limits != NO_LIMITS}


def _limits_after(before: Limits, stated: Sequence[Limits]) -> Limits:
    last = stated[-1]

    def standing(key: str) -> tuple[Any, ...]:
        spoken_of = {item for one in stated for item in getattr(one, key)}
        kept = tuple(item for item in getattr(before, key) if item not in spoken_of)
        return kept + tuple(getattr(last, key))

    return Limits(
        features=standing("features"),
        actions=standing("actions"),
        values=standing("values"),
        max_steps=last.max_steps if any(s.max_steps for s in stated) else before.max_steps,
        margin=last.margin if any(s.margin for s in stated) else before.margin,
    )
