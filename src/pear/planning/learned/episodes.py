"""What does the agent learn from? The traces of its own searches, of which the best are kept
longest.

A trace is a sequence of observations, actions and the reward earned. Fixed shards of people are
searched in processes or here: the shards, and so the result, do not depend on their number.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Flags, Floats, Indices
from pear.decision import BlackBox
from pear.errors import WorkerFailed
from pear.optional import require
from pear.planning.learned.planners import WFARE, PolicyOnly, dirichlet
from pear.planning.learned.policy import NetworkEvaluator, Observer, Policy
from pear.planning.tree.rules import FAILURE, LengthRules, Rules
from pear.planning.tree.search import search
from pear.planning.tree.trees import Effort, Evaluator, FoundPlans, People, UniformPrior
from pear.problem import NO_LIMITS
from pear.problem.features import States


@dataclass(frozen=True)
class Traces:
    """n traces of at most T = L + 1 decisions, the last being STOP.

    ``seen`` ``(n, T, inputs)``, ``legal`` ``(n, T, m + 1)``, ``target`` ``(n, T)`` the action
    taken, ``present`` ``(n, T)``; ``reward`` ``(n,)``; ``success`` ``(n,)``: only successful
    traces teach the policy, all teach the value.
    """

    seen: NDArray[np.float32]
    legal: Flags
    target: NDArray[np.int64]
    present: Flags
    reward: NDArray[np.float32]
    success: Flags

    def __len__(self) -> int:
        return len(self.reward)

    def where(self, rows: Indices) -> Traces:
        """Some of the traces."""
        return Traces(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: Indices, others: Traces) -> None:
        """Overwrite some of the traces."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)


def build_traces(
    observer: Observer,
    states: States,
    weights: Floats,
    moves: Indices,
    success: Flags,
    reward: Floats,
) -> Traces:
    """Traces of n people who take ``moves`` ``(n, L)`` (-1 after the end) and then STOP.

    A trace that fails ends in the state it fails in, where nothing is to be learned but
    its value.
    """
    problem, (n, longest) = observer.problem, moves.shape
    actions, stop = problem.actions, len(problem.actions)
    seen = np.zeros((n, longest + 1, observer.width), np.float32)
    legal = np.ones((n, longest + 1, stop + 1), bool)
    target = np.full((n, longest + 1), stop, np.int64)
    lengths = (moves >= 0).sum(axis=1)
    present = np.arange(longest + 1) <= lengths[:, None]
    here = np.array(states, float)
    for step in range(longest + 1):
        who = np.flatnonzero(present[:, step])
        if not len(who):
            break
        seen[who, step] = observer(
            here[who], problem.costs.all_costs(here[who], actions, weights[who])
        )
        ended = lengths[who] == step
        legal[who, step, :stop] = actions.allowed(here[who]) & ~ended[:, None]
        legal[who, step, stop] = ended
        moving = who[~ended]
        if len(moving):
            target[moving, step] = moves[moving, step]
            here[moving] = actions.apply(here[moving], moves[moving, step])
    return Traces(seen, legal, target, present, reward.astype(np.float32), success.copy())


NEVER_SEEN = -np.inf


class Replay:
    """One slot per training person: the best trace found for them so far.

    ``merit`` ``(n,)`` orders traces of one person: a success is above any failure, a
    better plan above a worse one. ``moves`` ``(n, L)`` are kept to rebuild the traces. Only
    the ``capacity`` people kept last are learned from (None: everybody).
    """

    def __init__(
        self,
        empty: Traces,
        moves: Indices,
        failure_share: float = 0.25,
        capacity: int | None = None,
    ) -> None:
        self.traces = empty
        self.moves = moves
        self.merit = np.full(len(empty), NEVER_SEEN)
        self.age = np.zeros(len(empty), np.int64)
        self.failure_share = failure_share
        self.capacity = capacity

    def add(
        self,
        people: Indices,
        traces: Traces,
        moves: Indices,
        merit: Floats,
    ) -> int:
        """Keep the traces that are no worse than what is known; how many were kept."""
        better = np.flatnonzero(merit >= self.merit[people])
        who = people[better]
        self.traces.put(who, traces.where(better))
        self.moves[who] = moves[better]
        self.merit[who] = merit[better]
        self.age[who] = self.age.max(initial=0) + 1
        return len(who)

    def sample(self, n: int, rng: np.random.Generator) -> Traces:
        """n traces; a failure is drawn ``failure_share`` times as often as a success."""
        known = np.flatnonzero(self.merit > NEVER_SEEN)
        if self.capacity is not None:
            known = known[np.argsort(-self.age[known], kind="stable")[: self.capacity]]
        weight = np.where(self.traces.success[known], 1.0, self.failure_share)
        chosen = rng.choice(known, n, p=weight / weight.sum())
        return self.traces.where(chosen)

    def hardest(self, n: int) -> Indices:
        """The n people so far whose best trace is worst: failures, then the dearest plans."""
        known = np.flatnonzero(self.merit > NEVER_SEEN)
        return np.asarray(known[np.argsort(self.merit[known], kind="stable")[:n]])


@dataclass(frozen=True)
class Episodes:
    """The best trace of each of n people: ``moves`` ``(n, L)``, and ``(n,)`` each of
    ``success``, ``reward``, ``cost`` and ``merit`` (see :class:`~.replay.Replay`); ``rows``
    is what finding them asked of the black box."""

    moves: Indices
    success: Flags
    reward: Floats
    cost: Floats
    merit: Floats
    rows: int

    @classmethod
    def joined(cls, parts: list[Episodes]) -> Episodes:
        return cls(
            np.concatenate([part.moves for part in parts]),
            np.concatenate([part.success for part in parts]),
            np.concatenate([part.reward for part in parts]),
            np.concatenate([part.cost for part in parts]),
            np.concatenate([part.merit for part in parts]),
            sum(part.rows for part in parts),
        )


def search_episodes(
    policy: Policy,
    black_box: BlackBox,
    states: States,
    weights: Floats,
    *,
    simulations: int,
    reference_simulations: int,
    rng: np.random.Generator,
    noise: tuple[float, float] | None,
) -> Episodes:
    """Search everybody's tree as the policy's kind does, ``noise`` (share, concentration)."""
    problem, count, asked = policy.problem, len(states), black_box.rows
    if policy.kind == "rl" and noise is None:
        return greedy_episodes(policy, black_box, states, weights)
    known = FoundPlans.none(problem.max_length)
    reference = np.full(count, np.nan)
    scores = None
    rules: Rules = LengthRules().build()
    evaluator: Evaluator = UniformPrior() if policy.kind == "rl" else NetworkEvaluator(policy)
    if policy.kind == "wfare":
        planner = WFARE(policy, black_box, simulations=reference_simulations)
        references = planner.references(states, NO_LIMITS, None, black_box.score)
        known, reference, scores = planner.fallbacks(states, weights, references)
        rules = planner.rules()
    seeds = rng.integers(2**63, size=count) if evaluator.playouts else ()
    streams = tuple(np.random.default_rng(seed) for seed in seeds)
    people = People(states, weights, reference, NO_LIMITS, streams, scores)
    mixed = None if noise is None or policy.kind == "rl" else dirichlet(*noise, rng)
    outcome = search(problem, black_box.score, people, rules, evaluator, Effort(simulations), mixed)
    found = FoundPlans.joined([outcome.found, known])
    shortest = policy.kind != "wfare"
    best = best_episodes(outcome.executed, found, reference, rules, shortest)
    return replace(best, rows=black_box.rows - asked)


def greedy_episodes(
    policy: Policy, black_box: BlackBox, states: States, weights: Floats
) -> Episodes:
    """What the policy finds without any search, as the planner RL uses it."""
    planner = PolicyOnly(policy, black_box)
    result = planner.search_people(states, weights, NO_LIMITS, (), None, black_box.score)
    executed = np.full((len(states), policy.problem.max_length), -1, np.intp)
    rules, nothing = LengthRules().build(), np.full(len(states), np.nan)
    best = best_episodes(executed, result.found, nothing, rules, shortest=True)
    return replace(best, rows=int(result.rows.sum()))


def best_episodes(
    executed: Indices,
    found: FoundPlans,
    reference: Floats,
    rules: Rules,
    shortest: bool,
) -> Episodes:
    """Everybody's best plan, or the path taken where none was found."""
    count = len(reference)
    merit = -found.lengths.astype(float) if shortest else -found.costs
    best = found.best_of_each(merit, count)
    success = best >= 0
    moves = np.array(executed)
    moves[success] = found.moves[best[success]]
    cost, reward, value = np.full(count, np.nan), np.full(count, FAILURE), np.full(count, -1e18)
    chosen = found.where(best[success])
    cost[success] = chosen.costs
    reward[success] = rules.reward(chosen.lengths.astype(float), chosen.costs, reference[success])
    value[success] = merit[best[success]]
    return Episodes(moves, success, reward, cost, value, 0)


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
                policy.problem,
                policy.kind,
                policy.mean_weights,
                hidden=policy.agent.shape.hidden,
                settings=policy.settings,
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
