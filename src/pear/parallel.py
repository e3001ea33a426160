"""How do we run many tasks at once, here or on a cluster?

One function, :func:`run_tasks`. A task is a plain value that carries everything its result
depends on, its seed included, so the results are the same whatever the number of workers,
the order they end in, or the place they run.

Each process of this machine is a pool of one. When a worker dies, what it was doing is
therefore known: that task is done again in a fresh process, and no other is blamed.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

from pear.errors import InvalidSetting, WorkerFailed
from pear.optional import require

Task = TypeVar("Task")
Result = TypeVar("Result")

IN_FLIGHT_PER_WORKER = 2
"""One task at work and one waiting, so that a slow reader of results idles no worker."""

AHEAD_PER_WORKER = 16
"""How far, in tasks, an ordered run may go beyond the oldest one still at work."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
    ordered: bool = False,
    attempts: int = 3,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, function(task))`` for every task, as they end or in their order.

    Tasks are drawn from the iterable as workers become free, so a stream of them never
    stands in memory as a whole. An error that ``function`` raises is raised here, and ends
    the run. Leaving the loop early stops the workers.

    Parameters
    ----------
    function
        Called with one task. It must be importable by name (no lambda, nothing nested),
        because a worker imports it; so must ``initializer``.
    workers
        Processes to use; all cores by default. With 1, the tasks run in this process. With
        a cluster, how many tasks are at work at a time; one per core by default.
    cluster
        ``"auto"`` for the Ray cluster this machine belongs to, or one started here when
        there is none; ``"ray://host:port"`` for one elsewhere. Needs the extra ``experiments``.
    initializer, initargs
        Called once in every worker before its first task, to load what all tasks share.
    ordered
        Yield in the order of the tasks. By default whatever ends first comes first.
    attempts
        How often a task may be started, its worker dying each time, before we give up.

    Raises
    ------
    WorkerFailed
        A task's worker died in each of its ``attempts``.

    Examples
    --------
    >>> list(run_tasks(abs, [-3, 2, -1], workers=1))
    [(0, 3), (1, 2), (2, 1)]
    """
    for name, number in (("workers", workers), ("attempts", attempts)):
        if number is not None and number < 1:
            raise InvalidSetting(f"'{name}' must be at least 1 (got {number!r})")
    setup = partial(initializer, *initargs) if initializer is not None else _nothing
    if cluster is not None:
        results = _run_on_ray(function, tasks, cluster, workers, setup, attempts, ordered)
        return in_order(results) if ordered else results
    count = core_count() if workers is None else workers
    if count == 1:
        return _run_here(function, tasks, setup)
    _check_importable("function", function)
    _check_importable("initializer", initializer)
    results = _run_in_processes(function, tasks, count, setup, attempts, ordered)
    return in_order(results) if ordered else results


def core_count() -> int:
    """Cores this process may use.

    >>> core_count() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[tuple[int, Result]]:
    """Hold back results that come early, until all before them have been yielded.

    >>> list(in_order([(1, "b"), (0, "a"), (2, "c")]))
    [(0, 'a'), (1, 'b'), (2, 'c')]
    """
    held: dict[int, Result] = {}
    following = 0
    for index, result in results:
        held[index] = result
        while following in held:
            yield following, held.pop(following)
            following += 1


def _nothing() -> None:
    """Prepare nothing: the workers of tasks that share nothing."""


def _check_importable(name: str, value: object) -> None:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidSetting(
            f"'{name}' must be importable by a worker process (got {value!r}); "
            "define it at the top level of a module, or use workers=1"
        ) from error


def _run_here(
    function: Callable[[Task], Result], tasks: Iterable[Task], setup: Callable[[], object]
) -> Iterator[tuple[int, Result]]:
    setup()
    controller = ThreadpoolController()
    for index, task in enumerate(tasks):
        # One thread, as in a worker: sums in another order would differ in the last digits.
        with controller.limit(limits=1):
            result = function(task)
        yield index, result


# Processes on this machine


def _run_in_processes(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    count: int,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
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


def hold_to_one_thread() -> None:
    """Hold the linear algebra of this process to one thread, loaded now or later."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(call: Callable[[], Result]) -> Result:
    if _failure_of_setup is not None:
        raise _failure_of_setup
    return call()


# A Ray cluster


def _run_on_ray(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    cluster: str,
    workers: int | None,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
    ray = _connect(cluster)
    count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    remote = ray.remote(num_cpus=1, max_retries=attempts - 1)(_call_on_ray)
    run = uuid.uuid4().hex
    shared = ray.put((function, setup))
    at_work: dict[Any, int] = {}

    def collect() -> Iterator[tuple[int, Result]]:
        [done], _ = ray.wait(list(at_work), num_returns=1)
        index = at_work.pop(done)
        try:
            result = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from error
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
            raise WorkerFailed(
                f"task {index} lost its worker {attempts} times on the cluster '{cluster}'; "
                "if a machine ran out of memory, use smaller tasks"
            ) from error
        yield index, result

    try:
        for index, task in enumerate(tasks):
            while len(at_work) >= IN_FLIGHT_PER_WORKER * count or (
                ordered and index - min(at_work.values(), default=index) >= AHEAD_PER_WORKER * count
            ):
                yield from collect()
            at_work[remote.remote(run, shared, task)] = index
        while at_work:
            yield from collect()
    finally:
        for reference in at_work:
            ray.cancel(reference, force=True)


def _connect(cluster: str) -> Any:
    if cluster != "auto" and not cluster.startswith("ray://"):
        raise InvalidSetting(f"'cluster' must be 'auto' or 'ray://host:port' (got {cluster!r})")
    ray = require("ray")
    if not ray.is_initialized():
        if cluster == "auto":
            # Without an address Ray joins a cluster that runs here, or else starts one.
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="warning")
        else:
            ray.init(address=cluster, log_to_driver=False)
    return ray


_prepared_run: str | None = None


def _call_on_ray(
    run: str, shared: tuple[Callable[[Any], Any], Callable[[], object]], task: Any
) -> Any:
    """A worker of the cluster serves many runs; each prepares it once."""
    from pear import parallel

    function, setup = shared
    if parallel._prepared_run != run:
        hold_to_one_thread()
        setup()
        parallel._prepared_run = run
    return function(task)
