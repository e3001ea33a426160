"""What is the problem, before anybody is planned for? Cost graphs, action tables, an automaton.

References: paper, figures causal-graphs and w-efare, table action-space-experiment.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from pear.elicitation.words import capital
from pear.experiments.drawing import (
    COLOURS,
    Edge,
    Node,
    Picture,
    Table,
    bend,
    draw_graph,
    passed,
    positions,
)
from pear.experiments.experiment import Experiment, Material, Report, Task, dataset_label
from pear.experiments.profiles import Profile
from pear.experiments.run import make_tasks
from pear.experiments.worlds import World
from pear.planning.automaton import Automaton, AutomatonPlanner
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
        tuple(graph_picture(name, problem) for name, problem in problems.items()),
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


def graph_picture(name: str, problem: Problem) -> Picture:
    """The cost graph in layers, from causes to effects."""
    graph = problem.costs.to_networkx()
    graph.remove_nodes_from([node for node, degree in list(graph.degree) if not degree])
    fixed = {feature.name for feature in problem.space.features if feature.immutable}
    nodes = {
        node: Node(capital(problem.space[node].words), "#e4e4e4" if node in fixed else "#cfe8f7")
        for node in graph
    }
    layers = [sorted(layer) for layer in nx.topological_generations(graph)]
    drawing = draw_graph(nodes, dict.fromkeys(graph.edges, Edge()), positions(layers, graph.edges))
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
    for least in (2, 3, 5, 8, 12, 20, 40, 10**9):
        shown = picture(automaton, moves, least)
        layers = [[str(node) for node in column] for column in shown.columns]
        edges = [(str(start), str(end)) for start, end in shown.edges]
        if sum(map(len, layers)) > MOST_NODES:
            continue
        places = positions(layers, edges)
        if not sum(len(passed(e, places, bend(e, places, edges))) for e in edges):
            break
    steps: dict[tuple[str, str], list[str]] = {}
    for number, (start, end) in enumerate(shown.walked, 1):
        steps.setdefault((str(start), str(end)), []).append(str(number))
    walked = {node for edge in steps for node in edge}
    nodes = {
        node: Node(_move_words(automaton, int(node)), COLOURS[4] if node in walked else "#eeeeee")
        for layer in layers
        for node in layer
    }
    looks = {
        edge: Edge(COLOURS[1], 2.6, ", ".join(steps[edge])) if edge in steps else Edge("#aaaaaa")
        for edge in edges
    }
    drawing = draw_graph(nodes, looks, places)
    words = f"Moves that many of {automaton.people} people took, in the order they took them"
    if user is not None:
        told = "; ".join(
            f"{automaton.name(move)} {step.reason}"
            for move, step in zip(moves, plans[user].steps, strict=True)
        )
        words += f". Orange, its steps numbered: the walk of user {user} under the true weights: "
        words += told
    name = world.dataset.replace(":", ".")
    return Picture(
        f"automaton-{name}",
        f"A W-EFARE automaton: {dataset_label(world.dataset)}",
        f"{words}.",
        drawing,
    )


def _move_words(automaton: Automaton, node: int) -> str:
    """A node as people call it: "Capital gain +5,000", "Education: Doctorate"."""
    problem = automaton.problem
    if not 0 <= node < len(problem.actions):
        return capital(automaton.name(node).lower())
    action = problem.actions.actions[problem.actions.action_of[node]]
    argument, name = problem.actions.argument(node), capital(problem.space[action.feature].words)
    return f"{name} {argument:+,g}" if action.mode == "add" else f"{name}: {argument}"


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
