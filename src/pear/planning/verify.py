"""Is what a plan claims true? An independent check for an auditor.

The steps are replayed by the book, every score is asked of the model again, and the proof is done
again by :mod:`pear.planning.prover`, which shares nothing with the searches. Where it cannot list
all plans, the report says what was not proven, and plans drawn at random are checked against the
claim instead. Where the model was looked into, its ceilings are compared with the model itself.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pear.decision import BlackBox
from pear.decision.ceilings import ceiling, fix
from pear.errors import InvalidSetting
from pear.planning.prover import Proof, Rules, State, prove
from pear.problem import Limits, Plan, Problem, Step
from pear.problem.values import check_type, is_whole
from pear.problem.wording import phrase

Opening = tuple[tuple[str, ...], Limits]
"""Limits in words, and the limits that remain without them."""

SCORES_DIFFER = 1e-5
"""How far the scores of one model may differ from machine to machine."""

COSTS_DIFFER = 1e-9
"""How far two ways of adding up one cost may differ, relative to the amounts added up."""

RANDOM_PLANS = 2_000
"""Plans drawn where the proof became too long."""

NEAR_MISSES = 1_000
"""Points drawn within what may be missed of a plan's steps."""

BOXES, IN_A_BOX = 200, 10
"""Partial assignments whose ceiling is compared with the model, and states drawn in each."""


@dataclass(frozen=True)
class Finding:
    """One claim of a plan, whether it was confirmed, and why not where it was not.

    ``step`` is the number of the step it is about, from 1; None for the plan as a whole.
    """

    claim: str
    confirmed: bool
    reason: str = ""
    step: int | None = None

    def words(self) -> str:
        """The finding as a line."""
        where = "" if self.step is None else f"step {self.step}: "
        if self.confirmed:
            return f"  confirmed  {where}{self.claim}"
        return f"  REFUSED    {where}{self.claim}: {self.reason}"


@dataclass
class Report:
    """Every claim that was checked, in order; what could not be proven; and what was not checked.

    >>> report = Report()
    >>> report.check("the plan has one step", False, "it has two")
    False
    >>> report.confirmed
    False
    >>> print(report.words())
      REFUSED    the plan has one step: it has two
    Refused: the plan has one step (it has two).
    """

    findings: list[Finding] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def check(self, claim: str, holds: bool, reason: str = "", step: int | None = None) -> bool:
        """Note a claim and whether it holds."""
        self.findings.append(Finding(claim, bool(holds), "" if holds else reason, step))
        return bool(holds)

    @property
    def refusals(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.confirmed]

    @property
    def confirmed(self) -> bool:
        """Whether there was something to check and all of it was proven again."""
        return bool(self.findings) and not self.refusals and not self.unproven

    def words(self) -> str:
        """The report in full, the verdict last."""
        lines = [finding.words() for finding in self.findings]
        lines += [f"  NOT PROVEN {what}" for what in self.unproven]
        lines += [f"  not checked  {what}" for what in self.unchecked]
        if self.refusals:
            first = self.refusals[0]
            where = "" if first.step is None else f"step {first.step}, "
            lines.append(f"Refused: {where}{first.claim} ({first.reason}).")
        elif self.unproven:
            lines.append("Not refused, and not all of it proven again.")
        else:
            lines.append("Confirmed: what the plan claims is true.")
        return "\n".join(lines)


def verify(plan: Plan, problem: Problem, black_box: BlackBox, *, max_rows: int = 200_000) -> Report:
    """Check every claim of a plan against the problem and the model.

    The steps are replayed by the book; then the proof is done again, as far as listing at most
    ``max_rows`` states gets.

    Parameters
    ----------
    plan, problem, black_box
        The plan, and what it was made for.
    max_rows
        Most states that the second proof lists.

    Returns
    -------
    Report
        What was found, what could not be proven again, and what was not checked.

    Raises
    ------
    InvalidSetting
        Where an argument is not what it should be.
    ModelOutput
        Where the model gives something that is not a score.

    Examples
    --------
    >>> from pear import ExactPlanner
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> problem = loan_book_problem()
    >>> planner = ExactPlanner(problem, loan_book_classifier(problem))
    >>> plan = planner.plan(loan_book_people()["Ben"])
    >>> report = verify(plan, problem, planner.black_box, max_rows=1_000)
    >>> all(finding.confirmed for finding in report.findings), len(report.unproven)
    (True, 1)
    """
    for key, value, kind in (
        ("plan", plan, Plan), ("problem", problem, Problem), ("black_box", black_box, BlackBox),
    ):  # fmt: skip
        check_type(key, value, kind)
    if not is_whole(max_rows) or max_rows < 1:
        raise InvalidSetting(
            f"'max_rows' must be a whole number, at least 1 (got {max_rows!r:.100})"
        )
    black_box.check_problem(problem)
    report = Report()
    if not _belongs(report, plan, problem, black_box):
        return report
    fault = _record_fault(problem, dict(plan.start))
    if not report.check("the record at the start fits the problem", not fault, fault):
        return report
    fault = _limits_fault(problem, plan.limits)
    if not report.check("its limits name what the problem has", not fault, fault):
        return report
    width = len(problem.costs.weight_names)
    if not report.check(
        "the weights behind the costs are recorded",
        bool(plan.weights) and all(len(row) == width for row in plan.weights),
        f"it must be {width} for each sample; have the plan made again by this version",
    ):
        return report
    check = _Check(report, plan, problem, black_box, Rules(problem, plan.weights, plan.limits))
    check.replay()
    check.statements()
    if report.confirmed:
        check.proof(max_rows)
        check.ceilings()
    report.unchecked.append("rows, seconds and reproducibility of the first search; reasons")
    return report


def _belongs(report: Report, plan: Plan, problem: Problem, black_box: BlackBox) -> bool:
    """Check the fingerprints first: everything else is about this problem and this model."""
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


def _record_fault(problem: Problem, record: dict[str, Any]) -> str:
    """What is wrong with a starting record; empty if nothing is."""
    names = [feature.name for feature in problem.space.features]
    if sorted(record) != sorted(names):
        return f"it must hold exactly {', '.join(names)}"
    for feature in problem.space.features:
        value = record[feature.name]
        if value is None:
            if feature.missing_counts_as is None:
                return f"'{feature.name}' is missing"
        elif feature.kind == "categorical":
            if value not in feature.categories:
                return f"'{feature.name}' has no category {value!r}"
        elif feature.kind == "boolean":
            if not isinstance(value, bool):
                return f"'{feature.name}' must be true or false (it is {value!r})"
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"'{feature.name}' must be a number (it is {value!r})"
        elif not _within(value, feature.lower, feature.upper):
            return f"'{feature.name}' must be within its bounds (it is {value!r})"
    return ""


def _limits_fault(problem: Problem, limits: Limits) -> str:
    """Which name of a plan's limits the problem does not have; empty if it has them all."""
    odd = {*limits.features, *(name for name, _ in limits.values)} - set(problem.space.names)
    odd |= set(limits.actions) - {action.name for action in problem.actions.actions}
    return f"it has no {', '.join(map(repr, sorted(odd)))}" if odd else ""


def _within(value: Any, lower: float | None, upper: float | None) -> bool:
    return (lower is None or value >= lower) and (upper is None or value <= upper)


@dataclass
class _Check:
    """The checks of one plan, which all add to one report.

    ``size`` is the sum of the amounts that make up the plan's cost: rounding is relative to it.
    """

    report: Report
    plan: Plan
    problem: Problem
    black_box: BlackBox
    rules: Rules
    size: float = 0.0

    def close(self, first: float, second: float) -> bool:
        """Whether two costs are the same up to rounding."""
        size = max(self.size, abs(first), abs(second))
        return abs(first - second) <= COSTS_DIFFER * size

    def replay(self) -> None:
        """Every step by the book, then the plan as a whole."""
        rules, plan, report = self.rules, self.plan, self.report
        state = rules.state(dict(plan.start))
        score, total, moves = self.score(state), 0.0, []
        declared = [(a.name, x) for a in self.problem.actions.actions for x in a.arguments]
        for number, step in enumerate(plan.steps, 1):
            if (step.action, step.argument) not in declared:
                report.check(
                    f"'{step.action}' with {step.argument!r} is an action of the problem",
                    False,
                    "the problem declares no such action, or not with this argument",
                    number,
                )
                return
            move = declared.index((step.action, step.argument))
            moves.append(move)
            after, cost, forbidden = rules.step(state, move)
            feature = rules.moves[move][0].feature
            values = [state[rules.place[feature]], after[rules.place[feature]]]
            true = (feature, *values) == (step.feature, step.before, step.after)
            report.check(
                f"it changes '{step.feature}' from {step.before!r} to {step.after!r}",
                true,
                f"it changes '{feature}' from {values[0]!r} to {values[1]!r}",
                number,
            )
            report.check("it is allowed at that point", not forbidden, forbidden, number)
            if forbidden or not true:
                return
            seen = tuple(state[rules.place[parent]] for parent in rules.parents_of[feature])
            self.size += rules.cost(feature, *values, seen)[1]
            reached = self.score(after)
            self._numbers(number, step, cost, score, reached)
            self._words(number, step, move)
            state, score, total = after, reached, total + cost
        self._whole(score, total, moves, self._within_tolerance(state))

    def _numbers(self, number: int, step: Step, cost: float, score: float, reached: float) -> None:
        self.report.check(
            f"it costs {step.cost:.4f}",
            self.close(step.cost, cost),
            f"it costs {cost:.4f}",
            number,
        )
        claims = ("before", step.score_before, score), ("after", step.score_after, reached)
        for claim, claimed, found in claims:
            self.report.check(
                f"the score {claim} it is {claimed:.4f}",
                abs(claimed - found) <= SCORES_DIFFER,
                f"the model says {found:.6f}",
                number,
            )

    def _words(self, number: int, step: Step, move: int) -> None:
        feature, action = self.problem.space[step.feature], self.rules.moves[move][0]
        expected = phrase(
            action, feature, feature.code(step.before), feature.code(step.after), step.argument
        )
        same = step.words == expected
        self.report.check("its words say what it does", same, f"they should be: {expected}", number)
        place = action.arguments.index(step.argument)
        for key in ("weeks", "once", "monthly"):
            facts = getattr(action, key)
            fact = facts[min(place, len(facts) - 1)] if facts else None
            if (claimed := getattr(step, key)) != fact:
                what = f"its {key} are {claimed}"
                self.report.check(what, False, f"the problem says {fact}", number)

    def _within_tolerance(self, end: State) -> float:
        """The lowest score met where steps are missed by their tolerance: at the ends of what may
        be missed, and at points drawn in between."""
        start, rng = self.rules.state(dict(self.plan.start)), np.random.default_rng(0)
        ends = self.rules.ends(start, end)
        drawn = [
            np.tile(values[0], NEAR_MISSES)
            if len(values) == 1
            else rng.uniform(values[1], values[2], NEAR_MISSES)
            for values in ends
        ]
        whole = [feature.kind == "integer" for feature in self.problem.space.features]
        points = np.where(whole, np.rint(np.column_stack(drawn)), np.column_stack(drawn))
        every = np.array(list(itertools.product(*ends)), float)
        return float(self.black_box.score(np.concatenate([every, points])).min())

    def _whole(self, score: float, total: float, moves: list[int], lowest: float) -> None:
        plan, report, certificate = self.plan, self.report, self.plan.certificate
        report.check(
            "the moves are the numbers of the steps",
            list(plan.moves) == moves,
            f"they should be {moves}",
        )
        report.check(
            f"the plan costs {plan.cost:.4f}",
            self.close(plan.cost, total),
            f"it costs {total:.4f}",
        )
        report.check(
            f"its last score is {plan.score:.4f}",
            abs(plan.score - score) <= SCORES_DIFFER,
            f"the model says {score:.6f}",
        )
        required = self.rules.required_score
        missed = any(action.tolerance for action in self.problem.actions.actions)
        claim = f"the decision is {'favourable' if plan.success else 'not favourable'} at the end"
        report.check(
            f"{claim}, however its steps are missed" if missed else claim,
            plan.success == (min(score, lowest) > required),
            f"the score is {score:.6f}, as low as {lowest:.6f} within what may be missed, and must "
            f"exceed {required:g}",
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
            changed = [step.feature for step in plan.steps]
            most = max((changed.count(name) for name in changed), default=0)
            allowed = certificate.max_changes_per_feature
            claim = f"no feature is changed more often than allowed, {allowed}"
            report.check(claim, most <= allowed, f"one is changed {most} times")

    def statements(self) -> None:
        """What a certificate says about itself must fit together and fit the plan."""
        report, plan, certificate = self.report, self.plan, self.plan.certificate
        verdict = certificate.verdict
        upper, lower = certificate.upper_bound, certificate.lower_bound
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
        if upper is not None or verdict in ("optimal", "bounded"):
            report.check(
                "the upper bound is the plan's cost",
                plan.success and upper is not None and self.close(upper, plan.cost),
                f"it is {upper} and the plan costs {plan.cost}",
            )
        if verdict == "optimal":
            report.check(
                "the lower bound is the plan's cost",
                lower is not None and self.close(lower, plan.cost),
                f"it is {lower} and the plan costs {plan.cost}",
            )
        if verdict == "bounded":
            stated = lower is not None and math.isfinite(lower)
            report.check("a lower bound is stated", stated, f"it is {lower}")
        if verdict in ("infeasible", "heuristic"):
            report.check("no lower bound is claimed", lower is None, f"it is {lower}")
        if certificate.blocking:
            report.check(
                "limits that block are named for an infeasible verdict only",
                verdict == "infeasible",
                f"the verdict is {verdict}",
            )
        if certificate.looked_into:
            inside = self.black_box.inside
            readable = "" if inside is None else inside.what
            report.check(
                f"the search looked into {certificate.looked_into}",
                certificate.looked_into == readable,
                f"of this model there is to read: {readable or 'nothing'}",
            )
        counts = (certificate.rows, certificate.seconds)
        report.check(
            "rows and seconds are not negative",
            all(isinstance(count, (int, float)) and count >= 0 for count in counts),
            f"they are {counts[0]} and {counts[1]}",
        )

    def proof(self, max_rows: int) -> None:
        """Whether there is a plan that the certificate says there is not."""
        certificate = self.plan.certificate
        verdict, lower = certificate.verdict, certificate.lower_bound
        if verdict == "heuristic":
            self.report.unchecked.append("whether a cheaper plan exists: none is claimed not to")
            return
        limit = {"optimal": self.plan.cost, "infeasible": math.inf}.get(verdict, lower)
        if limit is None:
            return
        space = f"no plan with at most {certificate.max_length} changes"
        claim = f"{space} is favourable"
        if math.isfinite(limit):
            claim = f"{space} costs less than {limit:.4f}"
            limit -= COSTS_DIFFER * max(self.size, abs(limit))
        proof = self._prove(self.rules, self.plan.limits, limit, max_rows)
        if proof.cost < limit:
            words = proof.words or "the decision is favourable already"
            self.report.check(claim, False, f"one costs {proof.cost:.4f}: {words}")
        elif proof.complete:
            self.report.check(claim, True)
        else:
            self.report.unproven.append(
                f"{claim}: that holds for plans of up to {proof.length} changes; those of "
                f"{proof.length + 1} take more than {max_rows:,} states"
            )
            self._random_plans(limit)
        if verdict == "infeasible":
            self._blocking(max_rows)

    def _prove(
        self, rules: Rules, limits: Limits, below: float, max_rows: int, any_plan: bool = False
    ) -> Proof:
        certificate = self.plan.certificate
        longest = certificate.max_length
        if longest is None:
            longest = self.problem.max_length
        if longest == self.plan.limits.max_steps:
            # The person's own limit; without it plans could be as long as the problem allows.
            longest = max(longest, self.problem.max_length)
        if limits.max_steps is not None:
            longest = min(longest, limits.max_steps)
        return prove(
            rules,
            self.black_box.score,
            rules.state(dict(self.plan.start)),
            longest=longest,
            repeats=certificate.max_changes_per_feature,
            below=below,
            max_states=max_rows,
            any_plan=any_plan,
        )

    def _random_plans(self, limit: float) -> None:
        """Legal plans drawn at random that cost less than the limit: none is favourable."""
        rules, rng = self.rules, np.random.default_rng(0)
        longest = self.plan.certificate.max_length or self.problem.max_length
        repeats = self.plan.certificate.max_changes_per_feature
        ends: list[State] = []
        for _ in range(RANDOM_PLANS):
            state, spent, changed = rules.state(dict(self.plan.start)), 0.0, list[str]()
            for _ in range(longest):
                move = int(rng.integers(len(rules.moves)))
                after, cost, forbidden = rules.step(state, move)
                name = rules.moves[move][0].feature
                if not forbidden and changed.count(name) < repeats and spent + cost < limit:
                    state, spent, changed = after, spent + cost, [*changed, name]
            ends += [state] if changed else []
        if not ends:
            return
        start, score = rules.state(dict(self.plan.start)), self.black_box.score
        good = np.flatnonzero(score(rules.matrix(ends)) > rules.required_score)
        self.report.check(
            f"none of {len(ends):,} cheaper plans drawn at random is favourable",
            not any(rules.holds(start, ends[i], score) for i in good),
            "one of them is",
        )

    def _blocking(self, max_rows: int) -> None:
        """The limits named, alone or in pairs, are those whose removal opens a plan."""
        limits, report = self.plan.limits, self.report
        named = sorted(map(sorted, self.plan.certificate.blocking))
        singles: list[Opening] = [((words,), rest) for words, rest in limits.parts()]
        found, complete = self._opening(singles, max_rows)
        if not found and complete:
            both: dict[tuple[str, ...], Limits] = {
                tuple(sorted((first, second))): rest
                for first, lifted in limits.parts()
                for second, rest in lifted.parts()
            }
            found, complete = self._opening(list(both.items()), max_rows)
        claim, all_found = "the limits that block are those named", sorted(map(sorted, found))
        if any(words not in all_found for words in named) or (complete and all_found == named):
            report.check(claim, all_found == named, f"they are {found}")
        elif all_found != named:
            # A first search with few rows could not try them all: the list is true but may be
            # incomplete.
            report.unproven.append(f"{claim}: these do, whether named or not: {found}")
        else:
            report.unproven.append(claim)

    def _opening(self, tried: list[Opening], max_rows: int) -> tuple[list[tuple[str, ...]], bool]:
        """Which of these limits leave a plan, and whether the others surely leave none."""
        found, complete = [], True
        for words, rest in tried:
            rules = Rules(self.problem, self.plan.weights, rest)
            proof = self._prove(rules, rest, math.inf, max_rows, any_plan=True)
            found += [words] if math.isfinite(proof.cost) else []
            complete &= proof.complete
        return found, complete

    def ceilings(self) -> None:
        """Random boxes around this person: nothing in one scores above the box's ceiling."""
        inside, rules = self.black_box.inside, self.rules
        start = rules.state(dict(self.plan.start))
        options = [[value] for value in start]
        for move, (action, _) in enumerate(rules.moves):
            place = rules.place[action.feature]
            after, forbidden = rules.value_after(move, start[place])
            if not forbidden:
                options[place].append(after)
        places = [place for place, values in enumerate(options) if len(values) > 1]
        if inside is None or not places or self.plan.certificate.verdict == "heuristic":
            return
        most = min(self.plan.certificate.max_length or len(places), len(places))
        codes = [self._codes(start, place, options[place]) for place in places]
        matrix = rules.matrix([start])
        special = inside.specialise(matrix[0], places, codes, rules.required_score, most)
        if special is None:
            return
        rng, drawn = np.random.default_rng(0), list[State]()
        open_options = np.ones(special.gains.shape, bool)
        for _ in range(BOXES):
            chosen = rng.permutation(len(places))[: rng.integers(0, most + 1)]
            state = list(start)
            for depth, feature in enumerate(chosen):
                option = int(rng.integers(len(options[places[feature]])))
                state[places[feature]] = options[places[feature]][option]
                fix(special, depth, int(feature), option)
            left = most - sum(a != b for a, b in zip(state, start, strict=True))
            if ceiling(special, len(chosen), open_options, left) > special.required:
                continue
            others = [feature for feature in range(len(places)) if feature not in chosen]
            for _ in range(IN_A_BOX):
                completed = list(state)
                for feature in rng.permutation(others)[:left]:
                    values = options[places[feature]]
                    completed[places[feature]] = values[rng.integers(len(values))]
                drawn.append(tuple(completed))
        scores = self.black_box.score(rules.matrix(drawn))
        read = f"what was read from the model ({inside.what})"
        claim = f"{read} rules out none of {len(drawn):,} states that it accepts"
        holds = not (scores > rules.required_score).any()
        self.report.check(claim, holds, "it rules out one of them")

    def _codes(self, start: State, place: int, values: list[Any]) -> Any:
        states = [(*start[:place], value, *start[place + 1 :]) for value in values]
        return self.rules.matrix(states)[:, place]

    def score(self, state: State) -> float:
        return float(self.black_box.score(self.rules.matrix([state]))[0])
