"""How does Ray Data do tasks that come one at a time, on workers that may die?

The conductor is an actor on the cluster. It runs one data set: numbers of tasks, mapped by a
pool of workers that are each prepared once. The tasks themselves wait here until a worker
begins them, so that only as many are in memory as the caller has handed in. It is not run in
the caller's process because Ray Data cannot be driven through a ``ray://`` address.
"""

from __future__ import annotations

import logging
import pickle
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pear.parallel.threads import IN_FLIGHT_PER_WORKER, hold_to_one_thread

Outcome = tuple[int, str, bytes]
"""Number of a task, ``done``, ``error`` or ``lost``, and the pickled result or error."""

NO_TASK = -1


class Conductor:
    """Hands tasks to the workers and results to the caller. Methods are called from afar."""

    def __init__(self, work: bytes, workers: int, attempts: int) -> None:
        self.work = work
        self.workers = workers
        self.attempts = attempts
        self._tasks: dict[int, bytes] = {}
        self._starts: Counter[int] = Counter()
        self._handed_in = 0
        self._ended = False
        self._changed = threading.Condition()
        self._outcomes: queue.Queue[Outcome] = queue.Queue()
        threading.Thread(target=self._conduct, daemon=True).start()

    def put(self, number: int, task: bytes) -> None:
        """A task, in the order of their numbers."""
        with self._changed:
            self._tasks[number] = task
            self._handed_in = max(self._handed_in, number + 1)
            self._changed.notify_all()

    def end(self) -> None:
        """No more tasks."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def next(self) -> Outcome:
        """What ended next, once something has."""
        outcome = self._outcomes.get()
        with self._changed:
            self._tasks.pop(outcome[0], None)
        return outcome

    def is_there(self, number: int) -> bool:
        """Whether there is such a task, once that is known."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or number < self._handed_in)
            return number < self._handed_in

    def preparation(self) -> bytes:
        """The function and the setup, pickled."""
        return self.work

    def begin(self, number: int) -> bytes | None:
        """The task for a worker that begins it; None if it has cost too many workers."""
        with self._changed:
            self._starts[number] += 1
            return self._tasks[number] if self._starts[number] <= self.attempts else None

    def _conduct(self) -> None:
        told: set[int] = set()
        try:
            self._tell(_outcomes(self.workers), told)
            # Where workers are killed, a data set can end without the rows they were at.
            for _ in range(self.attempts):
                if absent := sorted(set(range(self._handed_in)) - told):
                    self._tell(_outcomes(self.workers, absent), told)
            for number in sorted(set(range(self._handed_in)) - told):
                self._outcomes.put((number, "lost", b""))
        except Exception as error:
            self._outcomes.put((NO_TASK, "error", pickled_error(error)))

    def _tell(self, rows: Iterator[dict[str, Any]], told: set[int]) -> None:
        """Each outcome once, whatever Ray repeats."""
        for row in rows:
            number = int(row["number"])
            if number not in told:
                told.add(number)
                self._outcomes.put((number, str(row["state"]), row["content"]))


def _outcomes(workers: int, known: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """The data set: numbers, as they become known or those given, mapped by a pool of workers."""
    import ray
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.WARNING)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Every row is a block of its own: else numbers would wait until they fill one.
    context.target_max_block_size = 1
    conductor = ray.get_runtime_context().current_actor
    pool = ray.data.ActorPoolStrategy(
        size=workers, max_tasks_in_flight_per_actor=IN_FLIGHT_PER_WORKER
    )
    if known is not None:
        rows = [{"number": number} for number in known]
        numbers = ray.data.from_items(rows, override_num_blocks=len(rows))
    else:
        numbers = ray.data.from_items([{"first": 0}]).map_batches(
            _numbers, fn_args=(conductor,), batch_size=None, num_cpus=0
        )
    results = numbers.map(Worker, fn_constructor_args=(conductor,), compute=pool, num_cpus=1)
    yield from results.iter_rows()


def _numbers(_: Any, conductor: Any) -> Iterator[dict[str, Any]]:
    """Numbers of the tasks; the same again where Ray has to repeat it."""
    import ray

    number = 0
    while ray.get(conductor.is_there.remote(number)):
        yield {"number": np.array([number])}
        number += 1


class Worker:
    """One process of the pool, prepared once; Ray starts it again when it dies."""

    def __init__(self, conductor: Any) -> None:
        import ray

        self.conductor = conductor
        self.failure: Exception | None = None
        self.function: Callable[[Any], Any]
        hold_to_one_thread()
        try:
            self.function, setup = pickle.loads(ray.get(conductor.preparation.remote()))
            setup()
        except Exception as error:
            # Raised from here, Ray would try again and again.
            self.failure = error
        hold_to_one_thread()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        import ray

        number = int(row["number"])
        task = ray.get(self.conductor.begin.remote(number))
        if task is None:
            return {"number": number, "state": "lost", "content": b""}
        try:
            if self.failure is not None:
                raise self.failure
            result = self.function(pickle.loads(task))
            return {"number": number, "state": "done", "content": pickle.dumps(result)}
        except Exception as error:
            return {"number": number, "state": "error", "content": pickled_error(error)}


def pickled_error(error: Exception) -> bytes:
    """An error that can be sent; one that cannot is sent as its words."""
    try:
        content = pickle.dumps(error)
        pickle.loads(content)
        return content
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
