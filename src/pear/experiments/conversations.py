"""What does PEAR do with its users? Simulated conversations, row by row.

The paper's loop is led with many users in lockstep, ours with one after the other. Under
corruption planner, policy and posterior see the corrupted graph; answers and reported costs use
the full one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.elicitation import Session, Settings, SimulatedPerson
from pear.elicitation.paper import Choose, PaperLoop
from pear.elicitation.says import costed_question
from pear.experiments.experiment import Task
from pear.experiments.methods import judged, true_cost
from pear.experiments.worlds import World
from pear.planning.exact import ExactPlanner
from pear.planning.planner import Planner
from pear.preferences import GaussianMixturePrior, Logistic, Noiseless
from pear.problem import Plan, Problem

Build = Callable[[World, dict[str, Any], Problem], Planner]

SHARPNESS = 0.9
"""Of the logistic answers, per cost unit, as in the published experiments."""


@dataclass(frozen=True)
class Conversations:
    """A planner that asks its users; see :class:`pear.experiments.methods.Method`.

    ``loop`` is ``paper`` (algorithms 1 and 2), ``slices`` (the same, with the paper's ensemble
    slice sampling and its mean of the likeliest quarter in place of particles: many times slower)
    or ``ours`` (the settings' defaults). ``pool`` is what the candidates of the paper's loop are
    for: the mean weight, or samples of the posterior where the planner leaves nothing to chance.
    """

    name: str
    label: str
    build: Build
    response: Literal["noiseless", "logistic"]
    loop: Literal["paper", "slices", "ours"]
    published: str = ""
    assets: tuple[str, ...] = ()
    reseeds: str = "the posterior's samples, the search and the answers' noise"
    pool: Literal["mean", "samples"] = "mean"
    asks: bool = True

    def settings(self, task: Task) -> Settings:
        """How the conversations of a task are led."""
        response = Noiseless() if self.response == "noiseless" else Logistic(SHARPNESS)
        settings = Settings(k=task.k, max_questions=task.questions, min_gain=0.0, response=response)
        if self.loop == "ours":
            return settings
        settings = replace(settings, pool=self.pool)
        if self.loop == "paper":
            return settings
        return replace(settings, posterior="slices", estimate="best_quarter")

    def solve(self, world: World, assets: dict[str, Any], task: Task) -> list[dict[str, Any]]:
        """A row per user and number of questions."""
        seen, positions = corrupted(world.problem, task.corruption, task.draw)
        planner = self.build(world, assets, seen)
        prior = prior_of(world.prior, positions)
        users = range(task.first, task.last)
        states, weights = (
            world.states[task.first : task.last],
            world.weights[task.first : task.last],
        )
        told = weights[:, positions]
        truth = planner.plan_many(states, told, rngs=[task.generator(u, 1) for u in users])
        mean = np.broadcast_to(prior.mean(), told.shape)
        first = planner.plan_many(states, mean, rngs=[task.generator(u, 2) for u in users])
        people = [SimulatedPerson(own, self.settings(task).response) for own in weights]
        streams = [task.generator(user) for user in users]

        def choose(number: int, state: Floats, plans: Sequence[Sequence[int]]) -> int:
            question = costed_question(world.problem, state, plans)
            return people[number].choose(question, streams[number])

        lead = self._alone if self.loop == "ours" else self._together
        rows = []
        for after in lead(planner, states, prior, task, choose, first):
            for i, user in enumerate(users):
                rows.append(
                    {
                        "user": user,
                        "questions": after.questions,
                        "answered": after.answered[i],
                        "rows": after.rows[i],
                        **judged(world.problem, states[i], after.plans[i], weights[i]),
                        "cost_for_mean": _cost(world.problem, states[i], first[i], weights[i]),
                        "cost_for_truth": _cost(world.problem, states[i], truth[i], weights[i]),
                    }
                )
        return rows

    def _together(
        self,
        planner: Planner,
        states: Floats,
        prior: GaussianMixturePrior,
        task: Task,
        choose: Choose,
        first: list[Plan],
    ) -> Iterator[After]:
        """Algorithm 1: everybody in lockstep, and the plan for the mean weight at the end."""
        streams = [task.generator(user, 3) for user in range(task.first, task.last)]
        loop = PaperLoop(planner, states, prior, self.settings(task), choose, streams)
        asked = [plan.certificate.rows for plan in first]
        yield After(0, first, loop.answered, asked)
        for questions in range(1, task.questions + 1):
            loop.ask()
            plans = loop.recommend()
            asked = [
                person.rows + plan.certificate.rows
                for person, plan in zip(loop.people, plans, strict=True)
            ]
            yield After(questions, plans, loop.answered, asked)

    def _alone(
        self,
        planner: Planner,
        states: Floats,
        prior: GaussianMixturePrior,
        task: Task,
        choose: Choose,
        first: list[Plan],
    ) -> Iterator[After]:
        """Our conversation with one person after the other, and what it recommends."""
        count = task.questions + 1
        plans = [[plan] * count for plan in first]
        answered, rows = np.zeros((len(states), count), int), np.zeros((len(states), count), int)
        for i, state in enumerate(states):
            before = planner.black_box.rows
            seed = int(task.generator(task.first + i, 3).integers(2**31))
            session = Session(planner, state, prior, settings=self.settings(task), seed=seed)
            rows[i, 0] = first[i].certificate.rows
            for questions in range(1, count):
                question = session.ask()
                if question is not None:
                    offered = [plan.moves for plan in question.plans]
                    session.answer(choose(i, session.question_state(), offered))
                    plans[i][questions] = session.recommend().plan
                else:
                    plans[i][questions] = plans[i][questions - 1]
                answered[i, questions] = session.n_answers
                rows[i, questions] = planner.black_box.rows - before
        for questions in range(count):
            yield After(
                questions,
                [own[questions] for own in plans],
                answered[:, questions].tolist(),
                rows[:, questions].tolist(),
            )


@dataclass(frozen=True)
class After:
    """Where n conversations stand after a number of questions: plans, answers given, rows asked."""

    questions: int
    plans: list[Plan]
    answered: list[int]
    rows: list[int]


def corrupted(problem: Problem, share: float, draw: int = 0) -> tuple[Problem, NDArray[np.intp]]:
    """The problem the planner sees, and where its weights stand among all.

    The removals of one draw are nested: a larger share takes away more of the same.
    """
    if not share:
        return problem, np.arange(problem.costs.n_weights)
    costs = problem.costs.without_edges(share, seed=draw)
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

    return WFARE(assets["wfare"], world.black_box)


def _published_wfare(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    from pear.planning.learned import WFARE

    return WFARE(assets["wfare-published"], world.black_box)


def _automaton(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    from pear.planning.automaton import AutomatonPlanner

    return AutomatonPlanner(assets["w-efare"], world.black_box)


def _exact_automaton(world: World, assets: dict[str, Any], problem: Problem) -> Planner:
    from pear.planning.automaton import AutomatonPlanner

    return AutomatonPlanner(assets["w-efare-exact"], world.black_box)


PEAR_NL = Conversations("pear-nl", "PEAR (NL)", _wfare, "noiseless", "paper", "pear_nl", ("wfare",))
PEAR_L = replace(PEAR_NL, name="pear-l", label="PEAR (L)", response="logistic", published="pear_l")
PEAR_PUBLISHED_L = replace(
    PEAR_L,
    name="pear-published-l",
    label="PEAR (L), policy trained as published",
    build=_published_wfare,
    assets=("wfare-published",),
)
PEAR_SLICES_L = replace(
    PEAR_L, name="pear-slices-l", label="PEAR (L), slice sampling", loop="slices"
)
PEAR_EXACT_NL = Conversations(
    "pear-exact-nl", "PEAR (exact), NL", _exact, "noiseless", "ours", "pear_nl"
)
PEAR_EXACT_L = replace(
    PEAR_EXACT_NL,
    name="pear-exact-l",
    label="PEAR (exact), L",
    response="logistic",
    published="pear_l",
)
XPEAR_NL = replace(
    PEAR_NL,
    name="xpear-nl",
    label="XPEAR (NL)",
    build=_automaton,
    published="xpear_nl",
    assets=("w-efare",),
    pool="samples",
)
XPEAR_L = replace(
    XPEAR_NL, name="xpear-l", label="XPEAR (L)", response="logistic", published="xpear_l"
)
XPEAR_EXACT_L = replace(
    PEAR_EXACT_L,
    name="xpear-exact-l",
    label="XPEAR (exact teacher), L",
    build=_exact_automaton,
    published="xpear_l",
    assets=("w-efare-exact",),
)
