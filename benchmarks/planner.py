"""How good and how fast is the exact planner, beside DiCE and behind other black boxes?

    PEAR_BENCH=... PEAR_DATA=... python benchmarks/planner.py [--quick] [--json FILE]

Adult: the paper's 300 users, classifier, action grid and true weights. GiveMeSomeCredit: our
own network, the published grid, at most eight changes, weights drawn from the published prior.
Times are per person on one thread, black box included; ratios are of times on the processor,
taken in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from _peers import dice_answers
from pear.datasets import load_dataset, paper_prior_means, trained_classifier, user_set
from pear.datasets.published import (
    published_classifier,
    published_prior_means,
    published_problem,
    published_users,
)
from pear.decision import BlackBox
from pear.decision.encoding import unit_inputs
from pear.elicitation import Session
from pear.parallel import hold_to_one_thread
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior
from pear.problem import Plan, Problem

Figures = dict[str, float]
HEADER = (
    f"{'':28}{'people':>7}{'cost':>9}{'valid':>7}{'proven':>8}{'rows':>9}"
    f"{'ms':>8}{'p95 ms':>9}{'cpu ms':>8}{'p95':>9}"
)


def plan_each(planner: ExactPlanner, states: Any, weights: Any) -> tuple[list[Plan], Any]:
    """A plan for each person, and the seconds each took: ``(n, 2)``, by clock and processor."""
    plans, seconds = [], []
    for state, weight in zip(states, weights, strict=True):
        began = time.perf_counter(), time.process_time()
        plans.append(planner.plan(state, weight))
        seconds.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return plans, np.array(seconds)


def summary(name: str, plans: list[Plan], seconds: Any) -> Figures:
    """One line of the table."""
    found = [plan for plan in plans if plan.success]
    decided = [plan.certificate.verdict in ("optimal", "infeasible") for plan in plans]
    figures = {
        "cost": float(np.mean([plan.cost for plan in found])),
        "validity": len(found) / len(plans),
        "certified": float(np.mean(decided)),
        "median_rows": float(np.median([plan.certificate.rows for plan in plans])),
        "median_ms": 1e3 * float(np.median(seconds[:, 0])),
        "p95_ms": 1e3 * float(np.quantile(seconds[:, 0], 0.95)),
        "median_cpu_ms": 1e3 * float(np.median(seconds[:, 1])),
        "p95_cpu_ms": 1e3 * float(np.quantile(seconds[:, 1], 0.95)),
    }
    print(
        f"{name:28}{len(plans):>7}{figures['cost']:>9.2f}{figures['validity']:>7.2f}"
        f"{figures['certified']:>8.3f}{figures['median_rows']:>9.0f}"
        f"{figures['median_ms']:>8.1f}{figures['p95_ms']:>9.1f}"
        f"{figures['median_cpu_ms']:>8.1f}{figures['p95_cpu_ms']:>9.1f}",
        flush=True,
    )
    return figures


def adult(quick: bool) -> Figures:
    """The paper's users; with repeated changes; candidates; DiCE."""
    problem = published_problem("adult", max_length=5)
    black_box, users = published_classifier(problem), published_users(problem)
    every = 10 if quick else 1
    states, weights = users.states[::every], users.weights[::every]
    planner = ExactPlanner(problem, black_box)
    planner.plan(states[0], weights[0])
    alone = summary("Adult", *plan_each(planner, states, weights))
    figures = {f"adult.{name}": value for name, value in alone.items()}
    repeats = ExactPlanner(problem, black_box, max_rows=1_000_000, max_changes_per_feature=5)
    again = summary("Adult, repeated changes", *plan_each(repeats, states, weights))
    figures["adult.cost_repeats"] = again["cost"]
    figures["adult.certified_repeats"] = again["certified"]
    for name in ("median_ms", "p95_ms", "median_cpu_ms", "p95_cpu_ms"):
        figures[f"adult.{name}_repeats"] = again[name]
    figures |= candidates(planner, states[:: 5 if quick else 15], weights[:: 5 if quick else 15])
    figures |= dice(planner, states, weights, quick)
    return figures


def candidates(planner: ExactPlanner, states: Any, weights: Any) -> Figures:
    """Optima for 32 samples in one pass, beside 32 searches; prior, and after three answers."""
    means = published_prior_means("adult")
    prior = GaussianMixturePrior(means, np.ones_like(means))
    rng = np.random.default_rng(0)
    figures: Figures = {}
    print("\ncandidates for 32 samples, as shares of 32 separate searches")
    for name in ("prior", "posterior"):
        spent = np.zeros((2, 2))
        for state, weight in zip(states, weights, strict=True):
            if name == "prior":
                samples = prior.sample(32, rng)[0]
            else:
                samples = after_answers(planner, state, weight, prior, 3, rng)
            alone, *first = measured(planner, one_by_one, planner, state, samples)
            together, *second = measured(planner, planner.optima, state, samples)
            if [plan.moves for plan in alone] != [plan.moves for plan in together]:
                raise SystemExit("the optima differ from those of separate searches")
            _, *second = measured(planner, planner.candidates, state, samples, 32)
            spent += [first, second]
        rows, seconds = spent[1] / spent[0]
        figures |= {f"candidates.rows_ratio_{name}": rows, f"candidates.time_ratio_{name}": seconds}
        print(f"  {name:12} rows {rows:.3f}   time {seconds:.3f}   the same optima", flush=True)
    for what in ("rows_ratio", "time_ratio"):
        worst = max(figures[f"candidates.{what}_{name}"] for name in ("prior", "posterior"))
        figures[f"candidates.{what}"] = worst
    return figures


def one_by_one(planner: ExactPlanner, state: Any, samples: Any) -> list[Plan]:
    """A separate search for each sample."""
    return [planner.plan(state, weights) for weights in samples]


def measured(
    planner: ExactPlanner, work: Callable[..., Any], *arguments: Any
) -> tuple[Any, float, float]:
    """The result, the rows asked, and the seconds on the processor."""
    rows, began = planner.black_box.rows, time.process_time()
    result = work(*arguments)
    return result, planner.black_box.rows - rows, time.process_time() - began


def after_answers(
    planner: ExactPlanner,
    state: Any,
    weights: Any,
    prior: GaussianMixturePrior,
    answers: int,
    rng: np.random.Generator,
) -> Any:
    """32 samples of what is believed after a person with these weights has answered."""
    session = Session(planner, state, prior)
    graph, actions = planner.problem.costs, planner.problem.actions
    for _ in range(answers):
        question = session.ask()
        if question is None:
            break
        costs = [graph.sequence_cost(state, actions, p.moves, weights) for p in question.plans]
        session.answer(int(np.argmin(costs)))
    return session.posterior.draw(32, rng)


def dice(planner: ExactPlanner, states: Any, weights: Any, quick: bool) -> Figures:
    """DiCE on the same classifier and actionable features, for a sample of the users."""
    problem, black_box = planner.problem, planner.black_box
    count = 4 if quick else 20
    people = load_dataset("adult").states[:4_000]
    states, weights = states[:count], weights[:count]
    plans, seconds = plan_each(planner, states, weights)
    ours = float(np.median(seconds[:, 0]))
    print(
        f"\n{'beside DiCE':16}{'ms':>10}{'times ours':>12}{'favourable':>12}{'legal':>8}{'cost':>9}"
    )
    cost = float(np.mean([plan.cost for plan in plans]))
    print(f"{'exact':16}{1e3 * ours:>10.1f}{1:>12}{1.0:>12.2f}{1.0:>8.2f}{cost:>9.2f}", flush=True)
    figures: Figures = {}
    for method in ("random", "genetic"):
        answers = dice_answers(problem, black_box, people, states, weights, method, seed=0)
        legal = [answer for answer in answers if answer.legal and answer.found]
        taken = float(np.median([answer.seconds for answer in answers]))
        cost = float(np.mean([answer.cost for answer in legal])) if legal else float("nan")
        values = {
            "time_ratio": taken / ours,
            "found": float(np.mean([answer.found for answer in answers])),
            "legal": len(legal) / len(answers),
        }
        if legal:
            values["cost"] = cost
        print(
            f"{'DiCE ' + method:16}{1e3 * taken:>10.1f}{taken / ours:>12.0f}"
            f"{values['found']:>12.2f}{values['legal']:>8.2f}{cost:>9.2f}",
            flush=True,
        )
        figures |= {f"dice_{method}.{name}": value for name, value in values.items()}
    return figures


def credit(quick: bool) -> Figures:
    """GiveMeSomeCredit, everyone refused and the hardest quarter."""
    data = load_dataset("givemecredit")
    black_box = trained_classifier("givemecredit", "network", data=data)
    means = paper_prior_means("givemecredit")
    planner = ExactPlanner(data.problem, black_box, max_length=8, max_rows=1_000_000)
    figures: Figures = {}
    every_second: list[float] = []
    for kind in ("all", "hard"):
        people = user_set(data, black_box, kind, n=20 if quick else 300)
        rng = np.random.default_rng(0)
        component = rng.integers(0, len(means), len(people.states))
        weights = means[component] + rng.normal(size=(len(component), means.shape[1]))
        plans, seconds = plan_each(planner, people.states, weights)
        line = summary(f"GiveMeSomeCredit, {kind}", plans, seconds)
        figures[f"credit.decided_{kind}"] = line["certified"]
        figures[f"credit.validity_{kind}"] = line["validity"]
        figures[f"credit.cost_{kind}"] = line["cost"]
        for name in ("median_ms", "p95_ms", "median_cpu_ms", "p95_cpu_ms"):
            figures[f"credit.{name}_{kind}"] = line[name]
        every_second += seconds[:, 0].tolist()
    figures["credit.median_ms"] = 1e3 * float(np.median(every_second))
    return figures


def ensembles(quick: bool) -> Figures:
    """Boosted trees and a forest as black boxes, on Adult."""
    data = load_dataset("adult")
    problem, means = data.problem, paper_prior_means("adult")
    train = data.train[:5_000] if quick else data.train[:20_000]
    inputs = unit_inputs(problem.space)(data.states[train])
    models = {
        "boosted": HistGradientBoostingClassifier(
            max_iter=300, early_stopping=False, random_state=0
        ),
        "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
    }
    figures: Figures = {}
    for name, model in models.items():
        model.fit(inputs, data.favourable[train])
        black_box = tree_black_box(problem, model, name)
        people = user_set(data, black_box, "all", n=6 if quick else 60)
        rng = np.random.default_rng(0)
        component = rng.integers(0, len(means), len(people.states))
        weights = means[component] + rng.normal(size=(len(component), means.shape[1]))
        planner = ExactPlanner(problem, black_box)
        line = summary(f"Adult, {name} trees", *plan_each(planner, people.states, weights))
        figures |= {f"{name}.{what}": value for what, value in line.items()}
    return figures


def tree_black_box(problem: Problem, model: Any, name: str) -> BlackBox:
    """A fitted ensemble as a black box over states."""

    inputs = unit_inputs(problem.space)

    def score(states: Any) -> Any:
        return model.predict_proba(inputs(states))[:, 1]

    return BlackBox(score, problem.space, problem.goal, name=name)


def guard(quick: bool) -> Figures:
    """A model that sleeps a millisecond a row, and a second of time."""
    problem = published_problem("adult")

    def slow(states: Any) -> Any:
        time.sleep(1e-3 * len(states))
        return np.zeros(len(states))

    black_box = BlackBox(slow, problem.space, problem.goal, fingerprint="slow")
    users = published_users(problem)
    planner = ExactPlanner(problem, black_box, max_seconds=1.0)
    began = time.perf_counter()
    plan = planner.plan(users.states[0], users.weights[0])
    spent = time.perf_counter() - began
    marked = "marked" if not plan.certificate.reproducible else "NOT MARKED"
    print(f"\na guard of 1 s on a slow model ended it after {spent:.3f} s ({marked})")
    return {"guard.seconds": spent}


PARTS = {"credit": credit, "ensembles": ensembles, "adult": adult, "guard": guard}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts")
    options = parser.parse_args()
    hold_to_one_thread()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n\n{HEADER}")
    figures: Figures = {}
    for part in options.only:
        figures |= PARTS[part](options.quick)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
