"""What every planner can do, so that everything above can swap them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.problem import NO_LIMITS, Limits, Plan, Problem


class Planner(Protocol):
    """Finds plans for one person.

    A planner is built on a problem and a black box and then asked about people. It always
    returns a plan object with a certificate; ``plan.success`` says whether it is one.
    """

    problem: Problem
    black_box: BlackBox

    def plan(
        self,
        state: NDArray[np.float64],
        weights: NDArray[np.float64],
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> Plan:
        """The cheapest plan it finds from ``state`` ``(d,)``.

        ``weights`` is one vector ``(p,)``, or posterior samples ``(s, p)``: then one plan
        minimising the mean floored cost.
        """
        ...

    def candidates(
        self,
        state: NDArray[np.float64],
        samples: NDArray[np.float64],
        n: int,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> list[Plan]:
        """At most n distinct successful plans, each the planner's best for some of the samples."""
        ...


def plan_from_moves(
    planner: Any,
    state: NDArray[np.float64],
    moves: Any,
    weights: NDArray[np.float64],
    certificate: Any,
    *,
    limits: Limits = NO_LIMITS,
    method: str,
) -> Plan:
    """A plan with the score before and after each step, asked of the planner's black box."""
    from pear.problem import walk

    problem: Problem = planner.problem
    scores = planner.black_box.score(walk(state, problem.actions, moves))
    return problem.make_plan(
        state,
        moves,
        weights,
        scores,
        certificate,
        limits=limits,
        method=method,
        model_fingerprint=planner.black_box.fingerprint,
    )
