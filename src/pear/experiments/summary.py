"""How are rows of users and runs summed up? As the paper does, and by ours beside it.

The paper averages each user over its successful runs, then over users. Its ± is the square root
of the mean over users of the variance over runs: the spread of a user, which says nothing about
how sure the mean is. That is what the 95% intervals say, made by resampling users. Two systems
are compared on the users both solve, by the ratio of their mean costs, STOP not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pear.arrays import Floats, Indices

RESAMPLES = 2_000
STOP = 1.0
"""What published costs and lengths count for STOP; added to ours wherever they are compared."""
EQUAL = 0.01
"""Costs closer than this are equal; published ones are rounded."""
ROOM = 1e-6


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
    return Cell(float(means.mean()), spread, *bootstrap_interval(means), len(means))


def bootstrap_interval(values: Floats) -> tuple[float, float]:
    """A 95% interval of the mean, by resampling users.

    >>> bootstrap_interval(np.ones(5))
    (1.0, 1.0)
    """
    means = values[_resampled(len(values))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _resampled(n: int) -> Indices:
    return np.asarray(np.random.default_rng(0).integers(n, size=(RESAMPLES, n)), np.intp)


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
    drawn = _resampled(len(both))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.quantile(
            mine[drawn].mean(axis=1) / other[drawn].mean(axis=1), [0.025, 0.975]
        )
    gap = mine - other
    return Paired(
        len(both),
        float(mine.mean()),
        float(other.mean()),
        float(mine.mean() / other.mean()),
        float(low),
        float(high),
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
