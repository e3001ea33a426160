"""How do the machines of a Ray cluster share tasks?"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pear.errors import InvalidSetting, WorkerFailed
from pear.optional import require
from pear.parallel.conductor import Conductor
from pear.parallel.threads import AHEAD_PER_WORKER, IN_FLIGHT_PER_WORKER

Task = TypeVar("Task")
Result = TypeVar("Result")

CALLS_AT_ONCE = 16
"""Threads of the conductor: two may wait for long, the others answer at once."""


def run_on_ray(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    cluster: str,
    workers: int | None,
    setup: Callable[[], object],
    attempts: int,
    ordered: bool,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, result)`` as tasks end, done by a pool of Ray Data; what a dead worker
    was doing is done again."""
    ray = _connect(cluster)
    count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    remote = ray.remote(num_cpus=0, max_concurrency=CALLS_AT_ONCE)(Conductor)
    conductor = remote.remote(ray.cloudpickle.dumps((function, setup)), count, attempts)
    at_work: set[int] = set()

    def collect() -> tuple[int, Result]:
        try:
            index, state, content = ray.get(conductor.next.remote())
        except ray.exceptions.RayError as error:
            raise WorkerFailed(f"the cluster '{cluster}' lost the run ({error})") from error
        if state == "lost":
            raise WorkerFailed(
                f"task {index} lost its worker {attempts} times on the cluster '{cluster}'; "
                "if a machine ran out of memory, use smaller tasks"
            )
        if state == "error":
            raise pickle.loads(content)
        at_work.remove(index)
        return index, pickle.loads(content)

    try:
        for index, task in enumerate(tasks):
            while len(at_work) >= IN_FLIGHT_PER_WORKER * count or (
                ordered and index - min(at_work, default=index) >= AHEAD_PER_WORKER * count
            ):
                yield collect()
            conductor.put.remote(index, ray.cloudpickle.dumps(task))
            at_work.add(index)
        conductor.end.remote()
        while at_work:
            yield collect()
    finally:
        # With it end its data set and the pool.
        ray.kill(conductor)


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
