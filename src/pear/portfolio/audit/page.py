"""How is an audit shown to a person? One page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from pear.portfolio.audit.report import (
    MEASURES,
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


def page(report: Report) -> str:
    """The report as a self-contained HTML page."""
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
    nobody = all(part.unheard == report.talkers for part in report.attributes)
    return environment.get_template("page.html").render(
        report=report,
        shown_of=shown_of,
        show=show,
        against=against,
        harder=harder,
        tested=tested(report),
        verdicts=VERDICTS,
        nobody_placed=nobody,
    )


@dataclass(frozen=True)
class Bar:
    """Where the interval of a group begins, how ``wide`` it is and where its mean is, in
    hundredths of the scale; ``mark`` tells those that were found."""

    low: str
    wide: str
    mean: str
    mark: str


@dataclass(frozen=True)
class Row:
    """One group's measure; the bar is None where the group is too small."""

    label: str
    cell: Cell
    bar: Bar | None


@dataclass(frozen=True)
class Shown:
    """One measure by one attribute; ``scale`` are the ends of its bars, in words, and ``empty``
    groups have no row."""

    measure: str
    title: str
    about: str
    share: bool
    rows: list[Row]
    scale: tuple[str, str] | None
    empty: int


def shown_of(attribute: Attribute) -> list[Shown]:
    """The measures of which an attribute has anybody."""
    found = []
    for measure, (title, about) in MEASURES.items():
        rows = [(g.label, g.cells[measure]) for g in attribute.groups if measure in g.cells]
        present = [(label, cell) for label, cell in rows if cell.n]
        if present:
            share = measure in SHARES
            ends = _ends([cell for _, cell in present], share)
            drawn = [Row(label, cell, _bar(cell, ends)) for label, cell in present]
            scale = None if ends is None else (show(ends[0], share), show(ends[1], share))
            empty = len(rows) - len(present)
            found.append(Shown(measure, title, about, share, drawn, scale, empty))
    return found


def _ends(cells: Sequence[Cell], share: bool) -> tuple[float, float] | None:
    """The ends of a scale that holds every interval; None where all groups are too small."""
    known = [cell.estimate for cell in cells if cell.estimate is not None]
    if not known:
        return None
    low, high = min(e.low for e in known), max(e.high for e in known)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    low, high = low - room, high + room
    return (max(0.0, low), min(1.0, high)) if share else (low, high)


def _bar(cell: Cell, ends: tuple[float, float] | None) -> Bar | None:
    if cell.estimate is None or ends is None:
        return None
    low, mean, high = (
        100 * (value - ends[0]) / ((ends[1] - ends[0]) or 1.0)
        for value in (cell.estimate.low, cell.estimate.mean, cell.estimate.high)
    )
    mark = "found" if cell.flagged else "plain"
    return Bar(f"{low:.1f}", f"{max(high - low, 0.8):.1f}", f"{mean - 0.4:.1f}", mark)


def against(cell: Cell, measure: str) -> str:
    """How a group differs from everybody else, in words.

    >>> cell = Cell(90, False, Estimate(90, 0.7, 0.6, 0.8), difference=-0.196)
    >>> against(cell, "plan"), against(cell, "cost"), against(Cell(90, True), "length")
    ('20 in 100 fewer', 'about 22% easier', '')
    """
    if cell.difference is None or cell.estimate is None:
        return ""
    if measure == "cost":
        return harder(cell.difference, cell.estimate.mean - cell.difference)
    if measure in SHARES:
        size = f"{100 * abs(cell.difference):.0f}"
        more, less = "in 100 more", "in 100 fewer"
    else:
        size, more, less = f"{abs(cell.difference):.1f}", "more", "less"
    if float(size) == 0:
        return "about the same"
    return f"{size} {more if cell.difference > 0 else less}"


def tested(report: Report) -> list[tuple[str, str, Any]]:
    """Every comparison of the report: what of, of whom, and its probabilities."""
    return [
        (MEASURES[measure][0], capital(group_words(part, group.label)), cell)
        for part in report.attributes
        for group in part.groups
        for measure, cell in group.cells.items()
        if cell.adjusted is not None
    ]
