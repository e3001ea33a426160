"""What is an experiment, and what does it leave behind?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from pear.experiments.drawing import Picture, Table
from pear.experiments.profiles import Profile
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
    """What an experiment found: words, tables, pictures, and tidy data."""

    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    data: dict[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper: its tasks, and the report made of their rows."""

    name: str
    tasks: Callable[[Profile], list[Task]]
    report: Callable[[Material], Report]
