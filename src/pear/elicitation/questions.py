"""What do we ask next? The pool of plans, the choice set, and what asking is worth.

Costs of a pool of m plans under n weighted samples stand in one matrix ``(n, m)``; a choice
set is k of its columns.

References: paper, eqn. eu, eqn. eus, algorithm 2; Viappiani and Boutilier (2010) for the
guarantee of the greedy choice, which holds for ``f(O) = E[B - min C]`` with B at least
every cost and f of nothing 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from pear.arrays import Floats
from pear.elicitation.says import Answered
from pear.elicitation.settings import Settings
from pear.elicitation.shown import Loosening
from pear.errors import InvalidSetting
from pear.planning.planner import Memory, Planner
from pear.preferences import (
    Chosen,
    GaussianMixturePrior,
    Noiseless,
    ParticlePosterior,
    Posterior,
    ResponseModel,
)
from pear.preferences.posterior import surprise, systematic
from pear.problem import Action, Certificate, Limits, Plan, Problem, costs_under
from pear.problem.costs import padded, roll_out
from pear.problem.limits import Limit, as_limits
from pear.problem.plan import plans_along

WITHIN = 1.05
"""A plan within 5% of the best counts as right."""

JUDGES = 2_000
"""Most samples a pool is judged by."""

STRANGERS = 8
"""Samples of the background that plans are made for besides the draws. People unlike anyone before
are few among the draws and want plans of all kinds: without these, what would tell that somebody
is one of them is never asked."""

ALONE = 8
"""Where the first search for all samples proves nothing, each is searched for alone with at most
one part in this many of the rows: people whose plans are dear and those whose are cheap hold each
other up."""

MOST_PAIRS = 40
"""Most pairs of limits that are tried where lifting no single one opens a plan."""


# The choice set


def expected_utility(costs: Floats, weights: Floats) -> Floats:
    """Minus the expected cost of each plan, shape ``(m,)`` (paper, eqn. eu).

    >>> expected_utility(np.array([[2.0, 4.0], [6.0, 0.0]]), np.array([0.5, 0.5]))
    array([-4., -2.])
    """
    return -np.asarray(weights @ costs)


def expected_utility_of_selection(
    costs: Floats, weights: Floats, response: ResponseModel | None = None
) -> float:
    """Expected utility of what a person picks from all the plans given (paper, eqn. eus).

    The default response model is the noiseless one: minus the expected cost of the cheapest.

    >>> expected_utility_of_selection(np.array([[2.0, 4.0], [6.0, 0.0]]), np.array([0.5, 0.5]))
    -1.0
    """
    if response is None or isinstance(response, Noiseless):
        return float(-(weights @ costs.min(axis=1)))
    chosen = np.exp(response.log_probabilities(costs))
    return float(-(weights @ (chosen * costs).sum(axis=1)))


def greedy_choice_set(
    costs: Floats,
    weights: Floats,
    k: int,
    included: tuple[int, ...] = (),
    among: Sequence[int] | None = None,
    asked: Collection[frozenset[int]] = (),
) -> tuple[int, ...]:
    """Columns of a choice set of at most k plans by greedy maximisation of EUS, noiseless.

    ``included`` columns are in it already; the others come from ``among``, or from all.
    Plans that add nothing are still added, so that a question has k plans where the pool
    has; ties go to the plan that comes first in the pool. A set that was ``asked`` before is not
    built again: the last plan is then another one, and where there is none, there are fewer.
    """
    if k < 1:
        raise InvalidSetting(f"'k' must be at least 1 (got {k!r})")
    chosen = list(included)
    best = costs[:, chosen].min(axis=1) if chosen else np.full(len(costs), np.inf)
    allowed = np.ones(costs.shape[1], dtype=bool)
    if among is not None:
        allowed[:] = False
        allowed[list(among)] = True
    allowed[chosen] = False
    size = min(k, len(chosen) + int(allowed.sum()))
    while len(chosen) < size:
        if len(chosen) == size - 1:
            allowed[[i for i in np.flatnonzero(allowed) if {*chosen, i} in asked]] = False
            if not allowed.any():
                break
        expected = np.where(allowed, weights @ np.minimum(best[:, None], costs), np.inf)
        column = int(np.argmin(np.round(expected, 9)))
        chosen.append(column)
        allowed[column] = False
        best = np.minimum(best, costs[:, column])
    while set(chosen) in asked:
        chosen.pop()
    return tuple(chosen)


def exhaustive_choice_set(
    costs: Floats, weights: Floats, k: int, response: ResponseModel | None = None
) -> tuple[int, ...]:
    """The best choice set of k plans by trying all: a reference for small pools."""
    size = min(k, costs.shape[1])
    if comb(costs.shape[1], size) > 200_000:
        raise InvalidSetting(
            f"{comb(costs.shape[1], size):,} choice sets are too many to try; use greedy_choice_set"
        )
    sets: list[tuple[int, ...]] = list(combinations(range(costs.shape[1]), size))
    values = [expected_utility_of_selection(costs[:, s], weights, response) for s in sets]
    return sets[int(np.argmax(np.round(values, 9)))]


def expected_gain(costs: Floats, weights: Floats, chosen: tuple[int, ...]) -> float:
    """What asking is worth, in cost units: how much cheaper the plan gets in expectation.

    The expected cost of the best single plan of the pool less that of the cheapest plan
    of the choice set: the quantity the choice set was chosen by.
    """
    if not costs.shape[1] or not chosen:
        return 0.0
    single = float((weights @ costs).min())
    return max(0.0, single - float(weights @ costs[:, list(chosen)].min(axis=1)))


def questions_left(gain: float, asked: int, settings: Settings) -> int:
    """Questions until the gain is below the threshold if each divides it by k."""
    most = settings.max_questions - asked
    if most <= 0 or gain < max(settings.min_gain, 1e-9):
        return 0
    if settings.min_gain == 0:
        return most
    rounds = np.log(gain / settings.min_gain) / np.log(settings.k)
    return int(min(most, 1 + np.ceil(rounds)))


# The pool


@dataclass(frozen=True)
class Pool:
    """Distinct successful plans from one state.

    ``features`` are the cost features of each plan's steps, ``(length, p)`` each.
    """

    plans: tuple[Plan, ...]
    features: tuple[Floats, ...]
    floor: float | None

    def __len__(self) -> int:
        return len(self.plans)

    def costs(self, samples: Floats) -> Floats:
        """Costs of all plans under samples ``(n, p)``, shape ``(n, m)``."""
        if not self.plans:
            return np.zeros((len(samples), 0))
        starts = np.cumsum([0, *(len(features) for features in self.features[:-1])])
        return costs_under(np.concatenate(self.features), samples, self.floor, starts)


def make_pool(problem: Problem, state: Floats, plans: Iterable[Plan]) -> Pool:
    """A pool of the successful plans with steps; of equal plans the first is kept."""
    distinct: dict[tuple[int, ...], Plan] = {}
    for plan in plans:
        if plan.success and plan.moves:
            distinct.setdefault(plan.moves, plan)
    kept = tuple(distinct.values())
    return Pool(kept, tuple(step_features(problem, state, p) for p in kept), problem.costs.floor)


def step_features(problem: Problem, state: Floats, plan: Plan) -> Floats:
    """Cost features of a plan's steps, ``(length, p)``."""
    return problem.costs.sequence_features(state, problem.actions, plan.moves)


# What is believed at one point, and the best question that follows


@dataclass(frozen=True)
class View:
    """A pool, the plan of least expected cost in it, and the next question.

    ``draws`` ``(n, p)`` are the posterior samples planned for, ``expected`` ``(m,)`` what each
    plan of the pool costs by what is believed; ``chosen`` are the columns of the question, in the
    order a person sees them, ``gain`` its worth.
    """

    state: Floats
    pool: Pool
    draws: Floats
    expected: Floats
    best: int
    chosen: tuple[int, ...]
    gain: float
    memory: Memory | None = None

    @property
    def efforts(self) -> tuple[float, ...]:
        """What each plan of the question is expected to cost, relative to the best plan."""
        least = float(self.expected[self.best])
        return tuple(float(self.expected[i]) / least if least > 0 else 1.0 for i in self.chosen)

    def confidence(self, plan: Plan, problem: Problem) -> float:
        """Probability that the plan is within 5% of the best plan known.

        By the draws, with half a draw added for and half a draw against: even where all of a
        few draws agree, nothing is certain. 0 for a plan whose cost is not known step by step,
        1 where nothing needs to change.
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
    answers: Sequence[Answered],
    rng: np.random.Generator,
    memory: Memory | None = None,
) -> View:
    """Pool and question for a state, given what is believed, what the planner remembers and the
    ``answers`` to questions from this state: none of them is asked again.

    Plans of a question stand in a random order: an answer by place then says nothing about costs.
    """
    [places] = rng.spawn(1)
    draws = posterior.draw(settings.draws, rng)
    samples, weights = posterior.samples, posterior.weights
    if len(samples) > JUDGES:
        samples = posterior.draw(JUDGES, rng)
        weights = np.full(JUDGES, 1.0 / JUDGES)
    mean = posterior.mean()
    planned = draws
    if settings.pool == "samples":
        planned = np.vstack([draws, _strangers(posterior, rng)])
    rounds, memory = candidate_plans(planner, state, planned, mean, settings, limits, rng, memory)
    plans = [plan for offered in rounds for plan in offered]
    known, shown = {plan.moves for plan in plans}, plans_shown(answers)
    again = _still_legal(planner.problem, state, [m for m in shown if m not in known], limits)
    plans += rebuilt(planner, state, again, mean, limits)
    pool = make_pool(planner.problem, state, urgent_first(planner, state, plans))
    costs = pool.costs(samples)
    if not len(pool):
        return View(state, pool, draws, np.zeros(0), -1, (), 0.0, memory)
    expected = weights @ costs
    best = int(np.argmin(np.round(expected, 9)))
    askable = [i for i, plan in enumerate(pool.plans) if shown.get(plan.moves, True)]
    column = {plan.moves: i for i, plan in enumerate(pool.plans)}
    asked = {frozenset(column.get(moves, -1) for moves in said.plans) for said in answers}
    chosen: tuple[int, ...] = ()
    for offered in rounds if settings.pool == "mean" else ():
        moves = {plan.moves for plan in offered}
        among = [i for i in askable if pool.plans[i].moves in moves]
        size = min(len(chosen) + 1, settings.k)
        chosen = greedy_choice_set(costs, weights, size, chosen, among, asked)
    chosen = greedy_choice_set(costs, weights, settings.k, chosen, askable, asked)
    gain = expected_gain(costs, weights, chosen)
    chosen = tuple(places.permutation(chosen).tolist())
    return View(state, pool, draws, expected, best, chosen, gain, memory)


def plans_shown(answers: Iterable[Answered]) -> dict[tuple[int, ...], bool]:
    """The plans of these questions, and whether they may be asked about again."""
    shown: dict[tuple[int, ...], bool] = {}
    for answer in answers:
        for moves in answer.plans:
            shown[moves] = shown.get(moves, True) and not answer.refused
    return shown


def _strangers(posterior: Posterior, rng: np.random.Generator) -> Floats:
    """Weights of at most ``STRANGERS`` people unlike anyone before, shape ``(n, p)``."""
    own = posterior.weights * (posterior.components == posterior.prior.background)
    if not own.sum():
        return np.zeros((0, posterior.samples.shape[1]))
    chosen = systematic(own / own.sum(), STRANGERS, rng)
    return np.asarray(posterior.samples[np.unique(chosen)])


def candidate_plans(
    planner: Planner,
    state: Floats,
    draws: Floats,
    mean: Floats,
    settings: Settings,
    limits: Limits,
    rng: np.random.Generator,
    memory: Memory | None = None,
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
        most = settings.first_rows if memory is None else settings.pool_rows
        found = planner.candidates(
            state, planned, len(planned), limits, rng, memory=memory, max_rows=most
        )
        plans, left = list(found.plans), most - found.rows
        if memory is None and plans and all(p.certificate.verdict == "bounded" for p in plans):
            for sample in planned:
                rows = min(left, most // ALONE)
                if rows < 1:
                    break
                found = planner.candidates(
                    state, sample[None], 1, limits, rng, memory=found.memory, max_rows=rows
                )
                plans, left = [*plans, *found.plans], left - found.rows
        return [plans], found.memory

    def generated(samples: Floats) -> list[Plan]:
        return list(planner.candidates(state, samples, len(draws), limits, rng).plans)

    rounds = [generated(mean[None]) for _ in range(settings.k)]
    if len({plan.moves for plans in rounds for plan in plans}) < settings.k:
        rounds.append(generated(draws))
    return rounds, None


def _still_legal(
    problem: Problem, state: Floats, sequences: Sequence[tuple[int, ...]], limits: Limits
) -> list[tuple[int, ...]]:
    """Those of some plans that a person may still carry out."""
    longest = limits.max_steps or np.inf
    illegal = roll_out(problem.costs, problem.actions, state, padded(sequences), limits).illegal
    return [
        moves
        for moves, wrong in zip(sequences, illegal.tolist(), strict=True)
        if not wrong and len(moves) <= longest
    ]


def rebuilt(
    planner: Planner,
    state: Floats,
    sequences: Sequence[tuple[int, ...]],
    weights: Floats,
    limits: Limits,
) -> list[Plan]:
    """The plans of moves shown earlier, priced by these weights."""
    n = len(sequences)
    return plans_along(
        planner.problem, state, sequences, [weights] * n, planner.black_box.score,
        [Certificate("heuristic")] * n, limits=[limits] * n, method="shown before",
        model_fingerprint=planner.black_box.fingerprint,
    )  # fmt: skip


def urgent_first(planner: Planner, state: Floats, plans: Sequence[Plan]) -> list[Plan]:
    """The plans with steps of higher priority earlier, wherever that costs nothing."""
    problem = planner.problem
    orders = [_urgent_order(problem, plan.moves) for plan in plans]
    moved = [i for i, plan in enumerate(plans) if orders[i] != plan.moves]
    usual = problem.usual_weights
    made = plans_along(
        problem, state, [orders[i] for i in moved],
        [np.array(plans[i].weights) if plans[i].weights else usual for i in moved],
        planner.black_box.score, [plans[i].certificate for i in moved],
        limits=[plans[i].limits for i in moved], model_fingerprint=planner.black_box.fingerprint,
    )  # fmt: skip
    found = list(plans)
    for i, plan in zip(moved, made, strict=True):
        found[i] = replace(plan, method=plans[i].method, weights=plans[i].weights)
    return found


def _urgent_order(problem: Problem, sequence: tuple[int, ...]) -> tuple[int, ...]:
    """The moves with those of higher priority earlier, as far as that costs nothing.

    Two neighbours change places where neither changes what the other costs or needs: no edge
    leads from one feature to the other, and neither action requires the other's feature.
    """
    moves = list(sequence)
    actions = [problem.actions.actions[problem.actions.action_of[move]] for move in moves]
    if len({action.priority for action in actions}) < 2:
        return sequence
    for end in range(len(moves) - 1, 0, -1):
        for i in range(end):
            first, second = actions[i], actions[i + 1]
            if second.priority > first.priority and _independent(problem, first, second):
                actions[i], actions[i + 1] = second, first
                moves[i], moves[i + 1] = moves[i + 1], moves[i]
    return tuple(moves)


def _independent(problem: Problem, first: Action, second: Action) -> bool:
    pair = (first.feature, second.feature)
    needs = [r.feature for action in (first, second) for r in action.requires]
    linked = pair in problem.costs.edges or pair[::-1] in problem.costs.edges
    return pair[0] != pair[1] and not linked and not set(pair) & set(needs)


def surprise_of(
    problem: Problem, answers: Sequence[Answered], beliefs: Sequence[Posterior]
) -> float:
    """How far choices are from what anybody believed in would choose, in standard deviations;
    each is judged by what was believed before it."""
    nats = variance = 0.0
    for said, posterior in zip(answers, beliefs, strict=False):
        if isinstance(said.answer, Chosen):
            more, its_own = surprise(posterior, said.question(problem), said.answer)
            nats, variance = nats + more, variance + its_own
    return float(nats / np.sqrt(variance)) if variance > 0 else 0.0


# Plans beside the best one


def shorter_plans(
    planner: Planner, state: Floats, weights: Floats, limits: Limits, best: Plan
) -> tuple[Plan, ...]:
    """The easiest plans with fewer steps than the best, each number of steps once."""
    if best.length < 2:
        return ()
    found: dict[int, Plan] = {}
    for plan in planner.plans_by_length(state, weights, limits):
        if plan.success and plan.length < best.length:
            found.setdefault(plan.length, plan)
    return tuple(found.values())


def plans_under(
    planner: Planner, state: Floats, weights: Floats, limits: Sequence[Limits]
) -> list[Plan]:
    """The cheapest plan from one state under each of several sets of limits."""
    if not limits:
        return []
    return planner.plan_many(np.repeat(state[None], len(limits), axis=0), weights, limits)


def loosenings(
    planner: Planner, state: Floats, weights: Floats, limits: Sequence[Limit], rest: Limits
) -> tuple[Loosening, ...]:
    """Which limits, alone, else in pairs, else all, stand in the way, and what each opens.

    ``rest`` holds the limits that are not about single steps.
    """
    pairs = [(a, b) for i, a in enumerate(limits) for b in limits[i + 1 :]]
    for groups in ([(one,) for one in limits], pairs[:MOST_PAIRS], [tuple(limits)]):
        groups = [group for group in groups if group]
        without = [
            as_limits([one for one in limits if one not in group], planner.problem, state, rest)
            for group in groups
        ]
        plans = plans_under(planner, state, weights, without)
        found = tuple(
            Loosening(group, replace(plan, weights=()))
            for group, plan in zip(groups, plans, strict=True)
            if plan.success
        )
        if found:
            return found
    return ()
