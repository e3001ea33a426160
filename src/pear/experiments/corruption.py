"""What if the cost graph is partly wrong? (Paper, table error-causal)

Planner, policy and posterior see the graph without a share of its edges; answers and reported costs
use the full one. Which edges are removed is drawn anew for each run.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from pear.experiments.drawing import Table
from pear.experiments.experiment import Experiment, Material, Report, Task, find_method
from pear.experiments.profiles import Profile
from pear.experiments.run import make_tasks
from pear.experiments.summary import final, paired, user_costs
from pear.experiments.tables import Line, published_of, result_tables, where_words


def tasks(profile: Profile) -> list[Task]:
    """Logistic answers, k = 2, a growing share of the edges removed."""
    tasks = make_tasks(profile, profile.only(("exact-true",)))
    for name, users in (("pear-l", None), ("pear-exact-l", profile.few)):
        tasks += make_tasks(
            profile,
            profile.only((name,)),
            corruptions=(0.0, *profile.corruptions),
            runs=profile.corruption_runs,
            users=users,
        )
    return tasks


def corruption_lines(rows: pd.DataFrame, published: bool) -> list[Line]:
    """One line per method and share of edges removed."""
    lines = []
    asked = rows[rows["k"] > 0]
    for (name, removed), part in asked.groupby(["method", "corruption"], sort=False):
        method, share = find_method(str(name)), float(str(removed))
        label = f"{method.label}: {'none' if not share else f'{share:g}'}"
        theirs = published_of(part, method, published, share)
        lines.append(Line(label, part, theirs, method.published.upper().replace("_", "-"), share))
    return lines


def removed_edges(rows: pd.DataFrame) -> pd.DataFrame:
    """Each share of edges removed against none: the ratio of costs on users both solve.

    ``told`` is the same ratio of the plans that the same planner makes for the true weights, of
    which it sees those of the edges left: what the wrong graph costs before anybody is asked.
    """
    found = []
    asked = final(rows)
    asked = asked[asked["k"] > 0]
    for key, part in asked.groupby(["dataset", "users", "method"], sort=False):
        whole = part[part["corruption"] == 0]
        for share, wrong in part[part["corruption"] > 0].groupby("corruption"):
            kept = whole[whole["user"].isin(wrong["user"])]
            both = paired(user_costs(wrong), user_costs(kept))
            if both is None:
                continue
            told = paired(*(_told(part) for part in (wrong, kept)))
            found.append(
                {"dataset": key[0], "users": key[1], "line": find_method(str(key[2])).label}
                | {"corruption": share, "ratio": both.ratio, "low": both.low, "high": both.high}
                | {"validity_gap": wrong["success"].mean() - kept["success"].mean()}
                | {"people": both.users, "cost": both.ours, "whole": both.theirs}
                | {"told": np.nan if told is None else told.ratio}
                | {"told_cost": np.nan if told is None else told.ours}
                | {"unasked_cost": wrong.groupby("user")["cost_for_mean"].first().mean()}
            )
    return pd.DataFrame(found)


def _told(rows: pd.DataFrame) -> pd.Series:
    costs: pd.Series = rows.groupby("user")["cost_for_truth"].first()
    return costs


def _causes(removed: pd.DataFrame) -> Table:
    """Where the loss under a wrong graph comes from: the answers, or the graph."""
    texts = [
        (
            where_words(str(row.dataset), "network", str(row.users)),
            str(row.line),
            f"{row.corruption:g}",
            str(row.people),
            f"{row.whole:.0f}",
            f"{row.cost:.0f}",
            f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})",
            f"{row.unasked_cost:.0f}",
            f"{row.told_cost:.0f}",
            f"{row.told:.2f}",
        )
        for row in removed.itertuples()
    ]
    return Table(
        "corruption-causes",
        "Where the loss comes from",
        (
            "Users",
            "Method",
            "Edges removed",
            "Both solve",
            "Cost, whole graph",
            "Cost, edges removed",
            "Ratio (95%)",
            "No question asked",
            "Told the true weights",
            "Ratio, told",
        ),
        tuple(texts),
        (
            "Costs do not count STOP. *Told the true weights* is what the same planner's plan "
            "costs where it is given the person's true weights of the edges left, and *ratio, "
            "told* that against its plan for the true weights under the whole graph: what no "
            "answer can repair.",
        ),
    )


def report(material: Material) -> Report:
    tables, data = result_tables(
        "corruption",
        "Edges removed",
        "error-causal",
        material,
        corruption_lines,
        "Edges removed",
    )
    removed = removed_edges(material.rows)
    causes = (_causes(removed),) if len(removed) else ()
    return Report(
        "What if the cost graph is partly wrong?",
        (
            "Planner, policy and posterior see the graph without a share of its edges, "
            "`int(share × edges)` of them, others in each run; each has a policy trained for its "
            "graph. Answers and reported costs use the full one. As published, the cost term of "
            "the tree search is divided by 1e5 where edges are removed.",
        ),
        (*causes, *tables),
        data={"corruption_lines": data, "removed": removed},
    )


EXPERIMENT = Experiment("corruption", tasks, report)
