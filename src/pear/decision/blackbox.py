"""What the classifier says: batched scores, the decision, and an exact count of rows asked."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from pear.arrays import Flags, Floats
from pear.errors import InvalidSetting, ModelError, ModelOutput, ModelWarning, PearError
from pear.problem import NO_LIMITS, Goal, Limits, Problem, column_names
from pear.problem.features import FeatureSpace, States
from pear.problem.values import class_key

if TYPE_CHECKING:
    from pear.decision.ceilings import SeveralWhiteBoxes, WhiteBox

ScoreFunction = Callable[[States], Any]
"""Takes states ``(n, d)``; returns scores ``(n,)`` or class probabilities ``(n, classes)``."""

TOLERANCE = 1e-6
"""How far outside [0, 1] a score may lie by rounding."""

GAPS = 64
"""How many probe states with missing values are added, where features may be missing."""


class BlackBox:
    """A classifier seen through its scores.

    Making one asks the model nothing.

    Parameters
    ----------
    function
        Gets states ``(n, d)`` and returns the probability of the favourable decision ``(n,)``,
        or probabilities per class ``(n, classes)``.
    space
        The features the states are made of.
    goal
        When a decision is favourable.
    name
        The name of the model in messages.
    classes
        The names of the columns of ``function``, where it returns one per class. Where it returns
        one number and there are two classes, the number is the probability of the second.
    fingerprint
        Identifies the model; measured from its scores when first needed, if left out.
    max_batch
        Most rows of one call.
    uses
        The features that the model looks at, where it is known; empty where not.
    doubts
        What somebody should check before they trust the model, as sentences.

    Attributes
    ----------
    rows : int
        Rows asked so far.

    Raises
    ------
    ModelOutput
        Where the model does not know a class of the goal; once scores are asked for, where they
        are not probabilities, naming the row.

    Examples
    --------
    >>> from pear.problem import Feature
    >>> space = FeatureSpace((Feature("income"),))
    >>> model = BlackBox(lambda states: states[:, 0] / 100, space, Goal(), name="income/100")
    >>> model.score(np.array([[40.0], [60.0]])), model.rows
    (array([0.4, 0.6]), 2)
    """

    def __init__(
        self,
        function: ScoreFunction,
        space: FeatureSpace,
        goal: Goal | None = None,
        name: str = "model",
        classes: tuple[Any, ...] = (),
        fingerprint: str = "",
        max_batch: int = 65_536,
        uses: tuple[str, ...] = (),
        doubts: tuple[str, ...] = (),
    ) -> None:
        self.function = function
        self.space = space
        self.goal = goal or Goal()
        self.name = name
        self.classes = classes
        self.max_batch = max_batch
        self.uses = uses
        self.doubts = doubts
        self.rows = 0
        self._fingerprint = fingerprint
        self._lock = Lock()
        if self.goal.favourable and classes:
            favourable_columns(self.goal, classes, len(classes), name)

    def checked(self) -> BlackBox:
        """This black box after :func:`.check_model`: unusable models are refused, doubts become
        warnings."""
        from pear.decision.load_checks import check_model

        self._fingerprint = self._fingerprint or self.measure_fingerprint()
        self.doubts += tuple(doubt for doubt in check_model(self) if doubt not in self.doubts)
        for doubt in self.doubts:
            warnings.warn(doubt, ModelWarning, stacklevel=3)
        return self

    def __repr__(self) -> str:
        return f"BlackBox({self.name!r}, {self.rows:,} rows asked)"

    def differs_from(self, space: FeatureSpace, goal: Goal) -> str:
        """How a problem disagrees about what the score means, in words; empty where it does not.

        The features in their order, their kinds and categories and what a missing value counts as
        make the states, and the favourable classes choose the score. Threshold and margin, bounds,
        scales and words may differ: they are the problem's.
        """
        if self.space.names != space.names:
            ours, theirs = ", ".join(self.space.names), ", ".join(space.names)
            return f"was made for the features {ours}, and the problem has {theirs}"
        for mine, other in zip(self.space.features, space.features, strict=True):
            for key in ("kind", "categories", "missing_counts_as"):
                is_mine, is_other = getattr(mine, key), getattr(other, key)
                if is_mine != is_other:
                    return (
                        f"was made for '{mine.name}' with {key} {is_mine!r}, and the problem has "
                        f"{is_other!r}"
                    )
        if self._favourable_classes(self.goal) != self._favourable_classes(goal):
            return (
                f"was made with {list(self.goal.favourable)!r} as favourable, and the problem says "
                f"{list(goal.favourable)!r}"
            )
        return ""

    def check_problem(self, problem: Problem) -> None:
        """Refuse a problem in which the score would mean something else."""
        if differs := self.differs_from(problem.space, problem.goal):
            raise InvalidSetting(
                f"'black_box' {self.name!r} {differs}; load the model for this problem: "
                "load_model(model, problem)"
            )

    def _favourable_classes(self, goal: Goal) -> frozenset[str | float]:
        """The classes whose probabilities add up to the score: the last of two if none is
        stated."""
        classes = goal.favourable or (self.classes[1:] if len(self.classes) == 2 else ())
        return frozenset(class_key(value) for value in classes)

    @property
    def fingerprint(self) -> str:
        """What the model does, as a short hash; see :meth:`measure_fingerprint`."""
        self._fingerprint = self._fingerprint or self.measure_fingerprint()
        return self._fingerprint

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_lock", "inside")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def score(self, states: States) -> Floats:
        """Score of the favourable decision for each state, shape ``(n,)``."""
        states = np.atleast_2d(np.asarray(states, float))
        if not len(states):
            return np.zeros(0)
        parts = [
            self._score_batch(states[first : first + self.max_batch], first)
            for first in range(0, len(states), self.max_batch)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def favourable(self, states: States, limits: Limits = NO_LIMITS) -> Flags:
        """Which states get the favourable decision, shape ``(n,)``."""
        return self.score(states) > self.goal.required(limits)

    @cached_property
    def inside(self) -> WhiteBox | SeveralWhiteBoxes | None:
        """What can be read from the model for score ceilings; None where nothing can."""
        from pear.decision.ceilings import read_white_box

        return read_white_box(self)

    def probe(self, states: States) -> Floats:
        """Scores of probes, which are not counted as rows asked, shape ``(n,)``."""
        return self._checked(states, 0)

    def probe_with(self, states: States, function: ScoreFunction) -> Floats:
        """Scores of probes by another function of the same classes, shape ``(n,)``."""
        return self._checked(states, 0, function)

    def score_record(self, record: Mapping[str, Any]) -> float:
        """The score of one record, asked for alone and without any shortcut.

        The row is not counted.
        """
        plain = getattr(self.function, "score_record", None)
        state = self.space.encode([record])
        function = self.function if plain is None else lambda states: plain(dict(record))
        return float(self._checked(state, 0, function)[0])

    @property
    def _scores_the_unfavourable(self) -> bool:
        """Whether a single number per row is the probability of the unfavourable one of two named
        classes."""
        if len(self.classes) != 2 or not self.goal.favourable:
            return False
        return class_key(self.classes[1]) not in {class_key(c) for c in self.goal.favourable}

    def measure_fingerprint(self) -> str:
        """A hash of the scores on fixed probe states: what the model does, not its file.

        Scores are rounded to three digits, so that one model in single and in double
        precision almost always has one fingerprint. The probes are not counted as rows asked.
        """
        scores = self.probe(probes_with_gaps(self.space, 256, np.random.default_rng(0)))
        return hashlib.sha256((np.round(scores, 3) + 0.0).tobytes()).hexdigest()[:16]

    def _score_batch(self, states: States, first: int) -> Floats:
        with self._lock:
            self.rows += len(states)
        return self._checked(states, first)

    def _checked(self, states: States, first: int, function: ScoreFunction | None = None) -> Floats:
        """Scores of states that start at row ``first``, or an error naming model and row."""
        try:
            output = np.asarray((function or self.function)(states), float)
        except PearError:
            raise
        except Exception as error:
            row = self._failing_row(states)
            raise ModelOutput(
                f"model '{self.name}' failed on row {first + row} "
                f"({self.space.decode(states[row])[0]}): {error}"
            ) from error
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        if output.ndim not in (1, 2) or len(output) != len(states):
            raise ModelOutput(
                f"model '{self.name}' returned shape {output.shape} for {len(states)} rows; "
                "it must return one score per row, or one probability per row and class"
            )
        bad = ~((output >= -TOLERANCE) & (output <= 1 + TOLERANCE))
        if bad.any():
            row = int(np.flatnonzero(bad.reshape(len(states), -1).any(axis=1))[0])
            raise ModelOutput(
                f"model '{self.name}' returned {np.ravel(output[row]).tolist()} for row "
                f"{first + row} ({self.space.decode(states[row])[0]}); "
                'scores must be numbers in [0, 1]; if they are logits, say output = "logits"'
            )
        if output.ndim == 2:
            columns = favourable_columns(self.goal, self.classes, output.shape[1], self.name)
            output = output[:, columns].sum(axis=1)
        elif self._scores_the_unfavourable:
            output = 1.0 - output
        return np.asarray(np.clip(output, 0.0, 1.0))

    def _failing_row(self, states: States) -> int:
        """The first row the model fails on, found by halving."""
        low, high = 0, len(states)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                np.asarray(self.function(states[low:middle]), float)
                low = middle
            except Exception:
                high = middle
        return low


def favourable_columns(goal: Goal, classes: tuple[Any, ...], width: int, name: str) -> list[int]:
    """Columns of the favourable classes among ``width``; a class the model lacks is refused.

    Without class names the favourable classes are taken as column numbers.

    >>> goal = Goal(favourable=("gold", "silver"))
    >>> favourable_columns(goal, ("bronze", "gold", "silver"), 3, "medals")
    [1, 2]
    """
    if classes and len(classes) != width:
        raise ModelOutput(
            f"model '{name}' returned {width} columns for the {len(classes)} classes "
            f"{', '.join(str(value) for value in classes)}"
        )
    if not goal.favourable:
        if width > 2:
            raise ModelOutput(
                f"model '{name}' has {width} classes; say in the problem's goal which of them "
                f"are favourable ({', '.join(str(value) for value in classes) or 'by number'})"
            )
        return [width - 1]
    known = {class_key(value): column for column, value in enumerate(classes or range(width))}
    absent = [value for value in goal.favourable if class_key(value) not in known]
    if absent and not classes:
        raise ModelOutput(
            f"model '{name}' does not say which of its {width} columns is the class {absent[0]!r}; "
            "name its classes in the order of the columns (classes=…; export_onnx writes them into "
            "the file, an endpoint sends them), or give the column's number as 'favourable'"
        )
    if absent:
        shown = ", ".join(str(value) for value in classes)
        raise ModelOutput(
            f"model '{name}' has no class {absent[0]!r}; its classes are {shown}: "
            "correct 'favourable' in the problem's goal"
        )
    return [known[class_key(value)] for value in goal.favourable]


def require_class_names(goal: Goal, classes: tuple[Any, ...], name: str) -> None:
    """Refuse one number per row where the favourable class is 0 or "no" and nothing names it.

    Such a number is by custom the probability of 1 or "yes".
    """
    feared = [value for value in goal.favourable if str(value).strip().lower() in column_names.NO]
    if feared and len(goal.favourable) == 1 and not classes:
        raise ModelError(
            f"model '{name}' answers with one number per row, and nothing says whether that is the "
            f"probability of {feared[0]!r}, which is favourable, or of the other class; name both "
            "as 'classes' (under [model] in the problem, or when the model is loaded), the one it "
            "is the probability of last"
        )


def probe_states(space: FeatureSpace, n: int, rng: np.random.Generator) -> States:
    """Plausible states for probing a model, shape ``(n, d)``."""
    columns = []
    for feature in space.features:
        if feature.is_categorical:
            columns.append(rng.integers(0, len(feature.categories), n).astype(float))
        elif feature.kind == "boolean":
            columns.append(rng.integers(0, 2, n).astype(float))
        else:
            lower = -np.inf if feature.lower is None else feature.lower
            upper = np.inf if feature.upper is None else feature.upper
            low, high = feature.scale or (
                lower if np.isfinite(lower) else min(0.0, upper - 1.0),
                upper if np.isfinite(upper) else max(1.0, lower + 1.0),
            )
            low, high = max(low, lower), min(high, upper)
            values = rng.uniform(low, max(high, low), n)
            columns.append(np.rint(values) if feature.kind == "integer" else values)
    return np.column_stack(columns)


def probes_with_gaps(space: FeatureSpace, n: int, rng: np.random.Generator) -> States:
    """``n`` plausible states, and a few with missing values if features may be missing."""
    probes = probe_states(space, n, rng)
    if not any(feature.may_be_missing for feature in space.features):
        return probes
    return np.concatenate([probes, with_gaps(space, probes[:GAPS], rng)])


def with_gaps(space: FeatureSpace, states: States, rng: np.random.Generator) -> States:
    """The states with at least one missing value in each, of features that may be missing."""
    may = np.array([feature.may_be_missing for feature in space.features])
    gone = (rng.random(states.shape) < 0.2) & may
    gone[np.arange(len(states)), rng.choice(np.flatnonzero(may), len(states))] = True
    return np.where(gone, np.nan, states)


def from_callable(function: ScoreFunction, problem: Problem, name: str = "callable") -> BlackBox:
    """Any Python function of states ``(n, d)`` as a black box."""
    return BlackBox(function, problem.space, problem.goal, name=name).checked()
