"""Costs of plans on the published problems, against the formula in their description.

The formula is written here from that description alone, on the raw files:
``max(1, w_k·|Δ| + Σ_parents w_jk·(1 + value_j))``, numbers min-max scaled and clipped to
[0, 1], a categorical change counting 1, a categorical parent contributing 1, a zero scaled
change counting 1.
"""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pear.datasets.published import published_problem, published_users
from tests.problem.examples import needs_published, random_records

pytestmark = [needs_published, pytest.mark.published]


def described_cost(setup, person, actions, weights):
    features = {f["name"]: f for f in setup["features"]}

    def scaled(name, value):
        if features[name]["kind"] == "categorical":
            return 1.0
        low, high = features[name]["min"], features[name]["max"]
        return float(np.clip((float(value) - low) / (high - low), 0, 1))

    total, person = 0.0, dict(person)
    for name, mode, argument in actions:
        after = person[name] + argument if mode == "add" else argument
        if features[name]["kind"] == "categorical":
            change = 1.0
        else:
            change = abs(scaled(name, after) - scaled(name, person[name])) or 1.0
        cost = weights[f"w:{name}"] * change
        for parent, child in setup["edges"]:
            if child == name:
                cost += weights[f"w:{parent}->{child}"] * (1 + scaled(parent, person[parent]))
        total += max(1.0, cost)
        person[name] = after
    return total


def setup_of(name):
    return json.loads((Path(os.environ["PEAR_BENCH"]) / name / "setup.json").read_text())


def test_plans_of_the_published_users_cost_what_the_description_says():
    setup, problem = setup_of("adult"), published_problem("adult")
    users = published_users(problem)
    table = pd.read_csv(Path(os.environ["PEAR_BENCH"]) / "adult" / "users_all.csv")
    rng = np.random.default_rng(5)
    for user in range(0, 300, 3):
        moves = rng.integers(0, len(problem.actions), 5)
        chosen = [(problem.actions.actions[problem.actions.action_of[m]], m) for m in moves]
        actions = [(a.feature, a.mode, problem.actions.argument(int(m))) for a, m in chosen]
        ours = problem.costs.sequence_cost(
            users.states[user], problem.actions, moves, users.weights[user]
        )
        row = table.iloc[user].to_dict()
        assert ours == pytest.approx(described_cost(setup, row, actions, row), rel=1e-12)


def test_the_same_on_give_me_some_credit():
    setup, problem = setup_of("givemecredit"), published_problem("givemecredit")
    rng = np.random.default_rng(6)
    for record in random_records(problem.space, 100, rng):
        weights = rng.normal(20.0, 40.0, problem.costs.n_weights)
        named = {f"w:{n}": w for n, w in zip(problem.weight_names, weights, strict=True)}
        moves = rng.integers(0, len(problem.actions), 4)
        chosen = [(problem.actions.actions[problem.actions.action_of[m]], m) for m in moves]
        actions = [(a.feature, a.mode, problem.actions.argument(int(m))) for a, m in chosen]
        ours = problem.costs.sequence_cost(problem.state(record), problem.actions, moves, weights)
        assert ours == pytest.approx(described_cost(setup, record, actions, named), rel=1e-9)
