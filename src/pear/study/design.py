"""Who gets what in a study, what comes next for them, and what is kept?

A participant *is* their number and the list of events; everything else follows from these, as a
conversation follows from what was said in it. Pages and simulated participants go the same way:
:meth:`Study.next` says what comes next, :meth:`Study.take` takes in what was said about it.

The questions about tasks are our own. The forms of NASA-TLX and of published scales of trust are
not copied: their wording belongs to their authors. Ours ask about the same things, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from pear.elicitation import Standing
from pear.elicitation.says import Accepted, Answered, Excluded, Said, read_choice, read_said
from pear.errors import ConversationError, InvalidSetting
from pear.problem import Problem
from pear.problem.limits import Limit
from pear.service.engine import Case

Arm = Literal["pear", "plain", "list"]
Event = Mapping[str, Any]

ARMS: tuple[Arm, ...] = ("pear", "plain", "list")
"""Asked by PEAR; its plan without a question; a list of unlike ways without an order (as DiCE)."""

POINTS = 7
"""Every item is answered from 1 to this."""

AFTER_TASK = ("thinking", "success", "frustration", "fits", "doable")
"""Items after each task: load while at it, and how the plan fits; texts are in ``texts/``."""

AT_THE_END = ("understood", "trust", "heard", "satisfied", "again")
"""Items after the last task: about the system as a whole."""

OWN = "own"
"""The task with the participant's own figures."""


@dataclass(frozen=True)
class Page:
    """What comes next: a ``kind`` of page, and the number of the ``task`` it belongs to."""

    kind: Literal["consent", "person", "plans", "items", "end", "thanks", "gone"]
    task: int = -1


@dataclass(frozen=True)
class Participant:
    """One participant: their number, their arm, the names of their tasks, and what happened."""

    number: int
    arm: Arm
    tasks: tuple[str, ...]
    events: tuple[Event, ...] = ()

    def of(self, kind: str, task: int = -1) -> Event | None:
        """The last event of a kind about a task."""
        found = [e for e in self.events if e["kind"] == kind and e.get("task", -1) == task]
        return found[-1] if found else None

    def said(self, task: int) -> tuple[Event, ...]:
        """What stands of everything said in the conversation of a task."""
        return tuple(
            e["said"] for e in self.events if e["kind"] == "said" and e.get("task") == task
        )


@dataclass(frozen=True)
class Study:
    """A study: its problem, the invented ``people`` by name, and what participants do.

    Each gets ``n_tasks`` of the people, in an order of their own, and with ``own`` a last task
    with figures of theirs. Arms are dealt out in shuffled blocks, so that they stay even.

    >>> from pear.datasets import loan_book_people, loan_book_problem
    >>> study = Study(loan_book_problem(), loan_book_people(), n_tasks=2)
    >>> sorted(study.participant(number).arm for number in range(3))
    ['list', 'pear', 'plain']
    >>> study.next(study.participant(0)).kind
    'consent'
    """

    problem: Problem
    people: Mapping[str, Mapping[str, Any]]
    n_tasks: int = 2
    own: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.n_tasks <= len(self.people):
            raise InvalidSetting(
                f"'tasks' must be from 1 to {len(self.people)}, the people there are "
                f"(got {self.n_tasks!r})"
            )

    def participant(self, number: int, events: Sequence[Event] = ()) -> Participant:
        """The participant of a number, from 0: arm and tasks follow from it."""
        block, place = divmod(number, len(ARMS))
        order = np.random.default_rng([self.seed, 0, block]).permutation(len(ARMS))
        names = np.random.default_rng([self.seed, 1, number]).permutation(sorted(self.people))
        tasks = (*map(str, names[: self.n_tasks]), *([OWN] if self.own else []))
        return Participant(number, ARMS[order[place]], tasks, tuple(events))

    def next(self, participant: Participant) -> Page:
        """What comes next for a participant."""
        if participant.of("withdrawn"):
            return Page("gone")
        if not participant.of("consent"):
            return Page("consent")
        for task in range(len(participant.tasks)):
            if not participant.of("begun", task):
                return Page("person", task)
            if not participant.of("took", task):
                return Page("plans", task)
            if not participant.of("rated", task):
                return Page("items", task)
        return Page("thanks") if participant.of("rated") else Page("end")

    def record(self, participant: Participant, task: int) -> Mapping[str, Any]:
        """The figures a task is about."""
        begun = participant.of("begun", task)
        if begun is not None and "record" in begun:
            return dict(begun["record"])
        return self.people[participant.tasks[task]]

    def case(self, participant: Participant, task: int) -> Case:
        """What a search must know of a task. Without questions, the best plan is taken at once."""
        said: tuple[Said, ...] = (Accepted(),)
        if participant.arm == "pear":
            said = tuple(read_said(event, self.problem) for event in participant.said(task))
        record = self.record(participant, task)
        return Case(f"{participant.number}.{task}", participant.number, record, said)

    # What participants say

    def take(
        self, participant: Participant, said: Mapping[str, Any], shown: Any = None
    ) -> list[dict[str, Any]]:
        """The events that follow from what was said about the next page.

        ``shown`` is what a page with plans showed: a :class:`Standing`, or the list of plans.
        """
        page = self.next(participant)
        if said.get("withdraw"):
            return [{"kind": "withdrawn"}]
        if page.kind == "consent":
            if not said.get("agree"):
                raise ConversationError("without your agreement nothing begins")
            return [{"kind": "consent"}]
        if page.kind == "person":
            begun: dict[str, Any] = {"kind": "begun", "task": page.task}
            if participant.tasks[page.task] == OWN:
                begun["record"] = dict(said["record"])
            return [begun]
        if page.kind == "plans":
            return self._taken(participant, page.task, said, shown)
        if page.kind in ("items", "end"):
            items = AFTER_TASK if page.kind == "items" else AT_THE_END
            return [{"kind": "rated", "task": page.task, "items": _ratings(said, items)}]
        raise ConversationError("the study has ended for you; nothing was changed")

    def _taken(
        self, participant: Participant, task: int, said: Mapping[str, Any], shown: Any
    ) -> list[dict[str, Any]]:
        if participant.arm == "list":
            place = said.get("choice")
            if not isinstance(place, int) or not 0 <= place < len(shown):
                raise ConversationError(f"choose one of the {len(shown)} ways (got {place!r})")
            return [_took(task, shown[place], 0)]
        standing: Standing = shown
        if standing.question is None:
            plan = standing.result.plan if standing.result is not None else None
            return [_took(task, plan, standing.answered)]
        if "limit" in said:
            limit = Limit.from_dict(said["limit"]).checked(self.problem)
            return [_said(task, Excluded((limit,)).to_dict())]
        if said.get("choice") == "enough":
            return [_said(task, Accepted().to_dict())]
        plans = standing.question.plans
        answer = read_choice(said.get("choice"), len(plans))
        state = self.problem.state(self.record(participant, task))
        answered = Answered(answer, tuple(state.tolist()), tuple(plan.moves for plan in plans))
        return [_said(task, answered.to_dict())]


def _said(task: int, event: Event) -> dict[str, Any]:
    return {"kind": "said", "task": task, "said": dict(event)}


def _took(task: int, plan: Any, questions: int) -> dict[str, Any]:
    """The plan a task ended with; None where there was none."""
    found = plan is not None and plan.success
    return {
        "kind": "took",
        "task": task,
        "questions": questions,
        "changes": [[step.feature, step.after] for step in plan.steps] if found else None,
        "moves": list(plan.moves) if found else None,
    }


def _ratings(said: Mapping[str, Any], items: Sequence[str]) -> dict[str, int]:
    """One rating for each item; all must be given."""
    found = {}
    for name in items:
        value = str(said.get(name, ""))
        if value not in {str(point) for point in range(1, POINTS + 1)}:
            raise ConversationError(
                f"every question needs an answer from 1 to {POINTS} ('{name}' has {value!r})"
            )
        found[name] = int(value)
    return found


# What is handed on


def export(participants: Iterable[Participant], seed: int = 0) -> pd.DataFrame:
    """What a study found: a row for each finished task, without anything that names a person.

    Participants are numbered anew in a random order; there are no times of day, no links, and of
    figures of one's own nothing but how many steps the plan had. Who withdrew is left out. Items
    about the whole stand in every row of a participant who answered them.
    """
    kept = [one for one in participants if not one.of("withdrawn")]
    rng = np.random.default_rng([seed, 2])
    rows = []
    for number, one in enumerate(kept[place] for place in rng.permutation(len(kept))):
        at_the_end = one.of("rated") or {"items": {}}
        for task, name in enumerate(one.tasks):
            begun, took, rated = (one.of(kind, task) for kind in ("begun", "took", "rated"))
            if begun is None or took is None or rated is None:
                continue
            changes = took["changes"]
            rows.append(
                {
                    "participant": number,
                    "arm": one.arm,
                    "task": task + 1,
                    "person": name,
                    "questions": took["questions"],
                    "steps": np.nan if changes is None else len(changes),
                    "changes": ""
                    if changes is None or name == OWN
                    else "; ".join(f"{feature} = {value}" for feature, value in changes),
                    "seconds": round(took.get("at", np.nan) - begun.get("at", np.nan), 1),
                    **rated["items"],
                    **at_the_end["items"],
                }
            )
    columns = ["participant", "arm", "task", "person", "questions", "steps", "changes", "seconds"]
    return pd.DataFrame(rows, columns=[*columns, *AFTER_TASK, *AT_THE_END])
