"""How are the tasks of experiments run, resumed, and followed?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pear.errors import InvalidSetting
from pear.experiments.assets import prepare
from pear.experiments.profiles import Profile
from pear.experiments.registry import find_method
from pear.experiments.store import Store
from pear.experiments.tasks import Shared, Task, run_task, share
from pear.parallel import run_tasks

Follow = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Finished:
    """A run's folder, its tasks (those of all experiments asked for) and its worlds."""

    store: Store
    tasks: tuple[Task, ...]
    shared: Shared


def make_tasks(
    profile: Profile,
    methods: Iterable[str],
    *,
    classifier: str = "network",
    user_sets: Iterable[str] | None = None,
    ks: Iterable[int] = (2,),
    corruptions: Iterable[float] = (0.0,),
    runs: int | None = None,
) -> list[Task]:
    """Every chunk of users for every run, method and world of a profile.

    A method that a run does not change is run once.
    """
    tasks = []
    people = profile.people(classifier)
    for name in methods:
        method = find_method(name)
        asks = bool(getattr(method, "asks", False))
        once = str(getattr(method, "reseeds", "")).startswith("nothing")
        seeds = range(profile.seed, profile.seed + (1 if once else runs or profile.runs))
        tasks += [
            Task(
                dataset,
                classifier,
                users,
                name,
                run,
                first,
                min(first + profile.chunk, people),
                profile.questions if asks else 0,
                k if asks else 0,
                corruption if asks else 0.0,
            )
            for dataset in profile.datasets
            for users in (profile.user_sets if user_sets is None else user_sets)
            for run in seeds
            for k in (tuple(ks) if asks else (0,))
            for corruption in (tuple(corruptions) if asks else (0.0,))
            for first in range(0, people, profile.chunk)
        ]
    return tasks


def run_experiments(
    tasks: Iterable[Task],
    profile: Profile,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    follow: Follow | None = None,
    run: bool = True,
) -> Finished:
    """Run what is not in the folder yet; rows are written as tasks end.

    With ``run=False`` nothing is run, and what is there already stands.
    """
    follow = follow or _silent
    store = Store(folder, profile)
    wanted = list(dict.fromkeys(tasks))
    if not wanted:
        raise InvalidSetting("there is nothing to run; name at least one method and data set")
    missing = [task for task in wanted if run and not store.has(task)]
    shared = prepare(wanted, missing, profile, lambda note: follow(0, len(missing), note))
    wanted = [fitted for task in wanted if (fitted := fit(task, shared))]
    missing = [task for task in wanted if run and not store.has(task)]
    follow(0, len(missing), "running")
    results = run_tasks(
        run_task,
        missing,
        workers=workers,
        cluster=cluster,
        initializer=share,
        initargs=(shared,),
    )
    for done, (index, outcome) in enumerate(results, start=1):
        store.write(missing[index], outcome)
        follow(done, len(missing), missing[index].name)
    return Finished(store, tuple(wanted), shared)


def fit(task: Task, shared: Shared) -> Task | None:
    """The task with the users its world has; None when it has none of them."""
    people = len(shared.worlds[task.world].states)
    if task.first >= people:
        return None
    return replace(task, last=min(task.last, people))


def _silent(done: int, total: int, note: str) -> None:
    pass
