"""What the classifier says: batched scores, the decision, and an exact count of rows asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import ModelOutput
from pear.problem import NO_LIMITS, Goal, Limits, Problem
from pear.problem.features import FeatureSpace, States

ScoreFunction = Callable[[States], Any]
"""Takes states ``(n, d)``; returns scores ``(n,)`` or class probabilities ``(n, classes)``."""


@dataclass
class BlackBox:
    """A classifier seen through its scores.

    ``function`` gets states ``(n, d)`` and returns the probability of the favourable
    decision ``(n,)``, or probabilities per class ``(n, classes)`` with ``classes`` naming
    the columns. ``rows`` counts the rows asked so far.

    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("income"),))
    >>> model = BlackBox(lambda states: states[:, 0] / 100, space, Goal(), name="income/100")
    >>> model.score(np.array([[40.0], [60.0]])), model.rows
    (array([0.4, 0.6]), 2)
    """

    function: ScoreFunction
    space: FeatureSpace
    goal: Goal = field(default_factory=Goal)
    name: str = "model"
    classes: tuple[Any, ...] = ()
    fingerprint: str = ""
    max_batch: int = 65_536
    rows: int = 0

    def __post_init__(self) -> None:
        self._columns = favourable_columns(self.goal, self.classes, self.name)
        if not self.fingerprint:
            self.fingerprint = self.measure_fingerprint()

    def score(self, states: States) -> NDArray[np.float64]:
        """Score of the favourable decision for each state, shape ``(n,)``."""
        states = np.atleast_2d(np.asarray(states, float))
        if not len(states):
            return np.zeros(0)
        parts = [
            self._score_batch(states[first : first + self.max_batch], first)
            for first in range(0, len(states), self.max_batch)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def favourable(self, states: States, limits: Limits = NO_LIMITS) -> NDArray[np.bool_]:
        """Which states get the favourable decision, shape ``(n,)``."""
        return self.score(states) > self.goal.bar(limits)

    def measure_fingerprint(self) -> str:
        """A hash of the scores on fixed probe states: what the model does, not its file."""
        rng = np.random.default_rng(0)
        probes = probe_states(self.space, 64, rng)
        asked = self.rows
        scores = self.score(probes)
        self.rows = asked
        return hashlib.sha256(np.round(scores, 5).tobytes()).hexdigest()[:16]

    def _score_batch(self, states: States, first: int) -> NDArray[np.float64]:
        self.rows += len(states)
        output = np.asarray(self.function(states), float)
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        if output.ndim not in (1, 2) or len(output) != len(states):
            raise ModelOutput(
                f"model '{self.name}' returned shape {output.shape} for {len(states)} rows; "
                "it must return one score per row, or one probability per row and class"
            )
        bad = ~np.isfinite(output) | (output < -1e-6) | (output > 1 + 1e-6)
        if bad.any():
            row = int(np.flatnonzero(bad.reshape(len(states), -1).any(axis=1))[0])
            raise ModelOutput(
                f"model '{self.name}' returned {np.ravel(output[row]).tolist()} for row "
                f"{first + row} ({self.space.decode(states[row])[0]}); "
                "scores must be numbers in [0, 1]"
            )
        if output.ndim == 2:
            output = output[:, self._columns].sum(axis=1)
        return np.asarray(np.clip(output, 0.0, 1.0))


def favourable_columns(goal: Goal, classes: tuple[Any, ...], name: str) -> list[int]:
    """Columns of the favourable classes; a class the model does not have is refused."""
    if not goal.favourable:
        return [-1]
    if not classes:
        return [-1]
    known = {str(value): column for column, value in enumerate(classes)}
    absent = [value for value in goal.favourable if str(value) not in known]
    if absent:
        raise ModelOutput(
            f"model '{name}' has no class {absent[0]!r}; its classes are {', '.join(known)}: "
            "correct 'favourable' in the problem's goal"
        )
    return [known[str(value)] for value in goal.favourable]


def probe_states(space: FeatureSpace, n: int, rng: np.random.Generator) -> States:
    """Plausible states for probing a model, shape ``(n, d)``."""
    columns = []
    for feature in space.features:
        if feature.is_categorical:
            columns.append(rng.integers(0, len(feature.categories), n).astype(float))
        elif feature.kind == "boolean":
            columns.append(rng.integers(0, 2, n).astype(float))
        else:
            low, high = feature.scale or (0.0, 1.0)
            low = max(low, feature.lower) if feature.lower is not None else low
            high = min(high, feature.upper) if feature.upper is not None else high
            values = rng.uniform(low, max(high, low), n)
            columns.append(np.rint(values) if feature.kind == "integer" else values)
    return np.column_stack(columns)


def from_callable(function: ScoreFunction, problem: Problem, name: str = "callable") -> BlackBox:
    """Any Python function of states ``(n, d)`` as a black box."""
    return BlackBox(function, problem.space, problem.goal, name=name)
