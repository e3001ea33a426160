"""Personalised algorithmic recourse with preference elicitation.

What most programs need, and nothing else; each folder answers one question and has more.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from pear.decision import BlackBox, load_model
    from pear.elicitation import Session, Settings
    from pear.errors import PearError
    from pear.planning.exact import ExactPlanner
    from pear.planning.verify import verify
    from pear.portfolio import plan_portfolio, recourse
    from pear.preferences import GaussianMixturePrior, default_prior
    from pear.problem import (
        Action,
        Certificate,
        Feature,
        Goal,
        Limits,
        Plan,
        Problem,
        Requirement,
        Step,
    )
    from pear.problem.draft import draft_problem
    from pear.problem.files import load_problem, write_problem

__all__ = [
    "Action",
    "BlackBox",
    "Certificate",
    "ExactPlanner",
    "Feature",
    "GaussianMixturePrior",
    "Goal",
    "Limits",
    "PearError",
    "Plan",
    "Problem",
    "Requirement",
    "Session",
    "Settings",
    "Step",
    "default_prior",
    "draft_problem",
    "load_model",
    "load_problem",
    "plan_portfolio",
    "recourse",
    "verify",
    "write_problem",
]

_HOMES = {
    "pear.decision": ("BlackBox", "load_model"),
    "pear.elicitation": ("Session", "Settings"),
    "pear.errors": ("PearError",),
    "pear.planning.exact": ("ExactPlanner",),
    "pear.planning.verify": ("verify",),
    "pear.portfolio": ("plan_portfolio", "recourse"),
    "pear.preferences": ("GaussianMixturePrior", "default_prior"),
    "pear.problem": (
        "Action",
        "Certificate",
        "Feature",
        "Goal",
        "Limits",
        "Plan",
        "Problem",
        "Requirement",
        "Step",
    ),
    "pear.problem.draft": ("draft_problem",),
    "pear.problem.files": ("load_problem", "write_problem"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> _Any:
    """Names are imported when first used, so that ``import pear`` stays quick."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pear' has no attribute {name!r}")
    return getattr(_importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
