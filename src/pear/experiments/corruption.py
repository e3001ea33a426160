"""What if the cost graph is partly wrong? (Paper, table error-causal)"""

from __future__ import annotations

import pandas as pd

from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.profiles import Profile
from pear.experiments.registry import find_method
from pear.experiments.runner import make_tasks
from pear.experiments.tables import Line, result_tables
from pear.experiments.tasks import Task

METHODS = ("pear-l", "pear-exact-l")


def tasks(profile: Profile) -> list[Task]:
    """Logistic answers, k = 2, a growing share of the edges removed; a run removes others."""
    return make_tasks(
        profile,
        profile.only(METHODS),
        corruptions=(0.0, *profile.corruptions),
        runs=profile.corruption_runs,
    )


def lines(rows: pd.DataFrame) -> list[Line]:
    """One line per method and share of edges removed."""
    found = []
    for (name, removed), part in rows.groupby(["method", "corruption"], sort=False):
        method, share = find_method(str(name)), float(str(removed))
        label = "none" if not share else f"{share:g}"
        line = f"{method.label}: {label}"
        found.append(Line(line, part, method.published, method.why, share, method.label))
    return found


def report(material: Material) -> Report:
    """Tables beside the paper's."""
    tables, differences = result_tables(
        "corruption", "Edges removed", "error-causal", material.rows, "Corruption", lines
    )
    return Report(
        "What if the cost graph is partly wrong?",
        (
            "Planner and posterior see the graph with a share of its edges removed (for one run "
            "the removals are nested; each run removes others), while answers and reported costs "
            "use the full graph. The policy of W-FARE is not retrained for the corrupted graph: "
            "it is given the costs this graph predicts. (The published program has a policy "
            "trained for each share, and removes the same edges in every run.)",
        ),
        tuple(tables),
        (),
        tuple(differences),
    )


EXPERIMENT = Experiment("corruption", tasks, report)
