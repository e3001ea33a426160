"""What does the automaton look like? DOT text, and an SVG that needs no other program.

Nodes stand in columns by how many steps into a plan they are first seen; edges seen in
fewer plans are thinner. A walk is marked in another colour, drawn thicker and numbered, so
that it is told by more than colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from pear.planning.automaton.automaton import START, Automaton
from pear.planning.automaton.tree import STOP

BOX, ROW, COLUMN, MARGIN = (216, 34), 58, 320, 30
LONGEST_NAME = 28
WALKED, PLAIN, INK = "#b3261e", "#9aa5b1", "#1f2933"

Places = dict[int, tuple[float, float]]
"""Upper left corner of each node."""


@dataclass(frozen=True)
class Picture:
    """What is drawn: ``columns`` of nodes from left to right, ``edges`` with their counts,
    ``walked`` the edges of the marked walk in order."""

    columns: tuple[tuple[int, ...], ...]
    edges: dict[tuple[int, int], int]
    walked: tuple[tuple[int, int], ...]


def picture(automaton: Automaton, moves: Sequence[int] = (), least: int = 2) -> Picture:
    """Choose what to draw: edges seen at least ``least`` times, and the walk of ``moves``."""
    walked = tuple(pairwise([START, *(int(move) for move in moves), STOP])) if moves else ()
    edges = {
        edge: count
        for edge, count in sorted(automaton.edges.items())
        if count >= least or edge in walked
    }
    edges.update({edge: 0 for edge in walked if edge not in edges})
    depth, waiting = {START: 0}, [START]
    while waiting:
        node = waiting.pop(0)
        for start, end in edges:
            if start == node and end != STOP and end not in depth:
                depth[end] = depth[node] + 1
                waiting.append(end)
    edges = {edge: count for edge, count in edges.items() if edge[0] in depth}
    last = max(depth.values()) + 1
    depth[STOP] = last
    columns = tuple(
        tuple(sorted(node for node, place in depth.items() if place == column))
        for column in range(last + 1)
    )
    return Picture(columns, edges, walked)


def to_dot(automaton: Automaton, moves: Sequence[int] = (), least: int = 2) -> str:
    """The automaton in Graphviz DOT, the walk of ``moves`` marked."""
    drawn = picture(automaton, moves, least)
    on_walk = {node for edge in drawn.walked for node in edge}
    lines = ["digraph automaton {", "  rankdir=LR;", "  node [shape=box];"]
    for node in (node for column in drawn.columns for node in column):
        label = automaton.name(node).replace("\\", "\\\\").replace('"', '\\"')
        mark = f', color="{WALKED}", penwidth=2' if node in on_walk else ""
        lines.append(f'  "{node}" [label="{label}"{mark}];')
    for (start, end), count in drawn.edges.items():
        label, mark = str(count), ""
        if (start, end) in drawn.walked:
            label = f"step {drawn.walked.index((start, end)) + 1} ({count})"
            mark = f', color="{WALKED}", penwidth=3'
        lines.append(f'  "{start}" -> "{end}" [label="{label}"{mark}];')
    return "\n".join([*lines, "}"]) + "\n"


def to_svg(automaton: Automaton, moves: Sequence[int] = (), least: int = 2) -> str:
    """The automaton as an SVG picture, the walk of ``moves`` marked."""
    drawn = picture(automaton, moves, least)
    tallest = max(len(column) for column in drawn.columns)
    width = 2 * MARGIN + COLUMN * (len(drawn.columns) - 1) + BOX[0]
    height = 2 * MARGIN + ROW * (tallest - 1) + BOX[1]
    place: Places = {
        node: (
            float(MARGIN + COLUMN * number),
            MARGIN + ROW * (row + (tallest - len(column)) / 2),
        )
        for number, column in enumerate(drawn.columns)
        for row, node in enumerate(column)
    }
    most = max(drawn.edges.values(), default=1) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" height="{height:g}" role="img" aria-labelledby="title desc" '
        'font-family="sans-serif" font-size="12">',
        f'<title id="title">{escape(_title(automaton))}</title>',
        f'<desc id="desc">{escape(_description(automaton, drawn))}</desc>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    plain = [edge for edge in drawn.edges if edge not in drawn.walked]
    parts += [
        _edge(place, edge, PLAIN, 0.6 + 3 * drawn.edges[edge] / most, f"{drawn.edges[edge]} plans")
        for edge in plain
    ]
    parts += [
        _edge(place, edge, WALKED, 3.0, f"step {i}") for i, edge in enumerate(drawn.walked, 1)
    ]
    on_walk = {node for edge in drawn.walked for node in edge}
    parts += [
        _node(place[node], automaton.name(node), node in on_walk, node in (START, STOP))
        for column in drawn.columns
        for node in column
    ]
    parts += [_number(place, edge, i) for i, edge in enumerate(drawn.walked, 1)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _title(automaton: Automaton) -> str:
    kind = "W-EFARE" if automaton.aware else "EFARE"
    return f"{kind} automaton learned from {automaton.people} plans"


def _description(automaton: Automaton, drawn: Picture) -> str:
    if not drawn.walked:
        return f"{sum(map(len, drawn.columns))} nodes and {len(drawn.edges)} transitions."
    names = [automaton.name(start) for start, _ in drawn.walked]
    return f"The marked walk goes {' to '.join([*names, 'STOP'])}."


def _ends(place: Places, edge: tuple[int, int]) -> tuple[float, float, float, float, float]:
    """Where an edge leaves its first node and meets its second, and how far it bulges up."""
    (left, top), (right, bottom) = place[edge[0]], place[edge[1]]
    lift = -ROW if edge[0] == edge[1] else 0
    return left + BOX[0], top + BOX[1] / 2, right, bottom + BOX[1] / 2, lift


def _edge(place: Places, edge: tuple[int, int], colour: str, thickness: float, title: str) -> str:
    x, y, to_x, to_y, lift = _ends(place, edge)
    bend = max(40.0, abs(to_x - x) / 2)
    curve = (
        f"M {x:g} {y:g} C {x + bend:g} {y + lift:g} "
        f"{to_x - bend:g} {to_y + lift:g} {to_x:g} {to_y:g}"
    )
    head = f"M {to_x - 7:g} {to_y - 4:g} L {to_x:g} {to_y:g} L {to_x - 7:g} {to_y + 4:g} Z"
    return (
        f'<g><title>{escape(title)}</title><path d="{curve}" fill="none" stroke="{colour}" '
        f'stroke-width="{thickness:.2f}"/><path d="{head}" fill="{colour}"/></g>'
    )


def _number(place: Places, edge: tuple[int, int], number: int) -> str:
    """The number of a step of the walk, on top of everything, where its edge begins."""
    x, y, *_ = _ends(place, edge)
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="9" fill="#ffffff" stroke="{WALKED}" '
        f'stroke-width="1.5"/><text x="{x:g}" y="{y + 4:g}" text-anchor="middle" '
        f'fill="{INK}">{number}</text>'
    )


def _node(at: tuple[float, float], name: str, walked: bool, end: bool) -> str:
    shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    colour, thickness = (WALKED, 2.5) if walked else (INK, 1)
    return (
        f'<g><title>{escape(name)}</title><rect x="{at[0]:g}" y="{at[1]:g}" width="{BOX[0]}" '
        f'height="{BOX[1]}" rx="{17 if end else 4}" fill="{"#fdf0ef" if walked else "#f5f7fa"}" '
        f'stroke="{colour}" stroke-width="{thickness}"/><text x="{at[0] + BOX[0] / 2:g}" '
        f'y="{at[1] + BOX[1] / 2 + 4:g}" text-anchor="middle" fill="{INK}">{escape(shown)}'
        "</text></g>"
    )
