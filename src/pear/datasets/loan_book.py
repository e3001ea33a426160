"""A synthetic loan book made by the package itself: who applies, who got a loan, and why.

Every quantity is drawn from the ones above it, in this order::

    age, sex                              drawn alone
    education        <- age
    children         <- age
    years_at_bank    <- age
    occupation       <- education
    contract         <- occupation, age
    monthly_income   <- occupation, education, age, sex (a pay gap of 7%)
    savings          <- monthly_income, age, children
    debt_payments    <- monthly_income, children
    card_use         <- savings, monthly_income
    overdue          <- burden of debts, savings
    loan_amount      <- monthly_income
    loan_term        <- loan_amount
    guarantor        <- age
    approved         <- everything but age, sex and education

``approved`` is what loan officers decided: a lender's scorecard of the share of income that
is left after rent for the household, debts and the new instalment, plus noise of their own.
Sex enters only through the pay gap, so a model that never sees it still refuses more women.

The lender's model is a small network trained on these decisions with scikit-learn, in a second
or two. It never sees ``sex`` or ``education``: a degree counts only through the jobs it opens.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from threadpoolctl import threadpool_limits

from pear.arrays import Flags, Floats, Indices
from pear.datasets.problems import loan_book_problem
from pear.decision import BlackBox
from pear.decision.encoding import unit_inputs
from pear.decision.numpy_models import Layers, Network
from pear.errors import InvalidSetting
from pear.problem import Problem
from pear.problem.features import FeatureSpace, Value

INTEREST = 0.075
"""Yearly rate of the loan."""

OCCUPATION_GIVEN_EDUCATION = np.array(
    [
        [0.55, 0.40, 0.03, 0.01, 0.01, 0.00],
        [0.27, 0.38, 0.25, 0.06, 0.03, 0.01],
        [0.13, 0.20, 0.20, 0.37, 0.09, 0.01],
        [0.02, 0.12, 0.36, 0.06, 0.28, 0.16],
        [0.01, 0.05, 0.24, 0.03, 0.37, 0.30],
    ]
)
"""Share of each occupation (columns) at each level of education (rows)."""

PAY = np.array([1_550.0, 1_600.0, 1_950.0, 2_150.0, 2_700.0, 3_400.0])
"""Middle net monthly pay of each occupation, € at age 40."""


def loan_book_table(n: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """n applicants of the synthetic loan book, with the decision in ``approved``.

    >>> table = loan_book_table(1_000)
    >>> table.shape, bool(0.4 < table.approved.mean() < 0.65)
    ((1000, 16), True)
    """
    if n < 1:
        raise InvalidSetting(f"'n' must be at least 1 (got {n!r})")
    rng = np.random.default_rng([seed, 0x10A])
    age = np.clip(np.rint(18 + 57 * rng.beta(1.6, 2.4, n)), 18, 75)
    male = rng.random(n) < 0.5
    education = _education(age, rng)
    children = np.where((age > 22) & (age < 58), rng.poisson(0.9, n), rng.poisson(0.05, n)).clip(
        0, 5
    )
    years_at_bank = np.rint((age - 18) * rng.beta(1.1, 1.8, n)).clip(0, 30)
    occupation = _pick(OCCUPATION_GIVEN_EDUCATION[education], rng)
    contract = _contract(occupation, age, rng)

    career = 1 - 0.00045 * (age - 47) ** 2 * (age < 47)
    schooling = 1 + 0.04 * (education - 2)
    gap = np.where(male, 1.0, 0.93)
    pay = PAY[occupation] * career * schooling * gap * rng.lognormal(0, 0.22, n)
    income = _round(np.clip(pay, 700, 6_000), 50)

    room = income - 850 - 220 * children
    saved = np.maximum(room, 60) * (age - 16) / 8 * rng.lognormal(-0.6, 1.0, n)
    savings = _round(np.clip(saved, 0, 30_000), 100)
    owing = rng.random(n) < 0.68
    debts = owing * income * rng.beta(1.5, 6.5, n) * (1 + 0.08 * children)
    debt_payments = _round(np.clip(debts, 0, 1_500), 10)
    strain = debt_payments / income + 0.25 * (savings < 1_000)
    card_use = np.rint(100 * expit(rng.normal(-1.1 + 2.6 * strain, 1.1, n)))
    overdue = rng.poisson(np.clip(1.9 * strain + card_use / 220 - 0.25, 0.02, 3)).clip(0, 6)
    wanted = income * rng.lognormal(1.35, 0.55, n)
    loan_amount = _round(np.clip(wanted, 1_000, 30_000), 500)
    term = 12 * np.clip(np.rint(loan_amount / 4_200 + rng.normal(1.6, 1.0, n)), 1, 7)
    guarantor = rng.random(n) < np.where(age < 32, 0.22, 0.08)

    logit = creditworthiness(
        income=income,
        savings=savings,
        debt_payments=debt_payments,
        card_use=card_use,
        overdue=overdue.astype(float),
        loan_amount=loan_amount,
        loan_term=term,
        guarantor=guarantor,
        children=children.astype(float),
        contract=contract,
        occupation=occupation,
        years_at_bank=years_at_bank,
    )
    approved = rng.random(n) < expit(logit)
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "sex": np.where(male, "male", "female").astype(object),
            "children": children.astype(int),
            "years_at_bank": years_at_bank.astype(int),
            "education": _words("education", education),
            "occupation": _words("occupation", occupation),
            "contract": _words("contract", contract),
            "monthly_income": income,
            "savings": savings,
            "debt_payments": debt_payments,
            "card_use": card_use.astype(int),
            "overdue": overdue.astype(int),
            "loan_amount": loan_amount.astype(int),
            "loan_term": term.astype(int),
            "guarantor": guarantor,
            "approved": approved,
        }
    )


def creditworthiness(
    *,
    income: Floats,
    savings: Floats,
    debt_payments: Floats,
    card_use: Floats,
    overdue: Floats,
    loan_amount: Floats,
    loan_term: Floats,
    guarantor: Flags,
    children: Floats,
    contract: Indices,
    occupation: Indices,
    years_at_bank: Floats,
) -> Floats:
    """Log odds of approval by the officers' scorecard, shape ``(n,)``."""
    household = 750 + 180 * children
    left = (income - household - debt_payments - instalment(loan_amount, loan_term)) / income
    score = (
        -0.85
        + 7.0 * np.clip(left, -0.6, 0.55)
        + 0.9 * np.log1p(savings / 2_500)
        - 0.85 * overdue
        - 2.0 * np.maximum(card_use / 100 - 0.3, 0)
        - 0.55 * loan_amount / 10_000
        + np.array([-0.55, -0.25, 0.45])[contract]
        + np.array([-0.4, -0.25, 0.1, 0.25, 0.55, 0.8])[occupation]
        + 1.1 * guarantor
        + 0.035 * np.minimum(years_at_bank, 15)
    )
    return np.asarray(1.6 * score)


def instalment(amount: Floats, months: Floats) -> Floats:
    """Monthly payment of an annuity loan, €."""
    rate = INTEREST / 12
    return np.asarray(amount * rate / (1 - (1 + rate) ** -months))


def _education(age: Floats, rng: np.random.Generator) -> Indices:
    shares = np.tile([0.13, 0.29, 0.28, 0.2, 0.1], (len(age), 1))
    shares[age < 22] = [0.2, 0.62, 0.17, 0.01, 0.0]
    shares[(age >= 22) & (age < 26)] = [0.13, 0.37, 0.26, 0.21, 0.03]
    shares[age > 58] = [0.24, 0.32, 0.28, 0.1, 0.06]
    return _pick(shares, rng)


def _contract(occupation: Indices, age: Floats, rng: np.random.Generator) -> Indices:
    temporary = np.array([0.4, 0.4, 0.26, 0.2, 0.17, 0.08])[occupation] + 0.22 * (age < 28)
    independent = np.array([0.06, 0.08, 0.06, 0.2, 0.16, 0.14])[occupation]
    return _pick(np.column_stack([temporary, independent, 1 - temporary - independent]), rng)


def _pick(shares: Floats, rng: np.random.Generator) -> Indices:
    """One column of each row of ``shares`` ``(n, k)``, drawn with those shares."""
    ends = np.cumsum(shares, axis=1)
    drawn = rng.random(len(shares)) * ends[:, -1]
    return np.asarray((drawn[:, None] >= ends).sum(axis=1).clip(0, shares.shape[1] - 1))


def _round(values: Floats, step: float) -> Floats:
    return np.asarray(np.rint(values / step) * step)


def _words(feature: str, codes: Indices) -> NDArray[np.object_]:
    return np.array(loan_book_problem().space[feature].categories, object)[codes]


UNSEEN = ("sex", "education")
"""Features the lender's model is not shown."""


def loan_book_classifier(problem: Problem | None = None, seed: int = 0) -> BlackBox:
    """The lender's model, trained on the first use; same seed, same model.

    >>> model = loan_book_classifier(loan_book_problem())
    >>> people = loan_book_table(1_000, seed=1).drop(columns="approved")
    >>> bool(0.4 < (~model.favourable(model.space.encode(people))).mean() < 0.5)
    True
    """
    problem = problem or loan_book_problem()
    return BlackBox(
        Network(unit_inputs(problem.space, loan_book_problem().space), _trained(seed)),
        problem.space,
        problem.goal,
        name="loan book network",
        uses=tuple(name for name in problem.space.names if name not in UNSEEN),
    )


@lru_cache(maxsize=8)
def _trained(seed: int) -> Layers:
    """Weights and biases of each layer, the unseen inputs cut off."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    space = loan_book_problem().space
    table = loan_book_table(seed=seed)
    inputs = unit_inputs(space)(space.encode(table.drop(columns="approved")))
    unseen = one_hot_columns(space, UNSEEN)
    inputs[:, unseen] = 0.0
    model = MLPClassifier(
        (16, 8), batch_size=256, learning_rate_init=3e-3, alpha=3e-3, max_iter=40, random_state=seed
    )
    # One thread: the sums of a threaded BLAS depend on the machine, and training amplifies them.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(inputs, table["approved"].to_numpy())
    layers = [
        (np.array(weights), np.array(bias))
        for weights, bias in zip(model.coefs_, model.intercepts_, strict=True)
    ]
    layers[0][0][unseen] = 0.0
    return tuple(layers)


def one_hot_columns(space: FeatureSpace, names: tuple[str, ...]) -> list[int]:
    """Columns of the one-hot encoding that belong to some features."""
    found, start = [], 0
    for feature in space.features:
        width = len(feature.categories) if feature.is_categorical else 1
        if feature.name in names:
            found += list(range(start, start + width))
        start += width
    return found


# fmt: off
_PEOPLE: dict[str, tuple[Value, ...]] = {
    "Amina": (34, "female", 2, 6, "vocational training", "service work", "temporary",
              1850.0, 900.0, 210.0, 55, 1, 8000, 36, False),
    "Ben": (24, "male", 0, 3, "school diploma", "service work", "temporary",
            1350.0, 300.0, 120.0, 58, 0, 8000, 24, False),
    "Carla": (52, "female", 0, 14, "bachelor's degree", "office work", "permanent",
              2050.0, 800.0, 560.0, 72, 2, 15000, 48, False),
    "David": (41, "male", 1, 2, "no diploma", "manual work", "permanent",
              1650.0, 500.0, 340.0, 63, 1, 9000, 36, False),
    "Elif": (29, "female", 0, 1, "master's degree", "technical specialist", "self-employed",
             1600.0, 200.0, 290.0, 81, 0, 11000, 36, False),
    "Farid": (46, "male", 3, 9, "school diploma", "manual work", "permanent",
              1800.0, 1100.0, 200.0, 38, 0, 12000, 36, False),
}
# fmt: on


def loan_book_people() -> dict[str, dict[str, Value]]:
    """Invented applicants whom the lender's model (seed 0) refuses: name to record.

    >>> list(loan_book_people())
    ['Amina', 'Ben', 'Carla', 'David', 'Elif', 'Farid']
    >>> loan_book_people()["Amina"]["monthly_income"]
    1850.0
    """
    names = loan_book_problem().space.names
    return {name: dict(zip(names, values, strict=True)) for name, values in _PEOPLE.items()}
