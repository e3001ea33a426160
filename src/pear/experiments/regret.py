"""How fast does regret fall with questions? (Paper, figure average-regret)

By the paper's rule: between the planner's own plan for the true weights (0) and its plan before the
first question (1), by user and clipped. Beside it by ours: how far the mean cost lies above the
mean optimum, which the exact search knows and the paper could only approximate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pear.experiments.drawing import (
    MOST_CURVES,
    CurveEnd,
    Picture,
    Table,
    leave_out_empty,
    name_curves,
    panels,
    style,
)
from pear.experiments.experiment import (
    Experiment,
    Material,
    Report,
    Task,
    dataset_label,
    find_method,
)
from pear.experiments.profiles import Profile
from pear.experiments.run import make_tasks
from pear.experiments.summary import (
    optimum_of,
    over_users,
    paired,
    published_curve,
    published_regret,
    published_rows,
    user_costs,
)

METHODS = ("pear-nl", "pear-l", "pear-exact-nl", "pear-exact-l")
RESPONSES = {"noiseless": "NL", "logistic": "L"}
ANSWERING = {"NL": "answers without errors", "L": "answers with errors"}


def tasks(profile: Profile) -> list[Task]:
    """PEAR with choice sets of each size on the users All, and their true optimum."""
    where: dict[str, Any] = {"user_sets": ("all",)}
    tasks = []
    for k in profile.ks:
        exact = profile.few if k > 2 else None
        tasks += make_tasks(profile, profile.only(METHODS[:2]), ks=(k,), **where)
        tasks += make_tasks(profile, profile.only(METHODS[2:]), ks=(k,), users=exact, **where)
    return tasks + make_tasks(profile, profile.only(("exact-true",)), **where)


def curve(rows: pd.DataFrame, best: pd.Series) -> pd.DataFrame:
    """Per number of questions: regret by the paper's rule with its interval over users, the cost
    above the optimum as a share, and how many questions were answered.

    ``rows`` are those of one method and k; ``best`` is the optimum by user.
    """
    truth = rows.groupby("user")["cost_for_truth"].first()
    worst = user_costs(rows[rows["questions"] == 0])
    lines = []
    for questions, part in rows.groupby("questions"):
        costs = user_costs(part)
        each = published_regret(costs, truth, worst)
        known = over_users(each.to_numpy(float))
        both = paired(costs, best)
        lines.append(
            {
                "questions": questions,
                "regret": known.mean,
                "low": known.low,
                "high": known.high,
                "people": known.n,
                "above": both.ratio - 1.0 if both is not None else np.nan,
                "answered": part["answered"].mean(),
            }
        )
    return pd.DataFrame(lines)


def their_curve(dataset: str, response: str, k: int, best: pd.Series) -> pd.DataFrame:
    """The published system's, over all its users; above the optimum over ours."""
    name = f"pear_{response.lower()}"
    regrets = published_curve(dataset, name, k)
    above = []
    for questions in regrets.index:
        where = (dataset, "network", "all", name)
        both = paired(user_costs(published_rows(*where, k=k, questions=int(questions))), best)
        above.append(both.ratio - 1.0 if both is not None else np.nan)
    return pd.DataFrame(
        {"questions": regrets.index.astype(int), "regret": regrets.to_numpy(float), "above": above}
    )


def all_curves(material: Material) -> pd.DataFrame:
    """Ours and, for published users, the published one; one row per point."""
    optimum = optimum_of(material.rows)
    asked = material.rows[material.rows["k"] > 0]
    parts = []
    for key, part in asked.groupby(["dataset", "method", "k"], sort=False):
        dataset, name, k = (str(value) for value in key)
        method: Any = find_method(name)
        world = material.worlds[f"{dataset.replace(':', '.')}-network-all"]
        best = pd.Series(dtype=float)
        if dataset in optimum.index.get_level_values("dataset"):
            best = optimum.loc[(dataset, "network", "all")]
        response = RESPONSES[method.response]
        known: dict[str, Any] = {"dataset": dataset, "response": response, "k": int(k)}
        parts.append(curve(part, best).assign(system=_system(method.label), **known))
        if world.published and name in ("pear-nl", "pear-l"):
            theirs = their_curve(dataset, response, int(k), best)
            theirs = theirs[theirs["questions"] <= material.profile.questions]
            parts.append(theirs.assign(system="published PEAR", **known))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"dataset": []})


def _system(label: str) -> str:
    """A label without its response model, which the column beside it says.

    >>> _system("PEAR (exact), L"), _system("PEAR (L)")
    ('PEAR (exact)', 'PEAR')
    """
    for ending in (", NL", ", L", " (NL)", " (L)"):
        label = label.removesuffix(ending)
    return label


def report(material: Material) -> Report:
    """The curves, drawn and printed."""
    curves = all_curves(material)
    tables = [_table(str(dataset), part) for dataset, part in curves.groupby("dataset", sort=False)]
    return Report(
        "How fast does regret fall with questions?",
        (
            "Regret by the paper's rule: by user (cost − best) / (worst − best), where best is the "
            "same planner's plan for the true weights and worst its plan before the first "
            "question, clipped to 0 and 1, 1 where worst is below best, undefined values dropped. "
            "*Above the optimum* is ours: mean cost over mean optimum (each feature changed once, "
            "STOP not counted). A planner that may change a feature twice can go below 0%.",
        ),
        tuple(tables),
        (_picture(curves),),
        data={"regret_curves": curves},
    )


def _table(dataset: str, curves: pd.DataFrame) -> Table:
    shown = [q for q in (0, 1, 2, 3, 4, 6, 8, 10) if q in set(curves["questions"].tolist())]
    rows = []
    for (response, k, system), part in curves.groupby(["response", "k", "system"], sort=False):
        points = part.set_index("questions")
        last = points.loc[max(points.index)]
        rows.append(
            (
                str(system),
                f"{response}, k = {k}",
                *(f"{points['regret'].get(q, np.nan):.2f}" for q in shown),
                f"{last['low']:.2f} to {last['high']:.2f}" if last["low"] >= 0 else "-",
                f"{last['above']:.1%}",
                f"{last['answered']:.1f}" if last["answered"] >= 0 else "-",
            )
        )
    return Table(
        f"regret-{dataset.replace(':', '.')}",
        f"Regret after each number of questions: {dataset_label(dataset)}, All",
        (
            "System",
            "Answers",
            *(f"T = {q}" for q in shown),
            "95% at the end",
            "Above the optimum at the end",
            "Answered",
        ),
        tuple(rows),
    )


def _picture(curves: pd.DataFrame) -> Picture:
    datasets = list(dict.fromkeys(curves["dataset"].tolist())) or [""]
    drawing, axes = panels(len(datasets), 3, width=4.0)
    for row, dataset in enumerate(datasets):
        part = curves[curves["dataset"] == dataset]
        name = dataset_label(str(dataset))
        for column, response in enumerate(RESPONSES.values()):
            axis = axes[row, column]
            axis.set_title(f"{name}: regret, {ANSWERING[response]}", fontsize=9)
            if not len(part):
                continue
            chosen = part[part["response"] == response].groupby(["k", "system"], sort=True)
            ends: dict[str, list[CurveEnd]] = {"regret": [], "above": []}
            for (k, system), line in list(chosen)[:MOST_CURVES]:
                look, words = _look(str(system), int(str(k))), f"{system}, {k} plans"
                asked, last = line["questions"], line.iloc[-1]
                axis.plot(asked, line["regret"], **look)
                ends["regret"].append(
                    CurveEnd(last["questions"], last["regret"], words, look["color"])
                )
                if line["low"].notna().all():
                    axis.fill_between(
                        asked, line["low"], line["high"], color=look["color"], alpha=0.1
                    )
                if response == "L" and line["above"].notna().all():
                    axes[row, 2].plot(asked, 100 * line["above"], **look)
                    ends["above"].append(
                        CurveEnd(last["questions"], 100 * last["above"], words, look["color"])
                    )
            name_curves(axis, ends["regret"])
            if response == "L":
                axes[row, 2].set_yscale("symlog", linthresh=1.0)
                axes[row, 2].yaxis.set_major_formatter("{x:g}%")
                axes[row, 2].set_ylim(bottom=min(-0.5, 1.5 * axes[row, 2].dataLim.y0))
                name_curves(axes[row, 2], ends["above"])
        axes[row, 2].set_title(f"{name}: cost above the optimum, {ANSWERING['L']}", fontsize=9)
        for axis in axes[row]:
            axis.set_xlabel("questions", fontsize=8)
            axis.set_xticks(range(0, int(curves["questions"].max()) + 1, 2))
    leave_out_empty(axes)
    return Picture(
        "regret",
        "Regret against questions",
        "Regret by the paper's rule, and cost above the optimum, for choice sets of two (solid) "
        "and four plans (dashed); bands are 95% over users.",
        drawing,
    )


def _look(system: str, k: int) -> dict[str, Any]:
    """Colour and marker by system, line by k."""
    number = {"PEAR (exact)": 0, "published PEAR": 7}.get(system, 1)
    return style(number) | {"linestyle": "--" if k == 4 else "-"}


EXPERIMENT = Experiment("regret", tasks, report)
