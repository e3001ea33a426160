"""What this one person cannot, or will not, do.

:class:`Limits` are what a search respects. A :class:`Limit` is one thing somebody said, such as "I
can't do this step", with the id used to lift it; :func:`as_limits` turns a person's list of them
into :class:`Limits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pear.arrays import Floats
from pear.errors import InvalidRecord, InvalidSetting
from pear.problem.features import Feature, Value
from pear.problem.values import as_tuple, is_finite, is_whole, plain, shown

if TYPE_CHECKING:
    from pear.problem.plan import Step
    from pear.problem.problem import Problem

MOST_LIMITS = 40
"""Most limits one person can set."""

LARGEST = 1e15
"""Larger numbers about a person are refused."""


@dataclass(frozen=True)
class Limits:
    """A person's own limits: things that are never proposed to them.

    Parameters
    ----------
    features, actions
        Names of features that do not change, and of actions that are not used.
    values
        Pairs (feature, value) that are never proposed as a result.
    max_steps
        Most changes of a plan; None: as many as the problem allows.
    margin
        How far the score must be above the threshold.

    Raises
    ------
    InvalidSetting
        Where a value is of the wrong type.

    Examples
    --------
    >>> Limits(features=("job",)).without_features("city").features
    ('job', 'city')
    """

    features: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    values: tuple[tuple[str, Value], ...] = ()
    max_steps: int | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        for key in ("features", "actions", "values"):
            content = as_tuple(getattr(self, key))
            if content is None:
                raise InvalidSetting(
                    f"'{key}' must be a list (got {shown(getattr(self, key))}); put it in brackets"
                )
            object.__setattr__(self, key, content)
        for name in (*self.features, *self.actions):
            if not isinstance(name, str):
                raise InvalidSetting(f"a limit must be a name (got {shown(name)})")
        object.__setattr__(self, "values", tuple(_pair(pair) for pair in self.values))
        if self.max_steps is not None and (not is_whole(self.max_steps) or self.max_steps < 1):
            raise InvalidSetting(
                f"'max_steps' must be a whole number of at least 1 (got {self.max_steps!r}); "
                "leave it out for no limit"
            )
        if not is_finite(self.margin) or not 0 <= self.margin < 1:
            raise InvalidSetting(f"'margin' must be a number in [0, 1) (got {self.margin!r})")

    def without_features(self, *names: str) -> Limits:
        """The same limits and no change of these features."""
        return replace(self, features=_joined(self.features, names))

    def without_actions(self, *names: str) -> Limits:
        """The same limits and none of these actions."""
        return replace(self, actions=_joined(self.actions, names))

    def without_value(self, feature: str, value: Value) -> Limits:
        """The same limits and never this value of this feature."""
        return replace(self, values=_joined(self.values, ((feature, value),)))

    def parts(self) -> Iterator[tuple[str, Limits]]:
        """Each single limit in words, with the limits that remain when it is lifted."""
        for name in self.features:
            rest = tuple(n for n in self.features if n != name)
            yield f"no change of {name}", replace(self, features=rest)
        for name in self.actions:
            rest = tuple(n for n in self.actions if n != name)
            yield f"no action {name}", replace(self, actions=rest)
        for pair in self.values:
            others = tuple(p for p in self.values if p != pair)
            yield f"not {pair[0]} = {pair[1]}", replace(self, values=others)
        if self.max_steps is not None:
            yield f"at most {self.max_steps} steps", replace(self, max_steps=None)
        if self.margin:
            yield f"a margin of {self.margin:g}", replace(self, margin=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "features": list(self.features),
            "actions": list(self.actions),
            "values": [list(pair) for pair in self.values],
            "max_steps": self.max_steps,
            "margin": self.margin,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Limits:
        """The limits stored by :meth:`to_dict`.

        >>> Limits.from_dict({"features": ["job"], "max_steps": 2})
        Limits(features=('job',), actions=(), values=(), max_steps=2, margin=0.0)
        """
        if not isinstance(data, Mapping):
            raise InvalidSetting(f"limits must be a JSON object (got {shown(data)})")
        known = [entry.name for entry in fields(cls)]
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise InvalidSetting(
                f"limits have no '{unknown[0]}' (got {data[unknown[0]]!r}); "
                f"they have {', '.join(known)}"
            )
        return cls(**data)


NO_LIMITS = Limits()


def _joined(present: tuple[Any, ...], more: tuple[Any, ...]) -> tuple[Any, ...]:
    return present + tuple(item for item in dict.fromkeys(more) if item not in present)


def _pair(pair: Any) -> tuple[str, Value]:
    content = as_tuple(pair)
    if content is None or len(content) != 2 or not isinstance(content[0], str):
        raise InvalidSetting(f"'values' must list pairs of a feature and a value (got {pair!r})")
    return content[0], plain(content[1])


@dataclass(frozen=True)
class Limit:
    """Something this person cannot do, and never a preference.

    ``feature``: leave this feature as it is. ``value``: never this value of it. ``beyond``: this
    value of a number, or anything further in this ``direction``, is out of reach. ``action``: never
    use this action. ``id`` is used to lift it.
    """

    kind: Literal["feature", "value", "beyond", "action"]
    feature: str | None = None
    value: Value | None = None
    direction: Literal["up", "down"] | None = None
    action: str | None = None
    id: str = field(default="", compare=False)

    def checked(self, problem: Problem) -> Limit:
        """The limit with only what its kind needs; one that does not fit the problem is refused."""
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
            raise InvalidSetting(
                f"'{self.feature}' is not a number; use a limit of the kind 'value'"
            )
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
    """A person's limits for the search; ``rest`` holds those that are not about single steps."""
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
