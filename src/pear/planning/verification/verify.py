"""Does a plan hold what it claims, step by step and as a whole?"""

from __future__ import annotations

from typing import Any

from pear.decision import BlackBox
from pear.planning.verification.proof import check_proof, check_statements, close
from pear.planning.verification.replay import (
    Record,
    action_named,
    do_step,
    move_number,
    record_problem,
)
from pear.planning.verification.report import Report
from pear.problem import Plan, Problem, Step
from pear.problem.actions import phrase

SCORES_DIFFER = 1e-5
"""How far the scores of one model may differ from machine to machine."""


def verify_plan(
    plan: Plan, problem: Problem, black_box: BlackBox, *, max_rows: int = 1_000_000
) -> Report:
    """Check every claim of a plan against the problem and the model.

    The steps are replayed by the book; then the proof is run again, with at most
    ``max_rows`` rows asked of the model (more if the certificate itself says it took more).
    """
    report = Report()
    if not _belongs(report, plan, problem, black_box):
        return report
    fault = record_problem(problem, dict(plan.start))
    if not report.check("the record at the start fits the problem", not fault, fault):
        return report
    width = len(problem.costs.weight_names)
    if not report.check(
        "the weights behind the costs are recorded",
        bool(plan.weights) and all(len(row) == width for row in plan.weights),
        f"it must be {width} for each sample; have the plan made again by this version",
    ):
        return report
    _replay(report, plan, problem, black_box)
    check_statements(report, plan)
    if report.confirmed:
        check_proof(report, plan, problem, black_box, max_rows)
    report.unchecked.append("rows, seconds and reproducibility of the first search; reasons")
    return report


def _belongs(report: Report, plan: Plan, problem: Problem, black_box: BlackBox) -> bool:
    """Fingerprints first: everything else is about this problem and this model."""
    report.check(
        "the plan was made for this problem",
        plan.problem_fingerprint == problem.fingerprint,
        f"it names {plan.problem_fingerprint or 'none'}, this is {problem.fingerprint}",
    )
    report.check(
        "the plan was made for this version of the model",
        plan.model_fingerprint == black_box.fingerprint,
        f"it names {plan.model_fingerprint or 'none'}, this is {black_box.fingerprint}",
    )
    report.check(
        "its steps come from the problem's actions",
        plan.on_grid,
        "its method takes values from elsewhere, which this check knows nothing about",
    )
    return report.confirmed


def _replay(report: Report, plan: Plan, problem: Problem, black_box: BlackBox) -> None:
    record: Record = dict(plan.start)
    score = _score(problem, black_box, record)
    total, moves = 0.0, []
    for number, step in enumerate(plan.steps, 1):
        action = action_named(problem, step.action)
        if action is None or step.argument not in action.arguments:
            report.check(
                f"'{step.action}' with {step.argument!r} is an action of the problem",
                False,
                "the problem declares no such action, or not with this argument",
                number,
            )
            return
        moves.append(move_number(problem, action, step.argument))
        done = do_step(problem, record, action, step.argument, plan.limits, plan.weights)
        true_values = _check_values(report, number, step, action.feature, record, done.after)
        allowed = not done.forbidden
        report.check("it is allowed at that point", allowed, done.forbidden, number)
        if not (true_values and allowed):
            return
        reached = _score(problem, black_box, done.after)
        report.check(
            f"it costs {step.cost:.4f}",
            close(step.cost, done.cost),
            f"it costs {done.cost:.4f}",
            number,
        )
        for claim, claimed, found in (
            ("before", step.score_before, score),
            ("after", step.score_after, reached),
        ):
            report.check(
                f"the score {claim} it is {claimed:.4f}",
                abs(claimed - found) <= SCORES_DIFFER,
                f"the model says {found:.6f}",
                number,
            )
        feature = problem.space[action.feature]
        expected = phrase(
            action, feature, feature.code(step.before), feature.code(step.after), step.argument
        )
        report.check(
            "its words say what it does",
            step.words == expected,
            f"they should be: {expected}",
            number,
        )
        record, score, total = done.after, reached, total + done.cost
    _check_whole(report, plan, problem, score, total, moves)


def _check_values(
    report: Report, number: int, step: Step, feature: str, before: Record, after: Record
) -> bool:
    return report.check(
        f"it changes '{step.feature}' from {step.before!r} to {step.after!r}",
        step.feature == feature and step.before == before[feature] and step.after == after[feature],
        f"it changes '{feature}' from {before[feature]!r} to {after[feature]!r}",
        number,
    )


def _check_whole(
    report: Report,
    plan: Plan,
    problem: Problem,
    score: float,
    total: float,
    moves: list[Any],
) -> None:
    certificate, bar = plan.certificate, problem.goal.bar(plan.limits)
    report.check(
        "the moves are the numbers of the steps",
        list(plan.moves) == moves,
        f"they should be {moves}",
    )
    report.check(
        f"the plan costs {plan.cost:.4f}", close(plan.cost, total), f"it costs {total:.4f}"
    )
    report.check(
        f"its last score is {plan.score:.4f}",
        abs(plan.score - score) <= SCORES_DIFFER,
        f"the model says {score:.6f}",
    )
    report.check(
        f"the decision is {'favourable' if plan.success else 'not favourable'} at the end",
        plan.success == (score > bar),
        f"the score is {score:.6f} and must exceed {bar:g}",
    )
    longest = certificate.max_length
    if longest is not None:
        if plan.limits.max_steps is not None:
            longest = min(longest, plan.limits.max_steps)
        report.check(
            f"it has at most {longest} steps",
            len(plan.steps) <= longest and longest == certificate.max_length,
            f"it has {len(plan.steps)}, and the certificate is about {certificate.max_length}",
        )
    if certificate.verdict in ("optimal", "bounded"):
        most = max((_times(plan, step.feature) for step in plan.steps), default=0)
        report.check(
            f"no feature is changed more than {certificate.max_changes_per_feature} times",
            most <= certificate.max_changes_per_feature,
            f"one is changed {most} times",
        )


def _times(plan: Plan, feature: str) -> int:
    return sum(step.feature == feature for step in plan.steps)


def _score(problem: Problem, black_box: BlackBox, record: Record) -> float:
    return float(black_box.score(problem.state(record)[None])[0])
