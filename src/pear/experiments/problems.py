"""What is the problem, before anybody is planned for? Cost graphs, action tables, an automaton.

References: paper, figures causal-graphs and w-efare, table action-space-experiment.
"""

from __future__ import annotations

from textwrap import fill
from typing import Any

import networkx as nx
import numpy as np

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
