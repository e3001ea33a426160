"""How is an audit shown to a person? One page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from pear.portfolio.audit.report import (
    MEASURES,
    MORE_IS_WORSE,
    OF_PLANS,
    SHARES,
    Attribute,
    Cell,
    Report,
    capital,
    flipped_words,
    group_words,
    harder,
    show,
    shown_p,
)

VERDICTS = {
    "optimal": "have a plan that is proved to be their easiest",
    "bounded": "have a plan that may not be their easiest",
    "heuristic": "have a plan that may not be their easiest",
    "infeasible": "are proved to have none",
    "unknown": "have neither a plan nor a proof that there is none",
}
"""What is known of somebody who was refused."""


def page(report: Report, made: date | None = None) -> str:
    """The report as a self-contained HTML page, ``made`` today where no other day is named."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": "{:,}".format,
        "p": shown_p,
        "flipped": lambda flip: capital(flipped_words(flip)),
        "capital": capital,
    }
    made = made or date.today()
    nobody = all(part.unheard == report.talkers for part in report.attributes)
    return environment.get_template("page.html").render(
        report=report,
        made=f"{made.day} {made:%B %Y}",
        shown_of=shown_of,
        show=show,
        against=against,
        harder=harder,
        tested=tested(report),
        verdicts=VERDICTS,
        of_plans=OF_PLANS,
        nobody_placed=nobody,
    )


MOST_TICKS = 4
"""Most steps between the ends of a scale."""


@dataclass(frozen=True)
class Bar:
    """Where the interval of a group begins, how ``wide`` it is and where its mean is, in
    hundredths of the scale; ``mark`` tells who is worse off and who is better off."""

    low: str
    wide: str
    mean: str
    mark: str


@dataclass(frozen=True)
class Row:
    """One group's measure; the bar is None where the group is too small, or no group differs;
    ``mark`` tells whether it was found to be ``worse`` or ``better`` off."""

    label: str
    cell: Cell
    bar: Bar | None
    mark: str


@dataclass(frozen=True)
class Shown:
    """One measure by one attribute; ``scale`` are the ends of its bars, in words, ``ticks`` where
    round numbers are between them, in hundredths. ``empty`` groups have no row; ``without`` a plan
    are so many of the refused, who are not in it."""

    measure: str
    title: str
    about: str
    share: bool
    rows: list[Row]
    scale: tuple[str, str] | None
    ticks: tuple[str, ...]
    empty: int
    without: int


def shown_of(attribute: Attribute) -> list[Shown]:
    """The measures of which an attribute has anybody."""
    found = []
    for measure, (title, about) in MEASURES.items():
        rows = [(g.label, g.cells[measure]) for g in attribute.groups if measure in g.cells]
        present = [(label, cell) for label, cell in rows if cell.n]
        if present:
            share = measure in SHARES
            ticks = _ticks([cell for _, cell in present], share)
            drawn = [
                Row(label, cell, _bar(cell, measure, ticks), _mark(cell, measure))
                for label, cell in present
            ]
            scale = (show(ticks[0], share), show(ticks[-1], share)) if ticks else None
            places = tuple(f"{_place(tick, ticks):.1f}" for tick in ticks)
            empty = len(rows) - len(present)
            refused = sum(g.cells["plan"].n for g in attribute.groups if "plan" in g.cells)
            without = refused - sum(cell.n for _, cell in rows) if measure in OF_PLANS else 0
            facts = (share, drawn, scale, places, empty, without)
            found.append(Shown(measure, title, about, *facts))
    return found


def _ticks(cells: Sequence[Cell], share: bool) -> list[float]:
    """Round numbers, evenly spaced, that hold every interval; none where no difference was found.

    >>> from pear.statistics import Estimate
    >>> cells = [Cell(90, False, Estimate(90, 0.7, 0.62, 0.74), flagged=True)]
    >>> [round(tick, 2) for tick in _ticks(cells, share=True)]
    [0.6, 0.65, 0.7, 0.75]
    """
    known = [cell.estimate for cell in cells if cell.estimate is not None]
    if not any(cell.flagged for cell in cells):
        return []
    low, high = min(e.low for e in known), max(e.high for e in known)
    width = (high - low) or abs(high) or 1.0
    size = 10.0 ** floor(log10(width / MOST_TICKS))
    step = next(size * times for times in (1, 2, 5, 10) if width <= size * times * MOST_TICKS)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = [number * step for number in range(first, max(last, first + 1) + 1)]
    return [tick for tick in ticks if -1e-9 <= tick <= 1 + 1e-9] if share else ticks


def _place(value: float, ticks: Sequence[float]) -> float:
    return 100 * (value - ticks[0]) / (ticks[-1] - ticks[0])


def _mark(cell: Cell, measure: str) -> str:
    """Whether a group was found to be worse or better off than everybody else."""
    if not cell.flagged or cell.difference is None:
        return ""
    return "worse" if (cell.difference > 0) == (measure in MORE_IS_WORSE) else "better"


def _bar(cell: Cell, measure: str, ticks: Sequence[float]) -> Bar | None:
    if cell.estimate is None or not ticks:
        return None
    ends = cell.estimate.low, cell.estimate.mean, cell.estimate.high
    low, mean, high = (_place(value, ticks) for value in ends)
    mark = _mark(cell, measure) or "plain"
    return Bar(f"{low:.1f}", f"{max(high - low, 0.8):.1f}", f"{mean - 0.4:.1f}", mark)


def against(cell: Cell, measure: str) -> str:
    """How a group differs from everybody else, in words: the difference of what is shown.

    >>> from pear.statistics import Estimate
    >>> cell = Cell(90, False, Estimate(90, 0.7, 0.6, 0.8), difference=-0.194)
    >>> against(cell, "plan"), against(cell, "cost"), against(Cell(90, True), "length")
    ('19 percentage points fewer', 'about 22% less effort', '')
    """
    if cell.difference is None or cell.estimate is None:
        return ""
    mean, rest = cell.estimate.mean, cell.estimate.mean - cell.difference
    apart: float
    if measure == "cost":
        return harder(cell.difference, rest)
    if measure in SHARES:
        apart = round(100 * mean) - round(100 * rest)
        size, more, less = str(abs(apart)), "percentage points more", "percentage points fewer"
    else:
        apart = round(mean, 1) - round(rest, 1)
        size, more, less = f"{abs(apart):.1f}", "more", "less"
    if float(size) == 0:
        return "about the same"
    return f"{size} {more if apart > 0 else less}"


def tested(report: Report) -> list[tuple[str, str, Any]]:
    """Every comparison of the report: what of, of whom, and its probabilities."""
    return [
        (MEASURES[measure][0], capital(group_words(part, group.label)), cell)
        for part in report.attributes
        for group in part.groups
        for measure, cell in group.cells.items()
        if cell.adjusted is not None
    ]
