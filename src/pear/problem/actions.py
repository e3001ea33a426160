"""What a person can do: the actions, when each is allowed, and what it changes.

An :class:`Action` changes one feature and has a list of arguments. One action with one of
its arguments is a *move*; an :class:`ActionSpace` numbers all moves from 0, action by
action, argument by argument. That number order is the tie-break everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidProblem
from pear.problem.action import (
    Action,
    Direction,
    Mode,
    Requirement,
    argument_code,
    check_action,
    phrase,
)
from pear.problem.checks import is_number, shown
from pear.problem.features import FeatureSpace, States, Value
from pear.problem.limits import NO_LIMITS, Limits

__all__ = ["Action", "ActionSpace", "Direction", "Mode", "Requirement", "phrase"]


@dataclass(frozen=True)
class ActionSpace:
    """All moves over a feature space, in arrays.

    With m moves: ``feature_of`` ``(m,)`` is the column changed, ``action_of`` ``(m,)`` the
    action, ``argument_of`` ``(m,)`` the argument as a number (a code for categories).
    """

    space: FeatureSpace
    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", tuple(self.actions))
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
            [argument_code(self.space[a.feature], a, x) for a in self.actions for x in a.arguments],
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
