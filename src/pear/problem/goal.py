"""When is a decision favourable, and which kinds of people are there?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pear.problem.checks import at_key, is_finite, names_tuple, plain
from pear.problem.limits import NO_LIMITS, Limits


def class_key(value: Any) -> str | float:
    """What makes two spellings of one class equal: True, 1, 1.0, "1" and "true" are one."""
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text)
    except ValueError:
        return text


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
        classes = names_tuple(self.favourable)
        if classes is None:
            raise at_key(
                "favourable", f"'favourable' must be a list of classes (got {self.favourable!r})"
            )
        for name in classes:
            if not isinstance(plain(name), (str, bool, int, float)):
                raise at_key("favourable", f"a class must be a text or a number (got {name!r})")
        if len({class_key(plain(name)) for name in classes}) != len(classes):
            raise at_key(
                "favourable",
                f"'favourable' lists a class twice (got {list(classes)!r}); remove one of them",
            )
        object.__setattr__(self, "favourable", tuple(plain(name) for name in classes))
        if not is_finite(self.threshold) or not 0 <= self.threshold < 1:
            raise at_key(
                "threshold", f"'threshold' must be a number in [0, 1) (got {self.threshold!r})"
            )
        if (
            not is_finite(self.margin)
            or not 0 <= self.margin < 1
            or self.threshold + self.margin >= 1
        ):
            raise at_key(
                "margin",
                f"'margin' must be at least 0 and leave room below 1 (got {self.margin!r} "
                f"above a threshold of {self.threshold!r})",
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

    def __post_init__(self) -> None:
        where = f"archetype '{self.name}'"
        if not isinstance(self.name, str) or not self.name:
            raise at_key("name", f"an archetype's 'name' must be a text (got {self.name!r})")
        for key in ("mean", "spread"):
            content = tuple(plain(number) for number in getattr(self, key))
            if not all(is_finite(number) for number in content):
                raise at_key(key, f"{where}: '{key}' must be finite numbers (got {content!r})")
            object.__setattr__(self, key, content)
        if not all(number > 0 for number in self.spread):
            raise at_key("spread", f"{where}: 'spread' must be positive (got {self.spread!r})")
        if not is_finite(self.share) or not self.share > 0:
            raise at_key(
                "share", f"{where}: 'share' must be a positive number (got {self.share!r})"
            )
