"""How does exact search grow with the number of features?

A generated family, the same for the same seed. A member with K actionable features has K/2
numbers that can be set to any of 20 values in [0, 1] and K/2 categories with 6 values each;
a cost graph in which every feature after the second has two parents drawn among those before
it (the second has one); floor 1 and offset 1; people whose weights come from a mixture of six
unit Gaussians with means uniform in [-60, 100], as in the paper's experiments; and a random
two-layer network (32 and 16 rectified units) whose bias refuses 70% of random people. Plans
have at most five changes. People are drawn among the refused.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pear.decision import BlackBox
from pear.decision.encoding import unit_inputs
from pear.decision.numpy_models import Network
from pear.parallel import hold_to_one_thread
from pear.planning.exact import ExactPlanner
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

VALUES, CATEGORIES, COMPONENTS = 20, 6, 6
SIZES = (4, 8, 12, 16, 20, 24)
MAX_ROWS = 1_000_000
MAX_LENGTH = 5


@dataclass(frozen=True)
class Member:
    """One problem of the family, its model, and n refused people with their weights."""

    problem: Problem
    black_box: BlackBox
    states: Any
    weights: Any


def member(n_features: int, n_people: int, seed: int) -> Member:
    """The member of the family with this many features."""
    rng = np.random.default_rng([seed, n_features])
    numbers = tuple(float(value) for value in np.linspace(0, 1, VALUES))
    words = tuple(f"option {i}" for i in range(CATEGORIES))
    names = [f"f{i:02d}" for i in range(n_features)]
    features, actions = [], []
    for i, name in enumerate(names):
        if i % 2:
            features.append(Feature(name, "categorical", categories=words))
            actions.append(Action(f"change_{name}", name, "set", words))
        else:
            features.append(Feature(name, scale=(0.0, 1.0)))
            actions.append(Action(f"set_{name}", name, "set", numbers))
    space = FeatureSpace(tuple(features))
    edges = []
    for i in range(1, n_features):
        for parent in rng.choice(i, size=min(2, i), replace=False):
            edges.append((names[parent], names[i]))
    problem = Problem(
        space,
        ActionSpace(space, tuple(actions)),
        CostGraph(space, tuple(edges)),
        Goal(),
        max_length=MAX_LENGTH,
        name=f"grown {n_features}",
    )
    people = random_people(space, numbers, 20_000, rng)
    black_box = random_network(problem, people, rng)
    refused = people[black_box.score(people) <= 0.5]
    means = rng.uniform(-60, 100, size=(COMPONENTS, problem.costs.n_weights))
    component = rng.integers(0, COMPONENTS, n_people)
    weights = means[component] + rng.normal(size=(n_people, means.shape[1]))
    return Member(problem, black_box, refused[:n_people], weights)


def random_people(
    space: FeatureSpace, numbers: tuple[float, ...], n: int, rng: np.random.Generator
) -> Any:
    """People with random values from the grids, shape ``(n, d)``."""
    columns = [
        rng.integers(0, CATEGORIES, n).astype(float)
        if feature.is_categorical
        else np.array(numbers)[rng.integers(0, VALUES, n)]
        for feature in space.features
    ]
    return np.column_stack(columns)


def random_network(problem: Problem, people: Any, rng: np.random.Generator) -> BlackBox:
    """Rectified layers of 32 and 16 units, Gaussian weights, a bias that refuses 70%."""
    sizes = [unit_inputs(problem.space).width, 32, 16, 1]
    layers = [
        (rng.normal(size=(a, b)) * np.sqrt(2 / a), rng.normal(size=b) * 0.1)
        for a, b in itertools.pairwise(sizes)
    ]
    hidden = unit_inputs(problem.space)(people)
    for weights, bias in layers[:-1]:
        hidden = np.maximum(hidden @ weights + bias, 0)
    logits = (hidden @ layers[-1][0])[:, 0]
    sharp = 4.0 / logits.std()
    layers[-1] = (layers[-1][0] * sharp, np.array([-sharp * np.quantile(logits, 0.7)]))
    return BlackBox(Network(unit_inputs(problem.space), tuple(layers)), problem.space, problem.goal)


def measure(n_features: int, n_people: int, seed: int) -> dict[str, float]:
    """Rows, time, verdicts and gaps for one member."""
    case = member(n_features, n_people, seed)
    planner = ExactPlanner(case.problem, case.black_box, max_rows=MAX_ROWS)
    plans, seconds = [], []
    for state, weights in zip(case.states, case.weights, strict=True):
        began = time.perf_counter()
        plans.append(planner.plan(state, weights))
        seconds.append(time.perf_counter() - began)
    certificates = [plan.certificate for plan in plans]
    decided = np.array([c.verdict in ("optimal", "infeasible") for c in certificates])
    gaps = [
        certificate.gap / certificate.upper_bound
        for certificate in certificates
        if certificate.verdict == "bounded" and certificate.gap is not None
    ]
    return {
        "features": n_features,
        "people": len(plans),
        "certified": float(decided.mean()),
        "with_plan": float(np.mean([plan.success for plan in plans])),
        "with_bound": float(np.mean([c.lower_bound is not None for c in certificates])),
        "cost": float(np.mean([plan.cost for plan in plans if plan.success])),
        "gap": float(np.mean(gaps)) if gaps else 0.0,
        "median_rows": float(np.median([c.rows for c in certificates])),
        "p90_rows": float(np.quantile([c.rows for c in certificates], 0.9)),
        "median_ms": 1e3 * float(np.median(seconds)),
        "p90_ms": 1e3 * float(np.quantile(seconds, 0.9)),
    }


def draw(table: list[dict[str, float]], path: Path) -> None:
    """Rows, time and share certified against the number of features."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [line["features"] for line in table]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for axes, key, label in (
        (left, "rows", "rows asked"),
        (middle, "ms", "milliseconds"),
    ):
        axes.plot(sizes, [line[f"median_{key}"] for line in table], "o-", label="median")
        axes.plot(sizes, [line[f"p90_{key}"] for line in table], "s--", label="nine in ten")
        axes.set_yscale("log")
        axes.set_title(label)
        axes.legend(frameon=False)
    right.plot(sizes, [100 * line["certified"] for line in table], "o-")
    right.set_ylim(0, 105)
    right.set_title("% certified within 1,000,000 rows")
    for axes in (left, middle, right):
        axes.set_xlabel("actionable features")
        axes.set_xticks(sizes)
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--figure", type=Path, help="draw the curve here (.svg or .png)")
    parser.add_argument("--quick", action="store_true", help="fewer people and sizes")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    hold_to_one_thread()
    people, sizes = (8, (4, 8, 16, 24)) if options.quick else (options.people, SIZES)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {people} people each")
    header = ("features", "certified", "with_plan", "with_bound", "gap", "cost")
    header += ("median_rows", "p90_rows", "median_ms", "p90_ms")
    print(" ".join(f"{name:>11}" for name in header))
    table = []
    for size in sizes:
        table.append(measure(size, people, options.seed))
        print(" ".join(f"{table[-1][name]:>11,.2f}" for name in header), flush=True)
    figures = {
        f"growth.{name}_{int(line['features'])}": value
        for line in table
        for name, value in line.items()
        if name != "features"
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.figure:
        draw(table, options.figure)


if __name__ == "__main__":
    main()
