"""What does PEAR do with one user? Simulated conversations, row by row.

Under corruption planner and posterior see the corrupted graph; answers and reported costs
use the full one, and the policy is not retrained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pear.elicitation import Session, Settings, SimulatedPerson
from pear.experiments.methods import judged, true_cost
from pear.experiments.tasks import Task
from pear.experiments.worlds import World
from pear.planning.exact import ExactPlanner
from pear.planning.planner import Planner
from pear.preferences import GaussianMixturePrior, Logistic, Noiseless, Question
from pear.problem import Plan, Problem

Floats = NDArray[np.float64]
Build = Callable[[World, dict[str, Any], Problem], Planner]

TEMPERATURE = 0.9
"""Of the logistic answers, per cost unit, as in the published experiments."""


@dataclass(frozen=True)
class Conversations:
    """A planner that asks its users; see :class:`pear.experiments.methods.Method`.

    ``loop`` is ``paper`` (the next question from the state after the first step, candidates
    for the mean weights), ``slices`` (the same, with the paper's ensemble slice sampling in
    place of particles: many times slower) or ``ours`` (the settings' defaults).
    """

    name: str
    label: str
    build: Build
    response: Literal["noiseless", "logistic"]
    loop: Literal["paper", "slices", "ours"]
    published: str = ""
    assets: tuple[str, ...] = ()
    reseeds: str = "the posterior's samples, the search and the answers' noise"
    why: str = ""
    explained: bool = False
    asks: bool = True

    def settings(self, task: Task) -> Settings:
        """How the conversations of a task are led."""
        response = Noiseless() if self.response == "noiseless" else Logistic(TEMPERATURE)
        settings = Settings(k=task.k, max_questions=task.questions, min_gain=0.0, response=response)
        if self.loop == "ours":
            return settings
        settings = replace(settings, advance=True, pool="mean")
        return replace(settings, posterior="slices") if self.loop == "slices" else settings

    def solve(self, world: World, assets: dict[str, Any], task: Task) -> list[dict[str, Any]]:
        """A row per user and number of questions."""
        seen, positions = corrupted(world.problem, task)
        planner = self.build(world, assets, seen)
        prior = prior_of(world.prior, positions)
        rows: list[dict[str, Any]] = []
        for user in range(task.first, task.last):
            rows += self._user(world, task, user, planner, prior, positions)
        return rows

    def _user(
        self,
        world: World,
        task: Task,
        user: int,
        planner: Planner,
        prior: GaussianMixturePrior,
        positions: NDArray[np.intp],
    ) -> list[dict[str, Any]]:
        state, weights = world.states[user], world.weights[user]
        rng = task.generator(user)
        truth = planner.plan(state, weights[positions], rng=task.generator(user, 1))
        asked_before = world.black_box.rows
        first = planner.plan(state, prior.mean(), rng=task.generator(user, 2))
        session = self._session(planner, state, prior, task, user)
        person = SimulatedPerson(weights, session.settings.response)
        costs = {
            "cost_for_mean": _cost(world.problem, state, first, weights),
            "cost_for_truth": _cost(world.problem, state, truth, weights),
        }
        rows = []
        for questions in range(task.questions + 1):
            plan: Plan | None = first
            if questions:
                answer(session, person, world.problem, rng)
                plan = session.best() or first
            rows.append(
                {
                    "user": user,
                    "questions": questions,
                    "rows": world.black_box.rows - asked_before,
                    **judged(world.problem, state, plan, weights),
                    **costs,
                }
            )
        return rows

    def _session(
        self, planner: Any, state: Floats, prior: GaussianMixturePrior, task: Task, user: int
    ) -> Session:
        seed = int(task.generator(user, 3).integers(2**31))
        if self.explained:
            from pear.elicitation.xpear import xpear_session

            return xpear_session(planner, state, prior, settings=self.settings(task), seed=seed)
        return Session(planner, state, prior, settings=self.settings(task), seed=seed)


def answer(
    session: Session, person: SimulatedPerson, full: Problem, rng: np.random.Generator
) -> None:
    """The person answers the next question, if there is one, by the full graph."""
    asked = session.ask()
    if asked is None:
        return
    state = session.question_state()
    steps = [full.costs.sequence_features(state, full.actions, p.moves) for p in asked.plans]
    session.answer(person.choose(Question.from_plans(steps, full.costs.floor), rng))


def corrupted(problem: Problem, task: Task) -> tuple[Problem, NDArray[np.intp]]:
    """The problem the planner sees, and where its weights stand among all.

    For one run the removals are nested; another run removes others.
    """
    if not task.corruption:
        return problem, np.arange(problem.costs.n_weights)
    costs = problem.costs.without_edges(task.corruption, seed=task.run)
    ranges = {n: r for n, r in problem.weight_range.items() if n in costs.weight_names}
    seen = replace(problem, costs=costs, archetypes=(), weight_range=ranges)
    return seen, costs.positions_in(problem.costs)


def prior_of(prior: GaussianMixturePrior, positions: NDArray[np.intp]) -> GaussianMixturePrior:
    """The prior of some of the weights."""
    if len(positions) == prior.n_weights:
        return prior
    covariances = np.asarray(prior.covariances)[:, positions]
    if covariances.ndim == 3:
        covariances = covariances[:, :, positions]
    return replace(
        prior,
        means=np.asarray(prior.means)[:, positions],
        covariances=covariances,
        background_mean=_part(prior.background_mean, positions),
        background_deviation=_part(prior.background_deviation, positions),
    )


def _part(array: Floats | None, positions: NDArray[np.intp]) -> Floats | None:
    return None if array is None else np.asarray(array)[positions]


def _cost(problem: Problem, state: Floats, plan: Plan, weights: Floats) -> float:
    return true_cost(problem, state, plan, weights) if plan.success else np.nan


def _exact(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    return ExactPlanner(problem, world.black_box)


def _wfare(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    from pear.planning.learned import WFARE

    policy = assets["wfare"]
    if problem is not world.problem:
        positions = problem.costs.positions_in(world.problem.costs)
        mean = np.asarray(policy.mean_weights)[positions]
        policy = replace(policy, problem=problem, mean_weights=mean)
    return WFARE(policy, world.black_box)


def _automaton(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    from pear.planning.automaton import AutomatonPlanner

    return AutomatonPlanner(assets["w-efare"], world.black_box, strict=True)


def _exact_automaton(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    from pear.planning.automaton import AutomatonPlanner

    return AutomatonPlanner(assets["w-efare-exact"], world.black_box)


SEARCHED = "the plans are proven cheapest, and each question is chosen by what it is worth"
TAUGHT = (
    "Our W-FARE changes some feature twice in 55% to 80% of its plans (true weights); the "
    "published search has a term against that. With only those plans kept that change each "
    "feature once (`pear-once-l`), PEAR (L) has length 2.55, 3.37, 2.71, 4.00 in place of 3.98, "
    "4.45, 3.45, 4.50 (the paper: 2.84, 3.34, 2.85, 4.64), cost 132, 236, 140, 320 in place of "
    "125, 184, 115, 278 (147, 301, 100, 262) and validity 1.00, 0.95, 0.70, 0.75 in place of "
    "1.00 throughout (1.00, 0.99, 0.89, 0.58). Forbidding such changes inside the search instead "
    "gave length 3.70 and cost 236 on Adult, All (our policy has not learnt to do without), so "
    "this is likely but not settled, and cost and validity do not follow from it. Questions "
    "drawn at random, as the published program's are in effect (`pear-random-l`), are not the "
    "cause: cost 121, 184, 91, 289. Returning the path of the search in place of the best plan "
    "met (`wfare-path`) changes W-FARE's mean cost by less than 10%. Not tested: our own policy "
    "against the published one, and under corruption a policy trained for the corrupted graph."
)
PEAR_NL = Conversations(
    "pear-nl", "PEAR (NL)", _wfare, "noiseless", "paper", "PEAR-NL", ("wfare",), why=TAUGHT
)
PEAR_L = Conversations(
    "pear-l", "PEAR (L)", _wfare, "logistic", "paper", "PEAR-L", ("wfare",), why=TAUGHT
)
PEAR_SLICES_NL = replace(
    PEAR_NL, name="pear-slices-nl", label="PEAR (NL), slice sampling", loop="slices"
)
PEAR_SLICES_L = replace(
    PEAR_L, name="pear-slices-l", label="PEAR (L), slice sampling", loop="slices"
)
PEAR_EXACT_NL = Conversations(
    "pear-exact-nl", "PEAR (exact), NL", _exact, "noiseless", "ours", why=SEARCHED
)
PEAR_EXACT_L = Conversations(
    "pear-exact-l", "PEAR (exact), L", _exact, "logistic", "ours", why=SEARCHED
)
XPEAR_NL = Conversations(
    "xpear-nl",
    "XPEAR (NL)",
    _automaton,
    "noiseless",
    "paper",
    "XPEAR-NL",
    ("w-efare",),
    why="Not tested; the automaton is taught by our W-FARE, see PEAR.",
    explained=True,
)
XPEAR_L = replace(
    XPEAR_NL, name="xpear-l", label="XPEAR (L)", response="logistic", published="XPEAR-L"
)
XPEAR_EXACT_NL = Conversations(
    "xpear-exact-nl",
    "XPEAR (exact teacher), NL",
    _exact_automaton,
    "noiseless",
    "ours",
    assets=("w-efare-exact",),
    why=SEARCHED,
    explained=True,
)
XPEAR_EXACT_L = replace(
    XPEAR_EXACT_NL,
    name="xpear-exact-l",
    label="XPEAR (exact teacher), L",
    response="logistic",
)
