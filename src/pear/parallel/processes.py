"""How do many processes of this machine share tasks, and what if one dies?

Each process is a pool of one. When a worker dies, what it was doing is therefore known:
that task is done again in a fresh process, and no other is blamed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext
from typing import Any, TypeVar

from pear.errors import WorkerFailed
from pear.parallel.threads import AHEAD_PER_WORKER, IN_FLIGHT_PER_WORKER, hold_to_one_thread

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_in_processes(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    count: int,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, result)`` as tasks end, on ``count`` processes."""
    workers: list[_Worker] = []
    finished = False
    try:
        for index, task in enumerate(tasks):
            if len(workers) < count:
                workers.append(_Worker(setup, attempts))
            while _full(workers, index, ordered):
                yield from _collect(workers)
            least_busy = min(workers, key=lambda worker: len(worker.entries))
            least_busy.submit(_Entry(index, partial(function, task)))
        while any(worker.entries for worker in workers):
            yield from _collect(workers)
        finished = True
    finally:
        for worker in workers:
            worker.stop(at_once=not finished)


def _full(workers: list[_Worker], index: int, ordered: bool) -> bool:
    if all(len(worker.entries) >= IN_FLIGHT_PER_WORKER for worker in workers):
        return True
    oldest = min((entry.index for worker in workers for entry in worker.entries), default=index)
    return ordered and index - oldest >= AHEAD_PER_WORKER * len(workers)


def _collect(workers: list[_Worker]) -> Iterator[tuple[int, Any]]:
    """Wait until some task has ended, and yield the results of all that have."""
    busy = [worker for worker in workers if worker.entries]
    wait([worker.entries[0].future for worker in busy], return_when=FIRST_COMPLETED)
    for worker in busy:
        yield from worker.take()


@dataclass
class _Entry:
    """A task given to a worker, and how often its worker died."""

    index: int
    call: Callable[[], Any]
    deaths: int = 0
    future: Future[Any] = field(default_factory=Future)


class _Worker:
    """One process, and the tasks it was given in the order it does them.

    Only the first of ``entries`` can be at work, so only that one is blamed for a death.
    """

    def __init__(self, setup: Callable[[], object], attempts: int) -> None:
        self.setup = setup
        self.attempts = attempts
        self.entries: deque[_Entry] = deque()
        self._start()

    def _start(self) -> None:
        self.context = _RecordingContext()
        self.pool = ProcessPoolExecutor(
            max_workers=1,
            mp_context=self.context,
            initializer=_prepare_worker,
            initargs=(self.setup,),
        )

    def submit(self, entry: _Entry) -> None:
        try:
            entry.future = self.pool.submit(_call, entry.call)
        except BrokenProcessPool as error:
            if not self.entries:  # It died idle: no task is to blame.
                self.stop(at_once=True)
                self._start()
                return self.submit(entry)
            entry.future = Future()
            entry.future.set_exception(error)
        self.entries.append(entry)
        return None

    def take(self) -> Iterator[tuple[int, Any]]:
        """Yield what has ended, in order; after a death, begin again what was lost."""
        while self.entries and self.entries[0].future.done():
            entry = self.entries[0]
            error = entry.future.exception()
            if isinstance(error, BrokenProcessPool):
                entry.deaths += 1
                exit_code = self.stop(at_once=True)
                if entry.deaths >= self.attempts:
                    raise WorkerFailed(_reason(entry, exit_code)) from error
                lost, self.entries = self.entries, deque()
                self._start()
                for again in lost:
                    self.submit(again)
                return
            self.entries.popleft()
            yield entry.index, entry.future.result()

    def stop(self, *, at_once: bool) -> int | None:
        """End the process, and tell its exit code (None if it never began)."""
        if at_once:
            for process in self.context.started:
                process.terminate()
        self.pool.shutdown(wait=True, cancel_futures=True)
        codes = [process.exitcode for process in self.context.started]
        return codes[-1] if codes else None


class _RecordingContext(SpawnContext):
    """Starts processes afresh, and remembers them so that they can be stopped."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def Process(self, *args: Any, **settings: Any) -> Any:  # type: ignore[override]
        process = SpawnContext.Process(*args, **settings)
        self.started.append(process)
        return process


def _reason(entry: _Entry, exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        ending = f"ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
        remedy = "if the machine ran out of memory, use fewer workers or smaller tasks"
    else:
        ending = f"exit code {exit_code}"
        remedy = "a script that starts workers must do so under `if __name__ == '__main__':`"
    return f"task {entry.index} lost its worker {entry.deaths} times ({ending}); {remedy}"


_failure_of_setup: BaseException | None = None


def _prepare_worker(setup: Callable[[], object]) -> None:
    """Run first in every process: one thread, no orphans, and what the tasks share."""
    global _failure_of_setup
    # Ctrl-C reaches the whole group; the parent alone answers it, by stopping us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    hold_to_one_thread()
    try:
        setup()
    except Exception as error:
        # Raised from here it would reach the parent as a dead worker, without its message.
        _failure_of_setup = error
    hold_to_one_thread()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(call: Callable[[], Result]) -> Result:
    if _failure_of_setup is not None:
        raise _failure_of_setup
    return call()
