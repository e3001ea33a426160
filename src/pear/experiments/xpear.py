"""What do reasons for every step cost? (Paper, table xpear-results)"""

from __future__ import annotations

from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.profiles import EXPLAINED, Profile
from pear.experiments.runner import make_tasks
from pear.experiments.tables import result_tables
from pear.experiments.tasks import Task

METHODS = (
    "fare",
    "efare",
    "pear-nl",
    "pear-l",
    *EXPLAINED,
    "pear-exact-nl",
    "pear-exact-l",
    "exact-true",
)


def tasks(profile: Profile) -> list[Task]:
    """XPEAR and those it is compared with."""
    return make_tasks(profile, profile.only(METHODS))


def report(material: Material) -> Report:
    """Tables beside the paper's."""
    tables, differences = result_tables("xpear", "Explained plans", "xpear-results", material.rows)
    return Report(
        "What do reasons for every step cost?",
        (
            "XPEAR (NL) and (L) walk an automaton taught by W-FARE, one walk that ends at STOP or "
            "at a move that is not allowed, as published. XPEAR (exact teacher) is ours: taught by "
            "the certified search with plans that pass the required score by a margin, several "
            "walks side by side.",
        ),
        tuple(tables),
        (),
        tuple(differences),
    )


EXPERIMENT = Experiment("xpear", tasks, report)
