"""What a person can do: the actions, when each is allowed, and what it changes.

An :class:`Action` changes one feature and has a list of arguments. One action with one of
its arguments is a *move*; an :class:`ActionSpace` numbers all moves from 0, action by
action, argument by argument. That number order is the tie-break everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidProblem
from pear.problem.features import Feature, FeatureSpace, States, Value
from pear.problem.limits import NO_LIMITS, Limits

Mode = Literal["set", "add"]
Direction = Literal["any", "increase", "decrease"]


@dataclass(frozen=True)
class Requirement:
    """Another feature that must have one of ``values``, or lie in a range, first."""

    feature: str
    values: tuple[Value, ...] = ()
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Action:
    """A way to change one feature.

    Mode ``set`` puts an argument in place of the value, ``add`` adds it. ``lower`` and
    ``upper`` bound the result further than the feature's own bounds. ``phrase`` may use
    {feature}, {before}, {after}, {argument}.
    """

    name: str
    feature: str
    mode: Mode
    arguments: tuple[Value, ...]
    direction: Direction = "any"
    requires: tuple[Requirement, ...] = ()
    lower: float | None = None
    upper: float | None = None
    phrase: str = ""


@dataclass(frozen=True)
class ActionSpace:
    """All moves over a feature space, in arrays.

    With m moves: ``feature_of`` ``(m,)`` is the column changed, ``action_of`` ``(m,)`` the
    action, ``argument_of`` ``(m,)`` the argument as a number (a code for categories).
    """

    space: FeatureSpace
    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        names = [action.name for action in self.actions]
        if not names:
            raise InvalidProblem("a problem needs at least one action")
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidProblem(f"action names must differ (twice: {', '.join(twice)})")
        for action in self.actions:
            _check_action(self.space, action)

    def __len__(self) -> int:
        return len(self.action_of)

    @cached_property
    def action_of(self) -> NDArray[np.intp]:
        counts = [len(action.arguments) for action in self.actions]
        return np.repeat(np.arange(len(self.actions)), counts)

    @cached_property
    def feature_of(self) -> NDArray[np.intp]:
        columns = np.array([self.space.index(action.feature) for action in self.actions])
        return columns[self.action_of]

    @cached_property
    def argument_of(self) -> NDArray[np.float64]:
        return np.array(
            [_argument(self.space[a.feature], a, x) for a in self.actions for x in a.arguments],
            float,
        )

    @cached_property
    def adds(self) -> NDArray[np.bool_]:
        """Which moves add to the value, shape ``(m,)``; the others set it."""
        return np.array([action.mode == "add" for action in self.actions])[self.action_of]

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Lowest and highest result of each move, shape ``(m, 2)``."""
        pairs = []
        for action in self.actions:
            feature = self.space[action.feature]
            lows = [b for b in (feature.lower, action.lower) if b is not None]
            highs = [b for b in (feature.upper, action.upper) if b is not None]
            pairs.append((max(lows, default=-np.inf), min(highs, default=np.inf)))
        return np.array(pairs, float)[self.action_of]

    @cached_property
    def direction_of(self) -> NDArray[np.intp]:
        """+1 for moves that may only increase, -1 only decrease, 0 any; shape ``(m,)``."""
        sign = {"any": 0, "increase": 1, "decrease": -1}
        return np.array([sign[action.direction] for action in self.actions])[self.action_of]

    @cached_property
    def requirement_tables(self) -> tuple[tuple[int, int, Requirement], ...]:
        """(action, column, requirement) for every requirement of every action."""
        return tuple(
            (number, self.space.index(requirement.feature), requirement)
            for number, action in enumerate(self.actions)
            for requirement in action.requires
        )

    @cached_property
    def actionable(self) -> tuple[int, ...]:
        """Columns that some action changes, in column order."""
        return tuple(sorted(set(self.feature_of.tolist())))

    def move(self, action: str, argument: Value) -> int:
        """The number of a move by its action's name and argument."""
        for number, declared in enumerate(self.actions):
            if declared.name == action:
                code = _argument(self.space[declared.feature], declared, argument)
                found = np.flatnonzero((self.action_of == number) & (self.argument_of == code))
                if len(found):
                    return int(found[0])
                raise InvalidProblem(f"action '{action}' has no argument {argument!r}")
        raise InvalidProblem(
            f"there is no action {action!r}; the actions are {', '.join(a.name for a in self.actions)}"
        )

    def argument(self, move: int) -> Value:
        """The argument of a move as declared."""
        first = int(np.flatnonzero(self.action_of == self.action_of[move])[0])
        return self.actions[self.action_of[move]].arguments[move - first]

    def results(self, states: States) -> NDArray[np.float64]:
        """Value each move would give its feature, shape ``(n, m)``."""
        current = states[:, self.feature_of]
        return np.where(self.adds, current + self.argument_of, self.argument_of)

    def apply(self, states: States, moves: NDArray[np.intp]) -> States:
        """States after one move each, shape ``(n, d)``; legality is not checked here."""
        after = np.array(states, float)
        rows, columns = np.arange(len(after)), self.feature_of[moves]
        current = after[rows, columns]
        after[rows, columns] = np.where(
            self.adds[moves], current + self.argument_of[moves], self.argument_of[moves]
        )
        return after

    def changes_legally(self, states: States) -> NDArray[np.bool_]:
        """Which moves give a legal new value of their own feature, shape ``(n, m)``.

        Everything but requirements on other features and the person's limits.
        """
        current, result = states[:, self.feature_of], self.results(states)
        legal = (result != current) & (result >= self.bounds[:, 0]) & (result <= self.bounds[:, 1])
        rising = (result - current) * self.direction_of >= 0
        return np.asarray(legal & rising)

    def requirements_met(self, states: States) -> NDArray[np.bool_]:
        """Which moves have what they require of other features, shape ``(n, m)``."""
        met = np.ones((len(states), len(self.actions)), bool)
        for action, column, requirement in self.requirement_tables:
            met[:, action] &= self.requirement_met(column, requirement, states[:, column])
        return met[:, self.action_of]

    def requirement_met(
        self, column: int, requirement: Requirement, codes: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
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

    def within_limits(self, results: NDArray[np.float64], limits: Limits) -> NDArray[np.bool_]:
        """Which moves a person's limits leave, for resulting values ``(n, m)``."""
        features = np.isin(self.feature_of, [self.space.index(name) for name in limits.features])
        names = {action.name for action in self.actions}
        unknown = [name for name in limits.actions if name not in names]
        if unknown:
            raise InvalidProblem(f"limits name unknown actions: {', '.join(unknown)}")
        actions = np.array([action.name in limits.actions for action in self.actions])[
            self.action_of
        ]
        left = np.broadcast_to(~(features | actions), results.shape).copy()
        for name, value in limits.values:
            column = self.space.index(name)
            code = _limit_code(self.space.features[column], value)
            left &= ~((self.feature_of == column) & (results == code))
        return left

    def allowed(self, states: States, limits: Limits = NO_LIMITS) -> NDArray[np.bool_]:
        """Which moves are allowed in which states, shape ``(n, m)``."""
        states = np.atleast_2d(states)
        legal = self.changes_legally(states) & self.requirements_met(states)
        if limits is NO_LIMITS:
            return legal
        return legal & self.within_limits(self.results(states), limits)

    def phrase(self, move: int, before: float, after: float) -> str:
        """The step in people's words: "Increase your income from 2,100 to 2,600 €"."""
        action = self.actions[self.action_of[move]]
        feature = self.space[action.feature]
        return phrase(action, feature, before, after, self.argument(move))


def phrase(action: Action, feature: Feature, before: float, after: float, argument: Value) -> str:
    """One step in words, from the action's template or a plain one."""
    template = action.phrase
    if not template:
        if feature.kind in ("numeric", "integer"):
            verb = "Increase" if after > before else "Reduce"
            template = verb + " your {feature} from {before} to {after}"
        elif feature.kind == "boolean":
            template = "Change {feature} from {before} to {after}"
        else:
            template = "Change your {feature} from {before} to {after}"
    plain = feature.unit and feature.kind in ("numeric", "integer")
    shown = feature.show(before)
    if plain:
        shown = shown[: -len(feature.unit)].strip()
    return template.format(
        feature=feature.words, before=shown, after=feature.show(after), argument=argument
    )


def _argument(feature: Feature, action: Action, argument: Value) -> float:
    if action.mode == "set":
        return feature.code(argument)
    return float(argument)


def _limit_code(feature: Feature, value: Value) -> float:
    return feature.code(value)


def _check_action(space: FeatureSpace, action: Action) -> None:
    where = f"action '{action.name}'"
    feature = space[action.feature]
    if feature.immutable:
        raise InvalidProblem(
            f"{where} changes '{feature.name}', which is immutable; remove the action or the mark"
        )
    if feature.protected:
        raise InvalidProblem(
            f"{where} changes '{feature.name}', which is protected; protected features are never an action"
        )
    if action.mode not in ("set", "add"):
        raise InvalidProblem(f"{where}: 'mode' must be 'set' or 'add' (got {action.mode!r})")
    if action.direction not in ("any", "increase", "decrease"):
        raise InvalidProblem(
            f"{where}: 'direction' must be any, increase or decrease (got {action.direction!r})"
        )
    if not action.arguments:
        raise InvalidProblem(
            f"{where} has no arguments; give a list, a range or a number of values"
        )
    if action.mode == "add" and (feature.is_categorical or feature.kind == "boolean"):
        raise InvalidProblem(
            f"{where} cannot add to '{feature.name}', which is {feature.kind}; use mode 'set'"
        )
    for argument in action.arguments:
        if action.mode == "set":
            try:
                feature.code(argument)
            except ValueError as error:
                raise InvalidProblem(f"{where}: argument {argument!r}: {error}") from None
        elif isinstance(argument, (bool, str)) or not np.isfinite(argument) or argument == 0:
            raise InvalidProblem(
                f"{where}: an amount to add must be a number other than 0 (got {argument!r})"
            )
        elif feature.kind == "integer" and argument != int(argument):
            raise InvalidProblem(
                f"{where}: '{feature.name}' is an integer; {argument!r} is not whole"
            )
    if len(set(action.arguments)) != len(action.arguments):
        raise InvalidProblem(f"{where} lists an argument twice")
    for requirement in action.requires:
        other = space[requirement.feature]
        for value in requirement.values:
            other.code(value)
        if not requirement.values and requirement.lower is None and requirement.upper is None:
            raise InvalidProblem(
                f"{where}: the requirement on '{other.name}' says nothing; give values or a range"
            )
