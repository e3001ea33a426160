"""A data set and methods of somebody else's, which join by their import path."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pear.experiments.experiment import Task
from pear.experiments.methods import EXACT_MEAN
from pear.experiments.worlds import World, loan_book_world

PLACE = "PEAR_TEST_MARKERS"
"""Names the folder in which a method notes that its worker has died once already."""


def small_world(classifier: str, users: str) -> World:
    """A data set of five users; smaller than any profile asks for."""
    return loan_book_world(classifier, users).first(5)


@dataclass(frozen=True)
class LongWay:
    """A method with no more than it needs: a name, a label and ``solve``."""

    name: str = "long-way"
    label: str = "The long way"

    def solve(self, world: World, assets: dict[str, Any], task: Task) -> list[dict[str, Any]]:
        return [
            {"user": user, "questions": 0, "success": True, "cost": 1000.0 + user, "length": 9.0}
            for user in range(task.first, task.last)
        ]


@dataclass(frozen=True)
class DiesOnce:
    """As the exact planner, but its worker is killed the first time."""

    name: str = "dies-once"
    label: str = "Dies once"
    reseeds: str = "nothing"

    def solve(self, world: World, assets: dict[str, Any], task: Task) -> list[dict[str, Any]]:
        marker = Path(os.environ[PLACE]) / f"died-{task.first}"
        if task.first == 0 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return EXACT_MEAN.solve(world, assets, task)


@dataclass(frozen=True)
class Forgetful:
    """Claims success without a cost."""

    name: str = "forgetful"
    label: str = "Forgetful"

    def solve(self, world: World, assets: dict[str, Any], task: Task) -> list[dict[str, Any]]:
        return [
            {"user": user, "questions": 0, "success": True, "cost": float("nan"), "length": 1.0}
            for user in range(task.first, task.last)
        ]


LONG_WAY = LongWay()
DIES_ONCE = DiesOnce()
FORGETFUL = Forgetful()
