"""What this one person cannot, or will not, do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pear.errors import InvalidSetting
from pear.problem.checks import is_finite, is_whole, names_tuple, plain, shown
from pear.problem.features import Value


@dataclass(frozen=True)
class Limits:
    """A person's own limits: things that are never proposed to them.

    ``features`` are not changed at all, ``actions`` (by name) are not used, ``values`` are
    (feature, value) pairs never proposed as a result. ``max_steps`` caps the number of
    changes, ``margin`` asks for a score that much further above the threshold.

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
            content = names_tuple(getattr(self, key))
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
    content = names_tuple(pair)
    if content is None or len(content) != 2 or not isinstance(content[0], str):
        raise InvalidSetting(f"'values' must list pairs of a feature and a value (got {pair!r})")
    return content[0], plain(content[1])
