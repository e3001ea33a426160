"""How do the groups of a measure look side by side? A figure as SVG, for a page or for print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pear.portfolio.audit.cells import Cell
from pear.portfolio.audit.findings import show

ROW, LEFT, WIDTH, RIGHT, TOP = 26, 210, 360, 80, 22


def intervals(title: str, rows: Sequence[tuple[str, Cell]], share: bool = False) -> str:
    """Means and 95% intervals of groups, one line each; groups too small say so."""
    known = [cell.estimate for _, cell in rows if cell.estimate is not None]
    if not known:
        return ""
    low, high = min(e.low for e in known), max(e.high for e in known)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    low, high = (max(0.0, low - margin), min(1.0, high + margin)) if share else (
        low - margin,
        high + margin,
    )  # fmt: skip
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return LEFT + WIDTH * (value - low) / span

    height = TOP + ROW * len(rows) + 24
    total = LEFT + WIDTH + RIGHT
    lines = [_axis(low, high, x, TOP + ROW * len(rows), share)]
    for i, (label, cell) in enumerate(rows):
        y = TOP + ROW * i + ROW / 2
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" class="label">{escape(label)}</text>')
        if cell.estimate is None:
            words = f"too small (n = {cell.n})"
            lines.append(f'<text x="{LEFT + 6}" y="{y + 4:.1f}" class="small">{words}</text>')
            continue
        mark = "found" if cell.flagged else "plain"
        e = cell.estimate
        lines.append(
            f'<line x1="{x(e.low):.1f}" x2="{x(e.high):.1f}" y1="{y}" y2="{y}" class="{mark}"/>'
            f'<circle cx="{x(e.mean):.1f}" cy="{y}" r="4.5" class="{mark}"/>'
            f'<text x="{LEFT + WIDTH + 8}" y="{y + 4:.1f}" class="value">{show(e.mean, share)}'
            f"{' *' if cell.flagged else ''}</text>"
        )
    words = "; ".join(_words(label, cell, share) for label, cell in rows)
    return (
        f'<svg role="img" viewBox="0 0 {total} {height}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(words)}</desc>{''.join(lines)}</svg>"
    )


def _axis(low: float, high: float, x: object, bottom: float, share: bool) -> str:
    assert callable(x)
    parts = []
    for k in range(5):
        value = low + (high - low) * k / 4
        place = x(value)
        parts.append(
            f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{TOP - 6}" y2="{bottom}" class="grid"/>'
            f'<text x="{place:.1f}" y="{bottom + 16}" class="tick">{show(value, share)}</text>'
        )
    return "".join(parts)


def _words(label: str, cell: Cell, share: bool) -> str:
    if cell.estimate is None:
        return f"{label}: too small, {cell.n} people"
    e = cell.estimate
    return f"{label}: {show(e.mean, share)}, from {show(e.low, share)} to {show(e.high, share)}"
