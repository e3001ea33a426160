"""What does each method of the paper do with one user? Those that ask no questions.

One rule for all planners that search: the best plan they met is returned. The path of their most
visited steps, as the published planners return, is a method beside each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pear.arrays import Floats
from pear.experiments.experiment import Task
from pear.experiments.worlds import World
from pear.planning.exact import ExactPlanner
from pear.planning.planner import Planner
from pear.problem import Plan, Problem

Build = Callable[[World, dict[str, Any], Task], Planner]
NOTHING, NOTHING_NOISE = "nothing (deterministic)", "nothing (no noise)"


@dataclass(frozen=True)
class Method:
    """A planner asked once per user, with the prior mean or with the true weights.

    ``label`` is printed; ``published`` names its rows in the paper's outcomes. ``assets`` are
    what must be trained first, see :mod:`pear.experiments.trained`. ``reseeds`` says what a
    run changes.
    """

    name: str
    label: str
    build: Build
    published: str = ""
    assets: tuple[str, ...] = ()
    weights: Literal["mean", "true"] = "mean"
    reseeds: str = "the search"
    asks: bool = False

    def solve(self, world: World, assets: dict[str, Any], task: Task) -> list[dict[str, Any]]:
        """One row per user of the task."""
        planner = self.build(world, assets, task)
        users = range(task.first, task.last)
        states = world.states[task.first : task.last]
        given = world.weights[task.first : task.last]
        if self.weights == "mean":
            given = np.broadcast_to(world.prior.mean(), given.shape)
        streams = [task.generator(user) for user in users]
        plans, rows = plans_of(planner, states, given, streams)
        return [
            {
                "user": user,
                "questions": 0,
                "rows": asked,
                **judged(world.problem, world.states[user], plan, world.weights[user]),
            }
            for user, plan, asked in zip(users, plans, rows, strict=True)
        ]


def plans_of(
    planner: Planner, states: Floats, weights: Floats, streams: Sequence[np.random.Generator]
) -> tuple[list[Plan], list[int]]:
    """Plans of n users and the rows asked for each; a user's plan depends on no other's."""
    plans = planner.plan_many(states, weights, rngs=streams)
    return plans, [plan.certificate.rows for plan in plans]


def judged(problem: Problem, state: Floats, plan: Plan | None, weights: Floats) -> dict[str, Any]:
    """Success of a plan, and its cost and length under the true weights."""
    if plan is None or not plan.success:
        return {"success": False, "cost": np.nan, "length": np.nan}
    return {
        "success": True,
        "cost": true_cost(problem, state, plan, weights),
        "length": float(plan.length),
    }


def true_cost(problem: Problem, state: Floats, plan: Plan, weights: Floats) -> float:
    """What a plan really costs: under the full graph and the true weights ``(p,)``."""
    if plan.on_grid:
        return float(problem.costs.sequence_cost(state, problem.actions, plan.moves, weights))
    order = [problem.space.index(step.feature) for step in plan.steps]
    end = np.array(state)
    for column, step in zip(order, plan.steps, strict=True):
        end[column] = problem.space.features[column].code(step.after)
    return float(problem.costs.change_costs(state, end, order, weights).sum())


def _fare(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.learned import FARE

    return FARE(assets["fare"], world.black_box)


def _rl(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.learned import PolicyOnly

    return PolicyOnly(assets["rl"], world.black_box)


def wfare_planner(world: World, assets: dict[str, Any], task: Task) -> Planner:
    """The planner of the paper's PEAR."""
    from pear.planning.learned import WFARE

    return WFARE(assets["wfare"], world.black_box)


def _mcts(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.tree import TreeSearch

    return TreeSearch(world.problem, world.black_box, simulations=world.simulations)


def _cscf(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.evolution import EvolutionPlanner

    population, generations = assets["evolution"]
    return EvolutionPlanner(
        world.problem, world.black_box, population=population, generations=generations
    )


def _face(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.neighbours import NeighboursPlanner

    return NeighboursPlanner(
        world.problem, world.black_box, world.training, max_length=99, seed=task.run
    )


def _efare(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.automaton import AutomatonPlanner

    return AutomatonPlanner(assets["efare"], world.black_box, strict=True)


def exact_planner(world: World, assets: dict[str, Any], task: Task) -> Planner:
    """The certified search, each feature changed at most once."""
    return ExactPlanner(world.problem, world.black_box)


def as_path(method: Method) -> Build:
    """The planner of a method, returning the path of its search."""

    def build(world: World, assets: dict[str, Any], task: Task) -> Planner:
        planner: Any = method.build(world, assets, task)
        planner.returns = "path"
        return planner  # type: ignore[no-any-return]

    return build


def _repeating_planner(world: World, assets: dict[str, Any], task: Task) -> Planner:
    longest = world.problem.max_length
    return ExactPlanner(world.problem, world.black_box, max_changes_per_feature=longest)


FARE_MEAN = Method("fare", "FARE", _fare, "fare", ("fare",), reseeds=NOTHING_NOISE)
CSCF = Method("cscf", "CSCF", _cscf, "cscf", ("evolution",))
EFARE = Method("efare", "EFARE", _efare, "efare", ("efare",), reseeds=NOTHING)
RL = Method("rl", "RL", _rl, "rl", ("rl",), reseeds=NOTHING)
MCTS = Method("mcts", "MCTS", _mcts, "mcts")
FACE = Method(
    "face",
    "FACE",
    _face,
    "face",
    reseeds="the tenth of the training data it walks on, and the order of the changes",
)
EXACT_MEAN = Method("exact-mean", "Exact, prior mean", exact_planner, reseeds=NOTHING)
EXACT_TRUE = Method(
    "exact-true", "Exact, true weights", exact_planner, weights="true", reseeds=NOTHING
)
EXACT_REPEATS = Method(
    "exact-repeats",
    "Exact, true weights, repeats",
    _repeating_planner,
    weights="true",
    reseeds=NOTHING,
)
WFARE_TRUE = Method(
    "wfare-true",
    "W-FARE, true weights",
    wfare_planner,
    "wfare_true_weights",
    ("wfare",),
    weights="true",
    reseeds=NOTHING_NOISE,
)
PATHS = {
    method.name: replace(
        method, name=f"{method.name}-path", label=f"{method.label}, path", build=as_path(method)
    )
    for method in (FARE_MEAN, MCTS, WFARE_TRUE)
}
"""The same searches returning the path of the most visited steps in place of the best plan met."""
FARE_PATH, MCTS_PATH, WFARE_PATH = PATHS.values()
