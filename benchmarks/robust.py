"""Do plans stay valid when the model is trained again, and what does that cost?

On Adult and GiveMeSomeCredit (``PEAR_DATA``): a model is trained on one half of the people, plans
are made with it, and models trained on the other half, on bootstraps of it and with other seeds
say whether they accept them; three times, with other halves. Compared are plain plans, plans with
a margin calibrated on the first half alone (models of one half of it plan, those of the other
decide), plans that several models trained on the first half accept, all of them or a share, and,
as the frontier, fixed margins, for today's model alone and for several. Models weigh both classes
the same, as those of the paper do.

    python benchmarks/robust.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from pear.datasets import load_dataset
from pear.datasets.splits import Dataset
from pear.decision import BlackBox, from_sklearn, several
from pear.decision.encoding import unit_inputs
from pear.decision.several_models import bootstraps, halves, retrained
from pear.planning.exact import ExactPlanner
from pear.planning.robust import Calibration, Rehearsal, Robustness, calibrated_margin
from pear.preferences import default_prior
from pear.problem import Limits, Plan

HALF = 12_000
"""People of each half."""

FIXED = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Margins of the frontier."""

MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(class_weight="balanced", max_iter=500),
    "boosted": HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=12, min_samples_leaf=40, class_weight="balanced"
    ),
    "network": MLPClassifier((24, 12), alpha=0.01, max_iter=40, early_stopping=True),
}


@dataclass(frozen=True)
class World:
    """A data set and a kind of model: today's, a family for planning, pairs of models that share
    no people, and tomorrow's."""

    data: Dataset
    today: BlackBox
    family: list[BlackBox]
    pairs: list[tuple[BlackBox, BlackBox]]
    tomorrow: list[BlackBox]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write flat names to numbers here")
    parser.add_argument("--quick", action="store_true", help="fewer people and models")
    parser.add_argument("--only", help="run only the worlds whose name holds this")
    arguments = parser.parse_args()
    threadpool_limits(1)
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    people, members, splits = (20, 12, 3) if arguments.quick else (50, 20, 3)
    rows = []
    for name in ("adult", "givemecredit"):
        data = load_dataset(name)
        for kind in list(MODELS)[: 2 if arguments.quick else None]:
            if arguments.only and arguments.only not in f"{name} {kind}":
                continue
            began = time.process_time()
            found = [
                {"world": f"{name}_{kind}", **row}
                for split in range(splits)
                for row in measure(make_world(data, kind, members, split), people)
            ]
            rows += found
            print(f"\n{name}, {kind} ({time.process_time() - began:.0f} s of processor time)")
            means = pd.DataFrame(found).groupby("way", sort=False).mean(numeric_only=True)
            print(means.round(3).to_string(), flush=True)
    figures = summed_up(pd.DataFrame(rows))
    for name, value in figures.items():
        print(f"{name:44s} {value:.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def make_world(data: Dataset, kind: str, members: int, split: int) -> World:
    """Train on one half; the family comes from the same half, tomorrow's models from the other."""
    rng = np.random.default_rng([split, len(data.name)])
    chosen = rng.permutation(data.train)[: 2 * HALF]
    first, second = (
        (data.states[rows], data.favourable[rows].astype(int))
        for rows in (chosen[:HALF], chosen[HALF:])
    )
    inputs = unit_inputs(data.problem.space)
    model = MODELS[kind]
    if "random_state" in model.get_params():
        model.set_params(random_state=1)
    fitted = model.fit(inputs(first[0]), first[1])
    today = from_sklearn(fitted, data.problem, name=kind, inputs=inputs.columns)
    family = retrained(today, *first, bootstraps(HALF, members, rng), rng)
    apart = retrained(today, *first, halves(HALF, members // 2, rng), rng)
    pairs = list(zip(apart[::2], apart[1::2], strict=True))
    everybody = np.arange(HALF)
    again = [everybody, everybody, *(rng.integers(0, HALF, HALF) for _ in range(4))]
    tomorrow = retrained(today, *second, again, rng)
    return World(data, today, family, [*pairs, *(pair[::-1] for pair in pairs)], tomorrow)


def measure(world: World, people: int) -> list[dict[str, Any]]:
    """Validity tomorrow and cost of every way to plan, on the same people."""
    rng, problem = np.random.default_rng(11), world.data.problem
    states = world.data.states[world.data.test]
    refused = states[~world.today.favourable(states)]
    refused = refused[rng.permutation(len(refused))[: 2 * people]]
    weights = default_prior(problem).sample(len(refused), rng)[0]
    mine, others = slice(0, people), slice(people, None)
    rehearsals = [Rehearsal(planner_of(a, world), [b]) for a, b in world.pairs]
    found = calibrated_margin(rehearsals, refused[others], weights[others], demanded=0.95)
    together = several([world.today, *world.family])
    ways: dict[str, tuple[BlackBox, float]] = {
        "plain": (world.today, 0.0),
        "margin": (world.today, found.margin if found.margin is not None else 0.4),
        "several": (together, 0.0),
        "several_90": (several([world.today, *world.family], 0.9), 0.0),
        "several_70": (several([world.today, *world.family], 0.7), 0.0),
    }
    ways |= {f"margin_{fixed}": (world.today, fixed) for fixed in FIXED}
    ways |= {f"several_margin_{fixed}": (together, fixed) for fixed in FIXED[::2]}
    made = {
        way: planner_of(model, world).plan_many(refused[mine], weights[mine], Limits(margin=margin))
        for way, (model, margin) in ways.items()
    }
    return [row(way, plans, made["plain"], world, found) for way, plans in made.items()]


def planner_of(model: BlackBox, world: World) -> ExactPlanner:
    """The planner every way plans with."""
    return ExactPlanner(world.data.problem, model, max_rows=10_000)


def row(
    way: str, plans: list[Plan], plain: list[Plan], world: World, found: Calibration
) -> dict[str, Any]:
    """One way to plan in numbers, relative to plain plans."""
    both = [(a.cost, b.cost) for a, b in zip(plain, plans, strict=True) if a.success and b.success]
    answers = Robustness.of(plans, world.data.problem, world.tomorrow)
    return {
        "way": way,
        "valid_after": answers.share,
        "accepted_by_all": answers.lasting(1.0),
        "cost_ratio": sum(b for _, b in both) / sum(a for a, _ in both),
        "planned": len(both) / max(1, sum(plan.success for plan in plain)),
        "proven": float(
            np.mean([p.certificate.verdict in ("optimal", "infeasible") for p in plans])
        ),
        "calibrated_margin": found.margin if way == "margin" else np.nan,
        "promised": found.share if way == "margin" else np.nan,
    }


def summed_up(rows: pd.DataFrame) -> dict[str, float]:
    """Means over the worlds, and each world's own figures."""
    figures: dict[str, float] = {}
    for column in ("valid_after", "cost_ratio", "planned"):
        for way, mean in rows.groupby("way", sort=False)[column].mean().items():
            figures[f"{column}.{way}"] = float(mean)
    for (way, world), mean in rows.groupby(["way", "world"], sort=False).mean().iterrows():
        figures[f"valid_after.{way}.{world}"] = float(mean["valid_after"])
        figures[f"cost_ratio.{way}.{world}"] = float(mean["cost_ratio"])
    return figures


if __name__ == "__main__":
    main()
