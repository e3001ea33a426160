"""What can a person say? Each with its stored form, its check and its effect.

What was said is a list of events. Folding it gives the :class:`Position` it leads to; taking
something back leaves a shorter list. Nothing here searches: a conversation is its events, and
posterior, questions and plans follow from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from pear.arrays import Floats
from pear.errors import ConversationError, InvalidInput, InvalidSetting, PearError
from pear.preferences import (
    AboutTheSame,
    Answer,
    Chosen,
    GaussianMixturePrior,
    NoneOfThese,
    answer_from_dict,
    answer_to_dict,
)
from pear.preferences import Question as CostedQuestion
from pear.problem import NO_LIMITS, Limits, Plan, Problem
from pear.problem.features import Value
from pear.problem.limits import LARGEST, MOST_LIMITS, Limit, is_possible, single_limits
from pear.problem.values import is_finite, is_whole, shown

FORMAT = 2
"""Version of the form a conversation is stored in; those of a later one are not read. Format 1
knew the events ``answer``, ``limits`` and ``accept`` only, and is read as it is."""


# Where everything said so far leads


@dataclass(frozen=True)
class DoneStep:
    """A step of a plan that the person says is done; ``before`` is None for a missing value.

    ``action`` and ``argument`` say it in any language, ``score_after`` is what it led to; both
    are unknown for steps stored by earlier versions.
    """

    feature: str
    before: Value | None
    after: Value
    words: str = ""
    action: str = ""
    argument: Value | None = None
    score_after: float | None = None


@dataclass(frozen=True)
class Position:
    """What stands after everything said so far.

    ``start`` ``(d,)`` is the person as they are now: their record as corrected, with the steps
    done. ``chosen`` is the last answer that chose a plan since the limits or the start changed.
    ``accepted`` are the moves of the plan they are content with, empty for whichever is best,
    None while they are being asked.
    """

    start: Floats
    limits: tuple[Limit, ...] = ()
    rest: Limits = NO_LIMITS
    answers: tuple[Answered, ...] = ()
    chosen: Answered | None = None
    done: tuple[DoneStep, ...] = ()
    accepted: tuple[int, ...] | None = None

    @classmethod
    def first(cls, start: Floats, limits: Limits) -> Position:
        """Before anything is said."""
        return cls(start).under(limits)

    def under(self, limits: Limits) -> Position:
        """The same with these limits in place of all others."""
        rest = Limits(max_steps=limits.max_steps, margin=limits.margin)
        return replace(self, limits=(), rest=rest)._changed().with_limits(single_limits(limits))

    def with_limits(self, more: Sequence[Limit]) -> Position:
        """The same and more limits, numbered; the same one twice is kept once."""
        kept = list(self.limits)
        for limit in more:
            if limit not in kept:
                number = 1 + max((int(known.id) for known in kept), default=0)
                kept.append(replace(limit, id=str(number)))
        return replace(self._changed(), limits=tuple(kept))

    def without_limits(self, lifted: Sequence[Limit]) -> Position:
        """The same without some of the limits."""
        kept = tuple(limit for limit in self.limits if limit not in lifted)
        return replace(self._changed(), limits=kept)

    def at(self, start: Floats) -> Position:
        """The same for a person whose data are now these."""
        return replace(self._changed(), start=start)

    def _changed(self) -> Position:
        # The plan accepted was for other limits or data: now it is whichever is best.
        return replace(self, chosen=None, accepted=None if self.accepted is None else ())


# What a person says


class Said:
    """One thing said. Subclasses are frozen dataclasses with a ``kind``."""

    kind: ClassVar[str]

    def check(self, problem: Problem, position: Position) -> None:
        """Refuse what cannot be said at this point."""

    def effect(self, problem: Problem, position: Position) -> Position:
        """Where it leads."""
        raise NotImplementedError

    def added_to(self, events: tuple[Said, ...]) -> tuple[Said, ...]:
        """What stands of everything said, once this is."""
        return (*events, self)

    def to_dict(self) -> dict[str, Any]:
        """The stored form."""
        return {"kind": self.kind, **self._content()}

    def _content(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Said:
        """What :meth:`to_dict` stored; what cannot have been said is refused."""
        return cls()


@dataclass(frozen=True)
class Answered(Said):
    """An answer to a question, with the plans offered and the state they start from."""

    kind = "answer"
    answer: Answer
    state: tuple[float, ...]
    plans: tuple[tuple[int, ...], ...]

    def check(self, problem: Problem, position: Position) -> None:
        if position.accepted is not None:
            raise ConversationError("the conversation has ended; undo first to go on")
        self.answer.check(self.question(problem))

    def effect(self, problem: Problem, position: Position) -> Position:
        chosen = self if isinstance(self.answer, Chosen) else position.chosen
        return replace(position, answers=(*position.answers, self), chosen=chosen)

    def question(self, problem: Problem) -> CostedQuestion:
        """The question as the cost features of its plans, at the state it was asked in."""
        return costed_question(problem, np.array(self.state, float), self.plans)

    @property
    def refused(self) -> bool:
        """Whether the person said "none of these"."""
        return isinstance(self.answer, NoneOfThese)

    def _content(self) -> dict[str, Any]:
        return {
            "answer": answer_to_dict(self.answer),
            "state": [None if np.isnan(code) else code for code in self.state],
            "plans": [list(moves) for moves in self.plans],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Answered:
        state = _state(data.get("state"), problem)
        plans = tuple(_moves(moves, problem) for moves in _list(data, "plans"))
        if not plans or not all(plans):
            raise ConversationError(
                f"a question of a conversation must offer plans with steps (got {plans!r})"
            )
        content = as_mapping(data.get("answer"), "'answer'")
        try:
            answer = answer_from_dict(content)
        except TypeError:
            raise ConversationError(f"this is no answer to a question: {dict(content)!r}") from None
        found = cls(answer, state, plans)
        answer.check(found.question(problem))
        return found


@dataclass(frozen=True)
class Excluded(Said):
    """ "I can't do this": hard limits from now on."""

    kind = "exclude"
    limits: tuple[Limit, ...]

    def check(self, problem: Problem, position: Position) -> None:
        if not self.limits:
            raise ConversationError(
                "nothing new was excluded; name a feature, an action or a value"
            )
        if len(position.with_limits(self.limits).limits) > MOST_LIMITS:
            raise InvalidSetting(f"there can be at most {MOST_LIMITS} limits; remove one first")

    def effect(self, problem: Problem, position: Position) -> Position:
        return position.with_limits(self.limits)

    def _content(self) -> dict[str, Any]:
        return {"limits": [limit.to_dict() for limit in self.limits]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Excluded:
        stored = (as_mapping(limit, "a limit") for limit in _list(data, "limits"))
        return cls(tuple(Limit.from_dict(limit).checked(problem) for limit in stored))


@dataclass(frozen=True)
class Allowed(Excluded):
    """ "I could do this after all": limits are lifted."""

    kind = "allow"

    def check(self, problem: Problem, position: Position) -> None:
        if not self.limits or any(limit not in position.limits for limit in self.limits):
            raise ConversationError("there is no such limit to lift; perhaps it was lifted already")

    def effect(self, problem: Problem, position: Position) -> Position:
        return position.without_limits(self.limits)


@dataclass(frozen=True)
class LimitsSet(Said):
    """All limits at once, in place of those there were."""

    kind = "limits"
    limits: Limits

    def check(self, problem: Problem, position: Position) -> None:
        problem.actions.allowed(position.start[None], self.limits)

    def effect(self, problem: Problem, position: Position) -> Position:
        return position.under(self.limits)

    def _content(self) -> dict[str, Any]:
        return {"limits": self.limits.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> LimitsSet:
        return cls(Limits.from_dict(data.get("limits")))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Accepted(Said):
    """ "This one is fine": a plan by its moves, or whichever is best where they are none."""

    kind = "accept"
    moves: tuple[int, ...] = ()

    def check(self, problem: Problem, position: Position) -> None:
        if position.accepted is not None:
            raise ConversationError("a plan was accepted already; undo first to go on")

    def effect(self, problem: Problem, position: Position) -> Position:
        return replace(position, accepted=self.moves)

    def _content(self) -> dict[str, Any]:
        return {"moves": list(self.moves)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Accepted:
        return cls(_moves(data.get("moves"), problem))


@dataclass(frozen=True)
class Resumed(Said):
    """ "Ask me more": the plan accepted is no longer the last word."""

    kind = "resume"

    def check(self, problem: Problem, position: Position) -> None:
        if position.accepted is None:
            raise ConversationError("no plan was accepted; the conversation goes on as it is")

    def effect(self, problem: Problem, position: Position) -> Position:
        return replace(position, accepted=None)


@dataclass(frozen=True)
class Done(Said):
    """ "I have done these steps": they are in the data, and the rest is planned from there."""

    kind = "done"
    steps: tuple[DoneStep, ...]

    def check(self, problem: Problem, position: Position) -> None:
        if not self.steps:
            raise ConversationError("no step was named that is done")
        self._after(problem, position)

    def effect(self, problem: Problem, position: Position) -> Position:
        moved = position.at(self._after(problem, position))
        return replace(moved, done=(*position.done, *self.steps), accepted=())

    def _after(self, problem: Problem, position: Position) -> Floats:
        state = position.start.copy()
        for step in self.steps:
            state[problem.space.index(step.feature)] = problem.space[step.feature].code(step.after)
        return state

    def _content(self) -> dict[str, Any]:
        return {"steps": [asdict(step) for step in self.steps]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Done:
        found = []
        for step in _list(data, "steps"):
            content = as_mapping(step, "a step")
            if content.get("feature") not in problem.space.names or "after" not in content:
                raise ConversationError(f"a step that was done must name its change (got {step!r})")
            problem.space[content["feature"]].code(content["after"])
            found.append(DoneStep(**{"before": None, **content}))
        return cls(tuple(found))


@dataclass(frozen=True)
class Corrected(Said):
    """ "My data are these": ``planned`` when the person had a plan, and gets one again."""

    kind = "correct"
    record: Mapping[str, Value | None]
    planned: bool = False

    def check(self, problem: Problem, position: Position) -> None:
        problem.state(self.record)

    def effect(self, problem: Problem, position: Position) -> Position:
        moved = replace(position.at(problem.state(self.record)), done=())
        return replace(moved, accepted=()) if self.planned else moved

    def _content(self) -> dict[str, Any]:
        return {"record": dict(self.record), "planned": self.planned}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Corrected:
        record = dict(as_mapping(data.get("record"), "'record'"))
        problem.state(record)
        return cls(record, bool(data.get("planned", False)))


@dataclass(frozen=True)
class Undone(Said):
    """ "I take that back": the last thing said, all answers after so many (``kept``), or the steps
    last said to be done (``done``)."""

    kind = "undo"
    kept: int | None = None
    done: bool = False

    def check(self, problem: Problem, position: Position) -> None:
        if self.done and not position.done:
            raise ConversationError("no step was said to be done that could be taken back")

    def added_to(self, events: tuple[Said, ...]) -> tuple[Said, ...]:
        if self.done:
            last = max(place for place, event in enumerate(events) if isinstance(event, Done))
            return (*events[:last], *events[last + 1 :])
        if self.kept is None and not events:
            raise ConversationError("there is nothing to take back")
        if self.kept is None:
            return events[:-1]
        answers = [event for event in events if isinstance(event, Answered)]
        if not 0 <= self.kept < len(answers):
            raise ConversationError("there is no answer to take back")
        gone = {id(answer) for answer in answers[self.kept :]}
        left = (event for event in events if id(event) not in gone)
        return tuple(event for event in left if not isinstance(event, Accepted | Resumed))

    def _content(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v not in (None, False)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Problem) -> Undone:
        kept = data.get("kept")
        if kept is not None and (not is_whole(kept) or kept < 0):
            raise ConversationError(f"'kept' must be a number of answers (got {kept!r})")
        return cls(kept, data.get("done") is True)


SAYINGS: dict[str, type[Said]] = {
    said.kind: said
    for said in (
        Answered, Excluded, Allowed, LimitsSet, Accepted, Resumed, Done, Corrected, Undone,
    )
}  # fmt: skip
"""Everything that can be said, by its kind."""


def read_said(event: Any, problem: Problem) -> Said:
    """One stored event as what was said; what cannot have been said is refused."""
    content = as_mapping(event, "an event")
    said = SAYINGS.get(str(content.get("kind")))
    if said is None:
        raise ConversationError(
            f"an event of a conversation must be one of {', '.join(SAYINGS)} (got {event!r})"
        )
    return said.from_dict(content, problem)


def read_choice(choice: Any, n_plans: int) -> Answer:
    """The answer a person gave: a plan's place from 0, ``same`` or ``none``."""
    if isinstance(choice, str) and choice in ("same", "none"):
        return AboutTheSame() if choice == "same" else NoneOfThese()
    if is_whole(choice) and 0 <= choice < n_plans:
        return Chosen(int(choice))
    raise ConversationError(
        f"an answer must be a plan from 0 to {n_plans - 1}, 'same' or 'none' (got {choice!r})"
    )


def steps_done(plan: Plan, count: int) -> Done:
    """The first steps of a plan, said to be done."""
    if not 1 <= count <= len(plan.steps):
        raise ConversationError(
            f"the plan has {len(plan.steps)} steps; 'steps' must be between 1 and that number "
            f"(got {count})"
        )
    return Done(
        tuple(
            DoneStep(s.feature, s.before, s.after, s.words, s.action, s.argument, s.score_after)
            for s in plan.steps[:count]
        )
    )


def costed_question(
    problem: Problem, state: Floats, plans: Iterable[Sequence[int]]
) -> CostedQuestion:
    """Plans from one state, by their moves, as the cost features of their steps."""
    features = [problem.costs.sequence_features(state, problem.actions, moves) for moves in plans]
    return CostedQuestion.from_plans(features, problem.costs.floor)


# A stored conversation


@dataclass(frozen=True)
class Stored:
    """What a stored conversation says about a problem, in our own types."""

    person: dict[str, Any]
    limits: Limits
    events: tuple[Said, ...]


def read_stored(data: Any, problem: Problem) -> Stored:
    """The person, the first limits and everything said of a conversation about this problem.

    Neither model nor settings are looked at: the same answers mean the same under another.
    """
    content = as_mapping(data, "the whole")
    if not is_whole(form := content.get("format", FORMAT)) or not 1 <= form <= FORMAT:
        raise ConversationError(
            f"the conversation is stored in format {form!r} and this version reads up to "
            f"{FORMAT}; open it with the version that wrote it"
        )
    try:
        events = tuple(read_said(event, problem) for event in _list(content, "events"))
        person = dict(as_mapping(content.get("person"), "'person'"))
        stated = content.get("limits")
        limits = NO_LIMITS if stated is None else Limits.from_dict(stated)
        problem.actions.allowed(problem.state(person)[None], limits)
    except InvalidInput as error:
        raise ConversationError(f"the stored conversation cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConversationError(f"the stored conversation cannot be read: {error!r}") from None
    return Stored(person, limits, events)


def fold(problem: Problem, first: Position, events: Iterable[Said]) -> Position:
    """Where events lead that were checked as they were said."""
    for event in events:
        first = event.effect(problem, first)
    return first


def carried(
    problem: Problem, first: Position, events: Sequence[Mapping[str, Any]], *, same: bool
) -> tuple[tuple[Said, ...], tuple[Mapping[str, Any], ...]]:
    """What still stands of stored events under a problem, and what is lost.

    Of the very problem they were said about (``same``) all do. Under another, a plan's moves are
    other steps: answers and the plan accepted are lost, and so is what names something gone.
    """
    kept: list[Said] = []
    lost: list[Mapping[str, Any]] = []
    position = first
    for event in events:
        if not same and event["kind"] in ("answer", "accept"):
            lost.append(event)
            continue
        try:
            said = read_said(event, problem)
            said.check(problem, position)
            position = said.effect(problem, position)
            kept.append(said)
        except PearError:
            lost.append(event)
    return tuple(kept), tuple(lost)


def prior_fingerprint(prior: GaussianMixturePrior) -> str:
    """A short hash of a prior: the same answers under another prior mean something else."""
    text = json.dumps(prior.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_seed(seed: Any) -> int:
    """A seed as an integer, or a clear refusal."""
    if not is_whole(seed) or seed < 0:
        raise InvalidSetting(f"'seed' must be a whole number of at least 0 (got {seed!r})")
    return int(seed)


def check_record(
    problem: Problem, record: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The record as stored, and everything that is wrong with it as (feature, message)."""
    clean: dict[str, Any] = {}
    known = set(problem.space.names)
    wrong = [
        (str(name)[:200], "this is no feature of the problem")
        for name in record
        if name not in known
    ]
    for feature in problem.space.features:
        value = record.get(feature.name)
        if isinstance(value, int | float) and abs(value) > LARGEST:
            wrong.append((feature.name, f"'{feature.name}' must be smaller"))
            continue
        try:
            clean[feature.name] = feature.value(feature.code(value))
        except InvalidInput as error:
            wrong.append((feature.name, str(error)))
    return clean, wrong


def as_mapping(value: Any, what: str) -> Mapping[str, Any]:
    """A value as the JSON object it must be in a stored conversation."""
    if not isinstance(value, Mapping):
        raise ConversationError(
            f"this is not a stored conversation: {what} must be a JSON object (got {shown(value)})"
        )
    return value


def _list(content: Mapping[str, Any], key: str) -> Sequence[Any]:
    if key not in content:
        raise ConversationError(f"this is not a stored conversation: it has no '{key}'")
    value = content[key]
    if not isinstance(value, list | tuple):
        raise ConversationError(
            f"this is not a stored conversation: '{key}' must be a list (got {shown(value)})"
        )
    return value


def _moves(moves: Any, problem: Problem) -> tuple[int, ...]:
    most = len(problem.actions)
    known = isinstance(moves, list | tuple) and all(is_whole(m) and 0 <= m < most for m in moves)
    if not known:
        raise ConversationError(
            f"a plan of a conversation must list the numbers of its moves, below {most} "
            f"(got {moves!r})"
        )
    return tuple(moves)


def _state(values: Any, problem: Problem) -> tuple[float, ...]:
    """The state a question started from: of somebody who could be."""
    features = problem.space.features
    if not isinstance(values, list | tuple) or len(values) != len(features):
        raise ConversationError(
            f"'state' of a question must be {len(features)} numbers, one per feature "
            f"(got {shown(values)})"
        )
    for feature, code in zip(features, values, strict=True):
        missing = code is None and feature.may_be_missing
        if not missing and not (is_finite(code) and is_possible(feature, float(code))):
            raise ConversationError(
                f"'state' of a question has an impossible '{feature.name}' (got {code!r})"
            )
    return tuple(float("nan") if code is None else float(code) for code in values)
