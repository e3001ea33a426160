"""What can a person in Adult change, as in the paper's experiments?

Features, action grid and cost graph are facts of the published set-up (the categories in
the order of its one-hot encoding); the words for people are ours.
"""

from __future__ import annotations

import numpy as np

from pear.datasets.paper_prior import paper_archetypes
from pear.problem import Action, ActionSpace, CostGraph, Feature, FeatureSpace, Goal, Problem

CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        "Federal-gov",
        "Local-gov",
        "Never-worked",
        "Private",
        "Self-emp-inc",
        "Self-emp-not-inc",
        "State-gov",
        "Without-pay",
    ),
    "education": (
        "10th",
        "11th",
        "12th",
        "1st-4th",
        "5th-6th",
        "7th-8th",
        "9th",
        "Assoc-acdm",
        "Assoc-voc",
        "Bachelors",
        "Doctorate",
        "HS-grad",
        "Masters",
        "Preschool",
        "Prof-school",
        "Some-college",
    ),
    "marital_status": (
        "Divorced",
        "Married-AF-spouse",
        "Married-civ-spouse",
        "Married-spouse-absent",
        "Never-married",
        "Separated",
        "Widowed",
    ),
    "occupation": (
        "Adm-clerical",
        "Armed-Forces",
        "Craft-repair",
        "Exec-managerial",
        "Farming-fishing",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Other-service",
        "Priv-house-serv",
        "Prof-specialty",
        "Protective-serv",
        "Sales",
        "Tech-support",
        "Transport-moving",
    ),
    "relationship": (
        "Husband",
        "Not-in-family",
        "Other-relative",
        "Own-child",
        "Unmarried",
        "Wife",
    ),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "sex": ("Female", "Male"),
    "native_country": (
        "Cambodia",
        "Canada",
        "China",
        "Columbia",
        "Cuba",
        "Dominican-Republic",
        "Ecuador",
        "El-Salvador",
        "England",
        "France",
        "Germany",
        "Greece",
        "Guatemala",
        "Haiti",
        "Honduras",
        "Hong",
        "Hungary",
        "India",
        "Iran",
        "Ireland",
        "Italy",
        "Jamaica",
        "Japan",
        "Laos",
        "Mexico",
        "Nicaragua",
        "Outlying-US(Guam-USVI-etc)",
        "Peru",
        "Philippines",
        "Poland",
        "Portugal",
        "Puerto-Rico",
        "Scotland",
        "South",
        "Taiwan",
        "Thailand",
        "Trinadad&Tobago",
        "United-States",
        "Vietnam",
        "Yugoslavia",
    ),
}
"""Categories of each feature, in the order of the published encoding."""

EDGES = (
    ("age", "workclass"),
    ("age", "education"),
    ("age", "relationship"),
    ("age", "occupation"),
    ("workclass", "occupation"),
    ("workclass", "hours_per_week"),
    ("workclass", "capital_gain"),
    ("education", "workclass"),
    ("relationship", "marital_status"),
    ("race", "occupation"),
    ("race", "education"),
    ("race", "relationship"),
    ("sex", "occupation"),
    ("sex", "education"),
    ("sex", "relationship"),
    ("capital_gain", "capital_loss"),
    ("hours_per_week", "occupation"),
    ("native_country", "occupation"),
    ("native_country", "relationship"),
    ("native_country", "education"),
)
"""Parent and child of each edge of the cost graph, in the order of its weights."""

EDUCATION_OFFERED = (
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Bachelors",
    "Masters",
    "Doctorate",
    "Assoc-acdm",
    "Assoc-voc",
    "Prof-school",
)
OCCUPATIONS_OFFERED = (
    "Tech-support",
    "Craft-repair",
    "Other-service",
    "Sales",
    "Exec-managerial",
    "Prof-specialty",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Adm-clerical",
    "Farming-fishing",
    "Transport-moving",
    "Priv-house-serv",
    "Protective-serv",
    "Armed-Forces",
)
WORKCLASSES_OFFERED = (
    "Never-worked",
    "Without-pay",
    "Self-emp-not-inc",
    "Self-emp-inc",
    "Private",
    "Local-gov",
    "State-gov",
    "Federal-gov",
)

_AMOUNTS = tuple(np.linspace(1.0, 5_000.0, 5).tolist())
CAPITAL_STEPS = (*_AMOUNTS, *(-amount for amount in reversed(_AMOUNTS)))
HOURS_STEPS = tuple(float(hours) for hours in range(1, 25))


def adult_problem() -> Problem:
    """The paper's Adult problem: an income above 50,000 $ a year, at most five changes.

    >>> problem = adult_problem()
    >>> len(problem.space), len(problem.actions), problem.costs.n_weights
    (12, 82, 32)
    """
    space = FeatureSpace(
        (
            Feature("age", scale=(17, 90), unit="years", immutable=True, protected=True),
            _categorical("workclass", "kind of employer"),
            _categorical("education"),
            _categorical("marital_status"),
            _categorical("occupation"),
            _categorical("relationship", immutable=True),
            _categorical("race", immutable=True, protected=True),
            _categorical("sex", immutable=True, protected=True),
            Feature("capital_gain", scale=(0, 99_999), unit="$"),
            Feature("capital_loss", scale=(0, 4_356), unit="$"),
            Feature("hours_per_week", scale=(1, 99), unit="hours", label="working time per week"),
            _categorical("native_country", immutable=True),
        )
    )
    actions = (
        Action("CHANGE_CAP_GAIN", "capital_gain", "add", CAPITAL_STEPS, lower=0),
        Action("CHANGE_CAP_LOSS", "capital_loss", "add", CAPITAL_STEPS, lower=0),
        Action("CHANGE_EDUCATION", "education", "set", EDUCATION_OFFERED),
        Action("CHANGE_HOURS", "hours_per_week", "add", HOURS_STEPS, lower=0),
        Action("CHANGE_OCCUPATION", "occupation", "set", OCCUPATIONS_OFFERED),
        Action("CHANGE_WORKCLASS", "workclass", "set", WORKCLASSES_OFFERED),
    )
    return Problem(
        space,
        ActionSpace(space, actions),
        CostGraph(space, EDGES, floor=1.0, offset=1.0, zero_change=1.0),
        Goal(),
        max_length=5,
        name="adult",
        default_range=(-100.0, 100.0),
        archetypes=paper_archetypes("adult"),
    )


def _categorical(
    name: str, label: str = "", *, immutable: bool = False, protected: bool = False
) -> Feature:
    return Feature(
        name,
        "categorical",
        categories=CATEGORIES[name],
        label=label,
        immutable=immutable,
        protected=protected,
    )
