"""How are many tasks done at once, on processes that may be killed or on a cluster?

A task is a plain value that carries everything its result depends on, its seed included, so
the results are the same whatever the number of workers, the order they end in, or the place
they run.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeVar, cast

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
        there is none; ``"ray://host:port"`` for one elsewhere. Needs the extra ``cluster``.
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


class Worker:
    """A process that works and may be killed.

    ``maker`` is called in it once; methods of what it makes do the work, one call at a time, in
    the order they are submitted. When the process dies, the call it was at is begun again in a
    fresh one, ``attempts`` times at most; a call of more than ``seconds`` is ended with its
    process, and is not begun again.

    >>> worker = Worker(dict)
    >>> worker.submit("setdefault", "plan", 3).result()
    3
    >>> worker.submit("get", "plan").result()
    3
    >>> worker.stop()
    """

    def __init__(
        self,
        maker: Callable[[], Any],
        *,
        attempts: int = 2,
        seconds: float | None = None,
        start_seconds: float | None = None,
    ) -> None:
        self.maker = maker
        self.attempts = attempts
        self.seconds = seconds
        self.start_seconds = start_seconds
        self.waiting = 0
        """Calls submitted and not ended."""
        self.restarts = 0
        """Processes that were started to replace another."""
        self.typical_seconds = 0.1
        """How long a call takes, lately."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="worker")
        self._lock = threading.Lock()
        self._process: Any = None
        self._pipe: Connection | None = None
        self._started = self._stopped = False

    def start(self) -> Future[None]:
        """Start the process now, and not with its first call; the future holds what fails."""
        return self._thread.submit(self._ready)

    def submit(self, method: str, *arguments: Any) -> Future[Any]:
        """Call a method of what the maker made; its result or its error will be in the future.

        The error is a :class:`WorkerFailed` where the process died each time, and a
        ``TimeoutError`` where it took too long.
        """
        with self._lock:
            self.waiting += 1
        future = self._thread.submit(self._call, method, arguments)
        future.add_done_callback(self._ended)
        return future

    def stop(self) -> None:
        """End the process, whatever it is at."""
        self._stopped = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        process = self._process
        if process is not None:
            process.terminate()
            process.join(2.0)
            process.kill()
        self._thread.shutdown()
        self._kill()

    def _ended(self, _: Future[Any]) -> None:
        with self._lock:
            self.waiting -= 1

    def _call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        for deaths in range(1, self.attempts + 1):
            done, value = False, cast(Any, None)
            try:
                self._ready()
                assert self._pipe is not None
                began = time.monotonic()
                self._pipe.send((method, arguments))
                in_time = self._pipe.poll(self.seconds)
                if in_time:
                    done, value = self._pipe.recv()
            except (EOFError, OSError):
                ending = _ending(self._kill())
                if self._stopped or deaths == self.attempts:
                    raise WorkerFailed(f"lost its worker {deaths} times ({ending})") from None
                continue
            if not in_time:
                self._kill()
                raise TimeoutError(f"the call was ended after {self.seconds:g} seconds")
            self.typical_seconds += 0.1 * (time.monotonic() - began - self.typical_seconds)
            if not done:
                raise value
            return value
        raise AssertionError("unreachable")

    def _ready(self) -> None:
        """Have a process that is prepared; what its preparation raises is raised here."""
        if self._stopped:
            raise WorkerFailed("lost its worker: it was stopped")
        if self._process is not None and self._process.is_alive():
            return
        self._kill()
        self.restarts += self._started
        self._started = True
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.maker), daemon=True)
        process.start()
        theirs.close()
        # Whoever stops us meanwhile either sees the process, or is seen here.
        self._process = process
        if self._stopped:
            self._kill()
            raise WorkerFailed("lost its worker: it was stopped")
        if not self._pipe.poll(self.start_seconds):
            self._kill()
            raise WorkerFailed(f"a worker was not ready after {self.start_seconds:.0f} seconds")
        done, value = self._pipe.recv()
        if not done:
            self._kill()
            raise value

    def _kill(self) -> int | None:
        """End the process if there is one, and tell its exit code."""
        code = None
        if self._process is not None:
            # One that died by itself is never seen to have been killed by us.
            self._process.join(0.1)
            self._process.kill()
            self._process.join()
            code = self._process.exitcode
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
        return code


def _serve(pipe: Connection, maker: Callable[[], Any]) -> None:
    """The life of a worker's process: prepare, then answer until the pipe closes."""
    # Ctrl-C reaches the whole group; the parent alone answers it, by stopping us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    hold_to_one_thread()
    try:
        made = maker()
    except Exception as error:
        pipe.send((False, sendable(error)))
        return
    hold_to_one_thread()
    pipe.send((True, None))
    while True:
        try:
            method, arguments = pipe.recv()
            answer = (True, getattr(made, method)(*arguments))
            content = pickle.dumps(answer)
        except EOFError:
            return
        except Exception as error:
            content = pickle.dumps((False, sendable(error)))
        pipe.send_bytes(content)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def sendable(error: Exception) -> Exception:
    """An error that can be sent to another process; of one that cannot, its words."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        return (
            f"ended by signal {-exit_code}, {name}: if the machine ran out of memory, use fewer "
            "workers or smaller tasks"
        )
    return (
        f"exit code {exit_code}: a script that starts workers must do so under "
        "`if __name__ == '__main__':`"
    )


class Prepared:
    """What a worker of :func:`run_tasks` makes first: the function, after its setup."""

    def __init__(self, function: Callable[[Any], Any], setup: Callable[[], object]) -> None:
        self.function = function
        setup()

    def do(self, task: Any) -> Any:
        """The result of one task."""
        return self.function(task)


def _run_in_processes(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    count: int,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, result)`` as tasks end, on ``count`` processes."""
    workers: list[Worker] = []
    at_work: dict[Future[Result], int] = {}
    try:
        for index, task in enumerate(tasks):
            if len(workers) < count:
                workers.append(Worker(partial(Prepared, function, setup), attempts=attempts))
            while _full(at_work.values(), len(workers), index, ordered):
                yield from _ended(at_work)
            free = min(workers, key=lambda worker: worker.waiting)
            at_work[free.submit("do", task)] = index
        while at_work:
            yield from _ended(at_work)
    finally:
        for worker in workers:
            worker.stop()


def _full(at_work: Iterable[int], workers: int, index: int, ordered: bool) -> bool:
    known = list(at_work)
    ahead = index - min(known, default=index)
    return len(known) >= IN_FLIGHT_PER_WORKER * workers or (
        ordered and ahead >= AHEAD_PER_WORKER * workers
    )


def _ended(at_work: dict[Future[Result], int]) -> Iterator[tuple[int, Result]]:
    """Wait until some task has ended, and yield the results of all that have."""
    for future in wait(at_work, return_when=FIRST_COMPLETED).done:
        index = at_work.pop(future)
        try:
            result = future.result()
        except WorkerFailed as error:
            raise WorkerFailed(f"task {index} {error}") from error
        yield index, result


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


def _run_on_ray(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    cluster: str,
    workers: int | None,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, result)`` as tasks end, done by actors that Ray starts again when they die.

    An actor has one task at a time, so that only that one is repeated for its death.
    """
    ray = _connect(cluster)
    count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    settings = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": attempts - 1}
    remote = ray.remote(**settings)(_Actor)
    prepared = ray.put(ray.cloudpickle.dumps((function, setup)))
    actors: list[Any] = []
    free: list[Any] = []
    at_work: dict[Any, tuple[int, Any]] = {}

    def ended() -> Iterator[tuple[int, Result]]:
        for reference in ray.wait(list(at_work), num_returns=1)[0]:
            index, actor = at_work.pop(reference)
            try:
                done, content = ray.get(reference)
            except ray.exceptions.RayError as error:
                raise WorkerFailed(
                    f"task {index} lost its worker {attempts} times on the cluster '{cluster}' "
                    f"({type(error).__name__}); if a machine ran out of memory, use smaller tasks"
                ) from error
            free.append(actor)
            value = pickle.loads(content)
            if not done:
                raise value
            yield index, value

    try:
        for index, task in enumerate(tasks):
            if not free and len(actors) < count:
                actors.append(remote.remote(prepared))
                free.append(actors[-1])
            indices = (at[0] for at in at_work.values())
            while not free or _full(indices, count, index, ordered):
                yield from ended()
                indices = (at[0] for at in at_work.values())
            actor = free.pop()
            at_work[actor.do.remote(ray.cloudpickle.dumps(task))] = (index, actor)
        while at_work:
            yield from ended()
    finally:
        for actor in actors:
            ray.kill(actor)


class _Actor:
    """One process on a cluster, prepared once in each of its lives."""

    def __init__(self, prepared: bytes) -> None:
        self.made: Prepared | None = None
        self.failure: Exception | None = None
        hold_to_one_thread()
        try:
            self.made = Prepared(*pickle.loads(prepared))
        except Exception as error:
            # Raised from here, Ray would start it again and again.
            self.failure = error
        hold_to_one_thread()

    def do(self, task: bytes) -> tuple[bool, bytes]:
        try:
            if self.made is None:
                raise self.failure or RuntimeError("not prepared")
            return True, pickle.dumps(self.made.do(pickle.loads(task)))
        except Exception as error:
            return False, pickle.dumps(sendable(error))


def _connect(cluster: str) -> Any:
    if cluster != "auto" and not cluster.startswith("ray://"):
        raise InvalidSetting(f"'cluster' must be 'auto' or 'ray://host:port' (got {cluster!r})")
    ray = require("ray")
    if not ray.is_initialized():
        try:
            if cluster == "auto":
                # Without an address Ray joins a cluster that runs here, or else starts one.
                ray.init(include_dashboard=False, log_to_driver=False, logging_level="warning")
            else:
                require("grpc")
                ray.init(address=cluster, log_to_driver=False)
        except ConnectionError as error:
            raise InvalidSetting(
                f"no Ray cluster answers at '{cluster}' ({error}); give the address of its client "
                "server, or 'auto'; if a cluster of this machine was killed, run 'ray stop' first"
            ) from error
    return ray


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


def core_count() -> int:
    """Cores this process may use.

    >>> core_count() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def hold_to_one_thread() -> None:
    """Hold the linear algebra of this process to one thread, loaded now or later."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


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
