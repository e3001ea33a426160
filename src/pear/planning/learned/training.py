"""How does the agent learn? Search with the current policy, keep the best traces, imitate them.

One iteration searches a batch of training people in lockstep, with Dirichlet noise in the
prior, puts each person's best trace into the replay buffer, and takes a few gradient steps.

A checkpoint is one safetensors file, written whole or not at all. A trainer built with the same
arguments and given the checkpoint continues exactly as if it had not been interrupted.

References: paper, appendices "Recourse Policy", "FARE", "Weighted-FARE". The paper prints
the shares of policy and noise the other way round; noise is the smaller share.
"""

from __future__ import annotations

import csv
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pear.arrays import Floats, Indices
from pear.decision import BlackBox
from pear.errors import FingerprintMismatch, InvalidSetting, ModelRefused
from pear.optional import require
from pear.planning.learned.episodes import (
    Episodes,
    EpisodeSearch,
    Replay,
    Shard,
    Traces,
    build_traces,
)
from pear.planning.learned.network import trace_loss
from pear.planning.learned.policy import Kind, Policy, read_safetensors
from pear.problem import Problem
from pear.problem.features import States
from pear.writing import replacing

SampleWeights = Callable[[int, np.random.Generator], Floats]
"""n weight vectors ``(n, p)`` drawn from the prior."""


SHARES = (
    "kind",
    "learning_rate",
    "noise_share",
    "noise_concentration",
    "hard_share",
    "cost_weight",
    "seed",
)
"""Settings that are not counts."""
SOLVED = 8
"""How much solving people counts against cost when policies are compared: one that solves 1% fewer
has to be 8% cheaper. With less, one that fails on everybody whose plan is dear looks cheap.
"""
HARD = 0.25
"""The share of the people so far that counts as solved worst."""


@dataclass(frozen=True)
class TrainingSettings:
    """What training is given; the defaults are the paper's for Adult where it has them.

    ``patience`` is the number of validations without a better policy after which it ends;
    ``pool`` and ``validation_people`` say how many people it trains on and is judged by.
    ``buffer`` is how many of the latest traces it learns from (None: all), ``hard_share`` the
    share of a batch drawn from the quarter of the people solved worst so far. ``cost_weight`` is
    how much the search is drawn to cheap beginnings of a plan, in training and in use (W-FARE).
    """

    kind: Kind = "wfare"
    iterations: int = 400
    batch_people: int = 128
    simulations: int = 15
    planning_simulations: int = 5
    shard_people: int = 64
    gradient_steps: int = 8
    gradient_batch: int = 128
    learning_rate: float = 1e-3
    noise_share: float = 0.3
    noise_concentration: float = 0.3
    hidden: int = 64
    pool: int = 3000
    validation_people: int = 200
    validate_every: int = 20
    patience: int = 6
    buffer: int | None = None
    hard_share: float = 0.0
    cost_weight: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name in SHARES or value is None:
                continue
            if value < 1:
                raise InvalidSetting(f"'{name}' must be at least 1 (got {value!r})")
        if not self.learning_rate > 0 or not self.noise_concentration > 0:
            raise InvalidSetting("'learning_rate' and 'noise_concentration' must be positive")
        if not self.cost_weight >= 0:
            raise InvalidSetting(f"'cost_weight' must be at least 0 (got {self.cost_weight!r})")
        for name in ("noise_share", "hard_share"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidSetting(f"'{name}' must be in [0, 1) (got {getattr(self, name)!r})")


class Trainer:
    """Everything training holds between iterations; :meth:`step` runs one of them."""

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        people: States,
        sample_weights: SampleWeights,
        mean_weights: Floats,
        settings: TrainingSettings = TrainingSettings(),
        workers: int = 1,
    ) -> None:
        torch = require("torch")
        self.problem, self.black_box, self.settings = problem, black_box, settings
        rng = np.random.default_rng(settings.seed)
        refused = np.asarray(people, float)[~black_box.favourable(people)]
        if len(refused) < 2:
            raise InvalidSetting(
                f"'people' must hold at least 2 people the model refuses (got {len(refused)}); "
                "give more of the training data"
            )
        judges = min(settings.validation_people, max(1, len(refused) // 5))
        chosen = rng.permutation(len(refused))[: settings.pool + judges]
        self.judges, self.people = refused[chosen[:judges]], refused[chosen[judges:]]
        self.policy = Policy.fresh(
            problem,
            settings.kind,
            mean_weights,
            hidden=settings.hidden,
            seed=settings.seed,
            settings=asdict(settings),
        )
        self.weights = self._weights(len(self.people), sample_weights, rng)
        self.judge_weights = self._weights(judges, sample_weights, rng)
        self.optimizer = torch.optim.Adam(self.policy.agent.parameters(), lr=settings.learning_rate)
        self.replay = self._empty_replay()
        self.searcher = EpisodeSearch(self.policy, black_box, workers)
        self.rng = rng
        self.iteration = 0
        self.history: list[Progress] = []
        self.best_agent = self._agent_copy()
        self.best_merit = -np.inf
        self.stale = 0
        self.seconds = 0.0

    def _weights(self, n: int, sample_weights: SampleWeights, rng: np.random.Generator) -> Floats:
        """Training weights ``(n, 1, p)``: from the prior for W-FARE, the mean for the others."""
        if self.settings.kind == "wfare":
            return self.problem.costs.check_weights(sample_weights(n, rng))[:, None, :]
        return np.broadcast_to(self.policy.mean_weights, (n, 1, len(self.policy.mean_weights)))

    def _empty_replay(self) -> Replay:
        moves = np.full((len(self.people), self.problem.max_length), -1, np.intp)
        no, zero = np.zeros(len(moves), bool), np.zeros(len(moves))
        traces = build_traces(self.policy.observer, self.people, self.weights, moves, no, zero)
        return Replay(traces, moves, capacity=self.settings.buffer)

    @property
    def finished(self) -> bool:
        """The iterations are used up, or validation has not improved for long enough."""
        return self.iteration >= self.settings.iterations or self.stale >= self.settings.patience

    @property
    def best_policy(self) -> Policy:
        """The policy with the best validation so far."""
        best = Policy.fresh(
            self.problem, self.settings.kind, self.policy.mean_weights, hidden=self.settings.hidden
        )
        best.agent.load_state_dict(self.best_agent)
        settings = {**asdict(self.settings), "iterations_done": self.iteration}
        return Policy(self.problem, best.kind, best.agent, best.mean_weights, settings)

    def run(
        self,
        report: Callable[[Progress], None] | None = None,
        checkpoint: Callable[[Trainer], None] | None = None,
    ) -> Policy:
        """Train to the end and return the best policy; ``checkpoint`` runs at validations."""
        try:
            while not self.finished:
                progress = self.step()
                if report is not None:
                    report(progress)
                if checkpoint is not None and self.iteration % self.settings.validate_every == 0:
                    checkpoint(self)
        finally:
            self.searcher.close()
        return self.best_policy

    def step(self) -> Progress:
        """One iteration: search, remember, learn, and now and then validate."""
        started = time.perf_counter()
        settings = self.settings
        batch = self.batch()
        episodes = self.episodes(self.people[batch], self.weights[batch], training=True)
        self.replay.add(batch, self.traces(batch, episodes), episodes.moves, episodes.merit)
        losses = [self.learn() for _ in range(settings.gradient_steps)]
        self.iteration += 1
        last = self.iteration >= settings.iterations
        judged, best = None, False
        if self.iteration % settings.validate_every == 0 or last:
            judged = self.validate()
            best = self._keep_best(judged)
        self.seconds += time.perf_counter() - started
        progress = self._progress(float(np.mean(losses)), episodes, judged, best)
        self.history.append(progress)
        return progress

    def batch(self) -> Indices:
        """The people of one iteration: at random, but for the share of those solved worst."""
        size = min(self.settings.batch_people, len(self.people))
        seen = int((self.replay.merit > -np.inf).sum())
        count = min(int(self.settings.hard_share * size), int(HARD * seen))
        if not count:
            return self.rng.choice(len(self.people), size, replace=False)
        hard = self.rng.choice(self.replay.hardest(int(HARD * seen)), count, replace=False)
        others = np.setdiff1d(np.arange(len(self.people)), hard)
        return np.concatenate([hard, self.rng.choice(others, size - count, replace=False)])

    def episodes(self, states: States, weights: Floats, training: bool) -> Episodes:
        """The best trace of each person the current policy's search finds."""
        settings = self.settings
        noise = (settings.noise_share, settings.noise_concentration) if training else None
        rng = self.rng if training else np.random.default_rng(settings.seed)
        shards = [
            Shard(
                states[first : first + settings.shard_people],
                weights[first : first + settings.shard_people],
                seed=int(rng.integers(2**63)),
                simulations=settings.simulations if training else settings.planning_simulations,
                reference_simulations=settings.planning_simulations,
                noise=noise,
            )
            for first in range(0, len(states), settings.shard_people)
        ]
        return self.searcher(shards)

    def traces(self, batch: Indices, episodes: Episodes) -> Traces:
        return build_traces(
            self.policy.observer,
            self.people[batch],
            self.weights[batch],
            episodes.moves,
            episodes.success,
            episodes.reward,
        )

    def learn(self) -> float:
        """One gradient step on a batch of the replay buffer; its loss."""
        traces = self.replay.sample(self.settings.gradient_batch, self.rng)
        loss = trace_loss(self.policy.agent, traces, masked=self.settings.kind != "rl")
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def validate(self) -> tuple[float, float, float]:
        """Success rate, mean cost and loss on held-out people, planned as in use."""
        torch = require("torch")
        episodes = self.episodes(self.judges, self.judge_weights, training=False)
        traces = build_traces(
            self.policy.observer,
            self.judges,
            self.judge_weights,
            episodes.moves,
            episodes.success,
            episodes.reward,
        )
        with torch.inference_mode():
            masked = self.settings.kind != "rl"
            loss = float(trace_loss(self.policy.agent, traces, masked=masked))
        good = episodes.success
        cost = float(episodes.cost[good].mean()) if good.any() else float("nan")
        return float(good.mean()), cost, loss

    def _keep_best(self, judged: tuple[float, float, float]) -> bool:
        success, cost, _ = judged
        merit = -cost / success**SOLVED if success else -np.finfo(float).max
        if merit <= self.best_merit:
            self.stale += 1
            return False
        self.best_merit, self.stale = merit, 0
        self.best_agent = self._agent_copy()
        return True

    def _agent_copy(self) -> dict[str, Any]:
        return {k: v.detach().clone() for k, v in self.policy.agent.state_dict().items()}

    def _progress(
        self,
        loss: float,
        episodes: Episodes,
        judged: tuple[float, float, float] | None,
        best: bool,
    ) -> Progress:
        nothing = (float("nan"),) * 3
        if judged is None and self.history:
            before = self.history[-1]
            nothing = (before.validation_success, before.validation_cost, before.validation_loss)
        success, cost, validation_loss = judged or nothing
        return Progress(
            iteration=self.iteration,
            seconds=self.seconds,
            loss=loss,
            training_success=float(episodes.success.mean()),
            validation_success=success,
            validation_cost=cost,
            validation_loss=validation_loss,
            best=best,
        )


@dataclass(frozen=True)
class Progress:
    """One line of the training curve; validation figures are of the latest validation."""

    iteration: int
    seconds: float
    loss: float
    training_success: float
    validation_success: float
    validation_cost: float
    validation_loss: float
    best: bool


def write_curves(history: Sequence[Progress], path: str | Path) -> None:
    """Write the training curve as CSV, one row per iteration."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Progress)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in history)


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
    with replacing(path) as part:
        save({k: v.contiguous() for k, v in tensors.items()}, str(part), metadata=metadata)


def load_checkpoint(trainer: Trainer, path: str | Path) -> None:
    """Restore a trainer from a checkpoint; one from a different training run is refused."""
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
            f"the checkpoint '{path}' is from a different training run: "
            + "; ".join(f"'{k}' was {stored.get(k)!r}, is {here[k]!r}" for k in differing)
            + "; start again, or give the same settings"
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
