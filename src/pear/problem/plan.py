"""An ordered plan for one person, and what is proven about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import numpy as np
import pandas as pd

from pear.arrays import Floats, Indices
from pear.errors import InvalidPlan, InvalidSetting
from pear.problem.actions import ActionSpace
from pear.problem.costs import walk
from pear.problem.features import States, Value
from pear.problem.limits import NO_LIMITS, Limits
from pear.problem.notebook import html_table, plan_frame, plan_title, plot_plan
from pear.problem.values import is_finite, kind_of

if TYPE_CHECKING:
    from pear.problem.problem import Problem

Verdict = Literal["optimal", "infeasible", "bounded", "unknown", "heuristic"]


@dataclass(frozen=True)
class Certificate:
    """What a search has proven.

    ``optimal``: no cheaper plan in the space searched. ``infeasible``: no plan at all.
    ``bounded``: a plan, and nothing cheaper than ``lower_bound``. ``unknown``: no plan found
    before the budget ended. ``heuristic``: the planner proves nothing.

    Parameters
    ----------
    verdict
        One of the five above.
    lower_bound, upper_bound
        No plan costs less, and the cost of the plan found; None where nothing is known.
    rows, seconds
        How many rows the search asked the model for, and how long it took.
    max_length, max_changes_per_feature
        The plans it covers: the most changes in all, and of one feature.
    reproducible
        False where the clock ended the search.
    blocking
        Of an infeasible verdict: the person's own limits, alone or in pairs, whose removal opens
        a plan.
    looked_into
        What was read from inside the model and relied upon, such as its trees; empty where the
        model was only asked.

    Raises
    ------
    InvalidPlan
        Where the verdict is not one of the five.

    Examples
    --------
    >>> Certificate("bounded", lower_bound=3.0, upper_bound=4.5, rows=200).gap
    1.5
    """

    verdict: Verdict
    lower_bound: float | None = None
    upper_bound: float | None = None
    rows: int = 0
    seconds: float = 0.0
    max_length: int | None = None
    max_changes_per_feature: int = 1
    reproducible: bool = True
    blocking: tuple[tuple[str, ...], ...] = ()
    looked_into: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise InvalidPlan(
                f"'verdict' must be one of {', '.join(get_args(Verdict))} (got {self.verdict!r})"
            )

    @property
    def gap(self) -> float | None:
        """How much cheaper a plan might still exist, in cost units."""
        if self.upper_bound is None or self.lower_bound is None:
            return None
        return max(0.0, self.upper_bound - self.lower_bound)

    def words(self) -> str:
        """The certificate as a sentence."""
        space = f"with at most {self.max_length} changes" if self.max_length else "considered"
        asked = f"{self.rows:,} row{'' if self.rows == 1 else 's'} asked"
        if self.looked_into:
            asked += f", looking into {self.looked_into}"
        if self.verdict == "optimal":
            return f"Proven: no cheaper plan exists among the plans {space} ({asked})."
        if self.verdict == "infeasible":
            text = f"Proven: no plan {space} turns the decision around ({asked})."
            if self.blocking:
                ways = "; or ".join(" and ".join(group) for group in self.blocking)
                text += f" Lifting your limit would open one: {ways}."
            return text
        if self.verdict == "bounded":
            return (
                f"Not proven cheapest: nothing below {self.lower_bound:.2f} exists, "
                f"this plan costs {self.upper_bound:.2f} ({asked})."
            )
        if self.verdict == "unknown":
            return f"No plan found before the budget ended; none may exist ({asked})."
        return f"Found by a method that proves nothing ({asked})."


@dataclass(frozen=True)
class Step:
    """One change, with its cost and the score before and after it.

    Parameters
    ----------
    action, argument, feature
        What the person does, and which feature changes.
    before, after
        The feature's values; ``before`` is None where it is missing.
    cost, score_before, score_after
        What the change costs, and what the model says before and after it.
    words, reason
        The step, and why it is there, as sentences.
    weeks, once, monthly
        Rough facts for people: how long it takes, and the money it takes once and each month;
        None where nothing is known.

    Examples
    --------
    >>> Step("save", 500.0, "savings", 0.0, 500.0, 2.0, 0.3, 0.6, "Save €500").words
    'Save €500'
    """

    action: str
    argument: Value
    feature: str
    before: Value | None
    after: Value
    cost: float
    score_before: float
    score_after: float
    words: str
    reason: str = ""
    weeks: float | None = None
    once: float | None = None
    monthly: float | None = None


@dataclass(frozen=True, repr=False)
class Plan:
    """Ordered steps for one person.

    ``plan.words()`` says it, ``plan.to_frame()`` gives a row per step, ``plan.plot()`` draws it.

    Parameters
    ----------
    start
        The person's record.
    steps
        The changes in their order.
    cost, score, success
        Of the whole plan: its cost, what the model says at its end, and whether that is favourable.
    certificate
        What is proven about it.
    moves
        The numbers of the steps in the action space, for code that works on arrays.
    on_grid
        False for methods whose values do not come from the action space (FACE); then ``moves`` is
        empty.
    method
        What found the plan.
    problem_fingerprint, model_fingerprint
        The problem and the model it was made for.
    weights, limits
        What it was made with, for an auditor: one row of weights, or one per sample (empty where
        not recorded), and what the person cannot do.

    Examples
    --------
    >>> from pear import ExactPlanner
    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> problem = loan_book_problem()
    >>> planner = ExactPlanner(problem, loan_book_classifier(problem))
    >>> plan = planner.plan(loan_book_people()["Amina"])
    >>> plan.length == len(plan.to_frame()), Plan.from_json(plan.to_json()) == plan
    (True, True)
    """

    start: Mapping[str, Value | None]
    steps: tuple[Step, ...]
    cost: float
    score: float
    success: bool
    certificate: Certificate
    moves: tuple[int, ...] = ()
    on_grid: bool = True
    method: str = "exact"
    problem_fingerprint: str = ""
    model_fingerprint: str = ""
    weights: tuple[tuple[float, ...], ...] = ()
    limits: Limits = NO_LIMITS

    @property
    def length(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        steps = [f"{step.action} {step.argument}" for step in self.steps]
        return f"Plan({plan_title(self)}{': ' if steps else ''}{', '.join(steps)})"

    def to_frame(self) -> pd.DataFrame:
        """The steps, a row each, numbered from 1: words, feature, before, after, cost, scores."""
        return plan_frame(self)

    def _repr_html_(self) -> str:
        return html_table(plan_title(self).capitalize(), self.to_frame(), self.certificate.words())

    def plot(self, axes: Any = None) -> Any:
        """The cost of each step as a bar with the score it leads to; needs matplotlib.

        Returns
        -------
        matplotlib.axes.Axes
            The ``axes`` given, else new ones.
        """
        return plot_plan(self, axes)

    def words(self) -> str:
        """The plan as numbered sentences."""
        if not self.success:
            return "No plan. " + self.certificate.words()
        if not self.steps:
            return "Nothing to change: the decision is favourable already."
        lines = [
            f"{i}. {step.words} (cost {step.cost:.1f})" for i, step in enumerate(self.steps, 1)
        ]
        return "\n".join([*lines, f"Total cost {self.cost:.1f}. {self.certificate.words()}"])

    def with_certificate(self, certificate: Certificate) -> Plan:
        """The same plan under another certificate."""
        return replace(self, certificate=certificate)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = asdict(self)
        data["start"] = dict(self.start)
        return data

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Any) -> Plan:
        """The plan stored by :meth:`to_dict`; anything else is refused naming what is wrong."""
        if not isinstance(data, Mapping):
            raise InvalidPlan(f"a plan must be a JSON object (got {kind_of(data)})")
        for key, kind, words in (
            ("certificate", Mapping, "an object"),
            ("start", Mapping, "an object"),
            ("steps", list | tuple, "a list"),
        ):
            if key in data and not isinstance(data[key], kind):
                raise InvalidPlan(f"the plan's '{key}' must be {words} (got {kind_of(data[key])})")
        try:
            certificate = dict(data["certificate"])
            certificate["blocking"] = tuple(tuple(g) for g in certificate.get("blocking", ()))
            content = dict(data)
            content["certificate"] = _read(Certificate, certificate, "its certificate")
            content["steps"] = tuple(
                _read(Step, step, f"step {number}") for number, step in enumerate(data["steps"], 1)
            )
            content["moves"] = tuple(int(move) for move in data.get("moves", ()))
            content["start"] = dict(data["start"])
            content["weights"] = tuple(tuple(row) for row in data.get("weights", ()))
            content["limits"] = Limits.from_dict(data.get("limits", {}))
            plan = _read(cls, content, "it")
            _check_numbers(plan)
        except KeyError as error:
            raise InvalidPlan(f"the plan lacks {error}; was it written by this package?") from None
        except InvalidPlan:
            raise
        except InvalidSetting as error:
            raise InvalidPlan(f"the plan's limits cannot be read: {error}") from None
        except (TypeError, ValueError) as error:
            raise InvalidPlan(f"the plan cannot be read: {error}") from None
        return plan

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan stored by :meth:`to_json`."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:  # Lists in lists without end, too.
            raise InvalidPlan(f"the plan is not JSON: {error}") from None
        return cls.from_dict(data)


T = TypeVar("T")


def _read(kind: type[T], content: Any, what: str) -> T:
    """A stored dataclass; one that lacks something, or holds more, is refused by name."""
    if not isinstance(content, Mapping):
        raise InvalidPlan(
            f"the plan cannot be read: {what} must be an object (got {kind_of(content)})"
        )
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    absent = [
        name
        for name, entry in known.items()
        if name not in content and entry.default is MISSING and entry.default_factory is MISSING
    ]
    unknown = [name for name in content if name not in known]
    if absent or unknown:
        why = f"lacks '{absent[0]}'" if absent else f"has an unknown key '{unknown[0]}'"
        raise InvalidPlan(f"the plan cannot be read: {what} {why}; was it written by this package?")
    return kind(**content)


def _check_numbers(plan: Plan) -> None:
    numbers: list[tuple[str, Any]] = [("cost", plan.cost), ("score", plan.score)]
    for i, step in enumerate(plan.steps, 1):
        for key in ("cost", "score_before", "score_after"):
            numbers.append((f"{key} of step {i}", getattr(step, key)))
    numbers += [("weights", number) for row in plan.weights for number in row]
    for name, number in numbers:
        if not is_finite(number):
            raise InvalidPlan(f"the plan's {name} must be a number (got {number!r})")
    if not isinstance(plan.success, bool):
        raise InvalidPlan(f"the plan's 'success' must be true or false (got {plan.success!r})")
    if plan.moves and len(plan.moves) != len(plan.steps):
        raise InvalidPlan(
            f"the plan has {len(plan.steps)} steps and {len(plan.moves)} moves; one is missing"
        )
    _check_stored(plan)


def _check_stored(plan: Plan) -> None:
    """Counts, bounds, flags and texts are of their kinds; whether they are true is for `verify`."""
    certificate = plan.certificate
    fields: list[tuple[str, Any, type]] = [
        ("rows", certificate.rows, int),
        ("max_changes_per_feature", certificate.max_changes_per_feature, int),
        ("reproducible", certificate.reproducible, bool),
        ("looked_into", certificate.looked_into, str),
        ("on_grid", plan.on_grid, bool),
        ("method", plan.method, str),
    ]
    if certificate.max_length is not None:
        fields.append(("max_length", certificate.max_length, int))
    for i, step in enumerate(plan.steps, 1):
        for key in ("action", "feature", "words", "reason"):
            fields.append((f"{key} of step {i}", getattr(step, key), str))
    for name, value, kind in fields:
        if type(value) is not kind:
            what = {int: "a whole number", bool: "true or false", str: "a text"}[kind]
            raise InvalidPlan(f"the plan's '{name}' must be {what} (got {value!r})")
    for name in ("lower_bound", "upper_bound"):
        bound = getattr(certificate, name)
        needed = certificate.verdict == "bounded"
        if (needed or bound is not None) and not is_finite(bound):
            why = "of a bounded plan must be" if needed else "must be"
            raise InvalidPlan(f"the plan's '{name}' {why} a number (got {bound!r})")


# How plans are made of moves


def plans_along(
    problem: Problem,
    start: Floats,
    sequences: Sequence[Sequence[int]],
    weights: Sequence[Floats],
    score: Callable[[States], Floats],
    certificates: Sequence[Certificate],
    *,
    limits: Sequence[Limits],
    method: str = "exact",
    model_fingerprint: str = "",
) -> list[Plan]:
    """Plans of n sequences of moves from one state; ``score`` is called once for all of them.

    It gives the scores ``(m,)`` of m states; for the rest see :func:`make_plans`. A plan that a
    near miss of its steps would spoil does not succeed.
    """
    if not len(sequences):
        return []
    paths = [walk(start, problem.actions, moves) for moves in sequences]
    ends = np.cumsum([len(path) for path in paths])
    scores = np.split(score(np.concatenate(paths)), ends[:-1])
    plans = make_plans(
        problem, [start] * len(paths), sequences, weights, scores, certificates,
        limits=limits, method=method, model_fingerprint=model_fingerprint,
    )  # fmt: skip
    if not problem.actions.tolerances.any():
        return plans
    missed, owners = near_misses(problem.actions, start, np.array([path[-1] for path in paths]))
    lowest = lowest_within(np.array([plan.score for plan in plans]), owners, score(missed))
    return [
        replace(plan, success=plan.success and bool(low > problem.goal.required(plan.limits)))
        for plan, low in zip(plans, lowest, strict=True)
    ]


def make_plans(
    problem: Problem,
    starts: Sequence[Floats],
    sequences: Sequence[Sequence[int]],
    weights: Sequence[Floats],
    scores: Sequence[Floats],
    certificates: Sequence[Certificate],
    *,
    limits: Sequence[Limits],
    method: str = "exact",
    model_fingerprint: str = "",
) -> list[Plan]:
    """Plans of n sequences of moves, each with what belongs to it.

    Parameters
    ----------
    starts
        The state ``(d,)`` each plan starts from.
    sequences
        The moves of each plan.
    weights
        Of each plan ``(p,)``, or samples ``(s, p)``: step costs are then means of the floored
        costs.
    scores
        Of the start and of the state after each step, ``(length + 1,)``.
    certificates, limits
        Those of each plan.
    method, model_fingerprint
        What found the plans, and the model that scored them.

    Raises
    ------
    InvalidSetting
        Where the scores are not those of the start and of every step.
    """
    paths = [walk(start, problem.actions, m) for start, m in zip(starts, sequences, strict=True)]
    every = [int(move) for moves in sequences for move in moves]
    before = np.concatenate([path[:-1] for path in paths] or [np.zeros((0, len(problem.space)))])
    phi = problem.costs.features(before, problem.actions, np.array(every, np.intp))
    plans, at = [], 0
    for path, moves, own, known, certificate, limit in zip(
        paths, sequences, weights, scores, certificates, limits, strict=True
    ):
        if len(known) != len(path):
            raise InvalidSetting(
                f"'scores' must hold one for the start and one after each of {len(moves)} steps "
                f"(got {len(known)}); give {len(path)}"
            )
        samples = np.atleast_2d(problem.costs.check_weights(own))
        costs = problem.costs.floored(phi[at : at + len(moves)] @ samples.T).mean(axis=1)
        at += len(moves)
        steps = _steps(problem, path, moves, costs.tolist(), np.asarray(known, float).tolist())
        plan = Plan(
            start=problem.space.decode(path[:1])[0],
            steps=steps,
            cost=float(costs.sum()),
            score=float(known[-1]),
            success=bool(known[-1] > problem.goal.required(limit)),
            certificate=certificate,
            moves=tuple(int(move) for move in moves),
            method=method,
            problem_fingerprint=problem.fingerprint,
            model_fingerprint=model_fingerprint,
            weights=tuple(map(tuple, samples.tolist())),
            limits=limit,
        )
        plans.append(plan)
    return plans


def _steps(
    problem: Problem, path: States, moves: Sequence[int], costs: list[float], scores: list[float]
) -> tuple[Step, ...]:
    """The steps of one plan, with their costs, and the scores before and after each."""
    steps = []
    for i, move in enumerate(moves):
        action = problem.actions.actions[problem.actions.action_of[move]]
        column = int(problem.actions.feature_of[move])
        feature, facts = problem.space.features[column], problem.actions.facts(move)
        before, after = float(path[i, column]), float(path[i + 1, column])
        steps.append(
            Step(
                action=action.name,
                argument=problem.actions.argument(move),
                feature=action.feature,
                before=feature.value(before),
                after=cast(Value, feature.value(after)),
                cost=costs[i],
                score_before=scores[i],
                score_after=scores[i + 1],
                words=problem.actions.phrase(move, before, after),
                weeks=facts.get("weeks"),
                once=facts.get("once"),
                monthly=facts.get("monthly"),
            )
        )
    return tuple(steps)


# What if somebody reaches a little less than a plan says, or a little more?


def near_misses(actions: ActionSpace, start: Floats, ends: States) -> tuple[States, Indices]:
    """Where people may end instead of ``ends`` ``(n, d)``, having begun at ``start`` ``(d,)``.

    Every changed feature with a tolerance is as planned, at its lower end or at its upper end, in
    all combinations but the planned one: where a score only rises or only falls with each of them,
    nothing in between is worse.

    Returns
    -------
    tuple
        The states ``(m, d)``, and which of the ends each belongs to ``(m,)``.

    Examples
    --------
    >>> from pear.problem import Action, Feature, FeatureSpace
    >>> space = FeatureSpace((Feature("income", upper=2_550.0),))
    >>> earn = Action("earn", "income", "add", (50.0,), tolerance=100.0)
    >>> near_misses(ActionSpace(space, (earn,)), np.array([2_450.0]), np.array([[2_500.0]]))[0]
    array([[2450.],
           [2550.]])
    """
    found, owners = [np.zeros((0, len(start)))], [np.zeros(0, np.intp)]
    for number, end in enumerate(ends):
        columns = np.flatnonzero((actions.tolerances > 0) & (end != start))
        choices = [
            _reached(actions, column, start[column], end[column]) for column in columns.tolist()
        ]
        combined = np.array(list(product(*choices)), float)[1:]
        states = np.repeat(end[None], len(combined), axis=0)
        states[:, columns] = combined.reshape(len(combined), len(columns))
        found.append(states)
        owners.append(np.full(len(combined), number, np.intp))
    return np.concatenate(found), np.concatenate(owners)


def _reached(actions: ActionSpace, column: int, start: float, end: float) -> list[float]:
    """A value as planned, and its lower and upper end."""
    feature, tolerance = actions.space.features[column], actions.tolerances[column]
    low, high = end - tolerance, end + tolerance
    if start < end:
        low = max(low, start)
    elif start > end:
        high = min(high, start)
    if feature.lower is not None:
        low = max(low, feature.lower)
    if feature.upper is not None:
        high = min(high, feature.upper)
    return list(dict.fromkeys((float(end), float(low), float(high))))


def lowest_within(scores: Floats, owners: Indices, missed: Floats) -> Floats:
    """The scores ``(n,)`` of ends, each lowered to the score of its worst near miss ``(m,)``; NaN
    where one of those is unknown."""
    lowest = scores.copy()
    with np.errstate(invalid="ignore"):
        np.minimum.at(lowest, owners, missed)
    return lowest
