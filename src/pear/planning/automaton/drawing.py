"""What does the automaton look like? Nodes in columns, and DOT text for Graphviz to lay out.

Nodes stand in columns by how many steps into a plan they are first seen. A walk is marked in
another colour, drawn thicker and numbered, so that it is told by more than colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pear.planning.automaton.automaton import START, Automaton
from pear.planning.automaton.tree import STOP

WALKED = "#b3261e"


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
    steps = _steps(drawn.walked)
    lines = ["digraph automaton {", "  rankdir=LR;", "  node [shape=box];"]
    for node in (node for column in drawn.columns for node in column):
        label = automaton.name(node).replace("\\", "\\\\").replace('"', '\\"')
        mark = f', color="{WALKED}", penwidth=2' if node in on_walk else ""
        lines.append(f'  "{node}" [label="{label}"{mark}];')
    for (start, end), count in drawn.edges.items():
        label, mark = str(count), ""
        if (start, end) in steps:
            label = f"step {steps[start, end]} ({count})"
            mark = f', color="{WALKED}", penwidth=3'
        lines.append(f'  "{start}" -> "{end}" [label="{label}"{mark}];')
    return "\n".join([*lines, "}"]) + "\n"


def _steps(walked: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """The edges of a walk, each with the numbers of the steps that take it.

    >>> _steps([(START, 3), (3, 3), (3, 3), (3, STOP)])
    {(-2, 3): '1', (3, 3): '2, 3', (3, -1): '4'}
    """
    taken: dict[tuple[int, int], list[str]] = {}
    for number, edge in enumerate(walked, 1):
        taken.setdefault(edge, []).append(str(number))
    return {edge: ", ".join(numbers) for edge, numbers in taken.items()}
