"""How are rows of users and runs summed up? As the paper does, and honestly beside it.

The paper averages each user over its successful runs, then over users; its ± is the spread
of a user over runs, averaged over users. Beside it stands a 95% confidence interval over
users (bootstrap), which says how sure the mean is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 2_000
LEAST_VALIDITY = 0.2
"""Methods that solve fewer users than this do not decide which users all methods solve."""


@dataclass(frozen=True)
class Figure95:
    """A mean over users, the spread of a user over runs, and a 95% interval over users."""

    mean: float
    spread: float
    low: float
    high: float
    users: int


NOTHING = Figure95(np.nan, np.nan, np.nan, np.nan, 0)


def final(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows after the last question of each method."""
    last = rows.groupby(["method", "k", "corruption"])["questions"].transform("max")
    return rows[rows["questions"] == last]


def summed_up(rows: pd.DataFrame, column: str, shift: float = 0.0) -> Figure95:
    """One measure of one method; rows without success count for validity alone."""
    if rows.empty:
        return NOTHING
    if column == "validity":
        values = rows.assign(value=rows["success"].astype(float))
    else:
        values = rows[rows["success"]].assign(value=lambda part: part[column] + shift)
    if values.empty:
        return NOTHING
    each = values.groupby("user")["value"]
    means = each.mean().to_numpy(float)
    low, high = bootstrap_interval(means)
    return Figure95(float(means.mean()), float(each.std(ddof=0).mean()), low, high, len(means))


def bootstrap_interval(values: Floats, resamples: int = RESAMPLES) -> tuple[float, float]:
    """A 95% interval of the mean, by resampling users.

    >>> bootstrap_interval(np.ones(5))
    (1.0, 1.0)
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(values), size=(resamples, len(values)))
    means = values[drawn].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


@dataclass(frozen=True)
class Common:
    """Users whom all lines of a table solve in some run: ``users`` by every line with a validity
    of at least :data:`LEAST_VALIDITY`, ``strictly`` by every one; ``left_out`` are the others."""

    users: frozenset[int]
    strictly: frozenset[int]
    left_out: tuple[str, ...]


def solved_by_all(lines: Mapping[str, pd.DataFrame]) -> Common:
    """Users of one world whom every line of a table solves; ``lines`` are its rows by label."""
    solved = {
        label: frozenset(part.loc[part["success"], "user"].tolist())
        for label, part in lines.items()
    }
    good = [label for label in lines if lines[label]["success"].mean() >= LEAST_VALIDITY]
    everybody = frozenset(user for part in lines.values() for user in part["user"].tolist())
    return Common(
        everybody.intersection(*(solved[label] for label in good)),
        everybody.intersection(*solved.values()),
        tuple(label for label in lines if label not in good),
    )


def optimum_of(rows: pd.DataFrame) -> pd.Series:
    """The true optimum of each user, by (dataset, classifier, users, user)."""
    keys = ["dataset", "classifier", "users", "user"]
    known = rows[(rows["method"] == "exact-true") & rows["success"]]
    optimum: pd.Series = known.groupby(keys)["cost"].first()
    return optimum
