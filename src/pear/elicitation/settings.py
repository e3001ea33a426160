"""How a conversation is led."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pear.errors import InvalidSetting
from pear.preferences import Logistic, ResponseModel, response_from_dict


@dataclass(frozen=True)
class Settings:
    """Settings of a conversation; together with the seed and the answers they determine it.

    ``k`` plans per question, at most ``max_questions``. Asking stops when the expected gain
    of one more question is below ``min_gain`` in cost units. ``draws`` posterior samples are
    planned for per question, with at most ``pool_rows`` new rows after the first question.
    ``posterior`` is ``particles`` (default) or ``slices`` (the paper's sampler). ``advance``
    asks the next question from the state after the first step of the chosen plan, as the
    paper does. ``pool`` is ``samples`` (the optimum of each posterior sample) or ``mean``
    (regenerated with the mean weight inside the greedy loop, paper, algorithm 2).
    """

    k: int = 2
    max_questions: int = 10
    min_gain: float = 0.5
    draws: int = 32
    pool_rows: int = 4_000
    response: ResponseModel = field(default_factory=lambda: Logistic(0.9))
    posterior: Literal["particles", "slices"] = "particles"
    n_particles: int = 2000
    advance: bool = False
    pool: Literal["samples", "mean"] = "samples"

    def __post_init__(self) -> None:
        for name, least in (
            ("k", 2),
            ("max_questions", 0),
            ("draws", 1),
            ("pool_rows", 1),
            ("n_particles", 10),
        ):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < least:
                raise InvalidSetting(
                    f"'{name}' must be a whole number of at least {least} "
                    f"(got {getattr(self, name)!r})"
                )
        if not self.min_gain >= 0:
            raise InvalidSetting(f"'min_gain' must be 0 or more (got {self.min_gain!r})")
        for name, known in (("posterior", ("particles", "slices")), ("pool", ("samples", "mean"))):
            if getattr(self, name) not in known:
                raise InvalidSetting(
                    f"'{name}' must be {' or '.join(known)} (got {getattr(self, name)!r})"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "response"}
        return {**data, "response": self.response.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """The settings stored by :meth:`to_dict`."""
        content = dict(data)
        response = response_from_dict(content.pop("response"))
        try:
            return cls(response=response, **content)
        except TypeError as error:
            raise InvalidSetting(f"the conversation's settings cannot be read: {error}") from None
