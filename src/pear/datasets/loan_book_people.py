"""Which refused applicants of the loan book make good examples?"""

from __future__ import annotations

from pear.problem.features import Value

_COLUMNS = (
    "age",
    "sex",
    "children",
    "years_at_bank",
    "education",
    "occupation",
    "contract",
    "monthly_income",
    "savings",
    "debt_payments",
    "card_use",
    "overdue",
    "loan_amount",
    "loan_term",
    "guarantor",
)

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
    return {name: dict(zip(_COLUMNS, values, strict=True)) for name, values in _PEOPLE.items()}
