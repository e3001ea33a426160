"""How does interrupted training go on where it was?

A checkpoint is one safetensors file, written whole or not at all. A trainer built with the
same arguments and given the checkpoint continues exactly as if it had not been interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pear.errors import FingerprintMismatch, ModelRefused
from pear.optional import require
from pear.planning.learned.policy import read_safetensors
from pear.planning.learned.progress import Progress
from pear.planning.learned.traces import build_traces
from pear.planning.learned.training import Trainer

FORMAT = "pear-training-1"


def save_checkpoint(trainer: Trainer, path: str | Path) -> None:
    """Write all that training needs to go on."""
    torch, save = require("torch"), require("safetensors.torch").save_file
    agent, optimizer = trainer.policy.agent, trainer.optimizer.state_dict()
    tensors: dict[str, Any] = {f"agent.{k}": v for k, v in agent.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in trainer.best_agent.items()}
    for number, entry in optimizer["state"].items():
        tensors |= {f"adam.{number}.{k}": torch.as_tensor(v) for k, v in entry.items()}
    replay = trainer.replay
    tensors["replay.moves"] = torch.from_numpy(replay.moves)
    tensors["replay.merit"] = torch.from_numpy(replay.merit)
    tensors["replay.age"] = torch.from_numpy(replay.age)
    tensors["replay.reward"] = torch.from_numpy(replay.traces.reward)
    tensors["replay.success"] = torch.from_numpy(replay.traces.success)
    progress = {
        "iteration": trainer.iteration,
        "seconds": trainer.seconds,
        "stale": trainer.stale,
        "best_merit": trainer.best_merit,
        "random": trainer.rng.bit_generator.state,
        "history": [asdict(line) for line in trainer.history],
    }
    metadata = {
        "format": FORMAT,
        "about": json.dumps(about(trainer)),
        "progress": json.dumps(progress),
    }
    path = Path(path)
    part = path.with_name(path.name + ".part")
    save({k: v.contiguous() for k, v in tensors.items()}, str(part), metadata=metadata)
    os.replace(part, path)


def load_checkpoint(trainer: Trainer, path: str | Path) -> None:
    """Put a trainer where the checkpoint was; one of other training is refused."""
    try:
        tensors, metadata = read_safetensors(path)
    except ModelRefused as error:
        raise ModelRefused(f"{error}; remove it, or use --restart") from None
    if metadata.get("format") != FORMAT:
        raise ModelRefused(f"'{path}' is not a training checkpoint of this package; remove it")
    here = about(trainer)
    try:
        stored, progress = json.loads(metadata["about"]), json.loads(metadata["progress"])
    except (KeyError, ValueError) as error:
        raise ModelRefused(_damaged(path, error)) from None
    differing = [k for k in here if stored.get(k) != json.loads(json.dumps(here[k]))]
    if differing:
        raise FingerprintMismatch(
            f"the checkpoint '{path}' is of other training: "
            + "; ".join(f"'{k}' was {stored.get(k)!r}, is {here[k]!r}" for k in differing)
            + "; start anew, or give the same settings"
        )
    try:
        trainer.policy.agent.load_state_dict(_under("agent.", tensors))
        trainer.best_agent = _under("best.", tensors)
        _load_optimizer(trainer, _under("adam.", tensors))
        _load_replay(trainer, _under("replay.", tensors))
        trainer.rng.bit_generator.state = progress["random"]
        trainer.iteration, trainer.seconds = progress["iteration"], progress["seconds"]
        trainer.stale, trainer.best_merit = progress["stale"], progress["best_merit"]
        trainer.history = [Progress(**line) for line in progress["history"]]
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise ModelRefused(_damaged(path, error)) from None


def about(trainer: Trainer) -> dict[str, Any]:
    """What must be equal for training to go on; iterations and patience may be raised."""
    settings = asdict(trainer.settings)
    settings.pop("iterations")
    settings.pop("patience")
    people = hashlib.sha256(trainer.people.tobytes() + trainer.weights.tobytes()).hexdigest()[:16]
    return {
        **settings,
        "problem": trainer.problem.fingerprint,
        "model": trainer.black_box.fingerprint,
        "people": people,
    }


def _damaged(path: str | Path, error: Exception) -> str:
    return f"the checkpoint '{path}' is damaged ({error!r}); remove it, or use --restart"


def _under(prefix: str, tensors: dict[str, Any]) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _load_optimizer(trainer: Trainer, tensors: dict[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        number, key = name.split(".")
        state.setdefault(int(number), {})[key] = tensor
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": state, "param_groups": groups})


def _load_replay(trainer: Trainer, tensors: dict[str, Any]) -> None:
    moves = tensors["moves"].numpy().astype(np.intp)
    trainer.replay.moves[:] = moves
    trainer.replay.merit[:] = tensors["merit"].numpy()
    trainer.replay.age[:] = tensors["age"].numpy()
    traces = build_traces(
        trainer.policy.observer,
        trainer.people,
        trainer.weights,
        moves,
        tensors["success"].numpy(),
        tensors["reward"].numpy(),
    )
    trainer.replay.traces.put(np.arange(len(moves)), traces)
