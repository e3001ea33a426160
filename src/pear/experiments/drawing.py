"""How do tables and figures look? Markdown, LaTeX, SVG and PNG; readable by the colour-blind.

What made them stands once on the page, and in the metadata of every file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from pear.arrays import Floats
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


def leave_out_empty(axes: Any) -> None:
    """Panels without anything in them are not drawn."""
    for axis in axes.flat:
        if not axis.has_data():
            axis.remove()


@dataclass(frozen=True)
class CurveEnd:
    """Where a curve ends, in the units of its axes; its name and its colour."""

    x: float
    y: float
    name: str
    colour: str


def name_curves(axis: Any, ends: Sequence[CurveEnd]) -> None:
    """A name beside the end of each curve, in its colour, none over another."""
    left, right = axis.get_xlim()
    axis.set_xlim(left, right + 0.42 * (right - left))
    drawing = axis.get_figure()
    drawing.canvas.draw()  # so that it is known where on the paper the curves end
    points = 72 / drawing.dpi
    bottom, top = (value * points for value in axis.get_window_extent().intervaly)
    heights = [float(axis.transData.transform((end.x, end.y))[1]) * points for end in ends]
    rising = sorted(range(len(ends)), key=heights.__getitem__)
    placed: list[float] = []
    for number in rising:
        placed.append(max([heights[number], *(below + NAME_HEIGHT for below in placed[-1:])]))
    over = max(0.0, placed[-1] + NAME_HEIGHT / 2 - top) if placed else 0.0
    for number, height in zip(rising, placed, strict=True):
        end, lifted = ends[number], max(height - over, bottom) - heights[number]
        axis.annotate(
            end.name, (end.x, end.y), (8, lifted), textcoords="offset points", fontsize=7.5,
            color=end.colour, va="center",
        )  # fmt: skip


NAME_HEIGHT = 10.0
"""Points from one name of a curve to the next."""

MOST_CURVES = 5
"""Of one panel."""


# Graphs

Places = Mapping[str, tuple[float, float]]
"""Where the middle of each node is drawn, in inches."""

Ends = tuple[str, str]
"""An edge: where it begins, and where it ends."""

BOX = (0.72, 0.27)
"""Half the width and half the height that a node and its whole name take up, in inches."""
COLUMN, ROW = 2.3, 0.95
"""Inches between layers, and between the nodes of one."""
BENDS = (0.0, 0.12, -0.12, 0.25, -0.25, 0.4, -0.4, 0.6, -0.6, 0.85, -0.85)
"""How an edge may be bent, straight ones first."""
TRIES = 60
"""Ways to set the nodes down, of which the one with the fewest edges through nodes is taken."""


@dataclass(frozen=True)
class Node:
    """What is written on a node, and its colour."""

    words: str
    colour: str


@dataclass(frozen=True)
class Edge:
    """The colour and width of an edge, and what is written on it."""

    colour: str = "#555555"
    width: float = 0.9
    words: str = ""


def positions(
    layers: Sequence[Sequence[str]], edges: Collection[Ends]
) -> dict[str, tuple[float, float]]:
    """Layers from left to right, set down so that edges pass through as few nodes as can be."""
    rng = np.random.default_rng(0)
    best, least = {}, (np.inf, np.inf)
    for _ in range(TRIES):
        places = _set_down(layers, rng)
        bends = {edge: bend(edge, places, edges) for edge in edges}
        wrong = sum(len(passed(edge, places, bent)) for edge, bent in bends.items())
        quality = (wrong, sum(map(abs, bends.values())))
        if quality < least:
            best, least = places, quality
    return best


def _set_down(
    layers: Sequence[Sequence[str]], rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    most = max(len(layer) for layer in layers)
    places = {}
    for x, layer in enumerate(layers):
        shift = rng.uniform(-0.5, 0.5) * ROW
        for y, name in enumerate(rng.permutation(np.array(layer, object))):
            height = (most - 1) * ROW / 2 + ((len(layer) - 1) / 2 - y) * ROW + shift
            places[str(name)] = (1.0 + x * COLUMN + 0.3 * (y % 2), 1.0 + height)
    return places


def bend(edge: Ends, places: Places, edges: Collection[Ends] = ()) -> float:
    """The smallest bend of an edge that passes through no node but its own; beside the edge that
    leads back, where there is one."""
    ways = BENDS[1:] if (edge[1], edge[0]) in edges else BENDS
    return min(ways, key=lambda one: (len(passed(edge, places, one)), abs(one)))


def passed(edge: Ends, places: Places, bent: float) -> list[str]:
    """The nodes that an edge passes through, other than its own two."""
    line = _line(edge, places, bent)
    others = (name for name in places if name not in edge)
    return [name for name in others if (np.abs(line - places[name]) < BOX).all(axis=1).any()]


def _line(edge: Ends, places: Places, bent: float) -> Floats:
    """Points ``(n, 2)`` of an edge: matplotlib's "arc3" is a parabola through both ends."""
    (x0, y0), (x1, y1) = places[edge[0]], places[edge[1]]
    middle = (x0 + x1) / 2 + bent * (y1 - y0), (y0 + y1) / 2 - bent * (x1 - x0)
    t = np.linspace(0, 1, 81)[:, None]
    return np.asarray((1 - t) ** 2 * (x0, y0) + 2 * t * (1 - t) * middle + t**2 * (x1, y1))


def draw_graph(nodes: Mapping[str, Node], edges: Mapping[Ends, Edge], places: Places) -> Any:
    """A drawing of nodes at their places, and of edges that end at their boxes."""
    bends = {edge: bend(edge, places, edges) for edge in edges if edge[0] != edge[1]}
    lines = {edge: _line(edge, places, bent) for edge, bent in bends.items()}
    points = np.concatenate([np.array(list(places.values())), *lines.values()])
    left, bottom = points.min(axis=0) - np.array([1.0, 0.6])
    right, top = points.max(axis=0) + np.array([1.0, 0.6])
    drawing, axes = panels(1, 1, width=right - left, height=top - bottom)
    axis = axes[0, 0]
    axis.set_axis_off()
    axis.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    boxes = {}
    for name, (x, y) in places.items():
        words = fill(nodes[name].words, 17, break_long_words=False)
        look = {"boxstyle": "round,pad=0.45", "facecolor": nodes[name].colour, "linewidth": 0.7}
        text = axis.text(x, y, words, fontsize=8, ha="center", va="center", bbox=look, zorder=3)
        boxes[name] = text.get_bbox_patch()
    drawing.canvas.draw()  # so that edges end where the boxes do
    for (start, end), edge in sorted(edges.items(), key=lambda one: one[1].width):
        look = {
            "arrowstyle": "-|>,head_width=0.22,head_length=0.4",
            "color": edge.colour,
            "linewidth": edge.width,
        }
        if start == end:
            x, y = places[start]
            look |= {"connectionstyle": "arc3,rad=-1.5"}
            axis.annotate("", (x + 0.2, y + 0.19), (x - 0.2, y + 0.19), arrowprops=look)
            where = (x, y + 0.52)
        else:
            look |= {"connectionstyle": f"arc3,rad={bends[start, end]}"}
            look |= {"patchA": boxes[start], "patchB": boxes[end]}
            axis.annotate("", places[end], places[start], arrowprops=look)
            where = tuple(lines[start, end][40])
        if edge.words:
            mark = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": edge.colour}
            axis.text(
                *where, edge.words, fontsize=7.5, ha="center", va="center", bbox=mark, zorder=4
            )
    return drawing
