"""What does a person see? Questions, plans, and where they stand: as typed values, and in words.

Terminal, API, page and portfolio render these and nothing else. :func:`tell` turns a
:class:`Standing` into the texts and whole points of one language; nobody else puts words to plans.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from pear.elicitation.says import DoneStep
from pear.elicitation.words import LETTERS, Words, capital, points
from pear.planning.reasons import StepReason
from pear.problem import Plan, Step
from pear.problem.features import Value
from pear.problem.limits import Limit, refusals

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

    @property
    def why_none(self) -> str:
        """Why there is no plan: they refused each, none is enough (proven), or it is unknown."""
        if self.refused_before:
            return "refused"
        verdict = self.result.plan.certificate.verdict if self.result is not None else ""
        return "proven" if verdict == "infeasible" else "unknown"

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


# In words


MOST_SUGGESTIONS = 2
"""Most limits that a person without a plan is asked to think about again."""


@dataclass(frozen=True)
class Refusal:
    """One thing a person may mean by "I can't do this", and the limit it sets."""

    words: str
    limit: Limit


@dataclass(frozen=True)
class Cell:
    """What one plan does about one thing: its value, and what may be too much about it."""

    value: str
    changes: bool = False
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Line:
    """A row of the comparison: what it is about, how it is now, and a cell for each plan.

    Where all plans that do something about it do the same, the label is the whole step and the
    cells say yes or no; ``shared`` where all do.
    """

    label: str
    now: str
    cells: tuple[Cell, ...]
    shared: bool = False


@dataclass(frozen=True)
class Hard:
    """One thing to do that may be too hard, and what a person may mean by that, mildest first."""

    words: str
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class ToldStep:
    """A step of a plan, with the points before and after it."""

    words: str
    takes: str
    reason: str
    before: int
    after: int
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class ToldPlan:
    """A plan's steps, and what it takes and leads to as a whole."""

    steps: tuple[ToldStep, ...]
    time: str
    money: str
    loan: str
    loan_in_all: str
    points: int
    thin: bool
    effort: str = ""


@dataclass(frozen=True)
class ToldQuestion:
    """Plans side by side. ``facts`` are time, money, loan and score; ``lines`` the steps.

    ``plans`` are the same plans one by one, in the order of their letters.
    ``too_hard`` are the things to do one by one, the last refusal of each leaves it out.
    """

    number: int
    id: str
    progress: str
    letters: tuple[str, ...]
    plans: tuple[ToldPlan, ...]
    facts: tuple[Line, ...]
    lines: tuple[Line, ...]
    shared: tuple[Line, ...]
    too_hard: tuple[Hard, ...]


@dataclass(frozen=True)
class ToldResult:
    """The plan, how sure we are in one line, what was checked, and shorter plans."""

    plan: ToldPlan
    certainty: str
    proof: str
    more: bool
    alternatives: tuple[ToldPlan, ...] = ()


@dataclass(frozen=True)
class ToldLimit:
    """Something the person can't do, with the id it is lifted by."""

    id: str
    words: str


@dataclass(frozen=True)
class Suggestion:
    """Limits that, once lifted, would open a plan."""

    ids: str
    words: str
    plan: ToldPlan


@dataclass(frozen=True)
class ToldDone:
    """A step that is done, and the points it led to where they are known."""

    words: str
    points: int | None


@dataclass(frozen=True)
class Told:
    """Where a conversation stands, in words; points are whole, of 100."""

    stage: Stage
    points: int
    required: int
    answered: int
    limits: tuple[ToldLimit, ...]
    done: tuple[ToldDone, ...]
    question: ToldQuestion | None = None
    result: ToldResult | None = None
    why_none: str = ""
    suggestions: tuple[Suggestion, ...] = ()


def tell(standing: Standing, words: Words) -> Told:
    """Where a conversation stands, in the words of one language.

    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> from pear.elicitation import Session
    >>> from pear.planning.exact import ExactPlanner
    >>> problem = loan_book_problem()
    >>> session = Session(ExactPlanner(problem, loan_book_classifier()), loan_book_people()["Ben"])
    >>> told = tell(session.standing(), Words(problem))
    >>> told.stage, told.required, told.question.letters
    ('question', 50, ('A', 'B'))
    """
    return _Teller(standing, words).told()


def tell_again(question: Question, required: float, words: Words) -> ToldQuestion | None:
    """A question asked before, in words."""
    return tell(Standing("question", 0.0, required, 0, question=question), words).question


class _Teller:
    def __init__(self, standing: Standing, words: Words) -> None:
        self.standing, self.words = standing, words
        self.required = points(standing.required)

    def told(self) -> Told:
        standing, words = self.standing, self.words
        question, result = standing.question, standing.result
        return Told(
            stage=standing.stage,
            points=points(standing.score, standing.required),
            required=self.required,
            answered=standing.answered,
            limits=tuple(ToldLimit(limit.id, words.limit(limit)) for limit in standing.limits),
            done=tuple(
                ToldDone(words.step(step), self._points(step.score_after)) for step in standing.done
            ),
            question=self._question(question) if question is not None else None,
            result=self._result(result) if result is not None and result.plan.success else None,
            why_none=standing.why_none,
            suggestions=tuple(self._suggestions(result)) if result is not None else (),
        )

    def _points(self, score: float | None) -> int | None:
        return None if score is None else points(score, self.standing.required)

    # A question

    def _question(self, question: Question) -> ToldQuestion:
        rows = aligned(question.plans)
        facts, same = self._facts(question.plans)
        left = question.questions_left - 1
        lines = [self._line(row) for row in rows if not row.shared]
        if not lines:
            lines = [self._order(question.plans)]
        return ToldQuestion(
            number=question.number,
            id=question.id,
            progress=self.words.texts.count("progress.left", left)
            if left > 0
            else self.words.texts("progress.last"),
            letters=tuple(LETTERS[: len(question.plans)]),
            plans=tuple(self._plan(plan) for plan in question.plans),
            facts=facts,
            lines=tuple(lines),
            shared=(*(self._line(row) for row in rows if row.shared), *same),
            too_hard=tuple(self._too_hard(row) for row in rows),
        )

    def _too_hard(self, row: Row) -> Hard:
        label = self.words.step(row.step) if row.one_way else self._name(row)
        each = [self._refusals(step) for step in row.steps if step is not None]
        milder = dict.fromkeys(refusal for found in each for refusal in found[:-1])
        return Hard(label, (*milder, each[0][-1]))

    def _name(self, row: Row) -> str:
        return capital(self.words.problem.space[row.feature].words)

    def _line(self, row: Row) -> Line:
        texts = self.words.texts
        if row.one_way:
            yes, no = texts("compare.yes"), texts("compare.no")
            cells = tuple(
                Cell(yes, True, self._refusals(step)) if step is not None else Cell(no)
                for step in row.steps
            )
            return Line(self.words.step(row.step), "", cells, row.shared)
        now = texts("compare.now", value=self.words.value(row.feature, row.step.before))
        cells = tuple(
            Cell(self.words.value(row.feature, step.after), True, self._refusals(step))
            if step is not None
            else Cell(texts("compare.same"))
            for step in row.steps
        )
        return Line(self._name(row), now, cells)

    def _order(self, plans: Sequence[Plan]) -> Line:
        """Plans of the same steps differ in their order only."""
        name = self.words.problem.space
        cells = tuple(
            Cell(", ".join(capital(name[step.feature].words) for step in plan.steps), True)
            for plan in plans
        )
        return Line(self.words.texts("compare.order"), "", cells)

    def _facts(self, plans: Sequence[Plan]) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
        """What plans take and lead to: the lines that differ, and those that are the same."""
        texts = self.words.texts
        columns = {
            "time": [self.words.plan_time(plan) for plan in plans],
            "money": [self.words.plan_money(plan) for plan in plans],
            "loan": self.words.loans(plans),
            "score": [self._reached(plan) for plan in plans],
        }
        lines = [
            Line(
                texts(f"compare.{name}"),
                "",
                tuple(
                    Cell(value or self._unsaid(name, plan))
                    for value, plan in zip(values, plans, strict=True)
                ),
                shared=len(set(values)) == 1,
            )
            for name, values in columns.items()
            if any(values)
        ]
        differ = tuple(line for line in lines if not line.shared)
        return differ, tuple(line for line in lines if line.shared)

    def _unsaid(self, name: str, plan: Plan) -> str:
        """There is nothing to pay only where that is stated of every step."""
        stated = all(step.once is not None or step.monthly is not None for step in plan.steps)
        return self.words.texts("money.none" if name == "money" and stated else "compare.unknown")

    def _reached(self, plan: Plan) -> str:
        texts, at = self.words.texts, points(plan.score, self.standing.required)
        reached = texts("compare.points", points=at)
        return f"{reached}, {texts('compare.thin')}" if self._thin(plan) else reached

    def _thin(self, plan: Plan) -> bool:
        over = points(plan.score, self.standing.required) - self.required
        return over <= points(self.words.problem.goal.just_enough)

    def _refusals(self, step: Step) -> tuple[Refusal, ...]:
        limits = refusals(self.words.problem, step)
        return tuple(Refusal(self.words.refusal(limit), limit) for limit in limits)

    # A plan

    def _result(self, result: Result) -> ToldResult:
        plan = self._plan(result.plan, result.reasons)
        return ToldResult(
            plan=plan,
            certainty=self.words.certainty(result, self.standing.answered),
            proof=self.words.certificate(result.plan.certificate.verdict),
            more=result.questions_left > 0,
            alternatives=tuple(
                self._plan(other, effort=self._effort(other, result.plan))
                for other in result.alternatives
            ),
        )

    def _plan(self, plan: Plan, reasons: Sequence[StepReason] = (), effort: str = "") -> ToldPlan:
        words, required = self.words, self.standing.required
        steps = tuple(
            ToldStep(
                words=words.step(step),
                takes=words.takes(step),
                reason=words.reason(step, reasons[place]) if place < len(reasons) else "",
                before=points(step.score_before, required),
                after=points(step.score_after, required),
                refusals=self._refusals(step),
            )
            for place, step in enumerate(plan.steps)
        )
        loan, in_all = words.loan(plan)
        return ToldPlan(
            steps,
            words.plan_time(plan),
            words.plan_money(plan),
            loan,
            in_all,
            points(plan.score, required),
            self._thin(plan),
            effort,
        )

    def _effort(self, other: Plan, best: Plan) -> str:
        more = other.cost / best.cost - 1 if best.cost > 0 else 0.0
        if more < 0.05:
            return self.words.texts("effort.same")
        return self.words.texts("effort.more", percent=self.words.share(more))

    # No plan

    def _suggestions(self, result: Result) -> Iterable[Suggestion]:
        joined = f" {self.words.texts('language.and')} "
        for loosening in result.loosenings[:MOST_SUGGESTIONS]:
            yield Suggestion(
                ids=",".join(limit.id for limit in loosening.limits),
                words=joined.join(self.words.limit(limit) for limit in loosening.limits),
                plan=self._plan(loosening.plan),
            )
