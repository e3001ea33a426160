"""How is training going? One line per iteration, and the curves as a table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Progress:
    """One line of the training curve; validation figures are of the latest validation."""

    iteration: int
    seconds: float
    loss: float
    training_success: float
    validation_success: float
    validation_cost: float
    validation_loss: float
    best: bool


def write_curves(history: Sequence[Progress], path: str | Path) -> None:
    """Write the training curve as CSV, one row per iteration."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Progress)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in history)
