"""Personalised algorithmic recourse with preference elicitation.

The everyday names; each folder below answers one question and has more.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pear.decision import BlackBox
    from pear.elicitation import Session, Settings, simulate
    from pear.errors import PearError
    from pear.planning.exact import ExactPlanner
    from pear.preferences import GaussianMixturePrior, Logistic, Noiseless, default_prior
    from pear.problem import Certificate, Limits, Plan, Problem
    from pear.problem.files import read_problem, write_problem

_HOME = {
    "BlackBox": "pear.decision",
    "Certificate": "pear.problem",
    "ExactPlanner": "pear.planning.exact",
    "GaussianMixturePrior": "pear.preferences",
    "Limits": "pear.problem",
    "Logistic": "pear.preferences",
    "Noiseless": "pear.preferences",
    "PearError": "pear.errors",
    "Plan": "pear.problem",
    "Problem": "pear.problem",
    "Session": "pear.elicitation",
    "Settings": "pear.elicitation",
    "default_prior": "pear.preferences",
    "read_problem": "pear.problem.files",
    "simulate": "pear.elicitation",
    "write_problem": "pear.problem.files",
}

__all__ = [
    "BlackBox",
    "Certificate",
    "ExactPlanner",
    "GaussianMixturePrior",
    "Limits",
    "Logistic",
    "Noiseless",
    "PearError",
    "Plan",
    "Problem",
    "Session",
    "Settings",
    "default_prior",
    "read_problem",
    "simulate",
    "write_problem",
]


def __getattr__(name: str) -> Any:
    """Names are brought in when first used, so that ``import pear`` stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'pear' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
