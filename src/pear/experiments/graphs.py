"""Which feature makes which change harder? The cost graphs, drawn. (Paper, figure causal-graphs)"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.figures import COLOURS, Picture, panels
from pear.experiments.profiles import Profile
from pear.experiments.registry import dataset_label
from pear.experiments.render import Table
from pear.experiments.runner import make_tasks
from pear.experiments.tasks import Task
from pear.problem import Problem


def tasks(profile: Profile) -> list[Task]:
    """None of its own; the first chunk of the optimum, so that the worlds are there."""
    return make_tasks(profile, ("exact-true",), user_sets=("all",))[:: max(1, _chunks(profile))]


def _chunks(profile: Profile) -> int:
    return -(-profile.users // profile.chunk)


def report(material: Material) -> Report:
    """A drawing and the list of edges for each data set."""
    problems = {world.dataset: world.problem for world in material.worlds.values()}
    return Report(
        "Which feature makes which change harder?",
        ("An edge from a to b: the value of a adds to (or takes off) the cost of changing b.",),
        tuple(_table(name, problem) for name, problem in problems.items()),
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


def positions(graph: Any) -> dict[str, tuple[float, float]]:
    """Layers from causes (left) to effects (right)."""
    places: dict[str, tuple[float, float]] = {}
    for x, layer in enumerate(nx.topological_generations(graph)):
        ordered = sorted(layer)
        for y, name in enumerate(ordered):
            shift = 0.14 if x % 2 else -0.14
            places[name] = (x + 0.12 * (y % 2), shift - (y + 0.5) / len(ordered))
    return places


def _picture(name: str, problem: Problem) -> Picture:
    graph = problem.costs.to_networkx()
    graph.remove_nodes_from([node for node, degree in list(graph.degree) if not degree])
    drawing, axes = panels(1, 1, width=7.5, height=4.6)
    axis = axes[0, 0]
    fixed = {feature.name for feature in problem.space.features if feature.immutable}
    nx.draw_networkx(
        graph,
        positions(graph),
        ax=axis,
        labels={
            key: text for key, text in short_names(problem.space.names).items() if key in graph
        },
        node_color=["#dddddd" if node in fixed else COLOURS[5] for node in graph],
        edgecolors="black",
        node_size=1100,
        font_size=7,
        arrowsize=11,
        connectionstyle="arc3,rad=0.08",
    )
    axis.set_axis_off()
    return Picture(
        f"graph-{name.replace(':', '.')}",
        f"Cost graph of {dataset_label(name)}",
        f"The {len(problem.costs.edges)} edges of the cost graph; grey features cannot be changed.",
        drawing,
    )


def _table(name: str, problem: Problem) -> Table:
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


EXPERIMENT = Experiment("graphs", tasks, report)
