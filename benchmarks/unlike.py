"""How good are plans and how honest is the confidence for people unlike our model?

On the published Adult users (``PEAR_BENCH``), k = 2: people whose graph is another one, whose
costs are outside our family, or who answer by something else than costs. After eight questions:
what the plan costs them above the cheapest plan known for them, with the response model of the
default settings and with the others compared here; and whether of plans said to be within 5% of
the best with probability p a share p is.

    python benchmarks/unlike.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from pear.datasets.published import (
    published_classifier,
    published_prior_means,
    published_problem,
    published_users,
)
from pear.elicitation import Session, Settings
from pear.elicitation.questions import WITHIN
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior, Logistic, ResponseModel
from pear.problem import CostGraph, Limits, Problem

Moves = tuple[int, ...]
Floats = Any

SHARPNESS = 0.9
QUESTIONS = 8
CHANGED = 0.3
"""Share of the edges that a person with another graph does not have, or has the other way; share
of the weights that are 0 for somebody who lacks some."""

PAIR = 60.0
"""What two things of somebody's best plan cost more together, where nobody drew that; who needs
one step only has no such pair."""

RESPONSES: dict[str, ResponseModel] = {
    "default": Settings().response,
    "exact": Logistic(SHARPNESS),
}
"""Response models compared: the default, and the very one that people of our model answer by."""


@dataclass(frozen=True)
class Person:
    """Somebody's true costs, by moves, and how they choose between plans of some costs and
    lengths at the question of a number (from 0)."""

    cost: Callable[[Moves], float]
    choose: Callable[[Floats, list[int], int, np.random.Generator], int]


def logistic_choice(sharpness: float) -> Callable[..., int]:
    """Chooses as the model says people do."""

    def choose(costs: Floats, lengths: list[int], number: int, rng: np.random.Generator) -> int:
        chances = np.exp(Logistic(sharpness).log_probabilities(np.array(costs)[None])[0])
        return int(rng.choice(len(costs), p=chances / chances.sum()))

    return choose


def habitual(habit: Callable[[Floats, list[int]], int], share: float = 0.3) -> Callable[..., int]:
    """Chooses by a habit now and then, else by costs."""
    usual = logistic_choice(SHARPNESS)

    def choose(costs: Floats, lengths: list[int], number: int, rng: np.random.Generator) -> int:
        by_habit = rng.random() < share
        return habit(costs, lengths) if by_habit else usual(costs, lengths, number, rng)

    return choose


def tiring(costs: Floats, lengths: list[int], number: int, rng: np.random.Generator) -> int:
    """Each question is answered with a little more than half the care of the one before."""
    return logistic_choice(SHARPNESS * 0.6**number)(costs, lengths, number, rng)


ANSWERS: dict[str, Callable[..., int]] = {
    "noisy": logistic_choice(0.05),
    "tiring": tiring,
    "shorter_plan": habitual(lambda costs, lengths: int(np.argmin(lengths))),
    "left_plan": habitual(lambda costs, lengths: 0),
    "always_shorter": habitual(lambda costs, lengths: int(np.argmin(lengths)), 1.0),
    "always_left": habitual(lambda costs, lengths: 0, 1.0),
    "contradicts": habitual(lambda costs, lengths: int(np.argmax(costs)), 0.15),
}
"""People with our costs who answer in other ways."""

EFFORTS: dict[str, Callable[[Floats], Floats]] = {
    "convex": lambda steps: steps**1.5 / 5,
    "saturating": lambda steps: 60 * steps / (steps + 30),
    "fixed_part": lambda steps: steps + 15,
}
"""People whose effort of a step is another function of what we think it costs."""


def other_graph(problem: Problem, kind: str, rng: np.random.Generator) -> CostGraph:
    """Our cost graph with edges missing, added or reversed."""
    edges = problem.costs.edges
    changed = rng.random(len(edges)) < CHANGED
    kept = [edge for edge, gone in zip(edges, changed, strict=True) if not gone]
    gone = [edge for edge, gone in zip(edges, changed, strict=True) if gone]
    new: list[tuple[str, str]] = []
    if kind == "edges_reversed":
        new = [(b, a) for a, b in gone]
    if kind == "edges_added":
        kept, names = list(edges), problem.space.names
        everything = [(a, b) for a in names for b in names if a != b and (a, b) not in edges]
        new = [everything[i] for i in rng.permutation(len(everything))[: len(gone)]]
    graph = networkx.DiGraph(kept)
    for a, b in new:
        # An edge that would close a cycle is nobody's: what is hard would make itself harder.
        if not (graph.has_node(a) and graph.has_node(b) and networkx.has_path(graph, b, a)):
            graph.add_edge(a, b)
            kept.append((a, b))
    return replace(problem.costs, edges=tuple(kept))


def person_of(
    kind: str, problem: Problem, black_box: Any, state: Floats, weights: Floats, seed: int
) -> tuple[Person, list[Moves]]:
    """A person of a kind, and plans that may be the best for them."""
    rng = np.random.default_rng([seed, 3])
    graph, by_name = problem.costs, dict(zip(problem.weight_names, weights, strict=True))
    if kind.startswith("edges"):
        graph = other_graph(problem, kind, rng)
        usual = [by_name[f"{a}->{b}"] for a, b in problem.costs.edges]
        weights = np.array([by_name.get(name, rng.choice(usual)) for name in graph.weight_names])
    if kind == "weights_missing":
        weights = np.where(rng.random(len(weights)) < CHANGED, 0.0, weights)
    theirs = replace_costs(problem, graph)
    exact = ExactPlanner(theirs, black_box)
    best = exact.plan(state, weights)
    plans, pair = [best.moves], frozenset[str]()
    if kind == "pair" and best.length > 1:
        # The cheapest plans that spare either of the two may be the best now.
        changed = [step.feature for step in best.steps]
        pair = frozenset(rng.choice(changed, 2, replace=False).tolist())
        limits = [Limits(features=(name,)) for name in sorted(pair)]
        spared = [exact.plan(state, weights, limits=limit) for limit in limits]
        plans += [plan.moves for plan in spared if plan.success]

    def cost(moves: Moves) -> float:
        steps = graph.sequence_features(state, theirs.actions, moves) @ weights
        steps = np.maximum(steps, graph.floor or 0.0)
        total = float(EFFORTS.get(kind, lambda same: same)(steps).sum())
        changed = {problem.space.names[problem.actions.feature_of[move]] for move in moves}
        return total + (PAIR if pair and changed >= pair else 0.0)

    return Person(cost, ANSWERS.get(kind, logistic_choice(SHARPNESS))), plans


def replace_costs(problem: Problem, graph: CostGraph) -> Problem:
    """The same problem with another cost graph."""
    return Problem(problem.space, problem.actions, graph, problem.goal, problem.max_length)


def conversation(
    planner: ExactPlanner,
    prior: GaussianMixturePrior,
    response: ResponseModel,
    state: Floats,
    person: Person,
    seed: int,
) -> tuple[list[tuple[Moves, float]], set[Moves]]:
    """The plan recommended and its confidence after 0, 1, ... questions; all plans ever seen."""
    settings = Settings(k=2, response=response, min_gain=0.0, max_questions=QUESTIONS)
    session = Session(planner, state, prior, settings=settings, seed=seed)
    rng, found, seen = np.random.default_rng([seed, 5]), [], set[Moves]()
    for number in range(QUESTIONS + 1):
        result = session.so_far()
        if result is None:
            return [], seen
        found.append((result.plan.moves, result.confidence))
        seen |= {plan.moves for plan in session._view(at_start=True).pool.plans}
        question = session.ask() if number < QUESTIONS else None
        if question is not None:
            costs = [person.cost(plan.moves) for plan in question.plans]
            lengths = [plan.length for plan in question.plans]
            session.answer(person.choose(costs, lengths, number, rng))
    return found, seen


KINDS = (
    "right", "edges_missing", "edges_added", "edges_reversed", "weights_missing",
    *EFFORTS, "pair", *ANSWERS,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write flat names to numbers here")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    parser.add_argument("--only", help="run only the kinds whose name holds this")
    parser.add_argument("--people", type=int, help="how many people of each kind")
    arguments = parser.parse_args()
    threadpool_limits(1)
    people = arguments.people or (25 if arguments.quick else 150)
    problem = published_problem("adult")
    black_box = published_classifier(problem)
    planner, users = ExactPlanner(problem, black_box), published_users(problem)
    means = published_prior_means("adult")
    prior = GaussianMixturePrior(means, np.ones_like(means))
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        if arguments.only and arguments.only not in kind:
            continue
        began = time.process_time()
        for number in range(0, len(users.states), len(users.states) // people):
            state = users.states[number]
            person, plans = person_of(
                kind, problem, black_box, state, users.weights[number], number
            )
            held = {
                name: conversation(planner, prior, response, state, person, number)
                for name, response in RESPONSES.items()
            }
            known = {*plans, *(moves for _, seen in held.values() for moves in seen)}
            least = min((person.cost(moves) for moves in known if moves), default=np.nan)
            for name, (found, _) in held.items():
                rows += [
                    {
                        "kind": kind, "response": name, "person": number, "questions": asked,
                        "cost": person.cost(moves), "least": least, "confidence": confidence,
                    }
                    for asked, (moves, confidence) in enumerate(found)
                ]  # fmt: skip
        table = pd.DataFrame([row for row in rows if row["kind"] == kind])
        print(f"\n{kind} ({time.process_time() - began:.0f} s of processor time)")
        print(excess_of(table).unstack("response").round(4).to_string(), flush=True)
    figures = headline(pd.DataFrame(rows))
    for name, value in figures.items():
        print(f"{name:40s} {value:.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def excess_of(rows: pd.DataFrame) -> pd.Series:
    """Mean cost over the mean of the cheapest known, less 1, by questions and response."""
    sums = rows.groupby(["questions", "response"])[["cost", "least"]].sum()
    return sums["cost"] / sums["least"] - 1


def calibration_error(rows: pd.DataFrame) -> float:
    """Mean absolute difference between the confidence and the share within 5%, in tenths."""
    within = rows["cost"] <= WITHIN * rows["least"] + 1e-9
    tenths = np.minimum((rows["confidence"] * 10).astype(int), 9)
    grouped = pd.DataFrame({"said": rows["confidence"], "true": within}).groupby(tenths)
    means, sizes = grouped.mean(), grouped.size()
    return float(((means["said"] - means["true"]).abs() * sizes).sum() / sizes.sum())


def headline(rows: pd.DataFrame) -> dict[str, float]:
    """Excess after the last question and calibration, by kind and response model."""
    figures: dict[str, float] = {}
    for (kind, response), some in rows.groupby(["kind", "response"], sort=False):
        last = some[some["questions"] == QUESTIONS]
        figures[f"excess.{kind}.{response}"] = float(last["cost"].sum() / last["least"].sum() - 1)
        figures[f"calibration.error.{kind}.{response}"] = calibration_error(some)
    if "calibration.error.right.default" in figures:
        figures["calibration.error"] = figures["calibration.error.right.default"]
    return figures


if __name__ == "__main__":
    main()
