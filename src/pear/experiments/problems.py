"""What is the problem, before anybody is planned for? Cost graphs, action tables, an automaton.

References: paper, figures causal-graphs and w-efare, table action-space-experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

import networkx as nx
import numpy as np

from pear.arrays import Floats
from pear.elicitation.words import capital
from pear.experiments.drawing import COLOURS, Picture, Table, panels
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.profiles import Profile
from pear.experiments.registry import dataset_label
from pear.experiments.run import make_tasks
from pear.experiments.tasks import Task
from pear.experiments.worlds import World
from pear.planning.automaton import Automaton, AutomatonPlanner
from pear.planning.automaton.drawing import Picture as AutomatonDrawing
from pear.planning.automaton.drawing import picture
from pear.problem import Action, Problem

MOST_NODES = 22
"""Of a drawn automaton; rarer moves are left out."""

PUBLISHED = {
    "adult": {
        "workclass": "8 categories",
        "education": "16 categories",
        "occupation": "14 categories",
        "capital_gain": "[-5000, -1] ∪ [1, 5000]",
        "capital_loss": "[-5000, -1] ∪ [1, 5000]",
        "hours_per_week": "[-25, -1] ∪ [1, 25]",
    },
    "givemecredit": {
        "RevolvingUtilizationOfUnsecuredLines": "[-1, -0.01] ∪ [0.01, 1]",
        "NumberOfTime30-59DaysPastDueNotWorse": "[-25, -1]",
        "DebtRatio": "[-1, -0.01] ∪ [0.01, 1]",
        "MonthlyIncome": "[-10000, -1] ∪ [1, 10000]",
        "NumberOfOpenCreditLinesAndLoans": "[-25, -1]",
        "NumberOfTimes90DaysLate": "[-25, -1]",
        "NumberRealEstateLoansOrLines": "[-25, -1]",
        "NumberOfTime60-89DaysPastDueNotWorse": "[-25, -1]",
    },
}
"""What the paper's table says of each feature's arguments."""


def tasks(profile: Profile) -> list[Task]:
    """None of its own; the first chunk of the optimum, so that the worlds are there."""
    return make_tasks(profile, ("exact-true",), user_sets=("all",))[:: max(1, _chunks(profile))]


def _chunks(profile: Profile) -> int:
    return -(-profile.users // profile.chunk)


def graphs_report(material: Material) -> Report:
    """A drawing and the list of edges for each data set."""
    problems = {world.dataset: world.problem for world in material.worlds.values()}
    return Report(
        "Which feature makes which change harder?",
        ("An edge from a to b: the value of a adds to (or takes off) the cost of changing b.",),
        tuple(_graph_table(name, problem) for name, problem in problems.items()),
        tuple(_picture(name, problem) for name, problem in problems.items()),
    )


def short_names(names: tuple[str, ...]) -> dict[str, str]:
    """Acronyms as the paper's figure has, told apart where they clash.

    >>> short_names(("capital_gain", "age", "MonthlyIncome"))
    {'capital_gain': 'CG', 'age': 'AGE', 'MonthlyIncome': 'MI'}
    """
    found: dict[str, str] = {}
    for name in names:
        parts = name.replace("-", "_").split("_")
        capitals = "".join(sign for sign in name if sign.isupper() or sign.isdigit())
        short = "".join(p[0] for p in parts if p) if len(parts) > 1 else capitals or name[:3]
        if len(capitals) > 1:
            short = capitals
        short = short.upper()[:6]
        found[name] = short if short not in found.values() else f"{short}{len(found)}"
    return found


Places = Mapping[str, tuple[float, float]]
"""Where the middle of each node is drawn, in inches."""

BOX = (0.72, 0.27)
"""Half the width and half the height that a node and its whole name take up, in inches."""
COLUMN, ROW = 2.3, 0.95
"""Inches between layers, and between the nodes of one."""
BENDS = (0.0, 0.12, -0.12, 0.25, -0.25, 0.4, -0.4, 0.6, -0.6, 0.85, -0.85)
"""How an edge may be bent, straight ones first."""


TRIES = 60
"""Ways to set the nodes down, of which the one with the fewest edges through nodes is taken."""


def positions(graph: Any) -> dict[str, tuple[float, float]]:
    """Layers from causes (left) to effects (right), so that edges pass through no node."""
    layers = [sorted(layer) for layer in nx.topological_generations(graph)]
    rng = np.random.default_rng(0)
    best, least = {}, (np.inf, np.inf)
    for _ in range(TRIES):
        places = _set_down(layers, rng)
        bends = {edge: bend(edge, places) for edge in graph.edges}
        wrong = sum(len(passed(edge, places, bent)) for edge, bent in bends.items())
        quality = (wrong, sum(map(abs, bends.values())))
        if quality < least:
            best, least = places, quality
    return best


def _set_down(layers: list[list[str]], rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    most = max(len(layer) for layer in layers)
    places = {}
    for x, layer in enumerate(layers):
        shift = rng.uniform(-0.5, 0.5) * ROW
        for y, name in enumerate(rng.permutation(layer)):
            height = (most - 1) * ROW / 2 + ((len(layer) - 1) / 2 - y) * ROW + shift
            places[str(name)] = (1.0 + x * COLUMN + 0.3 * (y % 2), 1.0 + height)
    return places


def bend(edge: tuple[str, str], places: Places) -> float:
    """The smallest bend of an edge that passes through no node but its own."""
    return min(BENDS, key=lambda one: (len(passed(edge, places, one)), abs(one)))


def passed(edge: tuple[str, str], places: Places, bent: float) -> list[str]:
    """The nodes that an edge passes through, other than its own two."""
    line = _line(edge, places, bent)
    others = (name for name in places if name not in edge)
    return [name for name in others if (np.abs(line - places[name]) < BOX).all(axis=1).any()]


def _line(edge: tuple[str, str], places: Places, bent: float) -> Floats:
    """Points ``(n, 2)`` of an edge: matplotlib's "arc3" is a parabola through both ends."""
    (x0, y0), (x1, y1) = places[edge[0]], places[edge[1]]
    middle = (x0 + x1) / 2 + bent * (y1 - y0), (y0 + y1) / 2 - bent * (x1 - x0)
    t = np.linspace(0, 1, 80)[:, None]
    return np.asarray((1 - t) ** 2 * (x0, y0) + 2 * t * (1 - t) * middle + t**2 * (x1, y1))


def frame(graph: Any, places: Places) -> Floats:
    """The lowest and highest x and y ``(2, 2)`` that nodes and edges take, with a margin."""
    lines = [_line(edge, places, bend(edge, places)) for edge in graph.edges]
    points = np.concatenate([np.array(list(places.values())), *lines])
    margin = np.array([1.0, 0.5])
    return np.array([points.min(axis=0) - margin, points.max(axis=0) + margin])


def _picture(name: str, problem: Problem) -> Picture:
    graph = problem.costs.to_networkx()
    graph.remove_nodes_from([node for node, degree in list(graph.degree) if not degree])
    places = positions(graph)
    (left, bottom), (right, top) = frame(graph, places).tolist()
    drawing, axes = panels(1, 1, width=right - left, height=top - bottom)
    axis = axes[0, 0]
    axis.set_axis_off()
    axis.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    fixed = {feature.name for feature in problem.space.features if feature.immutable}
    boxes = {}
    for node, (x, y) in places.items():
        words = fill(capital(problem.space[node].words), 17, break_long_words=False)
        colour = "#e4e4e4" if node in fixed else "#cfe8f7"
        look = {"boxstyle": "round,pad=0.45", "facecolor": colour, "linewidth": 0.7}
        text = axis.text(x, y, words, fontsize=8, ha="center", va="center", bbox=look, zorder=3)
        boxes[node] = text.get_bbox_patch()
    drawing.canvas.draw()  # so that edges end where the boxes do
    for edge in graph.edges:
        look = {
            "arrowstyle": "-|>,head_width=0.22,head_length=0.4",
            "connectionstyle": f"arc3,rad={bend(edge, places)}",
            "patchA": boxes[edge[0]],
            "patchB": boxes[edge[1]],
            "color": "#555555",
            "linewidth": 0.9,
        }
        axis.annotate("", places[edge[1]], places[edge[0]], arrowprops=look)
    return Picture(
        f"graph-{name.replace(':', '.')}",
        f"Cost graph of {dataset_label(name)}",
        f"The {len(problem.costs.edges)} edges of the cost graph; grey features cannot be changed.",
        drawing,
    )


def _graph_table(name: str, problem: Problem) -> Table:
    shorts = short_names(problem.space.names)
    parents: dict[str, list[str]] = {}
    for parent, child in problem.costs.edges:
        parents.setdefault(child, []).append(parent)
    rows = [
        (shorts[feature], feature, ", ".join(parents.get(feature, ())) or "-")
        for feature in np.array(problem.space.names).tolist()
    ]
    return Table(
        f"graph-{name.replace(':', '.')}",
        f"Cost graph of {dataset_label(name)}: what makes each change harder or easier",
        ("In the figure", "Feature", "Parents"),
        tuple(rows),
    )


def actions_report(material: Material) -> Report:
    """One table per data set."""
    problems = {world.dataset: world.problem for world in material.worlds.values()}
    return Report(
        "What can people change?",
        (
            "Ours are the arguments behind the paper's tables; where they differ from what its "
            "text says (Adult's hours only rise, by 1 to 24; five values each way for the "
            "capital features), the published program is followed.",
        ),
        tuple(_actions_table(name, problem) for name, problem in problems.items()),
    )


def automaton_picture(world: World, automaton: Automaton) -> Picture:
    """The automaton with the walk of the first user it finds a plan for, and why it begins so."""
    planner = AutomatonPlanner(automaton, world.black_box)
    plans = planner.plan_many(world.states, world.weights)
    user = next((i for i, plan in enumerate(plans) if plan.success and plan.moves), None)
    moves = () if user is None else plans[user].moves
    drawn = next(
        shown
        for least in (2, 3, 5, 8, 12, 20, 40, 10**9)
        if len(_nodes(shown := picture(automaton, moves, least))) <= MOST_NODES or least == 10**9
    )
    places = {
        node: (float(x), -(y + 0.5 + 0.22 * (x % 2)) / len(column))
        for x, column in enumerate(drawn.columns)
        for y, node in enumerate(column)
    }
    graph = nx.DiGraph(list(drawn.edges))
    drawing, axes = panels(1, 1, width=10.0, height=5.5)
    walked = set(drawn.walked)
    nx.draw_networkx(
        graph,
        places,
        ax=axes[0, 0],
        labels={node: fill(automaton.name(node), 14) for node in graph},
        node_color=[COLOURS[4] if any(node in e for e in walked) else "#eeeeee" for node in graph],
        edge_color=[COLOURS[1] if edge in walked else "#bbbbbb" for edge in graph.edges],
        width=[2.6 if edge in walked else 0.7 for edge in graph.edges],
        node_size=1500,
        node_shape="s",
        font_size=5.5,
        arrowsize=9,
        connectionstyle="arc3,rad=0.12",
    )
    axes[0, 0].set_axis_off()
    words = f"Moves that many of {automaton.people} people took, in the order they took them"
    if user is not None:
        told = "; ".join(
            f"{automaton.name(move)} {step.reason}"
            for move, step in zip(moves, plans[user].steps, strict=True)
        )
        words += f". In orange the walk of user {user} under the true weights: {told}"
    name = world.dataset.replace(":", ".")
    return Picture(
        f"automaton-{name}",
        f"A W-EFARE automaton: {dataset_label(world.dataset)}",
        f"{words}.",
        drawing,
    )


def _nodes(drawn: AutomatonDrawing) -> list[int]:
    return [node for column in drawn.columns for node in column]


def argument_words(action: Action) -> str:
    """An action's arguments: all of a few, else how many and between what.

    >>> argument_words(Action("a", "x", "add", (1, 2, 3)))
    '1, 2, 3'
    """
    values = action.arguments
    if len(values) <= 16 or not all(isinstance(value, (int, float)) for value in values):
        return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
    numbers = sorted(float(value) for value in values)
    return f"{len(numbers)} values from {numbers[0]:g} to {numbers[-1]:g}"


def _actions_table(name: str, problem: Problem) -> Table:
    published = PUBLISHED.get(name, {})
    rows = [
        (
            action.feature,
            action.name,
            problem.space[action.feature].kind,
            f"{action.mode}: {argument_words(action)}",
            published.get(action.feature, "-"),
        )
        for action in problem.actions.actions
    ]
    return Table(
        f"actions-{name.replace(':', '.')}",
        f"Actions of {dataset_label(name)}",
        ("Feature", "Function", "Type", "Arguments", "Arguments (paper)"),
        tuple(rows),
    )


GRAPHS = Experiment("graphs", tasks, graphs_report)
ACTIONS = Experiment("actions", tasks, actions_report)
