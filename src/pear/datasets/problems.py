"""Which recourse problems come with the package? They are files, read like anybody's."""

from __future__ import annotations

import numpy as np

from pear.arrays import Floats
from pear.errors import InvalidSetting
from pear.problem import Problem
from pear.problem.files import built_in_problem


def adult_problem() -> Problem:
    """The paper's Adult problem: an income above 50,000 $ a year, at most five changes.

    >>> problem = adult_problem()
    >>> len(problem.space), len(problem.actions), problem.costs.n_weights
    (12, 82, 32)
    """
    return built_in_problem("adult")


def credit_problem() -> Problem:
    """The paper's GiveMeSomeCredit problem: no serious delinquency, at most five changes.

    >>> problem = credit_problem()
    >>> len(problem.space), len(problem.actions), problem.costs.n_weights
    (10, 250, 29)
    """
    return built_in_problem("give_me_some_credit")


def loan_book_problem() -> Problem:
    """The recourse problem of the synthetic loan book.

    >>> problem = loan_book_problem()
    >>> len(problem.space), len(problem.actions), len(problem.costs.edges)
    (15, 67, 18)
    >>> [archetype.name for archetype in problem.archetypes][:2]
    ['parent with little time', 'early career']
    """
    return built_in_problem("loan_book")


def paper_prior_means(name: str) -> Floats:
    """Means of the six kinds of people of ``adult`` or ``givemecredit``, shape ``(6, p)``.

    In the paper's prior their covariances are the identity and they are equally likely.

    >>> paper_prior_means("adult").shape, paper_prior_means("givemecredit").shape
    ((6, 32), (6, 29))
    """
    problems = {"adult": adult_problem, "givemecredit": credit_problem}
    if name not in problems:
        raise InvalidSetting(f"'name' must be one of {', '.join(problems)} (got {name!r})")
    return np.array([archetype.mean for archetype in problems[name]().archetypes], float)
