"""What does a column's name tell: who a person is, what they owe, or whether it is an id?

Guesses, for first drafts and warnings only; a person always reviews them.
"""

from __future__ import annotations

import re

_ASKED_ABOUT = """age sex gender race ethnic ethnicity nation national nationality country birth
    born birthday birthdate dob religion disability disabled marital origin foreign foreigner
    pregnant pregnancy alter geschlecht geburtsjahr geburtsdatum âge sexe naissance edad sexo"""
_HOME = """relationship dependents dependants children family citizen citizenship immigrant
    familienstand kinder enfants hijos"""
_CODES = "code codes zip zipcode postcode postal plz area region district branch"
_OWED = """debt debts due overdue late delinquent delinquency delinquencies default defaults
    arrears owed liability liabilities bankruptcy bankruptcies utilization utilisation dlqin"""
_BAD = "refused rejected reject denied bad risk fraud serious recid recidivism churn"

PROTECTED_WORDS = frozenset(_ASKED_ABOUT.split())
IMMUTABLE_WORDS = PROTECTED_WORDS | frozenset(_HOME.split())
DEBT_WORDS = frozenset(_OWED.split())
BAD_OUTCOME_WORDS = DEBT_WORDS | frozenset(_BAD.split())
CODE_WORDS = frozenset(_CODES.split())
IDENTIFIER_WORDS = frozenset({"id", "uuid", "identifier", "number", "no", "index", "key"})


def words_of(name: str) -> list[str]:
    """The words of a column name, in lower case.

    >>> words_of("NumberOfTime60-89DaysPastDueNotWorse")
    ['number', 'of', 'time', '60', '89', 'days', 'past', 'due', 'not', 'worse']
    >>> words_of("native_country")
    ['native', 'country']
    """
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    spaced = re.sub(r"([A-Za-z])([0-9])", r"\1 \2", spaced)
    return re.findall(r"[^\W_]+", spaced.lower())


def is_immutable(name: str) -> bool:
    """Whether a name sounds like something a person cannot change.

    >>> is_immutable("age"), is_immutable("wages")
    (True, False)
    """
    return not IMMUTABLE_WORDS.isdisjoint(words_of(name))


def is_protected(name: str) -> bool:
    """Whether a name sounds like something nobody may be told to change."""
    return not PROTECTED_WORDS.isdisjoint(words_of(name))


def is_debt(*names: str) -> bool:
    """Whether a name or a label sounds like something that should not be raised."""
    return any(not DEBT_WORDS.isdisjoint(words_of(name)) for name in names)


def is_bad_outcome(name: str) -> bool:
    """Whether a target's name is of the bad outcome, so that 0 is the favourable class."""
    return not BAD_OUTCOME_WORDS.isdisjoint(words_of(name))


def is_identifier(name: str) -> bool:
    """Whether a name sounds like a mere number of a row."""
    words = words_of(name)
    return bool(words) and (words[-1] in IDENTIFIER_WORDS or name.lower().startswith("unnamed"))


def is_code(name: str) -> bool:
    """Whether numbers under a name would be codes of something rather than amounts.

    >>> is_code("zip_code"), is_code("income")
    (True, False)
    """
    return not CODE_WORDS.isdisjoint(words_of(name))


def unit_of(name: str) -> tuple[str, str]:
    """A name without the unit in brackets at its end, and the unit.

    >>> unit_of("Monthly income (€)"), unit_of("rate [%]"), unit_of("income")
    (('Monthly income', '€'), ('rate', '%'), ('income', ''))
    """
    found = re.fullmatch(r"(.*\w)\s*[(\[]\s*([^()\[\]\s]{1,8})\s*[)\]]", name)
    return (found[1], found[2]) if found else (name, "")


def label_of(name: str) -> str:
    """A name as people would say it, empty if it reads well as it is.

    >>> label_of("MonthlyIncome"), label_of("monthly_income")
    ('monthly income', '')
    """
    label = " ".join(words_of(name))
    return "" if label == name.replace("_", " ") else label
