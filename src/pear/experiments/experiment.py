"""What is an experiment, and what does it leave behind?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from pear.experiments.figures import Picture
from pear.experiments.profiles import Profile
from pear.experiments.render import Table
from pear.experiments.tables import Difference
from pear.experiments.tasks import Task
from pear.experiments.worlds import World


@dataclass(frozen=True)
class Material:
    """What an experiment reports on: its own rows, the worlds by key, the profile."""

    profile: Profile
    rows: pd.DataFrame
    worlds: dict[str, World]


@dataclass(frozen=True)
class Report:
    """What an experiment found: words, tables, pictures, and differences from the paper."""

    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    differences: tuple[Difference, ...] = ()
    data: dict[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper: its tasks, and the report made of their rows."""

    name: str
    tasks: Callable[[Profile], list[Task]]
    report: Callable[[Material], Report]
