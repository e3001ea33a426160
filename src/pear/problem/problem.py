"""One recourse problem: features, actions, costs, the goal, and expert ranges of weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidProblem, InvalidSetting
from pear.problem.actions import ActionSpace
from pear.problem.costs import CostGraph, walk
from pear.problem.features import FeatureSpace
from pear.problem.limits import NO_LIMITS, Limits
from pear.problem.plan import Certificate, Plan, Step


@dataclass(frozen=True)
class Goal:
    """When a decision is favourable: the score is above ``threshold + margin``.

    ``favourable`` names the favourable class or classes of the model; the score is the sum
    of their probabilities. Empty: the model's score is taken as it is, or the positive
    (last) class of a two-class model.
    """

    favourable: tuple[Any, ...] = ()
    threshold: float = 0.5
    margin: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise InvalidProblem(f"'threshold' must be in [0, 1) (got {self.threshold!r})")
        if not 0 <= self.margin < 1 or self.threshold + self.margin >= 1:
            raise InvalidProblem(
                f"'margin' must be at least 0 and leave room below 1 (got {self.margin!r} "
                f"above a threshold of {self.threshold!r})"
            )

    def bar(self, limits: Limits = NO_LIMITS) -> float:
        """The score that must be exceeded, with the larger of the two margins."""
        return self.threshold + max(self.margin, limits.margin)


@dataclass(frozen=True)
class Archetype:
    """A kind of person: mean and spread of the weights, ``(p,)`` each, and a share."""

    name: str
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Problem:
    """Everything but the model and the person.

    ``weight_range`` holds (low, high) per weight name: where experts place most people's
    weights; names left out get ``default_range``.
    """

    space: FeatureSpace
    actions: ActionSpace
    costs: CostGraph
    goal: Goal = Goal()
    max_length: int = 5
    name: str = "recourse"
    weight_range: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    default_range: tuple[float, float] = (1.0, 100.0)
    archetypes: tuple[Archetype, ...] = ()

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise InvalidProblem(f"'max_length' must be at least 1 (got {self.max_length!r})")
        for name, (low, high) in {**self.weight_range, "default": self.default_range}.items():
            if name != "default" and name not in self.costs.weight_names:
                raise InvalidProblem(
                    f"there is no weight {name!r}; the weights are {', '.join(self.costs.weight_names)}"
                )
            if not low < high:
                raise InvalidProblem(
                    f"the range of weight '{name}' must increase (got [{low}, {high}])"
                )
        for archetype in self.archetypes:
            if not len(archetype.mean) == len(archetype.spread) == self.costs.n_weights:
                raise InvalidProblem(
                    f"archetype '{archetype.name}' must give mean and spread of all "
                    f"{self.costs.n_weights} weights"
                )

    @property
    def weight_names(self) -> tuple[str, ...]:
        return self.costs.weight_names

    @property
    def weight_ranges(self) -> NDArray[np.float64]:
        """Expert ranges of all weights, shape ``(p, 2)``."""
        return np.array([self.weight_range.get(n, self.default_range) for n in self.weight_names])

    def state(self, record: Any) -> NDArray[np.float64]:
        """One person's state, shape ``(d,)``."""
        states = self.space.encode(record)
        if len(states) != 1:
            raise InvalidSetting(f"one person's record was expected (got {len(states)} rows)")
        return states[0]

    def named_weights(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        """A weight vector from names; every weight must be given."""
        absent = [name for name in self.weight_names if name not in weights]
        if absent:
            raise InvalidSetting(f"weights are missing for {', '.join(absent)}")
        return np.array([weights[name] for name in self.weight_names], float)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything that decides what plans exist and what they cost."""
        content = {
            "features": [asdict(feature) for feature in self.space.features],
            "actions": [asdict(action) for action in self.actions.actions],
            "edges": self.costs.edges,
            "cost": [self.costs.floor, self.costs.offset, self.costs.zero_change],
            "goal": asdict(self.goal),
            "max_length": self.max_length,
        }
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def make_plan(
        self,
        start: NDArray[np.float64],
        moves: Any,
        weights: NDArray[np.float64],
        scores: NDArray[np.float64],
        certificate: Certificate,
        *,
        limits: Limits = NO_LIMITS,
        method: str = "exact",
        model_fingerprint: str = "",
    ) -> Plan:
        """A :class:`Plan` from a sequence of moves.

        ``weights`` is ``(p,)``, or samples ``(s, p)``: step costs are then means of the
        floored costs. ``scores`` are of the start and of the state after each step.
        """
        moves = [int(move) for move in moves]
        states = walk(start, self.actions, moves)
        costs = np.zeros((0, 1))
        if moves:
            weights = self.costs.check_weights(weights)
            linear = self.costs.features(states[:-1], self.actions, np.array(moves)) @ weights.T
            costs = self.costs.floored(linear.reshape(len(moves), -1))
        records = self.space.decode(states)
        steps = []
        for i, move in enumerate(moves):
            action = self.actions.actions[self.actions.action_of[move]]
            column = self.actions.feature_of[move]
            steps.append(
                Step(
                    action=action.name,
                    argument=self.actions.argument(move),
                    feature=action.feature,
                    before=records[i][action.feature],
                    after=records[i + 1][action.feature],
                    cost=float(costs[i].mean()),
                    score_before=float(scores[i]),
                    score_after=float(scores[i + 1]),
                    words=self.actions.phrase(move, states[i, column], states[i + 1, column]),
                )
            )
        return Plan(
            start=records[0],
            steps=tuple(steps),
            cost=float(costs.mean(axis=1).sum()),
            score=float(scores[-1]),
            success=bool(scores[-1] > self.goal.bar(limits)),
            certificate=certificate,
            moves=tuple(moves),
            method=method,
            problem_fingerprint=self.fingerprint,
            model_fingerprint=model_fingerprint,
        )
