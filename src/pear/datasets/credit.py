"""What can a person in GiveMeSomeCredit change, as in the paper's experiments?

Features, action grid and cost graph are facts of the published set-up; the words for people
are ours.
"""

from __future__ import annotations

import numpy as np

from pear.datasets.paper_prior import paper_archetypes
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

EDGES = (
    ("RevolvingUtilizationOfUnsecuredLines", "NumberOfTime30-59DaysPastDueNotWorse"),
    ("RevolvingUtilizationOfUnsecuredLines", "NumberOfTime60-89DaysPastDueNotWorse"),
    ("RevolvingUtilizationOfUnsecuredLines", "NumberOfTimes90DaysLate"),
    ("age", "MonthlyIncome"),
    ("age", "DebtRatio"),
    ("age", "NumberOfDependents"),
    ("age", "NumberOfOpenCreditLinesAndLoans"),
    ("age", "NumberRealEstateLoansOrLines"),
    ("MonthlyIncome", "NumberOfOpenCreditLinesAndLoans"),
    ("MonthlyIncome", "NumberRealEstateLoansOrLines"),
    ("MonthlyIncome", "RevolvingUtilizationOfUnsecuredLines"),
    ("NumberOfOpenCreditLinesAndLoans", "NumberOfTime30-59DaysPastDueNotWorse"),
    ("NumberOfOpenCreditLinesAndLoans", "NumberOfTime60-89DaysPastDueNotWorse"),
    ("NumberOfOpenCreditLinesAndLoans", "NumberOfTimes90DaysLate"),
    ("NumberOfOpenCreditLinesAndLoans", "DebtRatio"),
    ("NumberRealEstateLoansOrLines", "NumberOfTime30-59DaysPastDueNotWorse"),
    ("NumberRealEstateLoansOrLines", "NumberOfTime60-89DaysPastDueNotWorse"),
    ("NumberRealEstateLoansOrLines", "NumberOfTimes90DaysLate"),
    ("NumberRealEstateLoansOrLines", "DebtRatio"),
)
"""Parent and child of each edge of the cost graph, in the order of its weights."""


def both_ways(steps: list[float]) -> tuple[float, ...]:
    """Steps up, then the same steps down."""
    return (*steps, *(-step for step in steps))


RATIO_STEPS = both_ways(np.linspace(0.01, 1.0, 20).tolist())
INCOME_STEPS = both_ways(np.linspace(1.0, 10_000.0, 25).tolist())
FEWER = tuple(-float(count) for count in range(1, 25))


def credit_problem() -> Problem:
    """The paper's GiveMeSomeCredit problem: no serious delinquency, at most five changes.

    >>> problem = credit_problem()
    >>> len(problem.space), len(problem.actions), problem.costs.n_weights
    (10, 250, 29)
    """
    late = "payments {} days late"
    space = FeatureSpace(
        (
            Feature(
                "RevolvingUtilizationOfUnsecuredLines",
                scale=(0, 1),
                label="use of your credit limits",
            ),
            Feature("age", scale=(0, 103), unit="years", immutable=True, protected=True),
            Feature(
                "NumberOfTime30-59DaysPastDueNotWorse",
                scale=(0, 18),
                label=late.format("30 to 59"),
            ),
            Feature("DebtRatio", scale=(0, 1), label="debts as a share of income"),
            Feature("MonthlyIncome", scale=(0, 17_000), unit="$", label="monthly income"),
            Feature(
                "NumberOfOpenCreditLinesAndLoans",
                scale=(0, 58),
                label="open credit lines and loans",
            ),
            Feature("NumberOfTimes90DaysLate", scale=(0, 18), label=late.format("90 or more")),
            Feature("NumberRealEstateLoansOrLines", scale=(0, 54), label="real estate loans"),
            Feature(
                "NumberOfTime60-89DaysPastDueNotWorse",
                scale=(0, 18),
                label=late.format("60 to 89"),
            ),
            Feature("NumberOfDependents", scale=(0, 20), label="dependents", immutable=True),
        )
    )
    actions = (
        Action(
            "BALANCE",
            "RevolvingUtilizationOfUnsecuredLines",
            "add",
            RATIO_STEPS,
            lower=0,
            upper=1,
        ),
        Action("DEBT_RATIO", "DebtRatio", "add", RATIO_STEPS, lower=0),
        Action("INCOME", "MonthlyIncome", "add", INCOME_STEPS, lower=0),
        Action("OPEN_LOANS", "NumberOfOpenCreditLinesAndLoans", "add", FEWER, lower=0),
        Action("OPEN_REAL_ESTATE", "NumberRealEstateLoansOrLines", "add", FEWER, lower=0),
        Action("PAST_DUE_30", "NumberOfTime30-59DaysPastDueNotWorse", "add", FEWER, lower=0),
        Action("PAST_DUE_60", "NumberOfTime60-89DaysPastDueNotWorse", "add", FEWER, lower=0),
        Action("PAST_DUE_90", "NumberOfTimes90DaysLate", "add", FEWER, lower=0),
    )
    return Problem(
        space,
        ActionSpace(space, actions),
        CostGraph(space, EDGES, floor=1.0, offset=1.0, zero_change=1.0),
        Goal(),
        max_length=5,
        name="givemecredit",
        default_range=(-100.0, 100.0),
        archetypes=paper_archetypes("givemecredit"),
    )
