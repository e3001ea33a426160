"""Do users with a low score need longer plans, and get fewer? (Paper, figure score-vs-length)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from pear.experiments import competitors
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.figures import Picture, panels, style
from pear.experiments.published import STOP
from pear.experiments.registry import dataset_label, find_method
from pear.experiments.render import Table
from pear.experiments.summary import final

BINS = 5
ALIKE = ("pear-nl", "pear-exact-nl", "pear-slices-nl")
"""Left out to keep the panels readable; their rows are in the data."""


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


def report(material: Material) -> Report:
    """Length and validity over the classifier's score, all user sets together."""
    rows = final(material.rows)
    points = binned(rows[~rows["method"].isin(ALIKE)])
    return Report(
        "Do users with a low score need longer plans, and get fewer?",
        (
            "Users of all sets together, in fifths by the classifier's score; lengths count STOP. "
            "Where more than a fifth of the users have the same score, fifths fall together, and "
            "the empty ones are marked by a dash, as is the length where nobody got a plan.",
        ),
        (_table(points),),
        (_picture(points),),
        data={"score_bins": points},
    )


def _picture(points: pd.DataFrame) -> Picture:
    datasets = list(dict.fromkeys(points["dataset"].tolist()))
    drawing, axes = panels(2, len(datasets), width=4.6)
    for column, dataset in enumerate(datasets):
        part = points[points["dataset"] == dataset]
        for number, (name, line) in enumerate(part.groupby("method", sort=False)):
            look = style(number) | {"label": find_method(str(name)).label}
            axes[0, column].plot(line["score"], line["length"] + STOP, **look)
            axes[1, column].plot(line["score"], line["validity"], **look)
        axes[0, column].set_title(f"{dataset_label(str(dataset))}: length", fontsize=9)
        axes[1, column].set_title(f"{dataset_label(str(dataset))}: validity", fontsize=9)
        axes[1, column].set_ylim(-0.03, 1.03)
        for row in (0, 1):
            axes[row, column].set_xlabel("score of the classifier", fontsize=8)
    axes[0, -1].legend(fontsize=6.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return Picture(
        "score-length",
        "Score against length and validity",
        "Mean plan length and validity over the classifier's score, one curve per method.",
        drawing,
    )


def _table(points: pd.DataFrame) -> Table:
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


EXPERIMENT = Experiment("score-length", competitors.tasks, report)
