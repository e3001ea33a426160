"""How fast does regret fall with questions? (Paper, figure average-regret)

The paper's normalised regret lies between the plan for the true weights (0) and the plan for
the prior mean (1) of the same planner. Beside it: the excess over the true optimum, which
the exact search knows and the paper could only approximate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pear.datasets.published import published_averages
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.figures import Picture, panels, style
from pear.experiments.profiles import Profile
from pear.experiments.published import FINAL_REGRET, STOP
from pear.experiments.registry import dataset_label, find_method
from pear.experiments.render import Table
from pear.experiments.runner import make_tasks
from pear.experiments.summary import bootstrap_interval, optimum_of
from pear.experiments.tasks import Task

METHODS = ("pear-nl", "pear-l", "pear-exact-nl", "pear-exact-l")
SHOWN = (-0.4, 1.6)
"""Normalised regrets that are drawn."""
ROOM = 1e-6
"""Users for whom the two ends of the scale lie no further apart than this are left out."""


def tasks(profile: Profile) -> list[Task]:
    """PEAR with choice sets of each size on the users All, and their true optimum."""
    asked = make_tasks(profile, profile.only(METHODS), user_sets=("all",), ks=profile.ks)
    return asked + make_tasks(profile, profile.only(("exact-true",)), user_sets=("all",))


def regrets(rows: pd.DataFrame) -> pd.DataFrame:
    """Conversation rows with ``regret`` (normalised; NaN without room) and ``excess``.

    ``excess`` is the cost over the true optimum, as a share of it.
    """
    keys = ["dataset", "classifier", "users", "user"]
    optimum = optimum_of(rows).rename("optimum").reset_index()
    asked = rows[rows["k"] > 0].merge(optimum, on=keys, how="left")
    room = asked["cost_for_mean"] - asked["cost_for_truth"]
    asked["regret"] = ((asked["cost"] - asked["cost_for_truth"]) / room).where(room.abs() > ROOM)
    asked["regret"] = asked["regret"].where(room > ROOM)
    asked["excess"] = asked["cost"] - asked["optimum"]
    return asked


def curve(rows: pd.DataFrame) -> pd.DataFrame:
    """Per number of questions: mean over users of normalised regret, and excess in percent."""
    lines = []
    for questions, part in rows.groupby("questions"):
        each = part.groupby("user")["regret"].mean().dropna().to_numpy(float)
        paired = part[part["success"] & part["optimum"].notna()]
        excess = (paired.groupby("user")["cost"].mean()).sum()
        best = (paired.groupby("user")["optimum"].mean()).sum()
        low, high = bootstrap_interval(each) if len(each) else (np.nan, np.nan)
        lines.append(
            {
                "questions": questions,
                "regret": each.mean() if len(each) else np.nan,
                "median": float(np.median(each)) if len(each) else np.nan,
                "low": low,
                "high": high,
                "excess": 100.0 * (excess / best - 1.0) if best else np.nan,
                "with_room": len(each),
                "users": part["user"].nunique(),
            }
        )
    return pd.DataFrame(lines)


def published_regrets(
    outcomes: pd.DataFrame, response: str, k: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Costs of the published system by user and number of questions, and its normalised regret:
    between its own plans for the prior mean and for the true weights, of users with room."""
    truth = outcomes[outcomes["response"] == "GT"].set_index("user")["mean_cost_of_successes"]
    asked = outcomes[(outcomes["response"] == response) & (outcomes["k"] == k)]
    wide = asked.pivot(index="user", columns="questions", values="mean_cost_of_successes")
    truth = truth.reindex(wide.index)
    room = wide[0] - truth
    return wide, wide.sub(truth, axis=0).div(room, axis=0)[room > ROOM]


def published_curve(rows: pd.DataFrame, response: str, k: int) -> pd.DataFrame:
    """The published system's curve for the same users, from its own outcomes."""
    outcomes = published_averages()
    wide, scaled = published_regrets(outcomes[outcomes["user"].isin(rows["user"])], response, k)
    best = rows.groupby("user")["optimum"].first().reindex(wide.index) + STOP
    lines = pd.DataFrame({"questions": wide.columns, "regret": scaled.mean().to_numpy(float)})
    return lines.assign(
        median=scaled.median().to_numpy(float),
        excess=[100.0 * (wide[q].sum() / best[wide[q].notna()].sum() - 1.0) for q in wide.columns],
        with_room=len(scaled),
        users=len(wide),
    )


def report(material: Material) -> Report:
    """The curves, drawn and printed."""
    rows = regrets(material.rows)
    curves = all_curves(rows, material)
    tables = [_table(str(dataset), part) for dataset, part in curves.groupby("dataset", sort=False)]
    return Report(
        "How fast does regret fall with questions?",
        (
            "Normalised regret: 0 is the planner's own plan for the true weights, 1 its plan for "
            "the prior mean; users with no room between the two (none, less than none because the "
            "planner does better for the wrong weights, or no plan for one of them) are left out "
            "and counted. A user with very little room can outweigh all others in the mean, so a "
            "median is given. The right panels show what the paper could not: how far the mean "
            "cost is above the mean optimum (each feature changed once), STOP not counted. "
            "Planners whose own plan for the true weights is not the cheapest (W-FARE, and the "
            "published one, drawn from its own outcomes) can pass below 0; the exact one cannot "
            "where its plans are proven.",
        ),
        tuple(tables),
        (_picture(curves),),
        data={"regret_curves": curves},
    )


def all_curves(rows: pd.DataFrame, material: Material) -> pd.DataFrame:
    """Ours and, for published users, the published one; one row per point."""
    parts = []
    for key, part in rows.groupby(["dataset", "method", "k"], sort=False):
        dataset, name, k = (str(value) for value in key)
        method: Any = find_method(name)
        kind = {"noiseless": "NL", "logistic": "L"}[method.response]
        parts.append(curve(part).assign(dataset=dataset, label=f"{method.label}, k = {k}"))
        world = material.worlds.get(f"{dataset}-network-all")
        if world is not None and world.published and name in ("pear-exact-nl", "pear-exact-l"):
            theirs = published_curve(part, kind, int(k))
            theirs = theirs[theirs["questions"] <= material.profile.questions]
            parts.append(theirs.assign(dataset=dataset, label=f"Published PEAR, {kind}, k = {k}"))
    nothing = pd.DataFrame(columns=["dataset", "label"])
    return pd.concat(parts, ignore_index=True) if parts else nothing


def _table(dataset: str, curves: pd.DataFrame) -> Table:
    asked = sorted(set(curves["questions"].tolist()))
    shown = [q for q in asked if q in (0, 1, 2, 3, 4, 6, 8, 10)]
    rows = []
    for label, part in curves.groupby("label", sort=False):
        points = part.set_index("questions")
        final = points.loc[max(points.index)]
        paper = next(
            (
                f"≈ {value:.2f}"
                for (name, response, k), value in FINAL_REGRET.items()
                if name == dataset
                and "PEAR (exact)" not in str(label)
                and str(label).endswith(f"k = {k}")
                and (", NL" in str(label) or "(NL)" in str(label)) == (response == "noiseless")
            ),
            "-",
        )
        rows.append(
            (
                str(label),
                *(f"{points['regret'].get(q, np.nan):.2f}" for q in shown),
                f"{final.get('median', np.nan):.2f}",
                paper,
                f"{final['excess']:.1f}%",
                f"{int(final['users'] - final['with_room'])} of {int(final['users'])}",
            )
        )
    return Table(
        f"regret-{dataset.replace(':', '.')}",
        f"Normalised regret after each number of questions: {dataset_label(dataset)}, All",
        (
            "Method",
            *(f"T = {q}" for q in shown),
            "Median at the end",
            "Paper, T = 10",
            "Above the optimum at the end",
            "Users without room",
        ),
        tuple(rows),
    )


def _picture(curves: pd.DataFrame) -> Picture:
    datasets = list(dict.fromkeys(curves["dataset"].tolist())) or [""]
    drawing, axes = panels(len(datasets), 3, width=4.0)
    for row, dataset in enumerate(datasets):
        part = curves[curves["dataset"] == dataset]
        for label, line in part.groupby("label", sort=False):
            noiseless = "NL" in str(label)
            look = _look(str(label))
            axis = axes[row, 0 if noiseless else 1]
            axis.plot(line["questions"], line["regret"], label=_short(str(label)), **look)
            if "exact" in str(label):
                axis.fill_between(
                    line["questions"], line["low"], line["high"], color=look["color"], alpha=0.12
                )
            if not noiseless:
                axes[row, 2].plot(line["questions"], line["excess"], **look)
        name = dataset_label(str(dataset))
        axes[row, 0].set_title(f"{name}: normalised regret, noiseless", fontsize=9)
        axes[row, 1].set_title(f"{name}: normalised regret, logistic", fontsize=9)
        axes[row, 2].set_title(f"{name}: above the optimum, %, logistic", fontsize=9)
        axes[row, 2].set_yscale("symlog", linthresh=1.0)
        for axis in axes[row, :2]:
            bottom, top = axis.get_ylim()
            axis.set_ylim(max(bottom, SHOWN[0]), min(top, SHOWN[1]))
        for axis in axes[row]:
            axis.set_xlabel("questions", fontsize=8)
            axis.xaxis.get_major_locator().set_params(integer=True)
        axes[row, 0].legend(fontsize=6.5, frameon=False)
    return Picture(
        "regret",
        "Regret against questions",
        "Curves of normalised regret and of cost above the optimum, for choice sets of two (solid) "
        "and four plans (dashed) and both response models; bands are 95% over users, of PEAR "
        "(exact). "
        f"Normalised regret is drawn from {SHOWN[0]:g} to {SHOWN[1]:g}; means beyond, which a user "
        "with hardly any room can cause, stand in the tables.",
        drawing,
    )


def _short(label: str) -> str:
    return label.replace(" (NL)", "").replace(" (L)", "").replace(", NL", "").replace(", L", "")


def _look(label: str) -> dict[str, Any]:
    """Colour and marker by system, line by k."""
    number = 0 if "exact" in label else 7 if label.startswith("Published") else 1
    return style(number) | {"linestyle": "--" if label.endswith("k = 4") else "-"}


EXPERIMENT = Experiment("regret", tasks, report)
