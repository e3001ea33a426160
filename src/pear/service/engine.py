"""How is the next question or plan computed, in a process of its own, so that nobody else waits?

The engine leads the sessions, and remembers the latest ones; one it does not remember is rebuilt
from its record and what was said. What was taken back is taken back there as well, so that an undo
costs nothing.

Each searcher is a process with an engine, which loads problem and model once. A conversation goes
to the same searcher while that one has room, because it remembers the session. Waiting is fair:
addresses take turns, and within an address the conversations do, so that whoever asks for much
waits for themselves. Everyone who waits can be told their place.
"""

from __future__ import annotations

import asyncio
import json
import math
import traceback
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from pear.decision import BlackBox
from pear.decision.used_features import mark_used
from pear.elicitation import Session, Standing
from pear.elicitation.says import DoneStep, Said, Undone
from pear.elicitation.settings import Settings as SessionSettings
from pear.errors import PearError, WorkerFailed
from pear.parallel import Worker
from pear.planning.exact import ExactPlanner
from pear.planning.robust import Robustness
from pear.preferences import GaussianMixturePrior, default_prior, stored_prior
from pear.problem import Problem, Step
from pear.problem.features import Record, Value
from pear.service.operation import Traces
from pear.service.settings import Settings

LATER = 10
"""Later questions ask this many times fewer rows than the first: what it found is remembered."""

Facts = dict[str, Any]
"""What a web process knows of a model: fingerprints, and the features it does not look at."""

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
    """Something a person is told: the name of its text, and what is filled into it.

    ``steps`` are said in the language of who reads them; earlier versions stored their words.
    """

    code: str
    number: int = 0
    of: int = 0
    until: float = 0.0
    steps: tuple[DoneStep, ...] | str = ()


@dataclass(frozen=True)
class Case:
    """All that a search needs to know about a conversation; no link, no reference.

    ``said`` is everything said that was not taken back.
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

    def facts(self) -> Facts:
        """What the web process must know of the model."""
        return {
            "problem_fingerprint": self.problem.fingerprint,
            "model_fingerprint": self.black_box.fingerprint,
            "unused": self._unused,
        }

    @cached_property
    def _unused(self) -> tuple[str, ...]:
        """The features that the model does not look at."""
        told = mark_used(self.problem, self.black_box)
        return tuple(feature.name for feature in told.space.features if not feature.used)

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
        """Undo what was taken back, and add what is new."""
        # Compared in their stored form, in which a missing value equals itself.
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

        prior = stored_prior(settings.prior, problem) if settings.prior else None
        model = load_model(settings.model, problem, agree=settings.agree)
        versions = load_models([settings.versions], problem) if settings.versions else ()
        return Engine(problem, model, settings, prior, versions).warm_up()
    from pear.datasets.loan_book import loan_book_classifier

    return Engine(problem, loan_book_classifier(problem), settings).warm_up()


def example_people(settings: Settings) -> dict[str, dict[str, Value | None]]:
    """Invented refused people for the demonstration; none for another problem."""
    if settings.problem:
        return {}
    from pear.datasets.loan_book import loan_book_people

    return {name: dict(record) for name, record in loan_book_people().items()}


# Where it works


LEAN = 6
"""How many more may wait at a conversation's own searcher before it goes to another."""

START_SECONDS = 600.0
"""Until a searcher must be ready: on a slow machine the search is compiled for minutes, once."""

EngineMaker = Callable[[], Any]
"""Makes the object whose methods do the searching; travels to the process that calls it."""


class Busy(PearError):
    """More people are waiting than the service accepts; nothing was changed."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many people are being served; try again in {seconds} seconds")
        self.seconds = seconds


class SearchTooLong(PearError):
    """A search ran past its time limit and was ended."""


class ModelReplaced(PearError):
    """A model or problem file changed while the service runs; it serves the one it began with."""


@dataclass(eq=False)
class _Job:
    name: str
    address: str
    method: str
    arguments: tuple[Any, ...]
    result: asyncio.Future[Any]


class FairQueue:
    """Jobs that wait: addresses take turns, first come first served within each.

    >>> queue = FairQueue()
    >>> for name, address in (("a", "x"), ("b", "x"), ("c", "y")):
    ...     queue.add(_Job(name, address, "look", (), None))
    >>> queue.place("b"), queue.place("c")
    (3, 2)
    >>> [queue.next().name for _ in range(len(queue))]
    ['a', 'c', 'b']
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: _Job) -> None:
        """Queue a job behind the others of its address."""
        self._turns.setdefault(job.address, deque()).append(job)
        self._count += 1

    def next(self) -> _Job:
        """The job whose turn it is; its address is last in turn from now on."""
        address, jobs = self._turns.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._turns[address] = jobs
        self._count -= 1
        return job

    def place(self, name: str) -> int | None:
        """The place of a conversation's job, from 1; None where it does not wait here."""
        for turn, (address, jobs) in enumerate(self._turns.items()):
            for rank, job in enumerate(jobs):
                if job.name == name:
                    others = (item for item in enumerate(self._turns.items()))
                    return 1 + sum(
                        min(len(waiting), rank + (before < turn)) if other != address else rank
                        for before, (other, waiting) in others
                    )
        return None


class Searchers:
    """Searchers, each with a fair queue; runs methods of an engine away from the event loop.

    With ``count`` 0 there is one, a thread of this process: for tests.
    """

    def __init__(
        self,
        maker: EngineMaker,
        count: int,
        *,
        seconds: float = 20.0,
        most_waiting: int = 200,
        traces: Traces | None = None,
    ) -> None:
        self._maker, self._most, self._traces = maker, most_waiting, traces or Traces()
        self._searchers = [_Searcher(_process(maker, seconds), seconds) for _ in range(count)]
        if not count:
            self._searchers = [_Searcher(_Thread(maker), seconds)]
        self.facts: Facts = {}

    def start(self) -> None:
        """Start every searcher; an engine that cannot be made raises its error here."""
        first = [searcher.worker.submit("do", "facts") for searcher in self._searchers]
        self.facts = first[0].result()
        for searcher, facts in zip(self._searchers, first, strict=True):
            if facts.result() != self.facts:
                raise ModelReplaced(REPLACED)
            # From now on a process that replaces another must find the same model.
            searcher.worker.maker = partial(_PrivateEngine, self._maker, self.facts)

    async def run(self, name: str, method: str, *arguments: Any, address: str = "") -> Any:
        """The result of an engine's method; ``name`` is the conversation it is about."""
        if self.waiting() >= self._most:
            seconds = self.waiting() * self._searchers[0].worker.typical_seconds
            raise Busy(max(1, math.ceil(seconds / len(self._searchers) / 2)))
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._traces.span(f"search {method}") as span:
            span.tell(pear__waiting=self.waiting())
            self._choose(name).add(_Job(name, address, method, arguments, result))
            return await result

    def _choose(self, name: str) -> _Searcher:
        own = self._searchers[zlib.crc32(name.encode()) % len(self._searchers)]
        freest = min(self._searchers, key=lambda searcher: searcher.load)
        return own if own.load <= freest.load + LEAN else freest

    def place(self, name: str) -> int | None:
        """The place of a conversation in its queue, from 1; None where it does not wait."""
        places = (searcher.queue.place(name) for searcher in self._searchers)
        return next((place for place in places if place is not None), None)

    def stop(self) -> None:
        """End every searcher, whatever it is doing."""
        for searcher in self._searchers:
            searcher.worker.stop()

    def waiting(self) -> int:
        """Searches at work or waiting."""
        return sum(searcher.load for searcher in self._searchers)

    def restarts(self) -> int:
        """How many processes replaced another."""
        return sum(searcher.worker.restarts for searcher in self._searchers)


class _Searcher:
    """One worker, at one job at a time, and the jobs that wait for it."""

    def __init__(self, worker: _Works, seconds: float) -> None:
        self.worker, self.queue, self._seconds = worker, FairQueue(), seconds
        self._job: _Job | None = None

    @property
    def load(self) -> int:
        return len(self.queue) + (self._job is not None)

    def add(self, job: _Job) -> None:
        self.queue.add(job)
        if self._job is None:
            self._begin()

    def _begin(self) -> None:
        job = self._job = self.queue.next()
        loop = job.result.get_loop()
        done = self.worker.submit("do", job.method, *job.arguments)
        done.add_done_callback(lambda future: _call(loop, self._ended, future))

    def _ended(self, future: Future[Any]) -> None:
        job, self._job = self._job, None
        if len(self.queue):
            self._begin()
        if job is None or job.result.done():
            return
        error = WorkerFailed("the service stops") if future.cancelled() else future.exception()
        if isinstance(error, TimeoutError):
            error = SearchTooLong(f"the search was ended after {self._seconds:g} seconds")
        if error is not None:
            job.result.set_exception(error)
        else:
            job.result.set_result(future.result())


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *values: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *values)


class _Works(Protocol):
    """A worker: a process, or a thread of this one."""

    maker: EngineMaker
    restarts: int
    typical_seconds: float

    def submit(self, method: str, *arguments: Any) -> Future[Any]: ...

    def stop(self) -> None: ...


def _process(maker: EngineMaker, seconds: float) -> Worker:
    made = partial(_PrivateEngine, maker, None)
    return Worker(made, attempts=2, seconds=seconds, start_seconds=START_SECONDS)


class _Thread:
    """An engine in a thread of this process."""

    restarts, typical_seconds = 0, 0.1

    def __init__(self, maker: EngineMaker) -> None:
        self.maker = maker
        self._engine: _PrivateEngine | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search")

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        return self._thread.submit(self._do, *arguments)

    def _do(self, method: str, *arguments: Any) -> Any:
        if self._engine is None:
            self._engine = _PrivateEngine(self.maker, None)
        return self._engine.do(method, *arguments)

    def stop(self) -> None:
        self._thread.shutdown(cancel_futures=True)


class _PrivateEngine:
    """An engine whose errors reveal nobody's data, and whose model is the one expected."""

    def __init__(self, maker: EngineMaker, expected: Facts | None) -> None:
        self._engine = maker()
        if expected is not None and self._engine.facts() != expected:
            raise ModelReplaced(REPLACED)

    def do(self, method: str, *arguments: Any) -> Any:
        """The result of a method; our own errors as they are, of others only the kind and place."""
        try:
            return getattr(self._engine, method)(*arguments)
        except PearError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            found = f"a search ended with {type(error).__name__} at {place}"
            raise WorkerFailed(found) from None


REPLACED = (
    "the problem or the model is not the one this service was started with; restart the service "
    "to use the new one"
)
