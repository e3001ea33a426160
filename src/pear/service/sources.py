"""What is served: which problem, model and prior, and which people may it be tried with?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pear.preferences import GaussianMixturePrior
from pear.problem import Problem
from pear.service.engine import Engine
from pear.service.settings import Settings


def problem_of(settings: Settings) -> Problem:
    """The problem that is served."""
    return stated_problem(settings.problem)


def stated_problem(place: str | Path | None) -> Problem:
    """The problem of a file; without one the loan book's."""
    if place:
        from pear.problem.files import load_problem

        return load_problem(place)
    from pear.datasets import loan_book_problem

    return loan_book_problem()


def make_engine(settings: Settings) -> Engine:
    """The engine of a service, with its model loaded, and the prior its problem names."""
    problem = problem_of(settings)
    if settings.problem:
        from pear.decision.adapters import load_model

        prior = _read_prior(settings.prior) if settings.prior else None
        return Engine(problem, load_model(settings.model, problem), settings, prior)
    from pear.datasets.loan_book import loan_book_classifier

    return Engine(problem, loan_book_classifier(problem), settings)


def _read_prior(path: str) -> GaussianMixturePrior:
    """A prior that ``pear fit-prior`` wrote; ``pear serve`` has checked that it can be read."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    return GaussianMixturePrior.from_dict(content.get("prior", content))


def example_people(settings: Settings) -> dict[str, dict[str, Any]]:
    """Invented refused people for the demonstration; none for another problem."""
    if settings.problem:
        return {}
    from pear.datasets.loan_book import loan_book_people

    return {name: dict(record) for name, record in loan_book_people().items()}
