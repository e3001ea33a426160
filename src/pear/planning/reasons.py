"""Why is each step in this plan? True by construction, for a plan of any planner.

For each step: what the model says when the step is left out and the others are done, and
the nearest cheaper alternative (another argument of the same action, or leaving the step
out) with what becomes of the plan. All states of all plans are scored in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from pear.arrays import Floats, Indices
from pear.decision import BlackBox
from pear.errors import FingerprintMismatch, InvalidSetting
from pear.problem import Limits, Plan, Problem, walk
from pear.problem.costs import NO_MOVE, padded, roll_out
from pear.problem.features import Value


@dataclass(frozen=True)
class Alternative:
    """The plan with one step replaced or left out.

    ``cost`` is that of the whole plan with it, ``score`` the model's at its end; ``score`` is
    None and ``blocked`` the words of a later step when that step, ``blocks`` by its place from 0,
    is then not allowed.
    """

    kind: Literal["another argument", "left out"]
    argument: Value | None
    shown: str
    cost: float
    score: float | None
    succeeds: bool
    blocked: str = ""
    blocks: int | None = None


@dataclass(frozen=True)
class StepReason:
    """Why one step is in a plan.

    ``because`` is what the planner itself gave as its reason, if anything. ``required`` is the
    score that must be exceeded. ``without`` is the plan without the step; ``cheaper`` the
    nearest cheaper alternative other than that, None where there is none. ``eases`` is the place
    from 0 of a later step that costs less because of what is changed here.
    """

    step: int
    because: str
    required: float
    without: Alternative
    cheaper: Alternative | None = None
    eases: int | None = None

    @property
    def needed(self) -> bool:
        """Whether the plan fails without the step."""
        return not self.without.succeeds

    def words(self) -> str:
        """The reason as sentences."""
        parts = [_sentence(self.because)] if self.because else []
        parts.append(self._without_words())
        if self.cheaper is not None:
            parts.append(self._cheaper_words(self.cheaper))
        return " ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "needed": self.needed}

    def _without_words(self) -> str:
        without = self.without
        if without.score is None:
            return f"Without this step you could not do a later one: {_lower(without.blocked)}."
        if without.succeeds:
            return (
                f"The plan would reach {show_score(without.score, self.required)} without this "
                "step, which is enough."
            )
        return f"Without this step the score would be {_not_above(without.score, self.required)}."

    def _cheaper_words(self, cheaper: Alternative) -> str:
        if cheaper.score is None:
            return (
                f"The nearest cheaper choice, {cheaper.shown}, would rule out a later step: "
                f"{_lower(cheaper.blocked)}."
            )
        if cheaper.succeeds:
            return (
                f"A cheaper choice, {cheaper.shown}, would do too: it reaches "
                f"{show_score(cheaper.score, self.required)}."
            )
        return (
            f"The nearest cheaper choice, {cheaper.shown}, leaves the score at "
            f"{_not_above(cheaper.score, self.required)}."
        )


@dataclass(frozen=True)
class Explanation:
    """A plan whose steps carry their reasons, and the reasons as data."""

    plan: Plan
    reasons: tuple[StepReason, ...]

    def words(self) -> str:
        """Steps and reasons as numbered sentences."""
        lines = []
        for number, (step, reason) in enumerate(zip(self.plan.steps, self.reasons, strict=True), 1):
            lines += [f"{number}. {step.words} (cost {step.cost:.1f})", f"   {reason.words()}"]
        return "\n".join([*lines, f"Total cost {self.plan.cost:.1f}."])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "plan": self.plan.to_dict(),
            "reasons": [reason.to_dict() for reason in self.reasons],
        }


@dataclass(frozen=True)
class _Variant:
    """One plan with one step replaced by another move, or left out (move NO_MOVE)."""

    plan: int
    step: int
    move: int


def explain(
    problem: Problem,
    black_box: BlackBox,
    plan: Plan,
    weights: Floats | None = None,
    limits: Limits | None = None,
) -> Explanation:
    """Reasons for every step of one plan; see :func:`explain_plans`."""
    return explain_plans(problem, black_box, [plan], weights, limits)[0]


def explain_plans(
    problem: Problem,
    black_box: BlackBox,
    plans: Sequence[Plan],
    weights: Floats | None = None,
    limits: Limits | None = None,
) -> list[Explanation]:
    """Reasons for every step of plans for one person or many, with one call of the black box.

    ``weights`` is ``(p,)``, or samples ``(s, p)`` over which floored costs are averaged: the
    alternatives counted as cheaper are cheaper under them. Weights and limits left out are
    those each plan was made with; plans with different limits take one call each.
    """
    for plan in plans:
        if plan.problem_fingerprint not in ("", problem.fingerprint):
            raise FingerprintMismatch(
                f"the plan is of another problem ({plan.problem_fingerprint}, this one is "
                f"{problem.fingerprint}); give the problem it was made for"
            )
        if weights is None and not plan.weights:
            raise InvalidSetting("'weights' must be given: the plan does not say its own")
    groups: dict[tuple[Limits, int], list[int]] = {}
    for number, plan in enumerate(plans):
        samples = len(plan.weights) if weights is None else 0
        groups.setdefault((limits or plan.limits, samples), []).append(number)
    explained: dict[int, Explanation] = {}
    for (theirs, _), numbers in groups.items():
        members = [plans[number] for number in numbers]
        own = [plan.weights for plan in members] if weights is None else [weights]
        each = np.array([np.atleast_2d(problem.costs.check_weights(one)) for one in own])
        found = _explain_alike(problem, black_box, members, each, theirs)
        explained.update(zip(numbers, found, strict=True))
    return [explained[number] for number in range(len(plans))]


def _explain_alike(
    problem: Problem, black_box: BlackBox, plans: Sequence[Plan], weights: Floats, limits: Limits
) -> list[Explanation]:
    """Reasons for plans with the same limits; weights ``(n, s, p)``, or ``(1, s, p)`` for all."""
    starts = problem.space.encode([dict(plan.start) for plan in plans])
    variants = _variants(problem, plans)
    rows = _moves(plans, variants)
    owners = np.array([variant.plan for variant in variants], np.intp)
    each = weights if len(weights) == 1 else weights[owners]
    graph, actions = problem.costs, problem.actions
    rollout = roll_out(graph, actions, starts[owners], rows, limits)
    ends, costs = np.array(rollout.final), rollout.costs(each)
    for row, variant in enumerate(variants):
        plan = plans[variant.plan]
        if not plan.on_grid:
            order = [problem.space.index(step.feature) for step in plan.steps]
            del order[variant.step]
            ends[row] = _end_without(problem, plan, starts[variant.plan], variant)
            own = each[row % len(each)]
            costs[row] = graph.change_costs(starts[variant.plan], ends[row], order, own).sum()
    legal = rollout.illegal == 0
    scores = np.full(len(variants), np.nan)
    scores[legal] = black_box.score(ends[legal])
    whole = roll_out(graph, actions, starts, padded([plan.moves for plan in plans]))
    plan_costs = whole.costs(weights)
    required = problem.goal.required(limits)
    found: dict[tuple[int, int], list[Alternative]] = {}
    for row, variant in enumerate(variants):
        plan = plans[variant.plan]
        left_out = variant.move == NO_MOVE
        blocked, blocks = "", None
        if not legal[row]:
            missing = (rows[row] != NO_MOVE) & ~rollout.taken[row]
            position = int(np.flatnonzero(missing)[0])
            if position == variant.step:
                continue
            blocked, blocks = plan.steps[position].words, position
        if not left_out and not costs[row] < plan_costs[variant.plan] - 1e-9:
            continue
        alternative = Alternative(
            kind="left out" if left_out else "another argument",
            argument=None if left_out else problem.actions.argument(variant.move),
            shown="" if left_out else _shown(problem, rollout.states[row, variant.step], variant),
            cost=float(costs[row]),
            score=float(scores[row]) if legal[row] else None,
            succeeds=bool(legal[row] and scores[row] > required),
            blocked=blocked,
            blocks=blocks,
        )
        found.setdefault((variant.plan, variant.step), []).append(alternative)
    explained = [_explanation(plan, number, found, required) for number, plan in enumerate(plans)]
    return [
        _with_easing(problem, one, starts[number], weights[number % len(weights)])
        for number, one in enumerate(explained)
    ]


def nearest_cheaper(alternatives: Sequence[Alternative]) -> Alternative | None:
    """The one to show: the cheapest that would do, else the dearest that can be carried out.

    >>> a = Alternative("another argument", 1, "1", cost=4.0, score=0.3, succeeds=False)
    >>> nearest_cheaper([replace(a, cost=2.0), a]).cost
    4.0
    """
    enough = [a for a in alternatives if a.succeeds]
    if enough:
        return min(enough, key=lambda a: a.cost)
    possible = [a for a in alternatives if a.score is not None] or list(alternatives)
    return max(possible, key=lambda a: (a.cost, a.score or 0.0), default=None)


def show_score(score: float, required: float) -> str:
    """A score with enough decimals to tell it from the required one, two at least.

    >>> show_score(0.4996, 0.5), show_score(0.31, 0.5)
    ('0.4996', '0.31')
    """
    decimals = 2
    while (
        decimals < 9 and f"{score:.{decimals}f}" == f"{required:.{decimals}f}" and score != required
    ):
        decimals += 1
    return f"{score:.{decimals}f}"


def _explanation(
    plan: Plan, number: int, found: dict[tuple[int, int], list[Alternative]], required: float
) -> Explanation:
    reasons, steps = [], []
    for position, step in enumerate(plan.steps):
        without, *others = found[number, position]
        reason = StepReason(position, step.reason, required, without, nearest_cheaper(others))
        reasons.append(reason)
        steps.append(replace(step, reason=reason.words()))
    return Explanation(replace(plan, steps=tuple(steps)), tuple(reasons))


def _with_easing(
    problem: Problem, explanation: Explanation, start: Floats, weights: Floats
) -> Explanation:
    """The explanation, with the later steps that each step makes cheaper under ``(s, p)``."""
    plan, reasons = explanation.plan, []
    states = walk(start, problem.actions, plan.moves)
    for position, reason in enumerate(explanation.reasons):
        column = problem.space.index(plan.steps[position].feature)
        eased = None
        for later in range(position + 1, len(plan.moves)):
            child = int(problem.actions.feature_of[plan.moves[later]])
            if column not in (child, *(parent for parent, _ in problem.costs.parents[child])):
                continue
            pair = np.repeat(states[later][None], 2, axis=0)
            pair[1, column] = states[position, column]
            moves = np.repeat(plan.moves[later], 2)
            cost = problem.costs.costs(pair, problem.actions, moves, weights.mean(axis=0))
            if cost[0] < cost[1] - 1e-6:
                eased = later
                break
        reasons.append(replace(reason, eases=eased))
    return replace(explanation, reasons=tuple(reasons))


def _variants(problem: Problem, plans: Sequence[Plan]) -> list[_Variant]:
    """Every step left out (first), then every other argument of its action."""
    action_of = problem.actions.action_of
    variants = []
    for number, plan in enumerate(plans):
        for position in range(len(plan.steps)):
            variants.append(_Variant(number, position, NO_MOVE))
            if plan.on_grid:
                move = plan.moves[position]
                others = np.flatnonzero(action_of == action_of[move])
                variants += [_Variant(number, position, int(m)) for m in others if m != move]
    return variants


def _moves(plans: Sequence[Plan], variants: Sequence[_Variant]) -> Indices:
    """Moves of each variant, one column per step, shape ``(n, longest)``."""
    rows = padded([plans[variant.plan].moves for variant in variants])
    for row, variant in enumerate(variants):
        if plans[variant.plan].on_grid:
            rows[row, variant.step] = variant.move
    return rows


def _end_without(problem: Problem, plan: Plan, start: Floats, variant: _Variant) -> Floats:
    """Last state of a plan off the action grid without one of its changes."""
    end = np.array(start, float)
    for position, step in enumerate(plan.steps):
        if position != variant.step:
            end[problem.space.index(step.feature)] = problem.space[step.feature].code(step.after)
    return end


def _shown(problem: Problem, before: Floats, variant: _Variant) -> str:
    """The value the alternative would give the feature, in words."""
    after = problem.actions.apply(before[None], np.array([variant.move]))[0]
    column = problem.actions.feature_of[variant.move]
    feature = problem.space.features[column]
    return f"{feature.words} {feature.show(after[column])}"


def _not_above(score: float, required: float) -> str:
    return f"{show_score(score, required)}, not above {required:g}"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
