"""Who applies for a loan, and who got one? A structural model that draws a loan book.

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
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.datasets.loan_book_problem import CONTRACT, EDUCATION, OCCUPATION
from pear.errors import InvalidSetting

Column = NDArray[np.float64]

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
    card_use = np.rint(100 * _sigmoid(rng.normal(-1.1 + 2.6 * strain, 1.1, n)))
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
    approved = rng.random(n) < _sigmoid(logit)
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "sex": np.where(male, "male", "female").astype(object),
            "children": children.astype(int),
            "years_at_bank": years_at_bank.astype(int),
            "education": np.array(EDUCATION, object)[education],
            "occupation": np.array(OCCUPATION, object)[occupation],
            "contract": np.array(CONTRACT, object)[contract],
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
    income: Column,
    savings: Column,
    debt_payments: Column,
    card_use: Column,
    overdue: Column,
    loan_amount: Column,
    loan_term: Column,
    guarantor: NDArray[np.bool_],
    children: Column,
    contract: NDArray[np.intp],
    occupation: NDArray[np.intp],
    years_at_bank: Column,
) -> Column:
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


def instalment(amount: Column, months: Column) -> Column:
    """Monthly payment of an annuity loan, €."""
    rate = INTEREST / 12
    return np.asarray(amount * rate / (1 - (1 + rate) ** -months))


def _education(age: Column, rng: np.random.Generator) -> NDArray[np.intp]:
    shares = np.tile([0.13, 0.29, 0.28, 0.2, 0.1], (len(age), 1))
    shares[age < 22] = [0.2, 0.62, 0.17, 0.01, 0.0]
    shares[(age >= 22) & (age < 26)] = [0.13, 0.37, 0.26, 0.21, 0.03]
    shares[age > 58] = [0.24, 0.32, 0.28, 0.1, 0.06]
    return _pick(shares, rng)


def _contract(
    occupation: NDArray[np.intp], age: Column, rng: np.random.Generator
) -> NDArray[np.intp]:
    temporary = np.array([0.4, 0.4, 0.26, 0.2, 0.17, 0.08])[occupation] + 0.22 * (age < 28)
    independent = np.array([0.06, 0.08, 0.06, 0.2, 0.16, 0.14])[occupation]
    return _pick(np.column_stack([temporary, independent, 1 - temporary - independent]), rng)


def _pick(shares: Column, rng: np.random.Generator) -> NDArray[np.intp]:
    """One column of each row of ``shares`` ``(n, k)``, drawn with those shares."""
    ends = np.cumsum(shares, axis=1)
    drawn = rng.random(len(shares)) * ends[:, -1]
    return np.asarray((drawn[:, None] >= ends).sum(axis=1).clip(0, shares.shape[1] - 1))


def _round(values: Column, step: float) -> Column:
    return np.asarray(np.rint(values / step) * step)


def _sigmoid(values: Column) -> Column:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))
