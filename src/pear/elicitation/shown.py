"""What does a person see? Questions, plans, and where they stand, as typed values.

Terminal, API, page and portfolio render these and nothing else. Words are put to them in
:mod:`pear.elicitation.words`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from pear.elicitation.says import DoneStep
from pear.planning.reasons import StepReason
from pear.problem import Plan, Step
from pear.problem.features import Value
from pear.problem.limits import Limit

StoredPlan = Annotated[
    Plan,
    PlainValidator(lambda data: data if isinstance(data, Plan) else Plan.from_dict(data)),
    PlainSerializer(Plan.to_dict),
]
"""A plan, with its own stored form."""


@dataclass(frozen=True)
class Difference:
    """What sets one plan of a question apart from the others, feature by feature.

    ``only`` it changes, ``spared`` it leaves alone though another plan changes it, ``values``
    are the features it changes to something else than the plans at other places: (feature, its
    own value, ((place, their value), ...)). ``order`` says that another plan has the same steps.
    """

    only: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    values: tuple[tuple[str, Value, tuple[tuple[int, Value], ...]], ...] = ()
    order: bool = False


@dataclass(frozen=True, repr=False)
class Question:
    """Which of these plans would you rather do? k plans, and what differs between them.

    ``gain`` is what the question is expected to be worth, in cost units; ``questions_left`` is
    how many are likely to be worth asking, this one included. ``efforts`` is what each plan is
    expected to cost this person, relative to the best plan known.
    """

    number: int
    plans: tuple[StoredPlan, ...]
    differences: tuple[Difference, ...]
    gain: float
    questions_left: int = 1
    efforts: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """What the question is known by: another number, start, model or plan is another one."""
        content = [self.number] + [
            [dict(plan.start), plan.moves, plan.problem_fingerprint, plan.model_fingerprint]
            for plan in self.plans
        ]
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"Question({self.number}: {len(self.plans)} plans, {self.questions_left} left)"

    def to_frame(self) -> pd.DataFrame:
        """The steps of all the plans, a row each, by plan and step."""
        from pear.elicitation.notebook import question_frame

        return question_frame(self)

    def _repr_html_(self) -> str:
        from pear.elicitation.notebook import question_html

        return question_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = _stored_question().dump_python(self)
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Question:
        """What :meth:`to_dict` stored, alone or within a :class:`Standing`."""
        return _stored_question().validate_python(data)


@dataclass(frozen=True)
class Loosening:
    """What lifting some limits would open."""

    limits: tuple[Limit, ...]
    plan: StoredPlan


@dataclass(frozen=True)
class Result:
    """The best plan by what the person told us, or none, and what is known about it.

    ``confidence`` is the probability that it is within 5% of their best. ``questions_left`` is
    how many more are likely to be worth asking, ``gain`` what the next one is worth. ``reasons``
    are those of each step, ``alternatives`` the easiest plans with fewer steps; where there is
    no plan, ``loosenings`` says which limits stand in the way. ``unlike`` says that the answers fit
    none of the people we know of: the confidence is that of others, and the plan suits many.
    """

    plan: StoredPlan
    confidence: float
    questions_left: int
    gain: float
    reasons: tuple[StepReason, ...] = ()
    alternatives: tuple[StoredPlan, ...] = ()
    loosenings: tuple[Loosening, ...] = ()
    unlike: bool = False


Stage = Literal["favourable", "question", "plan", "no_plan"]


@dataclass(frozen=True)
class Standing:
    """Where a conversation stands: an open question, a plan, why there is none, or no need of one.

    ``score`` is the model's for the person as they are now, ``required`` what it must exceed.
    ``refused_before`` says that there are plans, and that they said "none of these" to each.
    """

    stage: Stage
    score: float
    required: float
    answered: int
    limits: tuple[Limit, ...] = ()
    done: tuple[DoneStep, ...] = ()
    question: Question | None = None
    result: Result | None = None
    refused_before: bool = False

    @property
    def favourable(self) -> bool:
        """Whether the decision is in the person's favour as they are now."""
        return self.score > self.required

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = _stored_form().dump_python(self)
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Standing:
        """What :meth:`to_dict` stored."""
        return _stored_form().validate_python(data)


@cache
def _stored_question() -> TypeAdapter[Question]:
    return TypeAdapter(Question)


@cache
def _stored_form() -> TypeAdapter[Standing]:
    return TypeAdapter(Standing)


def differences(plans: Sequence[Plan]) -> tuple[Difference, ...]:
    """What sets each plan of a question apart; costs are not in it: they are what we ask about."""
    changes = [{step.feature: step.after for step in plan.steps} for plan in plans]
    found = []
    for place, own in enumerate(changes):
        others = {i: change for i, change in enumerate(changes) if i != place}
        elsewhere = list(dict.fromkeys(name for change in others.values() for name in change))
        values = tuple(
            (name, value, tuple((i, c[name]) for i, c in others.items() if name in c))
            for name, value in own.items()
            if any(name in c and c[name] != value for c in others.values())
        )
        found.append(
            Difference(
                only=tuple(name for name in own if name not in elsewhere),
                spared=tuple(name for name in elsewhere if name not in own),
                values=values,
                order=any(change == own for change in others.values()),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class Row:
    """One thing to do, and each plan's step for it; None where a plan leaves it alone."""

    feature: str
    steps: tuple[Step | None, ...]

    @property
    def shared(self) -> bool:
        """Whether all plans do the same about it."""
        return len({step and step.after for step in self.steps}) == 1

    @property
    def step(self) -> Step:
        """The step of the first plan that has one."""
        return next(step for step in self.steps if step is not None)

    @property
    def one_way(self) -> bool:
        """Whether all plans that do something about it do the same."""
        return len({step.after for step in self.steps if step is not None}) == 1


def aligned(plans: Sequence[Plan]) -> tuple[Row, ...]:
    """Plans side by side: one row for each thing to do, those that differ first.

    Where a plan changes a feature more than once, its last step about it counts.
    """
    changes = [{step.feature: step for step in plan.steps} for plan in plans]
    features = dict.fromkeys(step.feature for plan in plans for step in plan.steps)
    rows = [Row(name, tuple(change.get(name) for change in changes)) for name in features]
    return tuple(sorted(rows, key=lambda row: row.shared))
