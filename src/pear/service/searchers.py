"""Where does the searching happen, so that nobody else waits for it?

Each searcher is a process of its own that loads problem and model once. A conversation
goes to the same searcher while that one has room, because it remembers the session. A
search that takes too long is ended with its process; a process that dies is replaced and
its search done once more. When all queues are full, :class:`Busy` says when to come back.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import signal
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Protocol

from pear.errors import PearError, WorkerFailed

LEAN = 6
"""How many more may wait at a conversation's own searcher before it goes to another."""

START_SECONDS = 120.0

EngineMaker = Callable[[], Any]
"""Makes the object whose methods do the searching; travels to the process that calls it."""


class Busy(PearError):
    """Every searcher has a full queue; nothing was changed."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many people are being served; try again in {seconds} seconds")
        self.seconds = seconds


class SearchTooLong(PearError):
    """A search ran past its time limit and was ended; nothing was changed."""


class Searchers(Protocol):
    """Runs methods of an engine away from the event loop."""

    facts: dict[str, Any]

    async def run(self, name: str, method: str, *arguments: Any) -> Any:
        """The result of an engine's method; ``name`` is the conversation it is about."""
        ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def waiting(self) -> int: ...

    def restarts(self) -> int: ...


class OneThread:
    """An engine in this process, one search at a time: for tests and tiny installations."""

    def __init__(self, maker: EngineMaker, *, most_waiting: int = 64) -> None:
        self._maker, self._most = maker, most_waiting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._waiting = 0
        self.facts: dict[str, Any] = {}

    def start(self) -> None:
        self._engine = self._maker()
        self.facts = self._engine.facts()

    async def run(self, name: str, method: str, *arguments: Any) -> Any:
        if self._waiting >= self._most:
            raise Busy(1)
        self._waiting += 1
        try:
            future = self._thread.submit(getattr(self._engine, method), *arguments)
            return await asyncio.wrap_future(future)
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def waiting(self) -> int:
        return self._waiting

    def restarts(self) -> int:
        return 0


class Processes:
    """Search processes, each with a short queue."""

    def __init__(
        self, maker: EngineMaker, count: int, *, seconds: float = 20.0, most_waiting: int = 16
    ) -> None:
        self._searchers = [_Searcher(maker, seconds) for _ in range(count)]
        self._most = most_waiting
        self.facts: dict[str, Any] = {}

    def start(self) -> None:
        """Start every process; an engine that cannot be made raises its error here."""
        first = [searcher.begin() for searcher in self._searchers]
        self.facts = first[0].result()
        for other in first[1:]:
            other.result()

    async def run(self, name: str, method: str, *arguments: Any) -> Any:
        searcher = self._choose(name)
        if searcher.waiting >= self._most:
            raise Busy(searcher.seconds_until_free())
        return await asyncio.wrap_future(searcher.submit(method, arguments))

    def _choose(self, name: str) -> _Searcher:
        own = self._searchers[zlib.crc32(name.encode()) % len(self._searchers)]
        freest = min(self._searchers, key=lambda searcher: searcher.waiting)
        stay = own.waiting < self._most and own.waiting <= freest.waiting + LEAN
        return own if stay else freest

    def stop(self) -> None:
        for searcher in self._searchers:
            searcher.stop()

    def waiting(self) -> int:
        return sum(searcher.waiting for searcher in self._searchers)

    def restarts(self) -> int:
        return sum(searcher.restarts for searcher in self._searchers)


class _Searcher:
    """One process, and the thread of this process that speaks with it."""

    def __init__(self, maker: EngineMaker, seconds: float) -> None:
        self._maker, self._seconds = maker, seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="searcher")
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._typical = 0.1
        self.waiting = 0
        self.restarts = -1

    def begin(self) -> Future[dict[str, Any]]:
        return self._thread.submit(self._spawn)

    def submit(self, method: str, arguments: tuple[Any, ...]) -> Future[Any]:
        with self._lock:
            self.waiting += 1
        future = self._thread.submit(self._search, method, arguments)
        future.add_done_callback(self._one_less)
        return future

    def _one_less(self, _future: Future[Any]) -> None:
        with self._lock:
            self.waiting -= 1

    def seconds_until_free(self) -> int:
        return max(1, math.ceil(self.waiting * self._typical / 2))

    def _spawn(self) -> dict[str, Any]:
        self.restarts += 1
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._maker), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(START_SECONDS):
            self._end()
            raise WorkerFailed(f"a search process was not ready after {START_SECONDS:.0f} seconds")
        try:
            done, value = self._pipe.recv()
        except EOFError:
            done, value = False, WorkerFailed("a search process died while it was starting")
        if not done:
            self._end()
            raise value
        facts: dict[str, Any] = value
        return facts

    def _search(self, method: str, arguments: tuple[Any, ...]) -> Any:
        for _attempt in range(2):
            try:
                if self._process is None or not self._process.is_alive():
                    self._spawn()
                assert self._pipe is not None
                began = time.monotonic()
                self._pipe.send((method, arguments))
                if not self._pipe.poll(self._seconds):
                    self._end()
                    raise SearchTooLong(
                        f"the search was ended after {self._seconds:g} seconds; nothing was changed"
                    )
                done, value = self._pipe.recv()
            except (EOFError, ConnectionError, OSError):
                self._end()
                continue
            self._typical += 0.1 * (time.monotonic() - began - self._typical)
            if not done:
                raise value
            return value
        raise WorkerFailed("a search process died twice on the same search; nothing was changed")

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.terminate()
            self._process.join(2.0)
            self._process.kill()


def _serve(pipe: Connection, maker: EngineMaker) -> None:
    """The life of a search process: make the engine, answer until the pipe closes."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        engine = maker()
        pipe.send((True, engine.facts()))
    except Exception as error:  # whatever it is, the parent must hear of it
        pipe.send((False, _portable(error)))
        return
    with threadpool_limits(1):
        while True:
            try:
                method, arguments = pipe.recv()
            except (EOFError, OSError):
                return
            try:
                answer = (True, getattr(engine, method)(*arguments))
            except Exception as error:  # likewise
                answer = (False, _portable(error))
            pipe.send(answer)


def _portable(error: Exception) -> Exception:
    """Ours as they are; of others the kind and place, since their text may hold someone's data."""
    if isinstance(error, PearError):
        return error
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
    return WorkerFailed(f"a search ended with {type(error).__name__} at {place}")
