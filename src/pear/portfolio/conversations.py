"""What do stored conversations tell: who answered what, to which question?

One line of JSON per conversation, as ``Session.to_json`` writes it; further keys are allowed,
and ``id`` (or ``reference``) says whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidData, PearError
from pear.preferences import (
    Answer,
    Chosen,
    GaussianMixturePrior,
    Logistic,
    ParticlePosterior,
    Question,
    ResponseModel,
    answer_from_dict,
    response_from_dict,
)
from pear.problem import Problem

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

    @property
    def n_questions(self) -> int:
        """Questions answered."""
        return len(self.answered)


def read_conversations(path: str | Path, problem: Problem) -> list[Conversation]:
    """The conversations of a file; those about another problem are refused by line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise InvalidData(f"there is no file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidData(f"'{path}' cannot be read as text: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(conversation_from_dict(json.loads(line), problem, str(number)))
        except (json.JSONDecodeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise InvalidData(f"'{path}', line {number}: not a conversation ({error})") from None
        except PearError as error:
            raise InvalidData(f"'{path}', line {number}: {error}") from None
    if not found:
        raise InvalidData(f"'{path}' holds no conversation; store Session.to_json(), one per line")
    return found


def conversation_from_dict(data: Mapping[str, Any], problem: Problem, name: str) -> Conversation:
    """The conversation that ``Session.to_dict`` stored."""
    if not isinstance(data, Mapping) or "events" not in data:
        raise InvalidData("this is not a stored conversation: it has no 'events'")
    stored = data.get("problem_fingerprint", problem.fingerprint)
    if stored != problem.fingerprint:
        raise InvalidData(
            f"the conversation is about another problem (fingerprint {stored}, "
            f"this one is {problem.fingerprint})"
        )
    answered: list[tuple[Question, Answer]] = []
    for event in data["events"]:
        if event["kind"] == "answer":
            answer = answer_from_dict(event["answer"])
            question = _question(event, problem)
            answer.check(question)
            answered.append((question, answer))
    response = data.get("settings", {}).get("response")
    stated = data.get("id") or data.get("reference")
    return Conversation(
        id=str(stated or name),
        named=bool(stated),
        person=dict(data["person"]),
        answered=tuple(answered),
        response=response_from_dict(response) if response else Logistic(),
        finished=any(event["kind"] == "accept" for event in data["events"]),
    )


def _question(event: Mapping[str, Any], problem: Problem) -> Question:
    state = np.array(event["state"], float)
    plans = [
        problem.costs.sequence_features(state, problem.actions, moves) for moves in event["plans"]
    ]
    return Question.from_plans(plans, problem.costs.floor)


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
