"""Which traces does the current policy's search yield for a batch of people?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.planning.learned.fare import WFARE
from pear.planning.learned.policy import NetworkEvaluator, Policy
from pear.planning.tree.evaluation import Evaluator, UniformPrior
from pear.planning.tree.found import FoundPlans
from pear.planning.tree.rules import FAILURE, LengthRules, Rules
from pear.planning.tree.search import Effort, Noise, People, SearchOutcome, search
from pear.problem import NO_LIMITS
from pear.problem.features import States

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Episodes:
    """The best trace of each of n people: ``moves`` ``(n, L)``, and ``(n,)`` each of
    ``success``, ``reward``, ``cost`` and ``merit`` (see :class:`~.replay.Replay`)."""

    moves: NDArray[np.intp]
    success: NDArray[np.bool_]
    reward: Floats
    cost: Floats
    merit: Floats


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
    problem, count = policy.problem, len(states)
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
    streams = tuple(rng.spawn(count)) if evaluator.playouts else ()
    people = People(states, weights, reference, NO_LIMITS, streams, scores)
    mixed = None if noise is None or policy.kind == "rl" else dirichlet(*noise, rng)
    outcome = search(problem, black_box.score, people, rules, evaluator, Effort(simulations), mixed)
    return best_episodes(outcome, known, reference, rules, shortest=policy.kind != "wfare")


def best_episodes(
    outcome: SearchOutcome,
    known: FoundPlans,
    reference: Floats,
    rules: Rules,
    shortest: bool,
) -> Episodes:
    """Everybody's best plan met, or the path taken where none was met."""
    found = FoundPlans.joined([outcome.found, known])
    count = len(reference)
    merit = -found.lengths.astype(float) if shortest else -found.costs
    best = found.best_of_each(merit, count)
    success = best >= 0
    moves = np.array(outcome.executed)
    moves[success] = found.moves[best[success]]
    cost, reward, value = np.full(count, np.nan), np.full(count, FAILURE), np.full(count, -1e18)
    chosen = found.where(best[success])
    cost[success] = chosen.costs
    reward[success] = rules.reward(chosen.lengths.astype(float), chosen.costs, reference[success])
    value[success] = merit[best[success]]
    return Episodes(moves, success, reward, cost, value)


def dirichlet(share: float, concentration: float, rng: np.random.Generator) -> Noise:
    """(1 - ε) P + ε Dirichlet(α) over the legal actions."""

    def mix(prior: Floats, legal: NDArray[np.bool_]) -> Floats:
        draws = rng.standard_gamma(concentration, prior.shape) * legal
        draws /= np.maximum(draws.sum(axis=1, keepdims=True), 1e-300)
        return (1.0 - share) * prior + share * draws

    return mix
