"""What is believed at one point of a conversation, and the best question that follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.elicitation.choices import expected_gain, greedy_choice_set
from pear.elicitation.pool import Pool, make_pool, step_features
from pear.elicitation.settings import Settings
from pear.planning.planner import Memory, Planner, plan_from_moves
from pear.preferences import GaussianMixturePrior, ParticlePosterior, Posterior
from pear.problem import Certificate, Limits, Plan, Problem, costs_under

Floats = NDArray[np.float64]

WITHIN = 1.05
"""A plan within 5% of the best counts as right."""

JUDGES = 2_000
"""Most samples a pool is judged by."""


@dataclass(frozen=True)
class View:
    """A pool, the plan of least expected cost in it, and the next question.

    ``draws`` ``(n, p)`` are the posterior samples planned for; ``chosen`` are the columns of
    the question, ``gain`` its worth.
    """

    state: Floats
    pool: Pool
    draws: Floats
    best: int
    chosen: tuple[int, ...]
    gain: float
    survey: Memory | None = None

    def confidence(self, plan: Plan, problem: Problem) -> float:
        """Probability that the plan is within 5% of the best plan known.

        By the draws, of which half a one counts for and against: that all of a few draws
        agree is no certainty. 0 for a plan whose cost is not known step by step, 1 where
        nothing needs to change.
        """
        if plan.success and not plan.steps:
            return 1.0
        if not plan.success or not plan.moves or not len(self.pool):
            return 0.0
        costs = costs_under(step_features(problem, self.state, plan), self.draws, self.pool.floor)
        best = np.minimum(self.pool.costs(self.draws).min(axis=1), costs)
        within = costs <= best + np.maximum((WITHIN - 1) * np.abs(best), 1e-9)
        return float((within.sum() + 0.5) / (len(within) + 1))


def start_posterior(
    prior: GaussianMixturePrior, settings: Settings, rng: np.random.Generator
) -> Posterior:
    """The posterior before the first answer."""
    if settings.posterior == "slices":
        from pear.preferences import EnsembleSlicePosterior

        return EnsembleSlicePosterior.start(
            prior, settings.response, rng, estimate=settings.estimate
        )
    return ParticlePosterior.start(prior, settings.response, rng, n_particles=settings.n_particles)


def view_of(
    planner: Planner,
    state: Floats,
    posterior: Posterior,
    settings: Settings,
    limits: Limits,
    shown: dict[tuple[int, ...], bool],
    rng: np.random.Generator,
    survey: Memory | None = None,
) -> View:
    """Pool and question for a state, given what is believed and surveyed."""
    draws = posterior.draw(settings.draws, rng)
    samples, weights = posterior.samples, posterior.weights
    if len(samples) > JUDGES:
        samples = posterior.draw(JUDGES, rng)
        weights = np.full(JUDGES, 1.0 / JUDGES)
    mean = posterior.mean()
    rounds, survey = candidate_plans(planner, state, draws, mean, settings, limits, rng, survey)
    plans = [plan for offered in rounds for plan in offered]
    known = {plan.moves for plan in plans}
    plans += [
        rebuilt(planner, state, moves, mean, limits)
        for moves in shown
        if moves not in known and _legal(planner.problem, state, moves, limits)
    ]
    pool = make_pool(planner.problem, state, plans)
    costs = pool.costs(samples)
    if not len(pool):
        return View(state, pool, draws, -1, (), 0.0, survey)
    best = int(np.argmin(np.round(weights @ costs, 9)))
    askable = [i for i, plan in enumerate(pool.plans) if shown.get(plan.moves, True)]
    chosen: tuple[int, ...] = ()
    for offered in rounds if settings.pool == "mean" else ():
        moves = {plan.moves for plan in offered}
        among = [i for i in askable if pool.plans[i].moves in moves]
        size = min(len(chosen) + 1, settings.k)
        chosen = greedy_choice_set(costs, weights, size, chosen, among)
    chosen = greedy_choice_set(costs, weights, settings.k, chosen, askable)
    return View(state, pool, draws, best, chosen, expected_gain(costs, weights, chosen), survey)


def candidate_plans(
    planner: Planner,
    state: Floats,
    draws: Floats,
    mean: Floats,
    settings: Settings,
    limits: Limits,
    rng: np.random.Generator,
    survey: Memory | None = None,
) -> tuple[list[list[Plan]], Memory | None]:
    """Plans to choose from: optima of the draws, or, as the paper does, plans for the mean.

    After the first question the planner goes on from its memory with ``pool_rows``; the best
    plan known for the mean weights is always among the plans.
    With the mean, candidates are generated anew for each of the k places, which is filled
    from its own (algorithm 2); a planner without randomness then offers few, and the optima
    of the draws come last and fill up.
    """
    if settings.pool == "samples":
        planned = np.vstack([mean, draws])
        most = settings.first_rows if survey is None else settings.pool_rows
        found = planner.candidates(
            state, planned, len(planned), limits, rng, memory=survey, max_rows=most
        )
        return [list(found.plans)], found.memory

    def generated(samples: Floats) -> list[Plan]:
        return list(planner.candidates(state, samples, len(draws), limits, rng).plans)

    rounds = [generated(mean[None]) for _ in range(settings.k)]
    if len({plan.moves for plans in rounds for plan in plans}) < settings.k:
        rounds.append(generated(draws))
    return rounds, None


def _legal(problem: Problem, state: Floats, moves: tuple[int, ...], limits: Limits) -> bool:
    if limits.max_steps is not None and len(moves) > limits.max_steps:
        return False
    at = state[None]
    for move in moves:
        if not problem.actions.allowed(at, limits)[0, move]:
            return False
        at = problem.actions.apply(at, np.array([move]))
    return True


def rebuilt(
    planner: Planner, state: Floats, moves: tuple[int, ...], weights: Floats, limits: Limits
) -> Plan:
    """The plan of moves shown earlier, priced by these weights."""
    certificate = Certificate("heuristic")
    return plan_from_moves(
        planner, state, moves, weights, certificate, limits=limits, method="shown before"
    )
