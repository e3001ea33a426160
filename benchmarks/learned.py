"""How good are the learned planners, how fast do they train, and for which black box?

On the published Adult set-up (``PEAR_BENCH``): W-FARE given the true weights, FARE with the
mean weights, MCTS, the policy alone, PEAR over W-FARE, and the exact optimum beside them.
On both data sets: training time, and quality against the rows asked per person.

Trained policies are kept in the cache folder (``PEAR_CACHE``); ``--retrain`` trains anew.
Reported training times are those of the training itself, also when the policy is read.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.datasets import load_dataset, paper_prior_means, trained_classifier, user_set
from pear.datasets.published import (
    published_averages,
    published_classifier,
    published_problem,
    published_users,
)
from pear.datasets.sources import cache_folder
from pear.decision import BlackBox
from pear.elicitation.settings import Settings
from pear.elicitation.simulation import simulate
from pear.optional import require
from pear.parallel import core_count
from pear.planning.exact import ExactPlanner
from pear.planning.learned import FARE, WFARE, Policy, PolicyOnly
from pear.planning.learned.training import Trainer, TrainingSettings
from pear.planning.tree import TreeSearch
from pear.preferences import GaussianMixturePrior, Logistic, Noiseless
from pear.problem import Plan, Problem

ROW_BUDGETS = (50, 100, 300, 1_000, 10_000)


@dataclass(frozen=True)
class Setup:
    """A data set: people to plan for ``(n, d)`` with weights ``(n, p)``, people to train on."""

    name: str
    problem: Problem
    black_box: BlackBox
    states: Any
    weights: Any
    training_people: Any
    prior: GaussianMixturePrior
    learning_rate: float
    simulations: int


def adult_setup() -> Setup:
    """The 300 published users; none of them is trained on."""
    problem = published_problem("adult")
    users, data = published_users(problem), load_dataset("adult")
    known = {state.tobytes() for state in users.states}
    people = data.states[data.train]
    fresh = np.array([person.tobytes() not in known for person in people])
    model = published_classifier(problem)
    prior = _prior("adult")
    return Setup(
        "adult", problem, model, users.states, users.weights, people[fresh], prior, 0.001, 15
    )


def credit_setup() -> Setup:
    """300 refused people of the test part, with weights drawn from the prior."""
    data = load_dataset("givemecredit")
    model = trained_classifier("givemecredit", "network", 0, data=data)
    users = user_set(data, model, "all", 300, seed=0)
    prior = _prior("givemecredit")
    weights, _ = prior.sample(len(users.states), np.random.default_rng(0))
    people = data.states[data.train]
    return Setup("credit", data.problem, model, users.states, weights, people, prior, 0.003, 10)


def _prior(name: str) -> GaussianMixturePrior:
    means = paper_prior_means(name)
    return GaussianMixturePrior(means, np.ones_like(means), background_weight=0.0)


def trained(setup: Setup, kind: Any, quick: bool, retrain: bool) -> tuple[Policy, dict[str, Any]]:
    """The policy of a kind for a set-up, and what its training took."""
    settings = TrainingSettings(
        kind=kind,
        iterations=20 if quick else (240 if kind == "wfare" else 100),
        simulations=setup.simulations,
        learning_rate=setup.learning_rate,
    )
    content = [setup.problem.fingerprint, setup.black_box.fingerprint, asdict(settings)]
    key = sha256(json.dumps(content).encode()).hexdigest()[:12]
    path = cache_folder() / "policies" / f"{setup.name}-{kind}-{key}.safetensors"
    notes = path.with_suffix(".json")
    if path.is_file() and notes.is_file() and not retrain:
        return Policy.load(path, setup.problem), json.loads(notes.read_text())
    trainer = Trainer(
        setup.problem,
        setup.black_box,
        setup.training_people,
        lambda n, rng: setup.prior.sample(n, rng)[0],
        setup.prior.mean(),
        settings,
        workers=core_count(),
    )
    started, worked = time.perf_counter(), processor_seconds()
    policy = trainer.run()
    seconds = time.perf_counter() - started
    last = [line for line in trainer.history if line.best][-1]
    taken = {
        "seconds": seconds,
        "processor_seconds": processor_seconds() - worked,
        "iterations": trainer.iteration,
        "iterations_per_second": trainer.iteration / seconds,
        "people_per_second": trainer.iteration * settings.batch_people / seconds,
        "validation_success": last.validation_success,
        "validation_cost": last.validation_cost,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    policy.save(path)
    notes.write_text(json.dumps(taken))
    return policy, taken


def processor_seconds() -> float:
    """Time spent computing by this process and the ones it has ended."""
    mine, theirs = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def figures(plans: list[Plan]) -> dict[str, float]:
    """Validity, and over the successful plans mean cost, length and rows; none count STOP."""
    good = [plan for plan in plans if plan.success]
    return {
        "validity": len(good) / len(plans),
        "cost": float(np.mean([plan.cost for plan in good])) if good else float("nan"),
        "length": float(np.mean([plan.length for plan in good])) if good else float("nan"),
        "rows": float(np.mean([plan.certificate.rows for plan in plans])),
    }


def planner_table(setup: Setup, policies: dict[str, Policy], people: int) -> pd.DataFrame:
    """Every planner on the same people, costs under their own weights."""
    states, weights = setup.states[:people], setup.weights[:people]
    rngs = np.random.default_rng(0).spawn(len(states))
    problem, model, sims = setup.problem, setup.black_box, setup.simulations
    planners: dict[str, Callable[[], list[Plan]]] = {
        "exact, one change per feature": lambda: ExactPlanner(problem, model).plan_many(
            states, weights
        ),
        "W-FARE, true weights": lambda: WFARE(policies["wfare"], model).plan_many(states, weights),
        "W-FARE, most visited path": lambda: WFARE(
            policies["wfare"], model, returns="path"
        ).plan_many(states, weights),
        "FARE, mean weights": lambda: FARE(policies["fare"], model).plan_many(states, weights),
        "MCTS": lambda: TreeSearch(problem, model, simulations=sims).plan_many(
            states, weights, rngs=rngs
        ),
        "MCTS, most visited path": lambda: TreeSearch(
            problem, model, simulations=sims, returns="path"
        ).plan_many(states, weights, rngs=np.random.default_rng(0).spawn(len(states))),
    }
    if "rl" in policies:
        planners["RL"] = lambda: PolicyOnly(policies["rl"], model).plan_many(states, weights)
    lines = {}
    for name, plan in planners.items():
        started = time.perf_counter()
        lines[name] = figures(plan())
        lines[name]["seconds per person"] = (time.perf_counter() - started) / len(states)
    return pd.DataFrame(lines).T


def pear_figures(setup: Setup, policy: Policy, people: int, results: dict[str, float]) -> None:
    """PEAR over W-FARE: ten questions of two plans each."""
    planner = WFARE(policy, setup.black_box)
    for name, response in (("noiseless", Noiseless()), ("logistic", Logistic(0.9))):
        started = time.perf_counter()
        rows = simulate(
            planner,
            setup.states[:people],
            setup.weights[:people],
            setup.prior,
            response=response,
            settings=Settings(k=2),
            n_questions=10,
            workers=core_count(),
        )
        last = rows[rows["questions"] == 10]
        validity = float(last["success"].mean())
        results[f"pear_wfare.cost_{name}"] = float(last["cost"].mean())
        results["pear_wfare.validity"] = min(results.get("pear_wfare.validity", 1.0), validity)
        means = rows.groupby("questions")["cost"].mean()
        curve = ", ".join(f"{means[number]:.0f}" for number in (0, 2, 4, 6, 8, 10))
        seconds = (time.perf_counter() - started) / (10 * people)
        print(
            f"PEAR over W-FARE, {name}: validity {validity:.3f}, cost {means[10]:.1f} after 10 "
            f"questions (0, 2, … 10: {curve}); {seconds:.2f} s per question",
            flush=True,
        )


def quality_against_rows(
    setup: Setup, policies: dict[str, Policy], people: int, budgets: tuple[int, ...]
) -> pd.DataFrame:
    """Validity and cost per planner and number of rows a person's plan may ask."""
    states, weights = setup.states[:people], setup.weights[:people]
    problem, model = setup.problem, setup.black_box
    lines = []
    best = np.full(len(states), np.inf)
    for rows in budgets:
        # Simulations per step with which W-FARE's two searches make use of the rows.
        sims = max(1, min(200, rows // (2 * problem.max_length)))
        planners: dict[str, Any] = {
            "exact": ExactPlanner(problem, model, max_rows=rows),
            "exact, two changes per feature": ExactPlanner(
                problem, model, max_rows=rows, max_changes_per_feature=2
            ),
            "W-FARE": WFARE(policies["wfare"], model, simulations=sims, max_rows=rows),
            "FARE": FARE(policies["fare"], model, simulations=sims, max_rows=rows),
            "MCTS": TreeSearch(problem, model, simulations=min(sims, 200), max_rows=rows),
        }
        for name, planner in planners.items():
            plans = planner.plan_many(states, weights)
            costs = np.array([plan.cost if plan.success else np.inf for plan in plans])
            best = np.minimum(best, costs)
            asked = float(np.mean([plan.certificate.rows for plan in plans]))
            lines.append(
                {"data": setup.name, "planner": name, "rows": rows, "asked": asked, "c": costs}
            )
    for line in lines:
        costs = line.pop("c")
        solved = np.isfinite(costs)
        line["validity"] = float(solved.mean())
        line["cost"] = float(costs[solved].mean()) if solved.any() else float("nan")
        line["excess"] = (
            float(costs[solved].sum() / best[solved].sum() - 1) if solved.any() else np.nan
        )
    return pd.DataFrame(lines)


def draw(table: pd.DataFrame, path: Path) -> None:
    """The figure of the documentation: which planner for how many rows."""
    matplotlib = require("matplotlib")
    matplotlib.use("Agg")
    pyplot = require("matplotlib.pyplot")
    names = {"adult": "Adult", "credit": "GiveMeSomeCredit"}
    colours = {
        "exact": "#1b4965",
        "exact, two changes per feature": "#62b6cb",
        "W-FARE": "#ca3c25",
        "FARE": "#e0a458",
        "MCTS": "#7a7a7a",
    }
    data = list(dict.fromkeys(table["data"]))
    figure, axes = pyplot.subplots(2, len(data), figsize=(4.6 * len(data), 5.6), squeeze=False)
    for column, name in enumerate(data):
        for planner, colour in colours.items():
            part = table[(table["data"] == name) & (table["planner"] == planner)]
            axes[0][column].plot(part["rows"], part["validity"], "o-", color=colour, label=planner)
            axes[1][column].plot(part["rows"], 100 * part["excess"], "o-", color=colour)
        axes[0][column].set_title(names[name])
        axes[0][column].set_ylim(-0.02, 1.03)
        axes[1][column].set_xlabel("rows a plan may ask")
        for row in (0, 1):
            axes[row][column].set_xscale("log")
            axes[row][column].grid(alpha=0.3)
    axes[0][0].set_ylabel("share of people with a plan")
    axes[1][0].set_ylabel("% above the best plan known\n(people with a plan)")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures as flat JSON")
    parser.add_argument("--quick", action="store_true", help="few people, little training")
    parser.add_argument("--retrain", action="store_true", help="train even if there is a policy")
    parser.add_argument("--people", type=int, help="people to plan for (all 300)")
    parser.add_argument("--skip-pear", action="store_true", help="leave out PEAR over W-FARE")
    parser.add_argument("--figure", type=Path, help="draw quality against rows to this file")
    parser.add_argument("--no-rows", action="store_true", help="leave out quality against rows")
    options = parser.parse_args()
    require("torch").set_num_threads(1)
    people = options.people or (40 if options.quick else 300)
    results: dict[str, float] = {}
    tables = []
    for setup in (adult_setup(), credit_setup()):
        kinds = ("wfare", "fare", "rl") if setup.name == "adult" else ("wfare", "fare")
        policies = {}
        for kind in kinds:
            policies[kind], taken = trained(setup, kind, options.quick, options.retrain)
            print(
                f"{setup.name} {kind}: trained in {taken['seconds']:.0f} s "
                f"({taken.get('processor_seconds', float('nan')):.0f} s of processor time), "
                f"{taken['iterations']} iterations, {taken['iterations_per_second']:.2f} "
                f"iterations/s, {taken['people_per_second']:.0f} people/s; validation success "
                f"{taken['validation_success']:.3f}, cost {taken['validation_cost']:.1f}",
                flush=True,
            )
            if kind == "wfare":
                results[f"train.{setup.name}_seconds"] = taken["seconds"]
        table = planner_table(setup, policies, people)
        print(f"\n{setup.name}, {people} people, true weights\n{table.round(3).to_string()}\n")
        for name, key in (("W-FARE, true weights", "wfare"), ("FARE, mean weights", "fare")):
            prefix = key if setup.name == "adult" else f"credit.{key}"
            for figure in ("validity", "cost", "rows"):
                results[f"{prefix}.{figure}"] = float(table.loc[name, figure])
        results[f"{setup.name}.exact_cost"] = float(
            table.loc["exact, one change per feature", "cost"]
        )
        if setup.name == "adult":
            _print_published()
            if not options.skip_pear:
                pear_figures(setup, policies["wfare"], 6 if options.quick else people, results)
        if not options.no_rows:
            budgets = ROW_BUDGETS[:3] if options.quick else ROW_BUDGETS
            rows = quality_against_rows(setup, policies, 10 if options.quick else 60, budgets)
            print(f"\nquality against rows\n{rows.round(3).to_string(index=False)}\n", flush=True)
            tables.append(rows)
    if options.figure and tables:
        draw(pd.concat(tables), options.figure)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def _print_published() -> None:
    outcomes = published_averages()
    theirs = outcomes[outcomes["response"] == "GT"]
    weight = theirs["success_rate"]
    cost = (theirs["mean_cost_of_successes"] * weight).sum() / weight.sum() - 1
    print(f"published planner, true weights: validity {weight.mean():.3f}, cost {cost:.1f}\n")


if __name__ == "__main__":
    main()
