"""What must be trained before a method can run, and where is it kept?

Policies are read from the cache when one with the same problem, classifier and settings was
trained before. Everything is made before the first task and sent to the workers, so these
need neither data nor cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.datasets.sources import cache_folder
from pear.errors import InvalidSetting
from pear.experiments.profiles import Profile
from pear.experiments.registry import build_world, find_method
from pear.experiments.tasks import Shared, Task
from pear.experiments.worlds import World
from pear.parallel import core_count
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior

Report = Callable[[str], None]
AGNOSTIC = 100
"""Most iterations for policies that do not see costs: they learn sooner."""
NAMES = {"givemecredit": "credit"}
"""Data sets whose policies go by another name in the cache."""


def prepare(
    tasks: Iterable[Task], missing: Iterable[Task], profile: Profile, report: Report
) -> Shared:
    """The worlds of all tasks, and the trained parts that those still to do need."""
    worlds: dict[str, World] = {}
    assets: dict[tuple[str, str, str], Any] = {}
    for task in tasks:
        if task.world not in worlds:
            report(f"preparing {task.world}")
            worlds[task.world] = build_world(task.dataset, task.classifier, task.users)
    for task in missing:
        world = worlds[task.world]
        for name in getattr(find_method(task.method), "assets", ()):
            key = (task.dataset, task.classifier, name)
            if key not in assets:
                assets[key] = make_asset(world, name, profile, report)
    return Shared(worlds, assets)


def make_asset(world: World, name: str, profile: Profile, report: Report) -> Any:
    """A policy, an automaton, or settings, by name."""
    if name == "evolution":
        return profile.population, profile.generations
    if name in ("wfare", "fare", "rl"):
        return trained_policy(world, name, profile, report)
    if name in ("efare", "w-efare", "w-efare-exact"):
        report(f"teaching {name} for {world.dataset}")
        return taught_automaton(world, name, profile, report)
    raise InvalidSetting(
        f"there is no asset '{name}'; a method's 'assets' must be among evolution, wfare, fare, "
        "rl, efare, w-efare and w-efare-exact"
    )


def policy_path(world: World, kind: Any, profile: Profile) -> tuple[Path, Any]:
    """Where the policy of a kind is kept, and the settings it is trained with."""
    from pear.planning.learned.training import TrainingSettings

    settings = TrainingSettings(
        kind=kind,
        iterations=profile.iterations if kind == "wfare" else min(profile.iterations, AGNOSTIC),
        batch_people=profile.batch_people,
        pool=profile.trained_people,
        validation_people=profile.judges,
        simulations=world.simulations,
        learning_rate=world.learning_rate,
    )
    content = [world.problem.fingerprint, world.black_box.fingerprint, asdict(settings)]
    key = sha256(json.dumps(content).encode()).hexdigest()[:12]
    dataset = NAMES.get(world.dataset, world.dataset.replace(":", "."))
    return cache_folder() / "policies" / f"{dataset}-{kind}-{key}.safetensors", settings


def trained_policy(world: World, kind: str, profile: Profile, report: Report) -> Any:
    """The policy of a kind for a world, trained if it is not in the cache."""
    from pear.optional import require

    require("torch").set_num_threads(1)
    from pear.planning.learned import Policy

    path, settings = policy_path(world, kind, profile)
    if path.is_file():
        return Policy.load(path, world.problem)
    report(f"training {kind} for {world.dataset} ({world.classifier}); kept in the cache")
    trainer = trainer_of(world, settings, core_count() if profile.iterations > 20 else 1)
    policy = trainer.run()
    best = [line for line in trainer.history if line.best]
    path.parent.mkdir(parents=True, exist_ok=True)
    policy.save(path)
    path.with_suffix(".json").write_text(
        json.dumps(
            {
                "seconds": trainer.seconds,
                "iterations": trainer.iteration,
                "iterations_per_second": trainer.iteration / trainer.seconds,
                "people_per_second": trainer.iteration * settings.batch_people / trainer.seconds,
                "validation_success": best[-1].validation_success if best else 0.0,
                "validation_cost": best[-1].validation_cost if best else None,
            }
        )
    )
    return policy


def trainer_of(world: World, settings: Any, workers: int) -> Any:
    """Training for a world, with people of its training data and weights of its prior."""
    from pear.planning.learned.training import Trainer

    return Trainer(
        world.problem,
        world.black_box,
        world.training,
        partial(drawn, world.prior),
        world.prior.mean(),
        settings,
        workers=workers,
    )


def taught_automaton(world: World, name: str, profile: Profile, report: Report) -> Any:
    """EFARE from FARE for the mean weights, W-EFARE from W-FARE or the exact planner.

    With the exact teacher, plans that pass the required score by a margin are taught: our setting.
    """
    from pear.planning.automaton import train_automaton

    teacher: Any
    weights: Any = world.prior.mean()
    if name == "efare":
        from pear.planning.learned import FARE

        teacher = FARE(trained_policy(world, "fare", profile, report), world.black_box)
    elif name == "w-efare":
        from pear.planning.learned import WFARE

        teacher = WFARE(trained_policy(world, "wfare", profile, report), world.black_box)
    else:
        teacher = ExactPlanner(world.problem, world.black_box)
    if name != "efare":
        weights = partial(drawn, world.prior)
    return train_automaton(
        world.problem,
        world.black_box,
        teacher,
        world.training,
        weights,
        aware=name != "efare",
        people=profile.taught,
        margin=0.2 if name == "w-efare-exact" else 0.0,
        rng=np.random.default_rng(0),
    )


def drawn(prior: GaussianMixturePrior, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(prior.sample(n, rng)[0])
