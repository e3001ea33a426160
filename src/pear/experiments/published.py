"""What did the paper print? Every cell of its result tables, as data.

Source: De Toni, Viappiani, Teso, Lepri, Passerini, "Personalized Algorithmic Recourse with
Preference Elicitation", tables eval-results, error-causal, eval-results-shallow and
xpear-results; the regret figure's final values as its text names them. Costs and lengths
there count 1 for the final STOP action.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import pandas as pd

STOP = 1.0
"""What published costs and lengths count for STOP; added to ours wherever they are compared."""

MEASURES = ("validity", "cost", "length")

FINAL_REGRET = {
    ("adult", "noiseless", 4): 0.09,
    ("adult", "logistic", 2): 0.40,
    ("givemecredit", "noiseless", 4): 0.15,
    ("givemecredit", "logistic", 2): 0.45,
}
"""Normalised regret after ten questions: (data set, response model, k)."""


@lru_cache(maxsize=1)
def published_figures() -> pd.DataFrame:
    """One row per cell: table, classifier, dataset, users, method, corruption, measure, value,
    spread.

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
    """Mean and spread of a cell; None where the paper prints none.

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
