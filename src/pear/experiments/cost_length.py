"""Does a longer plan cost more? (Paper, figure cost-vs-length)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from pear.experiments import competitors
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.figures import COLOURS, Picture, panels
from pear.experiments.published import STOP
from pear.experiments.registry import dataset_label, find_method
from pear.experiments.render import Table
from pear.experiments.summary import final

GROUPS: dict[str, tuple[str, ...]] = {
    "PEAR": ("pear-nl", "pear-l"),
    "PEAR (exact)": ("pear-exact-nl", "pear-exact-l"),
    "all methods": (),
}
"""Rows of panels: whose plans; none named, everybody's."""


def report(material: Material) -> Report:
    """Costs of plans of each length: of the conversations, and of all methods."""
    rows = final(material.rows)
    rows = rows[rows["success"] & (rows["length"] > 0)]
    return Report(
        "Does a longer plan cost more?",
        ("Costs and lengths count 1 for STOP. Boxes are quartiles over users and runs.",),
        (_table(rows),),
        (_picture(rows),),
    )


def _picture(rows: pd.DataFrame) -> Picture:
    worlds = list(rows.groupby(["dataset", "users"], sort=False)) or [(("", ""), rows)]
    drawing, axes = panels(len(GROUPS), len(worlds), width=3.6)
    for column, ((dataset, users), part) in enumerate(worlds):
        for row, (group, names) in enumerate(GROUPS.items()):
            chosen = part[part["method"].isin(names)] if names else part
            axis = axes[row, column]
            lengths = sorted(set(chosen["length"].tolist()))
            if lengths:
                boxes = axis.boxplot(
                    [chosen.loc[chosen["length"] == n, "cost"] + STOP for n in lengths],
                    positions=[n + STOP for n in lengths],
                    widths=0.6,
                    patch_artist=True,
                    showfliers=False,
                    manage_ticks=False,
                )
                for box in boxes["boxes"]:
                    box.set(facecolor=COLOURS[5], edgecolor="black", linewidth=0.8)
                for median in boxes["medians"]:
                    median.set(color="black", linewidth=1.6)
            axis.set_title(
                f"{dataset_label(str(dataset))}, {str(users).title()}: {group}", fontsize=9
            )
            axis.set_xlabel("length", fontsize=8)
            axis.set_ylabel("cost under the true weights", fontsize=8)
    return Picture(
        "cost-length",
        "Cost against length",
        "Boxes of cost for plans of each length, outliers not drawn: PEAR over W-FARE, PEAR over "
        "the exact planner, all methods.",
        drawing,
    )


def _table(rows: pd.DataFrame) -> Table:
    lengths = sorted(set(rows["length"].tolist()))
    texts = []
    for (dataset, users, name), part in rows.groupby(["dataset", "users", "method"], sort=False):
        costs = part.groupby("length")["cost"].mean() + STOP
        constant = part["length"].nunique() < 2 or part["cost"].nunique() < 2
        related = np.nan if constant else part["length"].corr(part["cost"], method="spearman")
        texts.append(
            (
                f"{dataset_label(str(dataset))}, {str(users).title()}",
                find_method(str(name)).label,
                *(f"{costs[n]:.0f}" if n in costs else "-" for n in lengths),
                "-" if np.isnan(related) else f"{related:.2f}",
            )
        )
    return Table(
        "cost-length",
        "Mean cost of plans of each length",
        ("Users", "Method", *(f"{n + STOP:.0f}" for n in lengths), "Rank correlation"),
        tuple(texts),
    )


EXPERIMENT = Experiment("cost-length", competitors.tasks, report)
