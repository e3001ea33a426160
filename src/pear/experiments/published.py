"""What did the paper's system return, and what did the paper print?

Outcomes by user come from the published files (see :mod:`pear.datasets.published`), cells from
De Toni, Viappiani, Teso, Lepri, Passerini, "Personalized Algorithmic Recourse with Preference
Elicitation", tables eval-results, error-causal, eval-results-shallow and xpear-results; costs and
lengths there count 1 for the final STOP action.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import pandas as pd

from pear.datasets.published import published_outcomes
from pear.errors import DataUnavailable
from pear.experiments.summary import STOP, published_regret, user_costs

ASKED = 10
"""Questions behind the published tables."""
FIGURE_SEED = 2023
"""The run behind the published figure of regret."""
OTHER_USERS = {("face", "network")}
"""Published rows that are of other users, by method and classifier: not compared one by one."""


@lru_cache(maxsize=1)
def _outcomes() -> pd.DataFrame:
    return published_outcomes()


def published_rows(
    dataset: str,
    classifier: str,
    users: str,
    method: str,
    *,
    k: int = 0,
    corruption: float = 0.0,
    questions: int | None = None,
) -> pd.DataFrame:
    """Rows of a published method in our columns: user, run, success, cost and length without STOP.

    Empty where nothing was published, or the published files are not there. ``method`` is one of
    theirs, such as ``pear_nl``; with ``corruption`` it is ``pear_l``.
    """
    try:
        known = _outcomes()
    except DataUnavailable:
        return pd.DataFrame(columns=["user", "run", "success", "cost", "length"])
    if corruption:
        method = f"{method}_corrupted"
    asked = (ASKED if questions is None else questions) if k else -1
    found = known[
        (known["dataset"] == dataset)
        & (known["classifier"] == classifier)
        & (known["users"] == users)
        & (known["method"] == method)
        & (known["k"] == k)
        & (known["questions"] == asked)
        & ((known["corruption"] - corruption).abs() < 1e-6)
    ]
    return pd.DataFrame(
        {
            "user": found["user"].to_numpy(int),
            "run": found["seed"].to_numpy(int),
            "success": found["recourse"].to_numpy(bool),
            "cost": found["cost"].to_numpy(float) - STOP,
            "length": found["length"].to_numpy(float) - STOP,
        }
    )


def published_curve(dataset: str, method: str, k: int) -> pd.Series:
    """Mean regret of a published method on the users All, by questions, by the paper's rule."""
    where = (dataset, "network", "all")
    best = user_costs(published_rows(*where, "wfare_true_weights"))
    runs = {}
    for questions in range(ASKED + 1):
        rows = published_rows(*where, method, k=k, questions=questions)
        runs[questions] = user_costs(rows[rows["run"] == FIGURE_SEED])
    regrets = {q: published_regret(cost, best, runs[0]).mean() for q, cost in runs.items()}
    return pd.Series(regrets, dtype=float).dropna()


@lru_cache(maxsize=1)
def published_figures() -> pd.DataFrame:
    """One row per printed cell: table, classifier, dataset, users, method, corruption, measure,
    value, spread.

    >>> len(published_figures())
    417
    """
    with files("pear.experiments").joinpath("published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def published_cell(
    table: str,
    classifier: str,
    dataset: str,
    users: str,
    method: str,
    measure: str,
    corruption: float | None = None,
) -> tuple[float, float] | None:
    """Mean and spread of a printed cell; None where the paper prints none.

    >>> published_cell("eval-results", "network", "adult", "all", "PEAR-NL", "cost")
    (142.23, 61.75)
    """
    known = published_figures()
    found = known[
        (known["table"] == table)
        & (known["classifier"] == classifier)
        & (known["dataset"] == dataset)
        & (known["users"] == users)
        & (known["method"] == method)
        & (known["measure"] == measure)
    ]
    if corruption is not None:
        found = found[found["corruption"] == corruption]
    if found.empty:
        return None
    return float(found["value"].iloc[0]), float(found["spread"].iloc[0])
