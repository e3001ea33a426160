"""What is a run of many tasks?

One function, :func:`run_tasks`. A task is a plain value that carries everything its result
depends on, its seed included, so the results are the same whatever the number of workers,
the order they end in, or the place they run.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from pear.errors import InvalidSetting
from pear.parallel.cluster import run_on_ray
from pear.parallel.processes import run_in_processes

Task = TypeVar("Task")
Result = TypeVar("Result")


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
        results = run_on_ray(function, tasks, cluster, workers, setup, attempts, ordered)
        return in_order(results) if ordered else results
    count = core_count() if workers is None else workers
    if count == 1:
        return _run_here(function, tasks, setup)
    _check_importable("function", function)
    _check_importable("initializer", initializer)
    results = run_in_processes(function, tasks, count, setup, attempts, ordered)
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
