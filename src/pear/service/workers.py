"""Where does the searching happen, so that nobody else waits for it?

Each searcher is a process of its own that loads problem and model once. A conversation goes to the
same searcher while that one has room, because it remembers the session. Waiting is fair: addresses
take turns, and within an address the conversations do, so that whoever asks for much waits for
themselves. Everyone who waits can be told their place.
"""

from __future__ import annotations

import asyncio
import math
import traceback
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from pear.errors import PearError, WorkerFailed
from pear.parallel import Worker
from pear.service.operation import Traces

LEAN = 6
"""How many more may wait at a conversation's own searcher before it goes to another."""

START_SECONDS = 120.0

EngineMaker = Callable[[], Any]
"""Makes the object whose methods do the searching; travels to the process that calls it."""


class Busy(PearError):
    """More people wait than the service takes on; nothing was changed."""

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
        """Take a job in, behind the others of its address."""
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
        self.facts: dict[str, str] = {}

    def start(self) -> None:
        """Start every searcher; an engine that cannot be made raises its error here."""
        first = [searcher.worker.submit("do", "facts") for searcher in self._searchers]
        self.facts = first[0].result()
        for searcher, facts in zip(self._searchers, first, strict=True):
            if facts.result() != self.facts:
                raise ModelReplaced(REPLACED)
            # From now on a process that takes another's place must find the same model.
            searcher.worker.maker = partial(_Discreet, self._maker, self.facts)

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
        """End every searcher, whatever it is at."""
        for searcher in self._searchers:
            searcher.worker.stop()

    def waiting(self) -> int:
        """Searches at work or waiting."""
        return sum(searcher.load for searcher in self._searchers)

    def restarts(self) -> int:
        """Processes that took another's place."""
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
    made = partial(_Discreet, maker, None)
    return Worker(made, attempts=2, seconds=seconds, start_seconds=START_SECONDS)


class _Thread:
    """An engine in a thread of this process."""

    restarts, typical_seconds = 0, 0.1

    def __init__(self, maker: EngineMaker) -> None:
        self.maker = maker
        self._engine: _Discreet | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search")

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        return self._thread.submit(self._do, *arguments)

    def _do(self, method: str, *arguments: Any) -> Any:
        if self._engine is None:
            self._engine = _Discreet(self.maker, None)
        return self._engine.do(method, *arguments)

    def stop(self) -> None:
        self._thread.shutdown(cancel_futures=True)


class _Discreet:
    """An engine whose errors tell nobody's data, and which is about the model expected."""

    def __init__(self, maker: EngineMaker, expected: dict[str, str] | None) -> None:
        self._engine = maker()
        if expected is not None and self._engine.facts() != expected:
            raise ModelReplaced(REPLACED)

    def do(self, method: str, *arguments: Any) -> Any:
        """The result of a method; errors of ours as they are, of others the kind and place."""
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
