"""How is an audit shown to a person? One page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from pear.portfolio.audit.report import (
    MEASURES,
    SHARES,
    Attribute,
    Cell,
    Report,
    flipped_words,
    show,
    shown_p,
)


def page(report: Report) -> str:
    """The report as a self-contained HTML page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": "{:,}".format, "p": shown_p, "flipped": flipped_words}
    nobody = all(part.unheard == report.talkers for part in report.attributes)
    return environment.get_template("page.html").render(
        report=report, shown_of=shown_of, show=show, against=against, nobody_placed=nobody
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

    title: str
    share: bool
    rows: list[Row]
    scale: tuple[str, str] | None
    empty: int


def shown_of(attribute: Attribute) -> list[Shown]:
    """The measures of which an attribute has anybody."""
    found = []
    for measure, words in MEASURES.items():
        rows = [(g.label, g.cells[measure]) for g in attribute.groups if measure in g.cells]
        present = [(label, cell) for label, cell in rows if cell.n]
        if present:
            share = measure in SHARES
            ends = _ends([cell for _, cell in present], share)
            drawn = [Row(label, cell, _bar(cell, ends)) for label, cell in present]
            scale = None if ends is None else (show(ends[0], share), show(ends[1], share))
            title = words[:1].upper() + words[1:]
            found.append(Shown(title, share, drawn, scale, len(rows) - len(present)))
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


def against(difference: float | None, share: bool) -> str:
    """How a group differs from everybody else, in words.

    >>> against(0.031, True), against(-2.5, False), against(None, True)
    ('3.1 points more', '2.5 less', '')
    """
    if difference is None:
        return ""
    size = f"{100 * abs(difference):.1f} points" if share else f"{abs(difference):.3g}"
    return f"{size} {'more' if difference > 0 else 'less'}"
