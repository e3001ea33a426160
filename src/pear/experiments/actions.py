"""What can people change? The action tables, printed. (Paper, table action-space-experiment)"""

from __future__ import annotations

from pear.experiments import graphs
from pear.experiments.experiment import Experiment, Material, Report
from pear.experiments.registry import dataset_label
from pear.experiments.render import Table
from pear.problem import Action, Problem

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


def report(material: Material) -> Report:
    """One table per data set."""
    problems = {world.dataset: world.problem for world in material.worlds.values()}
    return Report(
        "What can people change?",
        (
            "Ours are the arguments behind the paper's tables; where they differ from what its "
            "text says (Adult's hours only rise, by 1 to 24; five values each way for the "
            "capital features), the published program is followed.",
        ),
        tuple(_table(name, problem) for name, problem in problems.items()),
    )


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


def _table(name: str, problem: Problem) -> Table:
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


EXPERIMENT = Experiment("actions", graphs.tasks, report)
