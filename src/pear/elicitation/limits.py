"""What can this person not do? "I can't do this step", precisely."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pear.errors import InvalidRecord, InvalidSetting
from pear.problem import NO_LIMITS, Limits, Problem, Step
from pear.problem.checks import is_whole
from pear.problem.features import Feature, Value

Floats = NDArray[np.float64]

MOST_LIMITS = 40
"""Most limits one person can set."""

LARGEST = 1e15
"""No number about a person is larger."""


@dataclass(frozen=True)
class Limit:
    """Something this person cannot do, and never a preference.

    ``feature``: leave this feature as it is. ``value``: never this value of it. ``beyond``: this
    value of a number, or anything further in this ``direction``, is out of reach. ``action``:
    never use this action. ``id`` is what it is lifted by.
    """

    kind: Literal["feature", "value", "beyond", "action"]
    feature: str | None = None
    value: Value | None = None
    direction: Literal["up", "down"] | None = None
    action: str | None = None
    id: str = field(default="", compare=False)

    def checked(self, problem: Problem) -> Limit:
        """The limit with only what its kind needs; one that means nothing here is refused."""
        if self.kind == "action":
            names = [action.name for action in problem.actions.actions]
            if self.action not in names:
                raise InvalidSetting(
                    f"there is no action {self.action!r}; the actions are {', '.join(names)}"
                )
            return Limit("action", action=self.action)
        changeable = [problem.space.features[column].name for column in problem.actions.actionable]
        if self.feature not in changeable:
            raise InvalidSetting(
                f"'feature' must be one that some step changes (got {self.feature!r}); "
                f"these are {', '.join(changeable)}"
            )
        if self.kind == "feature":
            return Limit("feature", self.feature)
        feature = problem.space[self.feature]
        if is_whole(self.value) and abs(int(self.value)) > LARGEST:  # type: ignore[arg-type]
            raise InvalidRecord(
                f"'{feature.name}' must be a number of reasonable size (got {str(self.value)[:40]})"
            )
        value = feature.value(feature.code(self.value))
        if self.kind == "value":
            return Limit("value", self.feature, value)
        if feature.is_categorical or feature.kind == "boolean":
            raise InvalidSetting(f"'{self.feature}' is no number; use a limit of the kind 'value'")
        if self.direction not in ("up", "down"):
            raise InvalidSetting(f"'direction' must be 'up' or 'down' (got {self.direction!r})")
        return Limit("beyond", self.feature, value, self.direction)

    def added_to(self, limits: Limits, problem: Problem, state: Floats) -> Limits:
        """The limits and this one, for someone in a state ``(d,)``."""
        if self.kind == "feature":
            return limits.without_features(str(self.feature))
        if self.kind == "action":
            return limits.without_actions(str(self.action))
        if self.kind == "value":
            return limits.without_value(str(self.feature), self.value)  # type: ignore[arg-type]
        column = problem.space.index(str(self.feature))
        feature = problem.space.features[column]
        results = problem.actions.results(state[None])[0, problem.actions.feature_of == column]
        bound = float(self.value)  # type: ignore[arg-type]
        for code in np.unique(results).tolist():
            further = code >= bound if self.direction == "up" else code <= bound
            value = feature.value(code)
            if further and value is not None and is_possible(feature, code):
                limits = limits.without_value(feature.name, value)
        return limits

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: what its kind needs, without the id."""
        return {k: v for k, v in asdict(self).items() if v is not None and k != "id"}

    @classmethod
    def from_dict(cls, data: Any) -> Limit:
        """The limit stored by :meth:`to_dict`."""
        content = {k: v for k, v in dict(data).items() if k != "id"}
        kinds = ("feature", "value", "beyond", "action")
        if content.get("kind") not in kinds:
            raise InvalidSetting(
                f"'kind' must be one of {', '.join(kinds)} (got {content.get('kind')!r})"
            )
        known = [entry.name for entry in fields(cls)]
        unknown = [key for key in content if key not in known]
        if unknown:
            raise InvalidSetting(f"a limit has no '{unknown[0]}'; it has {', '.join(known)}")
        return cls(**content)


def refusals(problem: Problem, step: Step) -> tuple[Limit, ...]:
    """The limits a person may mean with "I can't do this step", the narrowest first."""
    feature, whole = problem.space[step.feature], Limit("feature", step.feature)
    actions = problem.actions
    only_one = (actions.feature_of == problem.space.index(step.feature)).sum() == 1
    if only_one or (step.before is None and not feature.is_categorical):
        return (whole,)
    if feature.is_categorical or step.before is None:
        return (Limit("value", step.feature, step.after), whole)
    up = float(step.after) > float(step.before)
    return (Limit("beyond", step.feature, step.after, "up" if up else "down"), whole)


def as_limits(
    limits: Iterable[Limit], problem: Problem, state: Floats, rest: Limits = NO_LIMITS
) -> Limits:
    """A person's limits for the search; ``rest`` holds what is not about single steps."""
    for limit in limits:
        rest = limit.added_to(rest, problem, state)
    return rest


def single_limits(limits: Limits) -> tuple[Limit, ...]:
    """Limits as the single things they rule out."""
    return (
        *(Limit("feature", name) for name in limits.features),
        *(Limit("action", action=name) for name in limits.actions),
        *(Limit("value", name, value) for name, value in limits.values),
    )


def is_possible(feature: Feature, code: float) -> bool:
    """Whether a code can be a value of a feature."""
    if feature.is_categorical:
        return code.is_integer() and 0 <= code < len(feature.categories)
    whole = feature.kind == "integer" and code.is_integer()
    try:
        feature.code(int(code) if whole else code)
    except InvalidRecord:
        return False
    return True
