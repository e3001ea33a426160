"""What did it all cost? Rows asked of the classifier and seconds, per method."""

from __future__ import annotations

import pandas as pd

from pear.experiments.registry import dataset_label, find_method
from pear.experiments.render import Table


def effort_table(rows: pd.DataFrame, training: dict[str, float]) -> Table:
    """Means per user of the finished conversation or plan; network classifiers, k = 2 or none."""
    chosen = rows[(rows["k"] <= 2) & (rows["corruption"] == 0)]
    keys = ["dataset", "users", "method", "classifier"]
    last = chosen.groupby(keys)["questions"].transform("max")
    chosen = chosen[(chosen["questions"] == last) & (chosen["classifier"] == "network")]
    texts = []
    for name, part in chosen.groupby("method", sort=False):
        method = find_method(str(name))
        for (dataset, users), cell in part.groupby(["dataset", "users"], sort=False):
            texts.append(
                (
                    getattr(method, "label", str(name)),
                    f"{dataset_label(str(dataset))}, {str(users).title()}",
                    f"{cell['rows'].mean():,.0f}",
                    f"{cell['seconds'].mean():.2f}",
                    str(int(cell["questions"].max())),
                )
            )
    notes = ["Seconds are of one process on the machine that ran it, beside whatever else ran."]
    if training:
        spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in training.items())
        notes.append(f"Training, done once and kept in the cache: {spent}.")
    return Table(
        "effort",
        "What it cost: rows asked and seconds per user",
        ("Method", "Users", "Rows asked", "Seconds", "Questions"),
        tuple(texts),
        tuple(notes),
    )
