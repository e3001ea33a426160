"""How do the paper's methods compare on its own 300 Adult users?

Every method plans for the mean of the prior, W-EFARE and W-FARE for each person's true
weights, and XPEAR learns them by asking 10 questions. Costs are under the true weights.
Published costs and lengths count STOP, ours do not: the table shows published ones less 1.

    PEAR_BENCH=... PEAR_DATA=... python benchmarks/baselines.py [--quick] [--json FILE]

Seconds are per person, planning only; the last column is their ratio to the exact planner
in the same run. Policies are trained here unless ``--policies`` names a folder with
fare.safetensors, wfare.safetensors and rl.safetensors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pear.datasets.published import (
    PublishedUsers,
    bench_folder,
    published_classifier,
    published_prior_means,
    published_problem,
    published_users,
)
from pear.datasets.splits import load_dataset
from pear.decision import BlackBox
from pear.elicitation import simulate
from pear.planning.automaton import Automaton, AutomatonPlanner, train_automaton
from pear.planning.evolution import EvolutionPlanner
from pear.planning.exact import ExactPlanner
from pear.planning.neighbours import NeighboursPlanner
from pear.planning.tree import TreeSearch
from pear.preferences import GaussianMixturePrior, Noiseless
from pear.problem import Plan, Problem

Floats = NDArray[np.float64]
PUBLISHED = {
    "fare": (0.90, 285.63, 3.45),
    "cscf": (0.78, 154.28, 2.53),
    "efare": (0.76, 306.11, 3.54),
    "rl": (0.76, 283.31, 3.36),
    "mcts": (0.44, 445.65, 4.60),
    "face": (0.15, 397.49, 3.76),
    "xpear": (0.97, 183.55, 3.00),
}
"""Validity, cost and length in the paper's tables eval-results and xpear-results (Adult, All)."""


@dataclass(frozen=True)
class Bench:
    """The published set-up: problem, model, users, prior and people to train on."""

    problem: Problem
    model: BlackBox
    users: PublishedUsers
    prior: GaussianMixturePrior
    training: Floats

    @property
    def mean(self) -> Floats:
        return self.prior.means.mean(axis=0)

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Weights of n people."""
        return np.asarray(self.prior.sample(n, rng)[0], float)

    def true_cost(self, person: int, plan: Plan) -> float:
        """What a plan costs a user under their true weights."""
        state, weights = self.users.states[person], self.users.weights[person]
        problem = self.problem
        if plan.on_grid:
            cost = problem.costs.sequence_cost(state, problem.actions, plan.moves, weights)
            return float(cost)
        end, order = np.array(state), []
        for step in plan.steps:
            order.append(problem.space.index(step.feature))
            end[order[-1]] = problem.space[step.feature].code(step.after)
        return float(problem.costs.change_costs(state, end, order, weights).sum())


def adult_training_states(problem: Problem) -> Floats:
    """Training people of Adult who are none of the published users."""
    data = load_dataset("adult")
    states = data.states[data.train]
    users = {state.tobytes() for state in published_users(problem).states}
    return states[[state.tobytes() not in users for state in states]]


def set_up(people: int) -> Bench:
    problem = published_problem("adult")
    users = published_users(problem)
    users = PublishedUsers(
        users.states[:people], users.weights[:people], users.scores[:people], users.component
    )
    means = published_prior_means("adult")
    prior = GaussianMixturePrior(
        means, np.stack([np.eye(means.shape[1])] * len(means)), np.full(len(means), 1 / len(means))
    )
    return Bench(
        problem, published_classifier(problem), users, prior, adult_training_states(problem)
    )


def measured(bench: Bench, planning: Callable[[], list[Plan]]) -> dict[str, float]:
    """Validity, mean cost and length of the successes, seconds and rows per person."""
    began, asked = time.perf_counter(), bench.model.rows
    plans = planning()
    seconds = time.perf_counter() - began
    good = [(i, plan) for i, plan in enumerate(plans) if plan.success]
    return {
        "validity": len(good) / len(plans),
        "cost": float(np.mean([bench.true_cost(i, plan) for i, plan in good])),
        "length": float(np.mean([plan.length for _, plan in good])),
        "seconds": seconds / len(plans),
        "rows": (bench.model.rows - asked) / len(plans),
    }


def policies(bench: Bench, folder: Path | None, iterations: int) -> dict[str, Any]:
    """Planners with trained policies: read from a folder, or trained here."""
    from pear.planning.learned import FARE, WFARE, Policy, PolicyOnly
    from pear.planning.learned.training import Trainer, TrainingSettings

    found: dict[str, Policy] = {}
    for kind in ("fare", "wfare", "rl"):
        path = None if folder is None else folder / f"{kind}.safetensors"
        if path is not None and path.is_file():
            found[kind] = Policy.load(path, bench.problem)
            continue
        began = time.perf_counter()
        settings = TrainingSettings(kind=kind, iterations=iterations)  # type: ignore[arg-type]
        trainer = Trainer(
            bench.problem, bench.model, bench.training, bench.draw, bench.mean, settings
        )
        while not trainer.finished:
            trainer.step()
        found[kind] = trainer.best_policy
        print(f"trained {kind} in {time.perf_counter() - began:.0f} s", flush=True)
    return {
        "fare": FARE(found["fare"], bench.model),
        "wfare": WFARE(found["wfare"], bench.model),
        "rl": PolicyOnly(found["rl"], bench.model),
    }


def taught(bench: Bench, teacher: Any, aware: bool, seed: int) -> Automaton:
    """An automaton from a teacher's plans for 300 training people."""
    return train_automaton(
        bench.problem,
        bench.model,
        teacher,
        bench.training,
        bench.draw if aware else bench.mean,
        aware=aware,
        rng=np.random.default_rng(seed),
    )


def automata(bench: Bench, teacher: Any, aware: bool, seeds: int) -> dict[str, float]:
    """Figures of automata by one teacher, averaged over seeds of their training samples."""
    weights = bench.users.weights if aware else bench.mean
    runs = [
        measured(
            bench,
            lambda planner=planner: planner.plan_many(bench.users.states, weights),
        )
        for planner in (
            AutomatonPlanner(taught(bench, teacher, aware, seed), bench.model)
            for seed in range(seeds)
        )
    ]
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def asked(bench: Bench, planner: Any, people: int, workers: int) -> dict[str, float]:
    """XPEAR or PEAR after 10 questions to noiseless people."""
    states, weights = bench.users.states[:people], bench.users.weights[:people]
    began = time.perf_counter()
    rows = simulate(
        planner,
        states,
        weights,
        bench.prior,
        response=Noiseless(),
        n_questions=10,
        workers=workers,
    )
    seconds = time.perf_counter() - began
    last = rows[rows["questions"] == 10]
    good = last[last["success"] == 1.0]
    return {
        "validity": float(last["success"].mean()),
        "cost": float(good["cost"].mean()),
        "length": float(good["length"].mean()),
        "seconds": seconds * workers / people,
        "people": float(people),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write flat names to numbers here")
    parser.add_argument("--quick", action="store_true", help="fewer people and less training")
    parser.add_argument("--people", type=int, default=300, help="published users, from the first")
    parser.add_argument("--policies", type=Path, help="folder with trained policies")
    parser.add_argument("--iterations", type=int, default=60, help="of training each policy")
    parser.add_argument("--workers", type=int, default=2, help="processes for conversations")
    parser.add_argument("--only", help="only methods whose name holds this (exact always runs)")
    arguments = parser.parse_args()
    threadpool_limits(1)
    if bench_folder() is None:
        print("nothing measured: set PEAR_BENCH to the folder with the published set-up")
        return
    people = min(arguments.people, 60) if arguments.quick else arguments.people
    iterations = min(arguments.iterations, 10) if arguments.quick else arguments.iterations
    talks, seeds = (20, 1) if arguments.quick else (people, 3)

    bench = set_up(people)
    states, mean, rng = bench.users.states, bench.mean, np.random.default_rng
    exact = ExactPlanner(bench.problem, bench.model)
    learned: dict[str, Any] = {}

    def policy(name: str) -> Any:
        if not learned:
            learned.update(policies(bench, arguments.policies, iterations))
        return learned[name]

    def plans(planner: Any, weights: Floats, **more: Any) -> dict[str, float]:
        return measured(bench, lambda: planner.plan_many(states, weights, **more))

    def streams() -> list[np.random.Generator]:
        return rng(0).spawn(len(states))

    def xpear() -> dict[str, float]:
        planner = AutomatonPlanner(taught(bench, exact, True, 0), bench.model)
        return asked(bench, planner, talks, arguments.workers)

    methods: dict[str, Callable[[], dict[str, float]]] = {
        "exact": lambda: plans(exact, mean),
        "exact_true": lambda: plans(exact, bench.users.weights),
        "cscf": lambda: plans(EvolutionPlanner(bench.problem, bench.model), mean, rngs=streams()),
        "face": lambda: plans(
            NeighboursPlanner(bench.problem, bench.model, bench.training),
            mean,
            rngs=rng(0).spawn(len(states)),
        ),
        "mcts": lambda: plans(TreeSearch(bench.problem, bench.model), mean),
        "fare": lambda: plans(policy("fare"), mean),
        "rl": lambda: plans(policy("rl"), mean),
        "wfare": lambda: plans(policy("wfare"), bench.users.weights),
        "efare": lambda: automata(bench, exact, False, seeds),
        "efare_of_fare": lambda: automata(bench, policy("fare"), False, seeds),
        "wefare": lambda: automata(bench, exact, True, seeds),
        "wefare_of_wfare": lambda: automata(bench, policy("wfare"), True, seeds),
        "xpear": xpear,
    }
    figures: dict[str, float] = {}
    print(
        f"{'method':16}{'validity':>9}{'cost':>9}{'length':>8}{'rows':>9}{'seconds':>10}"
        f"{'× exact':>9}   published (less STOP)"
    )
    for name, method in methods.items():
        if arguments.only and arguments.only not in name and name != "exact":
            continue
        found = method()
        figures.update({f"{name}.{key}": value for key, value in found.items()})
        there = PUBLISHED.get(name)
        beside = f"{there[0]:.2f}  {there[1] - 1:.1f}  {there[2] - 1:.2f}" if there else ""
        print(
            f"{name:16}{found['validity']:9.3f}{found['cost']:9.1f}{found['length']:8.2f}"
            f"{found.get('rows', float('nan')):9.1f}{found['seconds']:10.4f}"
            f"{found['seconds'] / figures['exact.seconds']:9.2f}   {beside}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
