"""Whom of the paper's own users do we serve better than its system did, and whom worse?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from pear.datasets.published import published_averages
from pear.experiments.experiment import Material
from pear.experiments.published import STOP
from pear.experiments.registry import find_method
from pear.experiments.render import Table
from pear.experiments.summary import final

EQUAL = 0.01
"""Costs closer than this are equal; published ones are rounded."""

AGAINST = {
    "pear-nl": ("NL", 2),
    "pear-l": ("L", 2),
    "pear-exact-nl": ("NL", 2),
    "pear-exact-l": ("L", 2),
    "exact-true": ("GT", 0),
    "wfare-true": ("GT", 0),
}
"""Which published outcome a method is held against: response model and k."""


def user_by_user(material: Material) -> tuple[list[Table], dict[str, pd.DataFrame]]:
    """Shares of users cheaper, equal and dearer, and the users one by one."""
    compared = compare(material)
    if compared.empty:
        return [], {}
    rows = []
    for method, part in compared.groupby("method", sort=False):
        both = part[part["ours"].notna() & part["published"].notna()]
        verdicts = both["verdict"].value_counts(normalize=True)
        rows.append(
            (
                find_method(str(method)).label,
                str(part["against"].iloc[0]),
                str(len(part)),
                *(f"{verdicts.get(v, 0.0):.0%}" for v in ("cheaper", "equal", "dearer")),
                f"{both['ours'].mean():.1f}",
                f"{both['published'].mean():.1f}",
                f"{part['ours'].isna().sum()} / {part['published'].isna().sum()}",
            )
        )
    shares = Table(
        "published-users",
        "The published Adult users: cheaper, equal, dearer",
        (
            "Method",
            "Against",
            "Users",
            "Cheaper",
            "Equal",
            "Dearer",
            "Cost",
            "Paper's cost",
            "Unsolved (ours / paper's)",
        ),
        tuple(rows),
        (
            "A user's cost is the mean over its successful runs, STOP counted; the paper's is "
            "what its system returned for the same user, classifier and true weights.",
        ),
    )
    return [shares, _single(compared)], {"user_by_user": compared}


def compare(material: Material) -> pd.DataFrame:
    """One row per published user and method: our cost and the published one."""
    world = next((w for w in material.worlds.values() if w.published), None)
    if world is None:
        return pd.DataFrame()
    rows = final(material.rows)
    rows = rows[(rows["dataset"] == world.dataset) & (rows["users"] == world.users)]
    rows = rows[rows["classifier"] == world.classifier]
    outcomes = published_averages()
    parts = []
    for method, (response, k) in AGAINST.items():
        mine = rows[rows["method"] == method]
        if mine.empty:
            continue
        theirs = outcomes[(outcomes["response"] == response) & (outcomes["k"] == k)]
        if response != "GT":
            theirs = theirs[theirs["questions"] == material.profile.questions]
        users = sorted(set(mine["user"].tolist()))
        ours = mine[mine["success"]].groupby("user")["cost"].mean() + STOP
        paper = theirs.set_index("user")["mean_cost_of_successes"]
        table = pd.DataFrame(
            {
                "user": users,
                "method": method,
                "against": {"GT": "given the true weights"}.get(response, f"{response}, k = {k}"),
                "ours": ours.reindex(users).to_numpy(float),
                "published": paper.reindex(users).to_numpy(float),
            }
        )
        gap = table["ours"] - table["published"]
        table["verdict"] = np.select(
            [gap.isna(), gap < -EQUAL, gap > EQUAL], ["-", "cheaper", "dearer"], "equal"
        )
        parts.append(table)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _single(compared: pd.DataFrame) -> Table:
    shown = [m for m in ("pear-exact-l", "pear-l", "exact-true") if (compared["method"] == m).any()]
    wide = {m: compared[compared["method"] == m].set_index("user") for m in shown}
    rows = []
    for user in sorted(set(compared["user"].tolist())):
        cells: list[str] = [str(user)]
        for method in shown:
            row = wide[method].loc[user]
            costs = [float(row["ours"]), float(row["published"])]
            cells += ["-" if np.isnan(cost) else f"{cost:.1f}" for cost in costs]
            cells.append(str(row["verdict"]))
        rows.append(tuple(cells))
    columns = ["User"]
    for method in shown:
        columns += [find_method(method).label, "paper", ""]
    return Table(
        "user-by-user",
        "The published Adult users, one by one",
        tuple(columns),
        tuple(rows),
        folded=True,
    )
