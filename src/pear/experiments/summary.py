"""How are rows of users and runs summed up? As the paper does, and by ours beside it.

The paper averages each user over its successful runs, then over users. Its ± is the square root
of the mean over users of the variance over runs: the spread of a user, which says nothing about
how sure the mean is. That is what the 95% intervals say, made by resampling users. Two systems
are compared on the users both solve, by the ratio of their mean costs, STOP not counted.

What the paper's system returned, by user, comes from the published files (see
:mod:`pear.datasets.published`), printed cells from De Toni, Viappiani, Teso, Lepri, Passerini,
"Personalized Algorithmic Recourse with Preference Elicitation", tables eval-results, error-causal,
eval-results-shallow and xpear-results; costs and lengths there count 1 for the final STOP action.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.datasets.published import published_outcomes
from pear.errors import DataUnavailable
from pear.statistics import Estimate, estimate, ratio_estimate

STOP = 1.0
"""What published costs and lengths count for STOP; added to ours wherever they are compared."""
EQUAL = 0.01
"""Costs closer than this are equal; published ones are rounded."""


@dataclass(frozen=True)
class Cell:
    """A mean over users, the paper's ± (NaN of a single run), a 95% interval over users."""

    mean: float
    spread: float
    low: float
    high: float
    users: int


NOTHING = Cell(np.nan, np.nan, np.nan, np.nan, 0)


def final(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows after the last question of each method."""
    keys = ["dataset", "classifier", "users", "method", "k", "corruption"]
    last = rows.groupby(keys)["questions"].transform("max")
    return rows[rows["questions"] == last]


def whole_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without runs that have fewer users than the fullest run of the same conversations:
    a mean or a ± over runs would mix users who have had them with users who have not."""
    keys = ["dataset", "classifier", "users", "method", "k", "corruption"]
    people = rows.groupby([*keys, "run"])["user"].transform("nunique")
    return rows[people == people.groupby([rows[key] for key in keys]).transform("max")]


def cell(rows: pd.DataFrame, measure: str) -> Cell:
    """One measure of one method, as in the paper's tables: costs and lengths count STOP.

    ``rows`` have user, run, success, cost and length (STOP not counted); rows without success
    count for validity alone.
    """
    if rows.empty:
        return NOTHING
    if measure == "validity":
        values = rows.assign(value=rows["success"].astype(float))
    else:
        values = rows[rows["success"]].assign(value=lambda part: part[measure] + STOP)
    if values.empty:
        return NOTHING
    each = values.groupby("user")["value"]
    means = each.mean().to_numpy(float)
    # As published, a user with a single success spreads by 0.
    several = rows["run"].nunique() > 1
    spread = float(np.sqrt(each.var(ddof=1).fillna(0.0).mean())) if several else np.nan
    known = over_users(means)
    return Cell(known.mean, spread, known.low, known.high, known.n)


def over_users(values: Floats) -> Estimate:
    """A mean over users ``(n,)`` with its 95% interval, made by resampling them; NaN of nobody.

    >>> over_users(np.ones(5)).low
    1.0
    """
    known = estimate(values, np.random.default_rng(0))
    return known or Estimate(0, np.nan, np.nan, np.nan)


def user_costs(rows: pd.DataFrame) -> pd.Series:
    """The mean cost of each user over its successful runs, STOP not counted."""
    costs: pd.Series = rows[rows["success"].astype(bool)].groupby("user")["cost"].mean()
    return costs


@dataclass(frozen=True)
class Paired:
    """Two systems on the users both solve: mean costs (STOP not counted), their ratio with a 95%
    interval over users, and the shares of users served cheaper, equally, dearer."""

    users: int
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    cheaper: float
    equal: float
    dearer: float


def paired(ours: pd.Series, theirs: pd.Series) -> Paired | None:
    """Costs by user of ours and of another system; None where no user has both.

    >>> paired(pd.Series([1.0, 6.0]), pd.Series([2.0, 6.0])).ratio
    0.875
    """
    both = pd.concat({"ours": ours, "theirs": theirs}, axis=1).dropna()
    if both.empty:
        return None
    mine, other = both["ours"].to_numpy(float), both["theirs"].to_numpy(float)
    ratio = ratio_estimate(mine, other, np.random.default_rng(0))
    assert ratio is not None
    gap = mine - other
    return Paired(
        len(both),
        float(mine.mean()),
        float(other.mean()),
        ratio.mean,
        ratio.low,
        ratio.high,
        float((gap < -EQUAL).mean()),
        float((np.abs(gap) <= EQUAL).mean()),
        float((gap > EQUAL).mean()),
    )


def published_regret(cost: pd.Series, best: pd.Series, worst: pd.Series) -> pd.Series:
    """The regret of the paper's figure, by user: (cost - best) / (worst - best), clipped to [0, 1].

    Users whom not all three solve are left out, 0 / 0 is undefined and dropped, and a user whose
    room (worst - best) is negative counts as 1.

    >>> cost, best, worst = [5.0, 2.0, 9.0], [5.0, 1.0, 4.0], [5.0, 3.0, 2.0]
    >>> published_regret(pd.Series(cost), pd.Series(best), pd.Series(worst)).tolist()
    [0.5, 1.0]
    """
    known = pd.concat({"cost": cost, "best": best, "worst": worst}, axis=1).dropna()
    room, above = known["worst"] - known["best"], known["cost"] - known["best"]
    known, room, above = _defined(known, room, above)
    regret = np.where(room < 0, 1.0, np.clip(above / room, 0.0, 1.0))
    return pd.Series(regret, index=known.index)


def _defined(
    known: pd.DataFrame, room: pd.Series, above: pd.Series
) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    defined = ~((room == 0) & (above == 0))
    return known[defined], room[defined].replace(0.0, 1e-300), above[defined]


def optimum_of(rows: pd.DataFrame) -> pd.Series:
    """The true optimum of each user, by (dataset, classifier, users, user)."""
    keys = ["dataset", "classifier", "users", "user"]
    known = rows[(rows["method"] == "exact-true") & rows["success"]]
    optimum: pd.Series = known.groupby(keys)["cost"].first()
    return optimum


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
