"""What does the automaton look like? DOT text, and an SVG that needs no other program.

Nodes stand in columns by how many steps into a plan they are first seen; edges seen in
fewer plans are thinner. A walk is marked in another colour, drawn thicker and numbered, so
that it is told by more than colour. Edges that pass over columns run in lanes below all
nodes, so that no line seems to lead into a box it only passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from pear.planning.automaton.automaton import START, Automaton
from pear.planning.automaton.tree import STOP

BOX, ROW, COLUMN, MARGIN, LANE = (216, 34), 58, 320, 30, 6
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
    over = [edge for edge in drawn.edges if _passes_over(place, edge)]
    lanes = {edge: height + LANE * number for number, edge in enumerate(over)}
    height += LANE * len(over) + (MARGIN if over else 0)
    most = max(drawn.edges.values(), default=1) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" height="{height:g}" role="img" aria-labelledby="title desc" '
        'font-family="sans-serif" font-size="12">',
        f'<title id="title">{escape(_title(automaton))}</title>',
        f'<desc id="desc">{escape(_description(automaton, drawn))}</desc>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    on_walk = {node for edge in drawn.walked for node in edge}
    nodes = {
        node: _node(place[node], automaton.name(node), node in on_walk, node in (START, STOP))
        for column in drawn.columns
        for node in column
    }
    steps = _steps(drawn.walked)
    parts += [
        _curve(place, edge, lanes, PLAIN, 0.6 + 3 * count / most, f"{count} plans")
        for edge, count in drawn.edges.items()
        if edge not in steps
    ]
    parts += [box for node, box in nodes.items() if node not in on_walk]
    parts += [
        _curve(place, edge, lanes, WALKED, 3.0, f"step {text}") for edge, text in steps.items()
    ]
    parts += [box for node, box in nodes.items() if node in on_walk]
    for number, (edge, text) in enumerate(steps.items()):
        before = sum(start == edge[0] and start != end for start, end in list(steps)[:number])
        parts.append(_number(place, edge, text, before))
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
    lift = -0.8 * ROW if edge[0] == edge[1] else 0
    return left + BOX[0], top + BOX[1] / 2, right, bottom + BOX[1] / 2, lift


def _passes_over(place: Places, edge: tuple[int, int]) -> bool:
    """Whether columns of nodes lie between the two ends."""
    x, _, to_x, *_ = _ends(place, edge)
    return to_x - x > COLUMN


def _steps(walked: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """The edges of a walk, each with the numbers of the steps that take it.

    >>> _steps([(START, 3), (3, 3), (3, 3), (3, STOP)])
    {(-2, 3): '1', (3, 3): '2, 3', (3, -1): '4'}
    """
    taken: dict[tuple[int, int], list[str]] = {}
    for number, edge in enumerate(walked, 1):
        taken.setdefault(edge, []).append(str(number))
    return {edge: ", ".join(numbers) for edge, numbers in taken.items()}


def _curve(
    place: Places,
    edge: tuple[int, int],
    lanes: Mapping[tuple[int, int], float],
    colour: str,
    thickness: float,
    title: str,
) -> str:
    x, y, to_x, to_y, lift = _ends(place, edge)
    bend = max(40.0, abs(to_x - x) / 2)
    curve = (
        f"M {x:g} {y:g} C {x + bend:g} {y + lift:g} "
        f"{to_x - bend:g} {to_y + lift:g} {to_x:g} {to_y:g}"
    )
    if edge in lanes:
        lane = lanes[edge]
        curve = (
            f"M {x:g} {y:g} C {x + 60:g} {y:g} {x + 10:g} {lane:g} {x + 80:g} {lane:g} "
            f"L {to_x - 80:g} {lane:g} "
            f"C {to_x - 10:g} {lane:g} {to_x - 60:g} {to_y:g} {to_x:g} {to_y:g}"
        )
    head = f"M {to_x - 7:g} {to_y - 4:g} L {to_x:g} {to_y:g} L {to_x - 7:g} {to_y + 4:g} Z"
    return (
        f'<g><title>{escape(title)}</title><path d="{curve}" fill="none" stroke="{colour}" '
        f'stroke-width="{thickness:.2f}"/><path d="{head}" fill="{colour}"/></g>'
    )


def _number(place: Places, edge: tuple[int, int], text: str, before: int) -> str:
    """The numbers of the steps that take an edge, on top of everything, where it begins.

    ``before`` edges of the walk that leave the same node have theirs there already.
    """
    x, y, _, _, lift = _ends(place, edge)
    x, y = (x - BOX[0] / 2, y + 0.75 * lift) if lift else (x + 20 * before, y)
    half = 9 + 3.5 * (len(text) - 1)
    return (
        f'<rect x="{x - half:g}" y="{y - 9:g}" width="{2 * half:g}" height="18" rx="9" '
        f'fill="#ffffff" stroke="{WALKED}" stroke-width="1.5"/><text x="{x:g}" y="{y + 4:g}" '
        f'text-anchor="middle" fill="{INK}">{text}</text>'
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
