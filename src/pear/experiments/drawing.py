"""How do tables and figures look? Markdown, LaTeX, SVG and PNG; readable by the colour-blind.

What made them stands once on the page, and in the metadata of every file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pear.experiments.summary import Cell
from pear.optional import require

DIGITS = {"validity": 2, "cost": 1, "length": 2}
ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "→": r"$\to$",
    "±": r"$\pm$",
    "−": "--",
    "∪": r"$\cup$",
    "…": r"\dots{}",
}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's palette; lines and markers differ too, for prints without colour."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Table:
    """A table of texts; ``name`` is its file's, ``notes`` stand below it."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def markdown(self, heading: str = "###") -> str:
        """The table with its title and notes."""
        lines = [
            "| " + " | ".join(self.columns) + " |",
            "|" + "|".join("---" if i == 0 else "--:" for i in range(len(self.columns))) + "|",
            *(
                "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                for row in self.rows
            ),
        ]
        notes = "".join(f"\n\n{note}" for note in self.notes)
        return f"{heading} {self.title}\n\n" + "\n".join(lines) + f"{notes}\n"

    def latex(self, stamp: str) -> str:
        """The table as LaTeX, for the package booktabs."""
        caption = f"{escaped(self.title)}. {escaped(' '.join(self.notes))}".strip()
        lines = [
            f"% {stamp}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(escaped(column) for column in self.columns) + r" \\",
            r"\midrule",
            *(" & ".join(escaped(cell) for cell in row) + r" \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A text as LaTeX.

    >>> escaped("5% of a_b")
    '5\\\\% of a\\\\_b'
    """
    return "".join(ESCAPES.get(sign, sign) for sign in text.replace("**", ""))


def with_spread(cell: Cell, measure: str) -> str:
    """Mean ± the paper's spread over runs; the mean alone of a single run."""
    if np.isnan(cell.mean):
        return "-"
    digits = DIGITS.get(measure, 2)
    mean = f"{cell.mean:.{digits}f}"
    return mean if np.isnan(cell.spread) else f"{mean} ± {cell.spread:.{digits}f}"


@dataclass(frozen=True)
class Picture:
    """A figure: ``name`` of its files, a caption, what it shows in words, and the drawing."""

    name: str
    title: str
    words: str
    drawing: Any

    def save(self, folder: Path, stamp: str) -> None:
        """Write SVG and PNG; what made them is in their metadata."""
        folder.mkdir(parents=True, exist_ok=True)
        for ending, settings in (
            ("svg", {"metadata": {"Date": None, "Description": stamp}}),
            ("png", {"dpi": 160, "metadata": {"Software": None, "Description": stamp}}),
        ):
            path = folder / f"{self.name}.{ending}"
            self.drawing.savefig(path, bbox_inches="tight", **settings)
            if ending == "svg":
                lines = path.read_text(encoding="utf-8").splitlines()
                path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


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
