"""How do the figures look? Readable in print and by the colour-blind; each says what made it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from pear.optional import require

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's palette; lines and markers differ too, for prints without colour."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Picture:
    """A figure: ``name`` of its files, a caption, what it shows in words, and the drawing."""

    name: str
    title: str
    words: str
    drawing: Any

    def save(self, folder: Path, stamp: str) -> None:
        """Write SVG and PNG; the stamp stands small below the drawing and in the metadata."""
        folder.mkdir(parents=True, exist_ok=True)
        wrapped = fill(stamp, int(18 * self.drawing.get_figwidth()))
        text = self.drawing.text(
            0.5, -0.01, wrapped, ha="center", va="top", fontsize=6, color="#444444"
        )
        for ending, settings in (
            ("svg", {"metadata": {"Date": None, "Description": stamp}}),
            ("png", {"dpi": 160, "metadata": {"Software": None, "Description": stamp}}),
        ):
            path = folder / f"{self.name}.{ending}"
            self.drawing.savefig(path, bbox_inches="tight", **settings)
            if ending == "svg":
                lines = path.read_text(encoding="utf-8").splitlines()
                path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
        text.remove()


def style(number: int) -> dict[str, Any]:
    """Colour, marker and line of the number-th curve; no two of sixteen share colour and marker."""
    again = number // len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[(number + 3 * again) % len(MARKERS)],
        "linestyle": LINES[(number + again) % len(LINES)],
        "markersize": 4.5,
        "linewidth": 1.4,
    }


def panels(rows: int, columns: int, width: float = 4.2, height: float = 3.1) -> tuple[Any, Any]:
    """A drawing of axes ``(rows, columns)`` that needs no screen."""
    require("matplotlib")
    from matplotlib import rcParams
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "pear", "svg.fonttype": "path"})
    drawing = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(drawing)
    axes = drawing.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8)
    return drawing, axes
