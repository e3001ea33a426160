"""What does a search process do for a conversation? The only part that leads sessions.

The engine remembers the sessions it met last; one it does not remember is rebuilt from its record
and what was said. What was taken back is taken back there as well, so that an undo costs nothing.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from pear.decision import BlackBox
from pear.elicitation import Session, Standing
from pear.elicitation.says import Said, Undone
from pear.elicitation.settings import Settings as SessionSettings
from pear.errors import PearError
from pear.planning.exact import ExactPlanner
from pear.planning.robust import Robustness
from pear.preferences import GaussianMixturePrior, default_prior
from pear.problem import Problem, Step
from pear.problem.features import Record, Value
from pear.service.settings import Settings

LATER = 10
"""Later questions ask this many times fewer rows than the first: what it found is remembered."""

Changes = tuple[tuple[str, Value], ...]
"""What a plan changes: (feature, value after), in its order."""


@dataclass(frozen=True)
class News:
    """What happened since a person was last shown where they stand.

    ``rest`` are the changes that were left of their plan when they did a step of it. Under a
    ``new_model``, ``plan`` are the changes of the one they had, and ``lost`` says how much of each
    kind was. ``decided`` is what the lender said of a correction.
    """

    rest: Changes = ()
    decided: Literal["", "confirmed", "declined"] = ""
    new_model: bool = False
    plan: Changes | None = None
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """Something a person is told: the name of its text, and what stands in it."""

    code: str
    number: int = 0
    of: int = 0
    until: float = 0.0
    steps: str = ""


@dataclass(frozen=True)
class Case:
    """All that a search needs to know of a conversation; no link, no reference.

    ``said`` is what stands of everything said.
    """

    id: str
    seed: int
    record: Record
    said: tuple[Said, ...] = ()
    news: News = News()


@dataclass(frozen=True)
class Seen:
    """Where a conversation stands, and what the person is told about how it came to that."""

    standing: Standing
    notices: tuple[Notice, ...] = ()


class Engine:
    """Makes questions and plans."""

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        settings: Settings,
        prior: GaussianMixturePrior | None = None,
        versions: Sequence[BlackBox] = (),
    ) -> None:
        self.problem, self.black_box, self.versions = problem, black_box, tuple(versions)
        # Only the plan given needs a proof; plans to ask about or to compare with are found by
        # short searches, so that nobody waits long behind someone else's.
        self.planner = ExactPlanner(problem, black_box, max_rows=settings.max_rows)
        self.asking = ExactPlanner(problem, black_box, max_rows=settings.question_rows)
        self.prior = prior or default_prior(problem)
        self.settings = SessionSettings(
            k=settings.choices,
            max_questions=settings.max_questions,
            pool_rows=max(1, settings.question_rows // LATER),
        )
        self._most = settings.cached_sessions
        self._sessions: OrderedDict[str, _Known] = OrderedDict()

    def warm_up(self) -> Engine:
        """Have the search compiled before anyone waits: for the first time that may take longer
        than a search may, whose process would be ended, and the next one begin again.
        """
        with suppress(PearError, ValueError):
            least = {f.name: f.lower or 0.0 for f in self.problem.space.features}
            state = self.problem.state(
                {f.name: f.value(least[f.name]) for f in self.problem.space.features}
            )
            samples = np.vstack([self.prior.mean()] * 2)
            self.asking.candidates(state, samples, 2, max_rows=3_000)
        return self

    def facts(self) -> dict[str, str]:
        """What the web process must know of the model."""
        return {
            "problem_fingerprint": self.problem.fingerprint,
            "model_fingerprint": self.black_box.fingerprint,
        }

    def score(self, record: Record) -> float:
        """The model's score of a record."""
        return float(self.black_box.score(self.problem.state(record)[None])[0])

    def look(self, case: Case) -> Seen:
        """Where a conversation stands, after everything said."""
        session = self._session(case)
        standing = session.standing(self.planner)
        return Seen(standing, tuple(self._notices(case, session, standing)))

    def _notices(self, case: Case, session: Session, standing: Standing) -> list[Notice]:
        news = case.news
        found = [Notice(f"lost_{kind}", number) for kind, number in news.lost.items() if number]
        plan = standing.result.plan if standing.result and standing.stage == "plan" else None
        now = changes(plan.steps) if plan is not None else None
        if news.new_model:
            found += _after_a_new_model(news.plan, now, found)
        if news.rest and plan is not None:
            same = news.rest == now
            found.append(Notice("rest_same" if same else self._rest(session, news.rest)))
        if news.decided:
            found.append(Notice(news.decided))
        if plan is not None and plan.steps and self.versions:
            answers = Robustness.of([plan], self.problem, self.versions).answers
            found.append(Notice("lasts", int(answers.sum()), of=len(self.versions)))
        if standing.favourable and standing.stage == "plan":
            found.append(Notice("reached"))
        return found

    def _rest(self, session: Session, rest: Changes) -> str:
        """Whether the remaining steps of an old plan would still be enough."""
        space = self.problem.space
        state = session.start.copy()
        for name, value in rest:
            state[space.index(name)] = space[name].code(value)
        enough = bool(self.black_box.favourable(state[None], session.limits)[0])
        return "rest_easier" if enough else "rest_new"

    def _session(self, case: Case) -> Session:
        """The session of a conversation: remembered and brought up to date, or rebuilt."""
        key = json.dumps([case.seed, case.record], sort_keys=True)
        known = self._sessions.pop(case.id, None)
        if known is None or known.key != key:
            session = Session(
                self.asking, case.record, self.prior, settings=self.settings, seed=case.seed
            )
            known = _Known(key, session)
        known.follow(case.said)
        self._sessions[case.id] = known
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return known.session


class _Known:
    """A session that is remembered, and what was said in it."""

    def __init__(self, key: str, session: Session) -> None:
        self.key, self.session = key, session
        self.said: list[Said] = []

    def follow(self, said: Sequence[Said]) -> None:
        """Take back what no longer stands, and take in what is new."""
        # Compared as stored: a missing value, too, is the same as itself there.
        shared = 0
        for old, new in zip(self.said, said, strict=False):
            if old.to_dict() != new.to_dict():
                break
            shared += 1
        while len(self.said) > shared:
            self.session.say(Undone())
            self.said.pop()
        for event in said[shared:]:
            self.session.say(event)
            self.said.append(event)


def _after_a_new_model(
    before: Changes | None, now: Changes | None, lost: Sequence[Notice]
) -> list[Notice]:
    if before is None:
        return [] if lost else [Notice("model_question")]
    if now is None:
        return [Notice("model_none")]
    return [Notice("model_same" if before == now else "model_new")]


def changes(steps: Sequence[Step]) -> Changes:
    """What steps change, in their order."""
    return tuple((step.feature, step.after) for step in steps)


def stated_problem(place: str | Path | None) -> Problem:
    """The problem of a file; without one the loan book's."""
    if place:
        from pear.problem.files import load_problem

        return load_problem(place)
    from pear.datasets import loan_book_problem

    return loan_book_problem()


def make_engine(settings: Settings) -> Engine:
    """The engine of a service, with its model loaded, and the prior its problem names."""
    problem = stated_problem(settings.problem)
    if settings.problem:
        from pear.decision import load_model, load_models

        prior = _read_prior(settings.prior) if settings.prior else None
        model = load_model(settings.model, problem, agree=settings.agree)
        versions = load_models([settings.versions], problem) if settings.versions else ()
        return Engine(problem, model, settings, prior, versions).warm_up()
    from pear.datasets.loan_book import loan_book_classifier

    return Engine(problem, loan_book_classifier(problem), settings).warm_up()


def _read_prior(path: str) -> GaussianMixturePrior:
    """A prior that ``pear fit-prior`` wrote; ``pear serve`` has checked that it can be read."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    return GaussianMixturePrior.from_dict(content.get("prior", content))


def example_people(settings: Settings) -> dict[str, dict[str, Value | None]]:
    """Invented refused people for the demonstration; none for another problem."""
    if settings.problem:
        return {}
    from pear.datasets.loan_book import loan_book_people

    return {name: dict(record) for name, record in loan_book_people().items()}
