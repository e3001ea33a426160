"""What can an applicant of the synthetic loan book change, and what does it cost them?

Weights are on the scale of the paper: a step costs about 1 to 100. A weight on a feature is
what the whole width of its ``scale`` costs; a weight on an edge ``parent->child`` is what
the parent at its highest adds to (or, negative, takes off) every change of the child.
"""

from __future__ import annotations

from collections.abc import Mapping

from pear.problem import (
    Action,
    ActionSpace,
    Archetype,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
    Requirement,
)

EDUCATION = (
    "no diploma",
    "school diploma",
    "vocational training",
    "bachelor's degree",
    "master's degree",
)
OCCUPATION = (
    "manual work",
    "service work",
    "office work",
    "skilled trade",
    "technical specialist",
    "manager",
)
CONTRACT = ("temporary", "self-employed", "permanent")

FEATURES = (
    Feature("age", "integer", 18, 75, (18, 75), unit="years", immutable=True, protected=True),
    Feature("sex", "categorical", categories=("female", "male"), immutable=True, protected=True),
    Feature("children", "integer", 0, 5, (0, 5), label="children at home", immutable=True),
    Feature(
        "years_at_bank",
        "integer",
        0,
        30,
        (0, 30),
        unit="years",
        label="time as our customer",
        immutable=True,
    ),
    Feature("education", "categorical", categories=EDUCATION, ordered=True),
    Feature("occupation", "categorical", categories=OCCUPATION, ordered=True),
    Feature("contract", "categorical", categories=CONTRACT, ordered=True, label="work contract"),
    Feature(
        "monthly_income", "numeric", 0, 12_000, (0, 6_000), unit="€", label="net monthly income"
    ),
    Feature("savings", "numeric", 0, 60_000, (0, 30_000), unit="€"),
    Feature(
        "debt_payments",
        "numeric",
        0,
        3_000,
        (0, 1_500),
        unit="€",
        label="monthly payments on other debts",
    ),
    Feature("card_use", "integer", 0, 100, (0, 100), unit="%", label="use of your card limit"),
    Feature("overdue", "integer", 0, 6, (0, 6), label="overdue payments"),
    Feature("loan_amount", "integer", 1_000, 30_000, (0, 30_000), unit="€"),
    Feature("loan_term", "integer", 12, 84, (0, 84), unit="months"),
    Feature("guarantor", "boolean", scale=(0, 1)),
)

_DIPLOMA = Requirement("education", EDUCATION[1:])
_TRAINING = Requirement("education", EDUCATION[2:])
_DEGREE = Requirement("education", EDUCATION[3:])

ACTIONS = (
    Action(
        "study",
        "education",
        "set",
        EDUCATION[1:],
        "increase",
        phrase="Study: go from {before} to {after}",
    ),
    Action(
        "change_job",
        "occupation",
        "set",
        ("service work",),
        "increase",
        phrase="Move from {before} to {after}",
    ),
    Action(
        "change_to_office",
        "occupation",
        "set",
        ("office work",),
        "increase",
        (_DIPLOMA,),
        phrase="Move from {before} to {after}",
    ),
    Action(
        "change_to_skilled_job",
        "occupation",
        "set",
        ("skilled trade", "technical specialist"),
        "increase",
        (_TRAINING,),
        phrase="Move from {before} to a job as {after}",
    ),
    Action(
        "become_manager",
        "occupation",
        "set",
        ("manager",),
        "increase",
        (_DEGREE,),
        phrase="Move from {before} to a managerial job",
    ),
    Action(
        "change_contract",
        "contract",
        "set",
        ("self-employed", "permanent"),
        "increase",
        phrase="Change your work contract from {before} to {after}",
    ),
    Action(
        "earn_more",
        "monthly_income",
        "add",
        (100, 200, 300, 400, 500, 700, 1_000),
        "increase",
        phrase="Increase your monthly income from {before} to {after}",
    ),
    Action(
        "save",
        "savings",
        "add",
        (500, 1_000, 2_000, 3_000, 5_000, 8_000, 12_000),
        "increase",
        phrase="Build up your savings from {before} to {after}",
    ),
    Action(
        "pay_down_debts",
        "debt_payments",
        "add",
        (-50, -100, -150, -200, -300, -400, -600),
        "decrease",
        phrase="Bring your monthly payments on other debts down from {before} to {after}",
    ),
    Action(
        "use_card_less",
        "card_use",
        "add",
        (-10, -20, -30, -40, -50, -60),
        "decrease",
        phrase="Use less of your card limit: from {before} to {after}",
    ),
    Action(
        "catch_up",
        "overdue",
        "add",
        (-1, -2, -3, -4, -5, -6),
        "decrease",
        phrase="Settle overdue payments: from {before} open to {after}",
    ),
    Action(
        "ask_for_less",
        "loan_amount",
        "add",
        (-500, -1_000, -2_000, -3_000, -4_000, -6_000, -9_000),
        "decrease",
        phrase="Ask for a loan of {after} instead of {before}",
    ),
    Action(
        "pay_over_longer",
        "loan_term",
        "add",
        (12, 24, 36, 48),
        "increase",
        phrase="Pay the loan back over {after} instead of {before}",
    ),
    Action("find_guarantor", "guarantor", "set", (True,), phrase="Find someone to vouch for you"),
)

WEIGHT_RANGE: Mapping[str, tuple[float, float]] = {
    "education": (20, 110),
    "occupation": (15, 90),
    "contract": (10, 70),
    "monthly_income": (200, 700),
    "savings": (80, 400),
    "debt_payments": (60, 320),
    "card_use": (20, 140),
    "overdue": (30, 200),
    "loan_amount": (40, 360),
    "loan_term": (20, 150),
    "guarantor": (8, 80),
    "age->education": (5, 50),
    "children->education": (5, 60),
    "age->occupation": (0, 40),
    "education->occupation": (-25, 0),
    "occupation->contract": (-15, 0),
    "occupation->monthly_income": (-12, 0),
    "contract->monthly_income": (-6, 4),
    "children->monthly_income": (0, 35),
    "monthly_income->savings": (-15, 0),
    "children->savings": (2, 40),
    "monthly_income->debt_payments": (-10, 0),
    "savings->debt_payments": (-15, 0),
    "debt_payments->card_use": (0, 25),
    "debt_payments->overdue": (0, 30),
    "savings->overdue": (-12, 0),
    "savings->loan_amount": (-15, 0),
    "loan_amount->guarantor": (0, 25),
    "age->guarantor": (0, 30),
}
"""Where experts place most people's weights; the edges of the cost graph are its later keys."""

TYPICAL: Mapping[str, float] = {
    name: (low + high) / 2 for name, (low, high) in WEIGHT_RANGE.items()
}

ARCHETYPES: Mapping[str, tuple[float, Mapping[str, float]]] = {
    "parent with little time": (
        0.25,
        {
            "education": 95,
            "occupation": 70,
            "monthly_income": 620,
            "children->education": 50,
            "children->monthly_income": 30,
            "children->savings": 32,
            "loan_amount": 80,
            "loan_term": 35,
            "guarantor": 22,
        },
    ),
    "early career": (
        0.25,
        {
            "education": 32,
            "occupation": 25,
            "contract": 22,
            "monthly_income": 300,
            "savings": 350,
            "debt_payments": 270,
            "loan_term": 90,
            "guarantor": 15,
            "age->education": 10,
        },
    ),
    "settled employee": (
        0.2,
        {
            "education": 100,
            "occupation": 80,
            "contract": 60,
            "monthly_income": 600,
            "savings": 110,
            "debt_payments": 90,
            "card_use": 35,
            "overdue": 55,
            "guarantor": 65,
        },
    ),
    "would rather not owe anyone": (
        0.15,
        {
            "guarantor": 75,
            "age->guarantor": 25,
            "loan_term": 130,
            "loan_amount": 70,
            "monthly_income": 330,
            "savings": 150,
            "debt_payments": 110,
        },
    ),
    "needs the whole amount": (
        0.15,
        {
            "loan_amount": 330,
            "loan_term": 30,
            "contract": 30,
            "card_use": 45,
            "overdue": 60,
            "guarantor": 35,
            "debt_payments": 120,
        },
    ),
}
"""Kinds of applicants: share, and the weights in which they differ from the typical one."""

SPREAD = 0.12
"""Spread of an archetype's weights, as a share of the width of the expert range."""


def loan_book_problem() -> Problem:
    """The recourse problem of the synthetic loan book.

    >>> problem = loan_book_problem()
    >>> len(problem.space), len(problem.actions), len(problem.costs.edges)
    (15, 56, 18)
    >>> [archetype.name for archetype in problem.archetypes][:2]
    ['parent with little time', 'early career']
    """
    space = FeatureSpace(FEATURES)
    edges = tuple(tuple(name.split("->")) for name in WEIGHT_RANGE if "->" in name)
    costs = CostGraph(space, tuple((a, b) for a, b in edges), floor=1.0, offset=0.0)
    default = (1.0, 100.0)
    ranges = [WEIGHT_RANGE.get(name, default) for name in costs.weight_names]
    archetypes = tuple(
        Archetype(
            name,
            mean=tuple(
                float(differences.get(weight, TYPICAL.get(weight, sum(default) / 2)))
                for weight in costs.weight_names
            ),
            spread=tuple(SPREAD * (high - low) for low, high in ranges),
            share=share,
        )
        for name, (share, differences) in ARCHETYPES.items()
    )
    return Problem(
        space,
        ActionSpace(space, ACTIONS),
        costs,
        Goal(),
        max_length=5,
        name="loan book",
        weight_range=dict(WEIGHT_RANGE),
        default_range=default,
        archetypes=archetypes,
    )
