"""What must be trained before a method can run, and where is it kept?

Policies are read from the cache when one with the same problem, classifier and settings was
trained before. Each is trained by one process, so that many are trained at once; what was
trained is sent to the workers, which need neither data nor cache to use it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.datasets.sources import cache_folder
from pear.errors import FingerprintMismatch, InvalidSetting
from pear.experiments.conversations import corrupted, prior_of
from pear.experiments.experiment import AssetKey, Task, asset_key, find_method
from pear.experiments.profiles import Profile
from pear.experiments.worlds import World
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior

HARDLY = 1e-5
"""Weight of the search's cost term where edges are removed, as published: steps that lost what
makes them dear look free, and the term draws the search to them."""
AGNOSTIC = 100
"""Most iterations for policies that do not see costs: they learn sooner."""
NAMES = {"givemecredit": "credit"}
"""Data sets whose policies go by another name in the cache."""
POLICIES = ("wfare-published", "wfare", "fare", "rl")
"""Trained parts that are policies, those that take longest first."""
TEACHERS = {"efare": "fare", "w-efare": "wfare", "w-efare-exact": None}
"""Automata, and the policy of whom each learns from."""


def assets_of(task: Task) -> list[AssetKey]:
    """The trained parts a task needs."""
    return [asset_key(task, name) for name in getattr(find_method(task.method), "assets", ())]


def still_to_make(tasks: Iterable[Task], made: Iterable[AssetKey]) -> list[AssetKey]:
    """What these tasks need and is not made yet, teachers before those they teach."""
    wanted: dict[AssetKey, None] = {}
    for task in tasks:
        for key in assets_of(task):
            teacher = teacher_of(key)
            if teacher is not None:
                wanted[teacher] = None
            wanted[key] = None
    order = {name: place for place, name in enumerate((*POLICIES, *TEACHERS))}
    known = set(made)
    return sorted(
        (key for key in wanted if key not in known), key=lambda key: order.get(key[-1], 0)
    )


def teacher_of(key: AssetKey) -> AssetKey | None:
    """The policy a part is made from, if any."""
    teacher = TEACHERS.get(key[-1])
    return None if teacher is None else (*key[:-1], teacher)


def teachable(key: AssetKey, made: Iterable[AssetKey]) -> bool:
    """Whether all that a part is made from is there."""
    teacher = teacher_of(key)
    return teacher is None or teacher in made


def at_hand(key: AssetKey, world: World, profile: Profile) -> Any:
    """A part that need not be made: settings, or a policy of the cache; None otherwise."""
    _, _, corruption, draw, name = key
    if name == "evolution":
        return profile.population, profile.generations
    if name not in POLICIES:
        return None
    from pear.planning.learned import Policy

    seen = seen_world(world, corruption, draw)
    path, _ = policy_path(seen, name, profile)
    return Policy.load(path, seen.problem) if path.is_file() else None


def seen_world(world: World, corruption: float, draw: int = 0) -> World:
    """The world as planners see it when a share of the edges is removed."""
    if not corruption:
        return world
    problem, positions = corrupted(world.problem, corruption, draw)
    return replace(
        world, problem=problem, prior=prior_of(world.prior, positions), cost_weight=HARDLY
    )


def make_asset(world: World, name: str, profile: Profile, teacher: Any = None) -> Any:
    """A policy, or an automaton taught by a policy of this world (None: by the exact planner)."""
    if name in POLICIES:
        return trained_policy(world, name, profile)
    if name in TEACHERS:
        return taught_automaton(world, name, profile, teacher)
    raise InvalidSetting(
        f"there is no asset '{name}'; a method's 'assets' must be among evolution, "
        f"{', '.join((*POLICIES, *TEACHERS))}"
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
        cost_weight=world.cost_weight if kind == "wfare" else 1.0,
        **common,
    )


def policy_path(world: World, name: str, profile: Profile) -> tuple[Path, Any]:
    """Where a policy is kept, and the settings it is trained with."""
    settings = training_settings(world, name, profile)
    content = [world.problem.fingerprint, world.black_box.fingerprint, asdict(settings)]
    key = sha256(json.dumps(content).encode()).hexdigest()[:12]
    dataset = NAMES.get(world.dataset, world.dataset.replace(":", "."))
    return cache_folder() / "policies" / f"{dataset}-{settings.kind}-{key}.safetensors", settings


def trained_policy(world: World, name: str, profile: Profile) -> Any:
    """A policy for a world, trained if it is not in the cache, from where it was stopped."""
    from pear.optional import require

    require("torch").set_num_threads(1)
    from pear.planning.learned import Policy
    from pear.planning.learned.training import load_checkpoint, save_checkpoint

    path, settings = policy_path(world, name, profile)
    if path.is_file():
        return Policy.load(path, world.problem)
    path.parent.mkdir(parents=True, exist_ok=True)
    trainer = trainer_of(world, settings)
    unfinished = path.with_suffix(".checkpoint")
    if unfinished.is_file():
        # Another machine may round the last digit of what is trained on otherwise.
        with suppress(FingerprintMismatch):
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


def trainer_of(world: World, settings: Any) -> Any:
    """Training for a world, with people of its training data and weights of its prior."""
    from pear.planning.learned.training import Trainer

    return Trainer(
        world.problem,
        world.black_box,
        world.training,
        partial(drawn, world.prior),
        world.prior.mean(),
        settings,
    )


def taught_automaton(world: World, name: str, profile: Profile, policy: Any = None) -> Any:
    """EFARE from FARE for the mean weights, W-EFARE from W-FARE or the exact planner.

    With the exact teacher, plans that pass the required score by a margin are taught: our setting.
    """
    from pear.planning.automaton import train_automaton
    from pear.planning.learned import FARE, WFARE

    teacher: Any
    weights: Any = partial(drawn, world.prior)
    if name == "efare":
        teacher, weights = FARE(policy, world.black_box), world.prior.mean()
    elif name == "w-efare":
        teacher = WFARE(policy, world.black_box)
    else:
        teacher = ExactPlanner(world.problem, world.black_box)
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
