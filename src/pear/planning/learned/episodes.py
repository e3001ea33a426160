"""Which traces does the current policy's search yield for a batch of people?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.planning.learned.fare import WFARE, dirichlet
from pear.planning.learned.policy import NetworkEvaluator, Policy
from pear.planning.learned.policy_only import PolicyOnly
from pear.planning.tree.evaluation import Evaluator, UniformPrior
from pear.planning.tree.found import FoundPlans
from pear.planning.tree.people import Effort, People
from pear.planning.tree.rules import FAILURE, LengthRules, Rules
from pear.planning.tree.search import search
from pear.problem import NO_LIMITS
from pear.problem.features import States

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Episodes:
    """The best trace of each of n people: ``moves`` ``(n, L)``, and ``(n,)`` each of
    ``success``, ``reward``, ``cost`` and ``merit`` (see :class:`~.replay.Replay`); ``rows``
    is what finding them asked of the black box."""

    moves: NDArray[np.intp]
    success: NDArray[np.bool_]
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
    met = planner.meet(states, weights, NO_LIMITS, (), None, black_box.score)
    executed = np.full((len(states), policy.problem.max_length), -1, np.intp)
    rules, nothing = LengthRules().build(), np.full(len(states), np.nan)
    best = best_episodes(executed, met.found, nothing, rules, shortest=True)
    return replace(best, rows=int(met.rows.sum()))


def best_episodes(
    executed: NDArray[np.intp],
    found: FoundPlans,
    reference: Floats,
    rules: Rules,
    shortest: bool,
) -> Episodes:
    """Everybody's best plan met, or the path taken where none was met."""
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
