"""How does a sequence of moves become a plan that claims no proof?"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.problem import Certificate, Limits, Plan, Problem

Floats = NDArray[np.float64]


class _Planner(Protocol):
    method: str
    problem: Problem
    black_box: BlackBox


def heuristic_plan(
    planner: _Planner,
    state: Floats,
    moves: list[int],
    weights: Floats,
    scores: Floats,
    rows: int,
    seconds: float,
    limits: Limits,
) -> Plan:
    """A plan from scored moves; where the last score is not favourable, one that says so.

    ``scores`` are of the start and of the state after each move; ``rows`` is what finding
    the plan is charged.
    """
    problem = planner.problem
    longest = min(problem.max_length, limits.max_steps or problem.max_length)
    success = bool(scores[-1] > problem.goal.bar(limits))
    certificate = Certificate(
        "heuristic" if success else "unknown",
        rows=int(rows),
        seconds=seconds,
        max_length=longest,
        max_changes_per_feature=longest,
    )
    return problem.make_plan(
        state,
        moves,
        weights,
        scores,
        certificate,
        limits=limits,
        method=planner.method,
        model_fingerprint=planner.black_box.fingerprint,
    )
