"""How do all cores search for training? Fixed shards of people, in processes or here.

The shards, and so the result, do not depend on the number of processes.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.errors import WorkerFailed
from pear.optional import require
from pear.planning.learned.episodes import Episodes, search_episodes
from pear.planning.learned.policy import Policy
from pear.problem.features import States

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shard:
    """People searched together: ``states`` ``(n, d)``, ``weights`` ``(n, 1, p)``, a seed."""

    states: States
    weights: Floats
    seed: int
    simulations: int
    reference_simulations: int
    noise: tuple[float, float] | None


class EpisodeSearch:
    """Searches shards with the current agent, on ``workers`` processes.

    One process is this one. A black box that cannot be sent to another process is searched
    here whatever ``workers`` says.
    """

    def __init__(self, policy: Policy, black_box: BlackBox, workers: int = 1) -> None:
        self.policy, self.black_box = policy, black_box
        self.pool: ProcessPoolExecutor | None = None
        if workers > 1 and _can_travel(black_box):
            template = Policy.fresh(
                policy.problem, policy.kind, policy.mean_weights, hidden=policy.agent.shape.hidden
            )
            self.pool = ProcessPoolExecutor(
                workers,
                mp_context=get_context("spawn"),
                initializer=_prepare,
                initargs=(template, black_box),
            )

    def __call__(self, shards: list[Shard]) -> Episodes:
        """The episodes of all shards, in their order."""
        if self.pool is None:
            return Episodes.joined([run_shard(self.policy, self.black_box, s) for s in shards])
        weights = {k: v.numpy() for k, v in self.policy.agent.state_dict().items()}
        futures = [self.pool.submit(_run, weights, shard) for shard in shards]
        try:
            episodes = Episodes.joined([future.result() for future in futures])
        except BrokenProcessPool as error:
            raise WorkerFailed(
                "a training process ended unexpectedly (out of memory?); start again with "
                "fewer workers: training goes on from its last checkpoint"
            ) from error
        self.black_box.rows += episodes.rows
        return episodes

    def close(self) -> None:
        """End the processes."""
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
            self.pool = None


def run_shard(policy: Policy, black_box: BlackBox, shard: Shard) -> Episodes:
    """Search one shard here."""
    return search_episodes(
        policy,
        black_box,
        shard.states,
        shard.weights,
        simulations=shard.simulations,
        reference_simulations=shard.reference_simulations,
        rng=np.random.default_rng(shard.seed),
        noise=shard.noise,
    )


_HELD: dict[str, Any] = {}


def _prepare(policy: Policy, black_box: BlackBox) -> None:
    require("torch").set_num_threads(1)
    _HELD.update(policy=policy, black_box=black_box)


def _run(weights: dict[str, Any], shard: Shard) -> Episodes:
    torch, policy = require("torch"), _HELD["policy"]
    policy.agent.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
    return run_shard(policy, _HELD["black_box"], shard)


def _can_travel(black_box: BlackBox) -> bool:
    try:
        pickle.dumps(black_box)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
