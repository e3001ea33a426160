"""What do length and score tell? (Paper, figures cost-vs-length and score-vs-length)

Does a longer plan cost more; do users with a low score need longer plans, and get fewer?
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from pear.experiments.drawing import (
    COLOURS,
    MOST_CURVES,
    CurveEnd,
    Picture,
    Table,
    leave_out_empty,
    name_curves,
    panels,
    style,
)
from pear.experiments.experiment import Experiment, Material, Report, dataset_label, find_method
from pear.experiments.summary import STOP, final
from pear.experiments.tables import COMPARED

GROUPS: dict[str, tuple[str, ...]] = {
    "PEAR": ("pear-nl", "pear-l"),
    "PEAR (exact)": ("pear-exact-nl", "pear-exact-l"),
    "all methods": (),
}
"""Rows of panels: whose plans; none named, everybody's."""
BINS = 5
CURVES = ("exact-true", "pear-exact-l", "pear-l", "fare", "cscf", "efare", "mcts", "rl", "face")
"""Methods to draw, the first that have rows; all are in the table."""
ALIKE = ("pear-nl", "pear-exact-nl", "pear-slices-l", "pear-published-l", "mcts-path", "fare-path")
"""Left out to keep the panels readable; their rows are in the data."""


def costs_report(material: Material) -> Report:
    """Costs of plans of each length: of the conversations, and of all methods."""
    rows = final(material.rows)
    rows = rows[rows["success"] & (rows["length"] > 0)]
    return Report(
        "Does a longer plan cost more?",
        ("Costs and lengths count 1 for STOP. Boxes are quartiles over users and runs.",),
        (_costs_table(rows),),
        (_costs_picture(rows),),
    )


def _costs_picture(rows: pd.DataFrame) -> Picture:
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
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.set_xlabel("number of steps, STOP counted", fontsize=8)
            axis.set_ylabel("cost", fontsize=8)
    leave_out_empty(axes)
    return Picture(
        "cost-length",
        "Cost against length",
        "Boxes of cost under the true weights for plans of each length, outliers not drawn: PEAR "
        "over W-FARE, PEAR over the exact planner, all methods. What was not run is left out.",
        drawing,
    )


def _costs_table(rows: pd.DataFrame) -> Table:
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


def binned(rows: pd.DataFrame) -> pd.DataFrame:
    """Per data set, method and fifth of the scores: mean score, length and validity."""
    parts = []
    for dataset, part in rows.groupby("dataset", sort=False):
        people = part.drop_duplicates(["users", "user"])
        edges = people["score"].quantile([i / BINS for i in range(1, BINS)]).to_numpy(float)
        number = edges.searchsorted(part["score"].to_numpy(float), side="left")
        grouped = part.assign(bin=number).groupby(["method", "bin"], sort=False)
        parts.append(
            grouped.agg(
                score=("score", "mean"), length=("length", "mean"), validity=("success", "mean")
            )
            .reset_index()
            .assign(dataset=dataset)
        )
    return pd.concat(parts, ignore_index=True).sort_values(["dataset", "method", "bin"])


def scores_report(material: Material) -> Report:
    """Length and validity over the classifier's score, all user sets together."""
    rows = final(material.rows)
    points = binned(rows[~rows["method"].isin(ALIKE)])
    return Report(
        "Do users with a low score need longer plans, and get fewer?",
        (
            "Users of all sets together, in fifths by the classifier's score; lengths count STOP. "
            "Where more than a fifth of the users have the same score, fifths fall together: a "
            "dash marks a fifth without users, and a length where nobody got a plan.",
        ),
        (_scores_table(points),),
        (_scores_picture(points),),
        data={"score_bins": points},
    )


def _scores_picture(points: pd.DataFrame) -> Picture:
    datasets = list(dict.fromkeys(points["dataset"].tolist()))
    there = set(points["method"].tolist())
    shown = [name for name in CURVES if name in there][:MOST_CURVES]
    drawing, axes = panels(2, len(datasets), width=5.4)
    for column, dataset in enumerate(datasets):
        part = points[points["dataset"] == dataset]
        for row, measure in enumerate(("length", "validity")):
            ends = []
            for number, name in enumerate(shown):
                line = part[(part["method"] == name) & part[measure].notna()]
                if len(line):
                    values = line[measure] + (STOP if measure == "length" else 0)
                    axes[row, column].plot(line["score"], values, **style(number))
                    x, y = float(line["score"].iloc[-1]), float(values.iloc[-1])
                    ends.append(CurveEnd(x, y, find_method(name).label, style(number)["color"]))
            if measure == "validity":
                axes[row, column].set_ylim(-0.03, 1.08)
            else:
                axes[row, column].yaxis.get_major_locator().set_params(integer=True)
            name_curves(axes[row, column], ends)
        axes[0, column].set_title(f"{dataset_label(str(dataset))}: number of steps", fontsize=9)
        axes[1, column].set_title(f"{dataset_label(str(dataset))}: validity", fontsize=9)
        for row in (0, 1):
            axes[row, column].set_xlabel("score of the classifier", fontsize=8)
    return Picture(
        "score-length",
        "Score against length and validity",
        f"Mean number of steps and validity over the classifier's score, of {MOST_CURVES} methods.",
        drawing,
    )


def _scores_table(points: pd.DataFrame) -> Table:
    texts = []
    for (dataset, name), part in points.groupby(["dataset", "method"], sort=False):
        cells = part.set_index("bin")
        texts.append(
            (
                dataset_label(str(dataset)),
                find_method(str(name)).label,
                *(
                    f"{cells['validity'][b]:.2f} / {_length(cells['length'][b])}"
                    if b in cells.index
                    else "-"
                    for b in range(BINS)
                ),
            )
        )
    return Table(
        "score-length",
        "Validity / length by fifths of the score, lowest first",
        ("Data set", "Method", *(f"fifth {b + 1}" for b in range(BINS))),
        tuple(texts),
    )


def _length(mean: float) -> str:
    return "-" if np.isnan(mean) else f"{mean + STOP:.1f}"


COSTS = Experiment("cost-length", COMPARED.tasks, costs_report)
SCORES = Experiment("score-length", COMPARED.tasks, scores_report)
