"""How do the machines of a Ray cluster share tasks?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pear.errors import InvalidSetting, WorkerFailed
from pear.optional import require
from pear.parallel.threads import AHEAD_PER_WORKER, IN_FLIGHT_PER_WORKER, hold_to_one_thread

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_on_ray(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    cluster: str,
    workers: int | None,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, result)`` as tasks end; Ray starts again what a dead worker lost."""
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
    from pear.parallel import cluster

    function, setup = shared
    if cluster._prepared_run != run:
        hold_to_one_thread()
        setup()
        cluster._prepared_run = run
    return function(task)
