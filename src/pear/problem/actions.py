"""What a person can do: the actions, when each is allowed, and what it changes.

An :class:`Action` changes one feature and has a list of arguments. One action with one of
its arguments is a *move*; an :class:`ActionSpace` numbers all moves from 0, action by
action, argument by argument. That number order is the tie-break everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pear.arrays import Flags, Floats, Indices
from pear.errors import InvalidInput, InvalidProblem
from pear.problem.features import Feature, FeatureSpace, States, Value
from pear.problem.limits import NO_LIMITS, Limits
from pear.problem.values import (
    as_tuple,
    is_finite,
    is_missing,
    is_number,
    is_whole,
    plain,
    refusal_at,
    shown,
    tuple_of,
)
from pear.problem.wording import check_phrase, phrase

Mode = Literal["set", "add"]
Direction = Literal["any", "increase", "decrease"]

FACTS = ("weeks", "once", "monthly")
"""Facts that an action can give about its arguments, for people to read."""


@dataclass(frozen=True)
class Requirement:
    """A condition on another feature: it must have one of ``values``, or lie in a range.

    Parameters
    ----------
    feature
        The name of the other feature.
    values
        The values that meet it; empty where any value in the range does.
    lower, upper
        The range of a number.

    Examples
    --------
    >>> degree = Requirement("degree", ("master", "doctorate"))
    >>> Action("lead a team", "job", "set", ("manager",), requires=(degree,)).requires[0].feature
    'degree'
    """

    feature: str
    values: tuple[Value, ...] = ()
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _listed("values", self.values))


@dataclass(frozen=True)
class Action:
    """A way to change one feature.

    Parameters
    ----------
    name, feature
        What it is called, and the name of the feature it changes.
    mode
        ``set`` puts an argument in place of the value, ``add`` adds it.
    arguments
        The values, or the amounts, to choose from.
    direction
        Whether the value may only ``increase`` or ``decrease``.
    requires
        Conditions on other features that must be met first.
    lower, upper
        Bounds of the result, besides the feature's own.
    from_missing
        Whether it applies where the value is missing, whatever its direction.
    phrase
        How a step is said; may use {feature}, {before}, {after}, {argument} and {amount}.
    reviewed
        False for an action of a first draft that nobody has approved yet.
    weeks, once, monthly
        Facts about each argument, for people to read: how long it takes, and what it costs once and
        each month.
    priority
        Steps with a higher priority come first where that costs nothing.
    tolerance
        By how much its result may be missed: a plan must stay valid anywhere within it.

    Raises
    ------
    InvalidProblem
        Where something that must be a list is not one; whether the action fits its feature is
        checked by :class:`Problem`.

    Examples
    --------
    >>> income = Feature("income", label="monthly income", unit="€")
    >>> raise_income = Action("raise", "income", "add", (100.0, 500.0))
    >>> phrase(raise_income, income, 2100.0, 2600.0, 500.0)
    'Increase your monthly income from €2,100 to €2,600'
    """

    name: str
    feature: str
    mode: Mode
    arguments: tuple[Value, ...]
    direction: Direction = "any"
    requires: tuple[Requirement, ...] = ()
    lower: float | None = None
    upper: float | None = None
    from_missing: bool = False
    phrase: str = ""
    reviewed: bool = True
    weeks: tuple[float, ...] = ()
    once: tuple[float, ...] = ()
    monthly: tuple[float, ...] = ()
    priority: int = 0
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", _listed("arguments", self.arguments))
        for key in FACTS:
            given = getattr(self, key)
            object.__setattr__(self, key, _listed(key, [given] if is_number(given) else given))
        requires = _listed("requires", self.requires)
        object.__setattr__(self, "requires", tuple_of(Requirement, requires, "'requires'"))


@dataclass(frozen=True)
class ActionSpace:
    """All moves over a feature space, in arrays.

    With m moves: ``feature_of`` ``(m,)`` is the column changed, ``action_of`` ``(m,)`` the
    action, ``argument_of`` ``(m,)`` the argument as a number (a code for categories).
    """

    space: FeatureSpace
    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", tuple_of(Action, self.actions, "the actions"))
        names = [action.name for action in self.actions]
        if not names:
            raise InvalidProblem("a problem needs at least one action")
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidProblem(f"action names must differ (twice: {', '.join(twice)})")
        for action in self.actions:
            check_action(self.space, action)

    def __len__(self) -> int:
        return len(self.action_of)

    @cached_property
    def action_of(self) -> Indices:
        counts = [len(action.arguments) for action in self.actions]
        return np.repeat(np.arange(len(self.actions)), counts)

    @cached_property
    def feature_of(self) -> Indices:
        columns = np.array([self.space.index(action.feature) for action in self.actions])
        return columns[self.action_of]

    @cached_property
    def argument_of(self) -> Floats:
        return np.array(
            [argument_code(self.space[a.feature], a, x) for a in self.actions for x in a.arguments],
            float,
        )

    @cached_property
    def adds(self) -> Flags:
        """Which moves add to the value, shape ``(m,)``; the others set it."""
        return np.array([action.mode == "add" for action in self.actions])[self.action_of]

    @cached_property
    def bounds(self) -> Floats:
        """Lowest and highest result of each move, shape ``(m, 2)``."""
        pairs = []
        for action in self.actions:
            feature = self.space[action.feature]
            lows = [b for b in (feature.lower, action.lower) if b is not None]
            highs = [b for b in (feature.upper, action.upper) if b is not None]
            pairs.append((max(lows, default=-np.inf), min(highs, default=np.inf)))
        return np.array(pairs, float)[self.action_of]

    @cached_property
    def direction_of(self) -> Indices:
        """+1 for moves that may only increase, -1 only decrease, 0 any; shape ``(m,)``."""
        sign = {"any": 0, "increase": 1, "decrease": -1}
        return np.array([sign[action.direction] for action in self.actions])[self.action_of]

    @cached_property
    def from_missing(self) -> Flags:
        """Which moves apply where their feature's value is missing, shape ``(m,)``."""
        return np.array([action.from_missing for action in self.actions])[self.action_of]

    @cached_property
    def requirement_tables(self) -> tuple[tuple[int, int, Requirement], ...]:
        """(action, column, requirement) for every requirement of every action."""
        return tuple(
            (number, self.space.index(requirement.feature), requirement)
            for number, action in enumerate(self.actions)
            for requirement in action.requires
        )

    @cached_property
    def tolerances(self) -> Floats:
        """How far a change of each feature may be missed ``(d,)``: the most of its actions."""
        found = np.zeros(len(self.space))
        for action in self.actions:
            column = self.space.index(action.feature)
            found[column] = max(found[column], action.tolerance)
        return found

    @cached_property
    def actionable(self) -> tuple[int, ...]:
        """Columns that some action changes, in column order."""
        return tuple(sorted(set(self.feature_of.tolist())))

    def move(self, action: str, argument: Value) -> int:
        """The number of a move by its action's name and argument."""
        for number, declared in enumerate(self.actions):
            if declared.name == action:
                if declared.mode == "add" and not is_number(argument):
                    raise InvalidProblem(
                        f"action '{action}' adds a number (got {shown(argument)}); "
                        f"its arguments are {', '.join(map(str, declared.arguments))}"
                    )
                code = argument_code(self.space[declared.feature], declared, argument)
                found = np.flatnonzero((self.action_of == number) & (self.argument_of == code))
                if len(found):
                    return int(found[0])
                raise InvalidProblem(
                    f"action '{action}' has no argument {argument!r}; "
                    f"its arguments are {', '.join(map(str, declared.arguments))}"
                )
        names = ", ".join(declared.name for declared in self.actions)
        raise InvalidProblem(f"there is no action {action!r}; the actions are {names}")

    def argument(self, move: int) -> Value:
        """The argument of a move as declared."""
        if not 0 <= move < len(self):
            raise InvalidProblem(f"there is no move {move!r}; the moves are 0 to {len(self) - 1}")
        number = int(self.action_of[move])
        first = int(np.searchsorted(self.action_of, number))
        return self.actions[number].arguments[move - first]

    def results(self, states: States) -> Floats:
        """Value each move would give its feature, shape ``(n, m)``."""
        current = states[:, self.feature_of]
        return np.where(self.adds, current + self.argument_of, self.argument_of)

    def apply(self, states: States, moves: Indices) -> States:
        """States after one move each, shape ``(n, d)``; legality is not checked here."""
        after = np.array(states, float)
        rows, columns = np.arange(len(after)), self.feature_of[moves]
        current = after[rows, columns]
        after[rows, columns] = np.where(
            self.adds[moves], current + self.argument_of[moves], self.argument_of[moves]
        )
        return after

    def changes_legally(self, states: States) -> Flags:
        """Which moves give a legal new value of their own feature, shape ``(n, m)``.

        Everything but requirements on other features and the person's limits.
        """
        current, result = states[:, self.feature_of], self.results(states)
        legal = (result != current) & (result >= self.bounds[:, 0]) & (result <= self.bounds[:, 1])
        rising = (result - current) * self.direction_of >= 0
        # NaN differs from every value and compares with none: a missing value has neither a
        # direction nor anything to add to.
        return np.asarray(legal & np.where(np.isnan(current), self.from_missing, rising))

    def requirements_met(self, states: States) -> Flags:
        """Which moves have all their requirements met, shape ``(n, m)``."""
        met = np.ones((len(states), len(self.actions)), bool)
        for action, column, requirement in self.requirement_tables:
            met[:, action] &= self.requirement_met(column, requirement, states[:, column])
        return met[:, self.action_of]

    def requirement_met(self, column: int, requirement: Requirement, codes: Floats) -> Flags:
        """Whether values of one feature, of any shape, meet a requirement."""
        met = np.ones(codes.shape, bool)
        if requirement.values:
            feature = self.space.features[column]
            met &= np.isin(codes, [feature.code(value) for value in requirement.values])
        if requirement.lower is not None:
            met &= codes >= requirement.lower
        if requirement.upper is not None:
            met &= codes <= requirement.upper
        return met

    def within_limits(self, results: Floats, limits: Limits) -> Flags:
        """Which moves a person's limits allow, for resulting values ``(n, m)``."""
        if not (limits.features or limits.actions or limits.values):
            return np.ones(results.shape, bool)
        features = np.isin(self.feature_of, [self.space.index(name) for name in limits.features])
        names = {action.name for action in self.actions}
        unknown = [name for name in limits.actions if name not in names]
        if unknown:
            raise InvalidProblem(
                f"limits name unknown actions: {', '.join(unknown)}; "
                f"the actions are {', '.join(sorted(names))}"
            )
        actions = np.array([action.name in limits.actions for action in self.actions])[
            self.action_of
        ]
        left = np.broadcast_to(~(features | actions), results.shape).copy()
        for name, value in limits.values:
            column = self.space.index(name)
            code = self.space.features[column].code(value)
            left &= ~((self.feature_of == column) & (results == code))
        return left

    def allowed(self, states: States, limits: Limits = NO_LIMITS) -> Flags:
        """Which moves are allowed in which states, shape ``(n, m)``."""
        states = np.atleast_2d(states)
        legal = self.changes_legally(states) & self.requirements_met(states)
        if limits is NO_LIMITS:
            return legal
        return legal & self.within_limits(self.results(states), limits)

    def facts(self, move: int) -> dict[str, float]:
        """The facts about a move for people to read: weeks, money once, money each month."""
        number = int(self.action_of[move])
        place = move - int(np.searchsorted(self.action_of, number))
        known = {key: getattr(self.actions[number], key) for key in FACTS}
        return {key: facts[min(place, len(facts) - 1)] for key, facts in known.items() if facts}

    def phrase(self, move: int, before: float, after: float) -> str:
        """The step as people would say it: "Increase your income from €2,100 to €2,600"."""
        action = self.actions[self.action_of[move]]
        feature = self.space[action.feature]
        return phrase(action, feature, before, after, self.argument(move))


def argument_code(feature: Feature, action: Action, argument: Value) -> float:
    """An argument as the number that stands in a state, or is added to one."""
    return feature.code(argument) if action.mode == "set" else float(argument)


def check_action(space: FeatureSpace, action: Action) -> None:
    """Refuse an action that contradicts itself or the features."""
    if not isinstance(action.name, str) or not action.name:
        raise InvalidProblem(f"an action's 'name' must be a text (got {action.name!r})")
    where = f"action '{action.name}'"
    try:
        feature = space[action.feature]
    except InvalidProblem as error:
        raise refusal_at("feature", f"{where}: {error}") from None
    for mark in ("immutable", "protected"):
        if getattr(feature, mark):
            raise refusal_at(
                "feature",
                f"{where} changes '{feature.name}', which is {mark}; remove the action or the mark",
            )
    if action.mode not in ("set", "add"):
        raise refusal_at("mode", f"{where}: 'mode' must be 'set' or 'add' (got {action.mode!r})")
    if action.mode == "add" and not feature.is_number:
        raise refusal_at(
            "mode",
            f"{where} cannot add to '{feature.name}', which is {feature.kind}; use mode 'set'",
        )
    if not isinstance(action.reviewed, bool):
        raise refusal_at(
            "reviewed", f"{where}: 'reviewed' must be true or false (got {action.reviewed!r})"
        )
    _check_direction(where, action, feature)
    _check_from_missing(where, action, feature)
    _check_range(where, action.lower, action.upper, feature)
    _check_arguments(where, action, feature)
    _check_reach(where, action, feature)
    for requirement in action.requires:
        _check_requirement(where, space, requirement)
        if requirement.feature == action.feature:
            raise refusal_at(
                "requires",
                f"{where} requires something of its own '{action.feature}'; name another feature",
            )
    check_phrase(where, action.phrase)
    _check_facts(where, action)
    _check_tolerance(where, action, feature)


def _check_direction(where: str, action: Action, feature: Feature) -> None:
    if action.direction not in ("any", "increase", "decrease"):
        raise refusal_at(
            "direction",
            f"{where}: 'direction' must be any, increase or decrease (got {action.direction!r})",
        )
    if action.direction != "any" and feature.is_categorical and not feature.ordered:
        raise refusal_at(
            "direction",
            f"{where}: 'direction' is {action.direction!r}, but the categories of "
            f"'{feature.name}' have no order; set 'ordered' on the feature or remove it",
        )


def _check_from_missing(where: str, action: Action, feature: Feature) -> None:
    if not isinstance(action.from_missing, bool):
        raise refusal_at(
            "from_missing",
            f"{where}: 'from_missing' must be true or false (got {shown(action.from_missing)})",
        )
    if action.from_missing and not feature.may_be_missing:
        raise refusal_at(
            "from_missing",
            f"{where}: 'from_missing' is true, but '{feature.name}' is never missing; remove it, "
            "or give the feature 'missing_counts_as'",
        )
    if action.from_missing and action.mode == "add":
        raise refusal_at(
            "from_missing",
            f"{where}: 'from_missing' is true, but nothing can be added to a missing value; "
            "remove it, or use an action of mode 'set'",
        )


def _check_range(where: str, lower: Any, upper: Any, feature: Feature) -> None:
    for key, bound in (("lower", lower), ("upper", upper)):
        if bound is None:
            continue
        if not is_finite(bound):
            raise refusal_at(key, f"{where}: '{key}' must be a finite number (got {shown(bound)})")
        if not feature.is_number:
            raise refusal_at(
                key,
                f"{where}: '{key}' {bound} bounds '{feature.name}', which is {feature.kind}; "
                "list the values instead",
            )
    if lower is not None and upper is not None and lower > upper:
        raise refusal_at("lower", f"{where}: 'lower' {lower} is above 'upper' {upper}; swap them")


def _check_arguments(where: str, action: Action, feature: Feature) -> None:
    if not action.arguments:
        raise refusal_at(
            "arguments", f"{where} has no arguments; give a list, a range or a number of values"
        )
    for argument in action.arguments:
        if is_missing(argument):
            raise refusal_at(
                "arguments",
                f"{where}: an argument must be a value (got {argument!r}); no step leads to a "
                "missing value",
            )
        if action.mode == "set":
            try:
                feature.code(argument)
            except InvalidInput as error:
                raise refusal_at(
                    "arguments", f"{where}: argument {plain(argument)!r}: {error}"
                ) from None
        elif not is_finite(argument) or argument == 0:
            raise refusal_at(
                "arguments",
                f"{where}: an amount to add must be a number other than 0 (got {argument!r}); "
                "correct it or leave it out",
            )
        elif feature.kind == "integer" and float(argument) != int(argument):
            raise refusal_at(
                "arguments",
                f"{where}: '{feature.name}' is an integer, but {argument!r} is not whole; "
                "round it, or make the feature numeric",
            )
    codes = [argument_code(feature, action, argument) for argument in action.arguments]
    if len(set(codes)) != len(codes):
        twice = next(x for x, c in zip(action.arguments, codes, strict=True) if codes.count(c) > 1)
        raise refusal_at(
            "arguments", f"{where} lists an argument twice (got {plain(twice)!r}); remove one"
        )


def _check_reach(where: str, action: Action, feature: Feature) -> None:
    """Refuse an action that no person could ever use, whatever they start from."""
    if not feature.is_number:
        return
    low = max((b for b in (feature.lower, action.lower) if b is not None), default=-math.inf)
    high = min((b for b in (feature.upper, action.upper) if b is not None), default=math.inf)
    if low > high:
        key = "upper" if action.upper is not None and action.upper < low else "lower"
        raise refusal_at(
            key,
            f"{where}: 'lower' {low:g} and 'upper' {high:g} of the action and of '{feature.name}' "
            "leave no value between them; correct one of them",
        )
    first, numbers = plain(action.arguments[0]), [float(x) for x in action.arguments]
    if action.mode == "set" and not any(low <= number <= high for number in numbers):
        raise refusal_at(
            "arguments",
            f"{where}: every argument (the first is {first!r}) lies outside of the action's "
            f"bounds, {low:g} to {high:g}; correct the arguments or the bounds",
        )


def _check_requirement(where: str, space: FeatureSpace, requirement: Requirement) -> None:
    try:
        other = space[requirement.feature]
        for value in requirement.values:
            if is_missing(value):
                raise InvalidProblem(
                    f"'{other.name}' cannot be required to be missing (got {value!r})"
                )
            other.code(value)
        _check_range(
            f"the requirement on '{other.name}'", requirement.lower, requirement.upper, other
        )
    except InvalidInput as error:
        raise refusal_at("requires", f"{where}: {error}") from None
    if not requirement.values and requirement.lower is None and requirement.upper is None:
        raise refusal_at(
            "requires",
            f"{where}: the requirement on '{other.name}' says nothing; give values or a range",
        )


def _check_facts(where: str, action: Action) -> None:
    for key in FACTS:
        facts = getattr(action, key)
        if len(facts) not in (0, 1, len(action.arguments)):
            raise refusal_at(
                key,
                f"{where}: '{key}' must be one number, or one for each of the "
                f"{len(action.arguments)} arguments (got {len(facts)})",
            )
        for fact in facts:
            if not is_finite(fact) or fact < 0:
                raise refusal_at(key, f"{where}: '{key}' must be at least 0 (got {shown(fact)})")
    if not is_whole(action.priority):
        raise refusal_at(
            "priority", f"{where}: 'priority' must be a whole number (got {action.priority!r})"
        )


def _check_tolerance(where: str, action: Action, feature: Feature) -> None:
    tolerance = action.tolerance
    whole = feature.kind != "integer" or (is_finite(tolerance) and tolerance == int(tolerance))
    if not is_finite(tolerance) or tolerance < 0 or not whole:
        kind = "a whole number" if feature.kind == "integer" else "a number"
        raise refusal_at(
            "tolerance",
            f"{where}: 'tolerance' must be {kind} of at least 0 (got {shown(tolerance)})",
        )
    if tolerance and not feature.is_number:
        raise refusal_at(
            "tolerance",
            f"{where}: '{feature.name}' is {feature.kind} and cannot be missed by {tolerance:g}; "
            "leave 'tolerance' out",
        )


def _listed(key: str, values: Any) -> tuple[Any, ...]:
    content = as_tuple(values)
    if content is None:
        raise refusal_at(key, f"'{key}' must be a list (got {shown(values)}); put it in brackets")
    return tuple(plain(value) for value in content)
