"""Is there a cheaper plan? An independent proof, from the declarations alone, slow and obvious.

Every state that k legal changes reach is listed, with the least cost of reaching it; from those,
every state that k + 1 changes reach; and so on. All of them are put to the model. Nothing here is
shared with the searches, nor with the arrays they work on: legality, costs, the order of changes
and what may be left out are written down a second time, so that an error there does not repeat
here. Small problems are proven outright; where there is too much to list, the proof says up to
how many changes it got.

References: paper, eqn. cost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pear.problem import Action, Feature, Limits, Problem, Requirement

State = tuple[Any, ...]
"""A value of each feature: a number, a category, True or False; None where it is missing."""
Move = tuple[Action, Any]
Score = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Proof:
    """What was proven about all plans of up to ``length`` changes.

    ``cost`` is that of the cheapest favourable plan, infinite if there is none, and ``moves`` are
    its actions and arguments. ``complete``: longer plans were listed too, or cannot matter.
    """

    complete: bool
    length: int
    cost: float
    moves: tuple[tuple[str, Any], ...] = ()
    states: int = 0

    @property
    def words(self) -> str:
        """The plan that was found."""
        return "; ".join(f"{action} {argument}" for action, argument in self.moves)


class Rules:
    """What the declarations say about one step of one person with these limits and weights."""

    def __init__(self, problem: Problem, weights: Any, limits: Limits) -> None:
        self.features = problem.space.features
        self.place = {feature.name: i for i, feature in enumerate(self.features)}
        self.limits, graph = limits, problem.costs
        self.required_score = problem.goal.threshold + max(problem.goal.margin, limits.margin)
        self.floor = -math.inf if graph.floor is None else graph.floor
        self.offset, self.zero_change = graph.offset, graph.zero_change
        self.weights = dict(zip(graph.weight_names, np.atleast_2d(weights).T, strict=True))
        self.edges = graph.edges
        self.moves: list[Move] = [
            (action, self._argument(action, argument))
            for action in problem.actions.actions
            for argument in action.arguments
        ]
        self.parents_of = {
            name: tuple(parent for parent, child in graph.edges if child == name)
            for name in self.place
        }
        # Each of these depends on its arguments alone, and is asked for again and again.
        self.value_after, self.cost = (
            lru_cache(None)(self._value_after),
            lru_cache(None)(self._cost),
        )
        self.is_met = lru_cache(None)(self._is_met)

    def state(self, record: Mapping[str, Any]) -> State:
        return tuple(_plain(feature, record[feature.name]) for feature in self.features)

    def matrix(self, states: list[State]) -> np.ndarray:
        """States as the model is given them, shape ``(n, d)``."""
        return np.array(
            [
                [_code(feature, value) for feature, value in zip(self.features, state, strict=True)]
                for state in states
            ],
            float,
        ).reshape(len(states), len(self.features))

    def step(self, state: State, move: int) -> tuple[State, float, str]:
        """The state after a move, its cost, and what forbids it: empty if nothing does."""
        action, _ = self.moves[move]
        place = self.place[action.feature]
        after, forbidden = self.value_after(move, state[place])
        for need in action.requires:
            value = state[self.place[need.feature]]
            if not forbidden and not self.is_met(need, value):
                forbidden = f"'{need.feature}' is {value!r} at that point"
        seen = tuple(state[self.place[parent]] for parent in self.parents_of[action.feature])
        cost = self.cost(action.feature, state[place], after, seen)[0] if after is not None else 0.0
        return (*state[:place], after, *state[place + 1 :]), cost, forbidden

    def ends(self, start: State, end: State) -> list[list[float]]:
        """For each feature, as planned and how far it may be missed either way: lowest, highest."""
        found = []
        for feature, begun, planned in zip(self.features, start, end, strict=True):
            far = max([a.tolerance for a, _ in self.moves if a.feature == feature.name], default=0)
            if planned == begun or not far:
                found.append([_code(feature, planned)])
                continue
            low, high = planned - far, planned + far
            if begun is not None and begun < planned:
                low = max(low, begun)
            if begun is not None and begun > planned:
                high = min(high, begun)
            low = low if feature.lower is None else max(low, feature.lower)
            high = high if feature.upper is None else min(high, feature.upper)
            found.append([planned, low, high])
        return found

    def holds(self, start: State, end: State, score: Score) -> bool:
        """Whether the decision stays favourable at every end of what may be missed."""
        every = list(itertools.product(*self.ends(start, end)))
        return len(every) == 1 or bool((score(np.array(every, float)) > self.required_score).all())

    def _argument(self, action: Action, argument: Any) -> Any:
        feature = self.features[self.place[action.feature]]
        return float(argument) if action.mode == "add" else _plain(feature, argument)

    def _value_after(self, move: int, before: Any) -> tuple[Any, str]:
        """The value after a move, and what forbids it whatever the other features are."""
        action, argument = self.moves[move]
        feature, limits = self.features[self.place[action.feature]], self.limits
        if before is None and (action.mode == "add" or not action.from_missing):
            return None, f"'{feature.name}' is missing"
        after = before + argument if action.mode == "add" else argument
        if after == before:
            return after, f"'{feature.name}' is {before!r} already"
        if feature.is_number:
            for lower, upper in ((feature.lower, feature.upper), (action.lower, action.upper)):
                if not _within(after, lower, upper):
                    return after, f"{after!r} is out of bounds"
        rises = 0.0 if before is None else _code(feature, after) - _code(feature, before)
        wrong = {"increase": rises < 0, "decrease": rises > 0, "any": False}[action.direction]
        if wrong:
            return after, f"'{action.name}' may only {action.direction} '{feature.name}'"
        if feature.name in limits.features:
            return after, f"the person excluded '{feature.name}'"
        if action.name in limits.actions:
            return after, f"the person excluded '{action.name}'"
        if any(n == feature.name and _plain(feature, v) == after for n, v in limits.values):
            return after, f"the person excluded {feature.name} = {after!r}"
        return after, ""

    def _cost(self, name: str, before: Any, after: Any, seen: State) -> tuple[float, float]:
        """max(floor, w_k |change| + sum over parents of w_jk (offset + value)), the mean of it.

        Then the size of the numbers added up, to which rounding is relative.
        """
        part = self.weights[name] * self._size(self.features[self.place[name]], before, after)
        cost, size = part, np.abs(part)
        for parent, value in zip(self.parents_of[name], seen, strict=True):
            level = self.offset + _seen_by_costs(self.features[self.place[parent]], value)
            part = self.weights[f"{parent}->{name}"] * level
            cost, size = cost + part, size + np.abs(part)
        floored = np.maximum(self.floor, cost)
        return math.fsum(floored) / len(floored), float(np.maximum(size, np.abs(floored)).mean())

    def _is_met(self, need: Requirement, value: Any) -> bool:
        feature = self.features[self.place[need.feature]]
        if value is None:
            return False
        if need.values and value not in [_plain(feature, wanted) for wanted in need.values]:
            return False
        return _within(value, need.lower, need.upper)

    def _size(self, feature: Feature, before: Any, after: Any) -> float:
        if feature.is_categorical:
            return 1.0
        size = abs(_seen_by_costs(feature, after) - _seen_by_costs(feature, before))
        return float(self.zero_change) if size == 0 and self.zero_change is not None else size


def prove(
    rules: Rules,
    score: Score,
    start: State,
    *,
    longest: int,
    repeats: int = 1,
    below: float = math.inf,
    max_states: int = 1_000_000,
    any_plan: bool = False,
) -> Proof:
    """The cheapest plan from ``start`` that costs less than ``below``, or the proof of none.

    A plan has at most ``longest`` changes and at most ``repeats`` of each feature. ``score`` gives
    the model's scores of states ``(n, d)``. With ``any_plan`` the first plan found ends it.
    """
    if score(rules.matrix([start]))[0] > rules.required_score:
        return Proof(True, longest, 0.0, states=1)
    # A state and how often each feature was changed; the least cost of it, and the moves so far.
    reached: dict[tuple[State, State], tuple[float, tuple[int, ...]]]
    reached = {(start, (0,) * len(start)): (0.0, ())}
    asked = {start: False}
    best, best_moves = below, None
    # Only where no step can cost less than nothing is a state too dear once it costs ``best``.
    dear = rules.floor >= 0
    for length in range(1, longest + 1):
        following: dict[tuple[State, State], tuple[float, tuple[int, ...]]] = {}
        for (state, times), (spent, moves) in reached.items():
            for move, (action, _) in enumerate(rules.moves):
                place = rules.place[action.feature]
                if times[place] == repeats:
                    continue
                after, cost, forbidden = rules.step(state, move)
                if forbidden or (dear and spent + cost >= best):
                    continue
                key = (after, (*times[:place], times[place] + 1, *times[place + 1 :]))
                if key not in following or spent + cost < following[key][0]:
                    following[key] = (spent + cost, (*moves, move))
            if len(asked) + len(following) > max_states:
                found = _named(rules, best_moves)
                return Proof(
                    False,
                    length - 1,
                    best if found else math.inf,
                    found,
                    len(asked) + len(following),
                )
        new = list({state: None for state, _ in following if state not in asked})
        if new:
            told = score(rules.matrix(new)) > rules.required_score
            asked |= {
                state: bool(yes) and rules.holds(start, state, score)
                for state, yes in zip(new, told, strict=True)
            }
        for (state, _), (cost, moves) in following.items():
            if asked[state] and cost < best:
                best, best_moves = cost, moves
        if not following or (any_plan and best_moves is not None):
            break
        reached = following
    found = _named(rules, best_moves)
    return Proof(True, longest, best if found else math.inf, found, len(asked))


def _named(rules: Rules, moves: tuple[int, ...] | None) -> tuple[tuple[str, Any], ...]:
    return tuple((rules.moves[move][0].name, rules.moves[move][1]) for move in moves or ())


def _plain(feature: Feature, value: Any) -> Any:
    """A value as this chapter writes it, however it was declared."""
    if value is None:
        return None
    return float(value) if feature.is_number else feature.value(feature.code(value))


def _code(feature: Feature, value: Any) -> float:
    """The number that stands for a value in a model's row."""
    if value is None:
        return math.nan
    return float(feature.categories.index(value) if feature.is_categorical else value)


def _seen_by_costs(feature: Feature, value: Any) -> float:
    """Numbers on their scale, clipped to [0, 1]; categories 1, or their declared level."""
    if value is None:
        value = _plain(feature, feature.missing_counts_as)
    if feature.is_categorical:
        return float(feature.levels[feature.categories.index(value)]) if feature.levels else 1.0
    if feature.scale is None:
        return float(value)
    low, high = feature.scale
    return min(1.0, max(0.0, (float(value) - low) / (high - low)))


def _within(value: Any, lower: float | None, upper: float | None) -> bool:
    return (lower is None or value >= lower) and (upper is None or value <= upper)
