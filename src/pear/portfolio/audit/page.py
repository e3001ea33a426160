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
    flipped_words,
    show,
    shown_p,
)

ROW, LEFT, WIDTH, RIGHT, TOP = 26, 210, 360, 80, 22


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
        report=report, shown_of=shown_of, show=show, nobody_placed=nobody
    )


@dataclass(frozen=True)
class Shown:
    """One measure by one attribute: a table and a figure; ``empty`` groups are in neither."""

    title: str
    caption: str
    share: bool
    rows: list[tuple[str, Cell]]
    figure: dict[str, Any] | None
    empty: int


def shown_of(attribute: Attribute) -> list[Shown]:
    """The measures of which an attribute has anybody."""
    found = []
    for measure, words in MEASURES.items():
        rows = [(g.label, g.cells[measure]) for g in attribute.groups if measure in g.cells]
        present = [(label, cell) for label, cell in rows if cell.n]
        if present:
            share = measure in SHARES
            drawn = intervals(f"{words} by {attribute.name}", present, share)
            caption = f"{words}, by {attribute.name}"
            empty = len(rows) - len(present)
            found.append(Shown(words.capitalize(), caption, share, present, drawn, empty))
    return found


def intervals(
    title: str, rows: Sequence[tuple[str, Cell]], share: bool = False
) -> dict[str, Any] | None:
    """Where means and 95% intervals of groups are drawn; None where all are too small."""
    known = [cell.estimate for _, cell in rows if cell.estimate is not None]
    if not known:
        return None
    low, high = min(e.low for e in known), max(e.high for e in known)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin
    if share:
        low, high = max(0.0, low), min(1.0, high)

    def x(value: float) -> str:
        return f"{LEFT + WIDTH * (value - low) / ((high - low) or 1.0):.1f}"

    bars = []
    for place, (label, cell) in enumerate(rows):
        bar: dict[str, Any] = {"label": label, "y": TOP + ROW * (place + 0.5)}
        if (e := cell.estimate) is None:
            bar["words"] = f"too small (n = {cell.n})"
        else:
            bar |= {"low": x(e.low), "mean": x(e.mean), "high": x(e.high)}
            bar["mark"] = "found" if cell.flagged else "plain"
            bar["words"] = show(e.mean, share) + " *" * cell.flagged
        bars.append(bar)
    places = [low + (high - low) * k / 4 for k in range(5)]
    bottom = TOP + ROW * len(rows)
    return {
        "title": title,
        "words": "; ".join(_words(label, cell, share) for label, cell in rows),
        "ticks": [(x(value), show(value, share)) for value in places],
        "bars": bars,
        "left": LEFT,
        "right": LEFT + WIDTH,
        "top": TOP,
        "bottom": bottom,
        "width": LEFT + WIDTH + RIGHT,
        "height": bottom + 24,
    }


def _words(label: str, cell: Cell, share: bool) -> str:
    if cell.estimate is None:
        return f"{label}: too small, {cell.n} people"
    e = cell.estimate
    return f"{label}: {show(e.mean, share)}, from {show(e.low, share)} to {show(e.high, share)}"
