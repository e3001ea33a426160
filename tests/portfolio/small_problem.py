"""A lender small enough to plan for hundreds of people in a second, and its people."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pear.decision import BlackBox
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

SPACE = FeatureSpace(
    (
        Feature("income", lower=0, upper=100, scale=(0, 100)),
        Feature("savings", lower=0, upper=100, scale=(0, 100)),
        Feature("job", "categorical", categories=("none", "part", "full")),
        Feature(
            "sex", "categorical", categories=("female", "male"), protected=True, immutable=True
        ),
        Feature("age", "integer", lower=18, upper=90, protected=True, immutable=True),
    )
)
PROBLEM = Problem(
    SPACE,
    ActionSpace(
        SPACE,
        (
            Action("earn", "income", "add", (10, 20, 30)),
            Action("save", "savings", "add", (10, 20, 40)),
            Action("work", "job", "set", ("part", "full")),
        ),
    ),
    CostGraph(SPACE, (("job", "income"),), floor=1.0, offset=1.0),
    max_length=3,
    name="small",
)
WEIGHTS = np.array([30.0, 20.0, 15.0, 1.0, 1.0, 5.0])


@dataclass(frozen=True)
class Score:
    """A logistic score; ``of_sex`` is what being male adds, ``fails_at`` an income it hates."""

    of_sex: float = 0.0
    fails_at: float = np.nan

    def __call__(self, states):
        if (states[:, 0] == self.fails_at).any():
            return np.full(len(states), np.nan)
        total = states[:, 0] + states[:, 1] + 20 * states[:, 2] + self.of_sex * states[:, 3]
        return 1 / (1 + np.exp(-(total - 100) / 20))


def black_box(**settings):
    return BlackBox(Score(**settings), SPACE, Goal(), name="small")


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"person {i}" for i in range(n)],
            "income": rng.integers(0, 70, n).astype(float),
            "savings": rng.integers(0, 60, n).astype(float),
            "job": rng.choice(["none", "part", "full"], n),
            "sex": rng.choice(["female", "male"], n),
            "age": rng.integers(18, 80, n),
        }
    )


def write(frame: pd.DataFrame, path: Path) -> Path:
    """A table as the file its name says."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path
