"""Which planner suits a black box that answers only so many rows?

The threshold is measured: see ``docs/learned-planners.md``, quality against rows.
"""

from __future__ import annotations

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.planning.learned.fare import WFARE
from pear.planning.learned.policy import Policy
from pear.planning.planner import Planner
from pear.problem import Problem

ROWS_FOR_PROOF = 3_000
"""From this many rows per person on, exact search finds plans as cheap and proves them."""


def planner_for(
    problem: Problem,
    black_box: BlackBox,
    max_rows: int | None = None,
    policy: Policy | None = None,
) -> Planner:
    """The planner to take for ``max_rows`` rows per plan (None: as many as it takes).

    Exact search where the rows allow it; below that W-FARE, if there is a policy of that
    kind, and otherwise exact search with what it is given.
    """
    few = max_rows is not None and max_rows < ROWS_FOR_PROOF
    if few and policy is not None and policy.kind == "wfare":
        return WFARE(
            policy, black_box, simulations=simulations_for(problem, max_rows), max_rows=max_rows
        )
    if max_rows is None:
        return ExactPlanner(problem, black_box)
    return ExactPlanner(problem, black_box, max_rows=max_rows)


def simulations_for(problem: Problem, max_rows: int | None) -> int:
    """Simulations per step with which W-FARE's two searches make use of ``max_rows``."""
    if max_rows is None:
        return 5
    return max(1, min(200, max_rows // (2 * problem.max_length)))
