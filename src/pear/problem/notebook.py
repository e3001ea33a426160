"""How do problems and plans look as tables, in notebooks and as pictures?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from pear.optional import require

if TYPE_CHECKING:
    from pear.problem.plan import Plan
    from pear.problem.problem import Problem

STEP_COLUMNS = (
    "words", "feature", "before", "after", "cost", "score_before", "score_after",
    "action", "argument", "reason", "weeks", "once", "monthly",
)  # fmt: skip
"""Columns of a plan's table; the last four only where something is known."""
ALWAYS = 9
"""The number of columns that are always there."""


def plan_frame(plan: Plan) -> pd.DataFrame:
    """The steps of a plan, a row each, numbered from 1."""
    rows = [asdict(step) for step in plan.steps]
    frame = pd.DataFrame(rows, columns=list(STEP_COLUMNS), dtype=object)
    numbers = ["cost", "score_before", "score_after", "weeks", "once", "monthly"]
    frame[numbers] = frame[numbers].astype(float)
    frame.index = pd.RangeIndex(1, len(rows) + 1, name="step")
    unknown = [name for name in STEP_COLUMNS[ALWAYS:] if not any(row[name] for row in rows)]
    return frame.drop(columns=unknown)


def problem_frame(problem: Problem) -> pd.DataFrame:
    """The features of a problem, a row each, with the actions that change them."""
    space, rows = problem.space, []
    for feature in space.features:
        own = [action for action in problem.actions.actions if action.feature == feature.name]
        parents = [parent for parent, child in problem.costs.edges if child == feature.name]
        rows.append(
            {
                "feature": feature.name,
                "kind": feature.kind,
                "values": ", ".join(feature.categories) or _range(feature.lower, feature.upper),
                "unit": feature.unit,
                "actions": "; ".join(
                    f"{a.name} ({a.mode} {', '.join(map(str, a.arguments))})" for a in own
                ),
                "harder with": ", ".join(parents),
            }
        )
    return pd.DataFrame(rows).set_index("feature")


def _range(lower: float | None, upper: float | None) -> str:
    if lower is None and upper is None:
        return ""
    if lower is None:
        return f"up to {upper:g}"
    return f"from {lower:g}" if upper is None else f"{lower:g} to {upper:g}"


def html_table(title: str, frame: pd.DataFrame, note: str = "") -> str:
    """A table with a title above and a note below, safe to put into a page."""
    table = frame.to_html(escape=True, na_rep="", float_format="{:.4g}".format)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<div><p><strong>{escape(title)}</strong></p>{table}{below}</div>"


def plan_title(plan: Plan) -> str:
    """A plan in a few words: "2 steps, cost 46.5, optimal"."""
    if not plan.success:
        return f"no plan, {plan.certificate.verdict}"
    if not plan.steps:
        return "nothing to change"
    steps = "1 step" if plan.length == 1 else f"{plan.length} steps"
    return f"{steps}, cost {plan.cost:.4g}, {plan.certificate.verdict}"


def plot_plan(plan: Plan, axes: Any = None) -> Any:
    """The cost of each step as a bar, in order from the top, with the score it leads to."""
    axes = axes or new_axes(plan.length)
    places = range(plan.length)
    axes.barh(places, [step.cost for step in plan.steps], color="#4c72b0")
    axes.set_yticks(places, [f"{i}. {step.words}" for i, step in enumerate(plan.steps, 1)])
    for place, step in zip(places, plan.steps, strict=True):
        axes.annotate(
            f"score {step.score_before:.2f} → {step.score_after:.2f}",
            (step.cost, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.6 * max((step.cost for step in plan.steps), default=1.0))
    axes.set_xlabel("cost")
    axes.set_title(plan_title(plan))
    return axes


def plot_ranges(names: Sequence[str], groups: Sequence[tuple[str, Any]], axes: Any = None) -> Any:
    """For each name, the mean and the middle 80% of each group's samples ``(s, len(names))``."""
    import numpy as np

    axes = axes or new_axes(len(names))
    for number, (label, samples) in enumerate(groups):
        low, high = np.quantile(samples, [0.1, 0.9], axis=0)
        places = np.arange(len(names)) + 0.3 * number
        colour = ("#b0b0b0", "#4c72b0")[number % 2]
        axes.hlines(places, low, high, color=colour, linewidth=4)
        axes.plot(np.mean(samples, axis=0), places, "o", color=colour, label=label)
    axes.set_yticks(np.arange(len(names)) + 0.15 * (len(groups) - 1), list(names))
    axes.invert_yaxis()
    axes.legend()
    return axes


def new_axes(lines: int) -> Any:
    """Empty axes, high enough for so many lines."""
    pyplot = require("matplotlib.pyplot")
    return pyplot.subplots(figsize=(10, 1.2 + 0.4 * max(1, lines)), layout="constrained")[1]
