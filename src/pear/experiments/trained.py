"""What must be trained before a method can run, and where is it kept?

Policies are read from the cache when one with the same problem, classifier and settings was
trained before. Everything is made before the first task and sent to the workers, so these
need neither data nor cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.datasets.sources import cache_folder
from pear.errors import InvalidSetting
from pear.experiments.conversations import corrupted, prior_of
from pear.experiments.profiles import Profile
from pear.experiments.registry import build_world, find_method
from pear.experiments.tasks import AssetKey, Shared, Task, asset_key
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
    tasks: Iterable[Task],
    missing: Iterable[Task],
    profile: Profile,
    report: Report,
    workers: int | None = None,
) -> Shared:
    """The worlds of all tasks, and the trained parts that those still to do need."""
    worlds: dict[str, World] = {}
    assets: dict[AssetKey, Any] = {}
    for task in tasks:
        if task.world not in worlds:
            report(f"preparing {task.world}")
            worlds[task.world] = build_world(task.dataset, task.classifier, task.users)
    for task in missing:
        world = seen_world(worlds[task.world], task.corruption)
        for name in getattr(find_method(task.method), "assets", ()):
            key = asset_key(task, name)
            if key not in assets:
                assets[key] = make_asset(world, name, profile, report, workers)
    return Shared(worlds, assets)


def seen_world(world: World, corruption: float) -> World:
    """The world as planners see it when a share of the edges is removed."""
    if not corruption:
        return world
    problem, positions = corrupted(world.problem, corruption)
    return replace(world, problem=problem, prior=prior_of(world.prior, positions))


def make_asset(
    world: World, name: str, profile: Profile, report: Report, workers: int | None = None
) -> Any:
    """A policy, an automaton, or settings, by name."""
    if name == "evolution":
        return profile.population, profile.generations
    if name in ("wfare", "wfare-published", "fare", "rl"):
        return trained_policy(world, name, profile, report, workers)
    if name in ("efare", "w-efare", "w-efare-exact"):
        report(f"teaching {name} for {world.dataset}")
        return taught_automaton(world, name, profile, report, workers)
    raise InvalidSetting(
        f"there is no asset '{name}'; a method's 'assets' must be among evolution, wfare, "
        "wfare-published, fare, rl, efare, w-efare and w-efare-exact"
    )


PUBLISHED_TRAINING: dict[str, dict[str, Any]] = {
    "adult": {"iterations": 500, "hidden": 54},
    "givemecredit": {"iterations": 700, "hidden": 9, "learning_rate": 0.003, "hard_share": 0.3},
}
"""How the published W-FARE is trained, beyond what both share: batches of 50, the 200 latest
traces, 35 simulations."""


def training_settings(world: World, name: str, profile: Profile) -> Any:
    """What a policy is trained with: ours, or as the published one."""
    from pear.planning.learned.training import TrainingSettings

    common: dict[str, Any] = {
        "pool": profile.trained_people,
        "validation_people": profile.judges,
    }
    if name == "wfare-published":
        known = PUBLISHED_TRAINING.get(world.dataset, {"iterations": profile.iterations})
        steps: dict[str, Any] = {
            "batch_people": 50,
            "buffer": 200,
            "simulations": 35,
            "patience": 999,
        }
        return TrainingSettings(**common, **steps, **known)
    kind: Any = name
    return TrainingSettings(
        kind=kind,
        iterations=profile.iterations if kind == "wfare" else min(profile.iterations, AGNOSTIC),
        batch_people=profile.batch_people,
        simulations=world.simulations,
        learning_rate=world.learning_rate,
        hard_share=world.hard_share if kind == "wfare" else 0.0,
        **common,
    )


def policy_path(world: World, name: str, profile: Profile) -> tuple[Path, Any]:
    """Where a policy is kept, and the settings it is trained with."""
    settings = training_settings(world, name, profile)
    content = [world.problem.fingerprint, world.black_box.fingerprint, asdict(settings)]
    key = sha256(json.dumps(content).encode()).hexdigest()[:12]
    dataset = NAMES.get(world.dataset, world.dataset.replace(":", "."))
    return cache_folder() / "policies" / f"{dataset}-{settings.kind}-{key}.safetensors", settings


def trained_policy(
    world: World, name: str, profile: Profile, report: Report, workers: int | None = None
) -> Any:
    """A policy for a world, trained if it is not in the cache, from where it was stopped."""
    from pear.optional import require

    require("torch").set_num_threads(1)
    from pear.planning.learned import Policy
    from pear.planning.learned.training import load_checkpoint, save_checkpoint

    path, settings = policy_path(world, name, profile)
    if path.is_file():
        return Policy.load(path, world.problem)
    report(f"training {name} for {world.dataset} ({world.classifier}); kept in the cache")
    path.parent.mkdir(parents=True, exist_ok=True)
    trainer = trainer_of(world, settings, workers or core_count())
    unfinished = path.with_suffix(".checkpoint")
    if unfinished.is_file():
        load_checkpoint(trainer, unfinished)
    policy = trainer.run(checkpoint=lambda now: save_checkpoint(now, unfinished))
    best = [line for line in trainer.history if line.best]
    policy.save(path)
    unfinished.unlink(missing_ok=True)
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


def taught_automaton(
    world: World, name: str, profile: Profile, report: Report, workers: int | None = None
) -> Any:
    """EFARE from FARE for the mean weights, W-EFARE from W-FARE or the exact planner.

    With the exact teacher, plans that pass the required score by a margin are taught: our setting.
    """
    from pear.planning.automaton import train_automaton

    teacher: Any
    weights: Any = world.prior.mean()
    if name == "efare":
        from pear.planning.learned import FARE

        teacher = FARE(trained_policy(world, "fare", profile, report, workers), world.black_box)
    elif name == "w-efare":
        from pear.planning.learned import WFARE

        teacher = WFARE(trained_policy(world, "wfare", profile, report, workers), world.black_box)
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
