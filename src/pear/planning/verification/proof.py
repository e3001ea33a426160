"""Does the certificate of a plan hold when the search is run again?"""

from __future__ import annotations

import math

import numpy as np

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.planning.verification.report import Report
from pear.problem import Plan, Problem

CLOSE = 1e-6
"""How far costs of two runs may differ, relative to their size."""


def close(first: float, second: float) -> bool:
    """Whether two costs are the same up to rounding."""
    return math.isclose(first, second, rel_tol=CLOSE, abs_tol=CLOSE)


def check_statements(report: Report, plan: Plan) -> None:
    """What a certificate says about itself must fit together and fit the plan."""
    certificate, verdict = plan.certificate, plan.certificate.verdict
    found = verdict in ("optimal", "bounded", "heuristic")
    report.check(
        f"the verdict is {verdict}",
        found == plan.success and (plan.success or not plan.steps),
        f"the plan {'leads' if plan.success else 'does not lead'} to a favourable decision",
    )
    if verdict in ("optimal", "bounded", "infeasible"):
        report.check(
            f"the method is {plan.method}",
            plan.method == "exact",
            "only the exact search proves anything",
        )
    upper, lower = certificate.upper_bound, certificate.lower_bound
    if upper is not None or verdict in ("optimal", "bounded"):
        report.check(
            "the upper bound is the plan's cost",
            plan.success and upper is not None and close(upper, plan.cost),
            f"it is {upper} and the plan costs {plan.cost}",
        )
    if verdict == "optimal":
        report.check(
            "the lower bound is the plan's cost",
            lower is not None and close(lower, plan.cost),
            f"it is {lower} and the plan costs {plan.cost}",
        )
    if verdict in ("infeasible", "heuristic"):
        report.check("no lower bound is claimed", lower is None, f"it is {lower}")
    if certificate.blocking:
        report.check(
            "limits that block are named for an infeasible verdict only",
            verdict == "infeasible",
            f"the verdict is {verdict}",
        )
    counts = (certificate.rows, certificate.seconds)
    report.check(
        "rows and seconds are not negative",
        all(isinstance(count, (int, float)) and count >= 0 for count in counts),
        f"they are {counts[0]} and {counts[1]}",
    )


def check_proof(
    report: Report, plan: Plan, problem: Problem, black_box: BlackBox, max_rows: int
) -> None:
    """Run the search again under the plan's own weights and limits."""
    certificate = plan.certificate
    if certificate.verdict == "heuristic":
        report.unchecked.append("whether a cheaper plan exists: none is claimed not to")
        return
    longest = certificate.max_length
    if longest is not None and longest == plan.limits.max_steps:
        # The person's own limit; without it plans could be as long as the problem allows.
        longest = max(longest, problem.max_length)
    planner = ExactPlanner(
        problem,
        black_box,
        max_length=longest,
        max_rows=max(max_rows, int(certificate.rows)),
        max_changes_per_feature=certificate.max_changes_per_feature,
    )
    state = problem.state(dict(plan.start))
    again = planner.plan(state, np.array(plan.weights), plan.limits)
    _compare(report, plan, again)


def _compare(report: Report, plan: Plan, again: Plan) -> None:
    claimed, found = plan.certificate, again.certificate
    space = f"with at most {claimed.max_length} changes"
    if claimed.verdict == "optimal":
        proven = found.verdict == "optimal" and close(again.cost, plan.cost)
        reason = f"the search run again ends {found.verdict}"
        if again.success and again.cost < plan.cost and not close(again.cost, plan.cost):
            cheaper = "; ".join(step.words for step in again.steps)
            reason = f"a plan costs {again.cost:.4f}: {cheaper}"
        report.check(f"no plan {space} costs less than {plan.cost:.4f}", proven, reason)
    elif claimed.verdict == "infeasible":
        reason = f"the search run again ends {found.verdict}"
        if again.success:
            reason = "there is one: " + "; ".join(step.words for step in again.steps)
        report.check(f"no plan {space} is favourable", found.verdict == "infeasible", reason)
        report.check(
            "the limits that block are those named",
            sorted(map(sorted, claimed.blocking)) == sorted(map(sorted, found.blocking)),
            f"they are {found.blocking}",
        )
    elif claimed.lower_bound is not None:
        proven_bound = again.cost if found.verdict == "optimal" else found.lower_bound
        if found.verdict == "infeasible":
            proven_bound = math.inf
        report.check(
            f"no plan {space} costs less than {claimed.lower_bound:.4f}",
            proven_bound is not None
            and (claimed.lower_bound <= proven_bound or close(claimed.lower_bound, proven_bound)),
            f"the search run again proves only {proven_bound}",
        )
