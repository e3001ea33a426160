"""What is a person told? Where their conversation stands, in the words of one language.

:func:`tell` turns a :class:`Standing` into texts and whole points. Terminal, API and page show
these and put no words to plans of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pear.elicitation.shown import Question, Result, Row, Stage, Standing, aligned
from pear.elicitation.words import LETTERS, Words, capital, points
from pear.planning.reasons import StepReason
from pear.problem import Plan, Step
from pear.problem.limits import Limit, refusals

THIN = 1
"""A plan that passes by no more points than this is only just enough."""

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
    proven: bool = False
    refused_before: bool = False
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


class _Teller:
    def __init__(self, standing: Standing, words: Words) -> None:
        self.standing, self.words = standing, words
        self.required = points(standing.required)

    def told(self) -> Told:
        standing, words = self.standing, self.words
        question, result = standing.question, standing.result
        verdict = result.plan.certificate.verdict if result is not None else ""
        return Told(
            stage=standing.stage,
            points=points(standing.score, standing.required),
            required=self.required,
            answered=standing.answered,
            limits=tuple(ToldLimit(limit.id, words.limit(limit)) for limit in standing.limits),
            done=tuple(
                ToldDone(
                    words.step(step),
                    None
                    if step.score_after is None
                    else points(step.score_after, standing.required),
                )
                for step in standing.done
            ),
            question=self._question(question) if question is not None else None,
            result=self._result(result) if result is not None and result.plan.success else None,
            proven=verdict == "infeasible",
            refused_before=standing.refused_before,
            suggestions=tuple(self._suggestions(result)) if result is not None else (),
        )

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
        before = row.step.before
        now = texts("compare.now", value=self.words.value(row.feature, before))
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
            "loan": [self.words.loan(plan, short=True)[0] for plan in plans],
            "score": [self._reached(plan) for plan in plans],
        }
        lines = [
            Line(
                texts(f"compare.{name}"),
                "",
                tuple(
                    Cell(value or texts("money.none" if name == "money" else "compare.no"))
                    for value in values
                ),
                shared=len(set(values)) == 1,
            )
            for name, values in columns.items()
            if any(values)
        ]
        differ = tuple(line for line in lines if not line.shared)
        return differ, tuple(line for line in lines if line.shared)

    def _reached(self, plan: Plan) -> str:
        texts, at = self.words.texts, points(plan.score, self.standing.required)
        reached = texts("compare.points", points=at)
        return f"{reached}, {texts('compare.thin')}" if self._thin(plan) else reached

    def _thin(self, plan: Plan) -> bool:
        return points(plan.score, self.standing.required) - self.required <= THIN

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
