"""How a conversation is led."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pear.errors import InvalidSetting
from pear.preferences import (
    Logistic,
    Noiseless,
    ResponseModel,
    UnknownSharpness,
    response_from_dict,
)
from pear.problem.values import is_number, is_whole, plain


@dataclass(frozen=True)
class Settings:
    """Settings of a conversation; together with the seed and the answers they determine it.

    Parameters
    ----------
    k, max_questions
        Plans per question, and most questions.
    min_gain
        Asking stops when the expected gain of one more question, in cost units, is below this.
    draws
        Posterior samples planned for per question.
    first_rows, pool_rows
        Most rows asked of the model for the first question, and new ones for each later one.
    response
        How answers are judged: by default as those of people of whom we do not know how careful
        they are, so that an answer by habit or by mistake costs little.
    posterior, n_particles
        ``particles``, so many of them, or ``slices``, the paper's sampler.
    advance
        Whether the next question is asked from the state after the first step of the chosen plan,
        as the paper does.
    pool
        ``samples``: the optimum of each posterior sample; ``mean``: regenerated with the mean
        weight inside the greedy loop (paper, algorithm 2).
    estimate
        The mean weight of the slices: over all samples (``mean``) or, as in the paper, over the
        quarter with the highest posterior density (``best_quarter``).

    Raises
    ------
    InvalidSetting
        Where one of them is out of its range.

    Examples
    --------
    >>> Settings(k=3, max_questions=5).k
    3
    """

    k: int = 2
    max_questions: int = 10
    min_gain: float = 0.5
    draws: int = 32
    first_rows: int = 200_000
    pool_rows: int = 20_000
    response: ResponseModel = field(default_factory=lambda: UnknownSharpness(0.3, 1.5, 0.005))
    posterior: Literal["particles", "slices"] = "particles"
    n_particles: int = 2000
    advance: bool = False
    pool: Literal["samples", "mean"] = "samples"
    estimate: Literal["mean", "best_quarter"] = "mean"

    def __post_init__(self) -> None:
        for name, least in (
            ("k", 2),
            ("max_questions", 0),
            ("draws", 1),
            ("first_rows", 1),
            ("pool_rows", 1),
            ("n_particles", 10),
        ):
            if not is_whole(getattr(self, name)) or getattr(self, name) < least:
                raise InvalidSetting(
                    f"'{name}' must be a whole number of at least {least} "
                    f"(got {getattr(self, name)!r})"
                )
        if not is_number(self.min_gain) or not self.min_gain >= 0:
            raise InvalidSetting(f"'min_gain' must be 0 or more (got {self.min_gain!r})")
        if not isinstance(self.response, Logistic | Noiseless | UnknownSharpness):
            raise InvalidSetting(
                "'response' must be Noiseless(), Logistic(sharpness) or UnknownSharpness() "
                f"(got {self.response!r})"
            )
        for name, known in (
            ("posterior", ("particles", "slices")),
            ("pool", ("samples", "mean")),
            ("estimate", ("mean", "best_quarter")),
            ("advance", (False, True)),
        ):
            if getattr(self, name) not in known:
                raise InvalidSetting(
                    f"'{name}' must be {' or '.join(map(str, known))} (got {getattr(self, name)!r})"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = {key: plain(getattr(self, key)) for key in self.__dataclass_fields__}
        return {**data, "response": self.response.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """The settings stored by :meth:`to_dict`."""
        content = dict(data)
        response = response_from_dict(content.pop("response"))
        return changed(cls(response=response), content)


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with some of them changed; an unknown name is refused."""
    unknown = [name for name in changes if name not in Settings.__dataclass_fields__]
    if unknown:
        raise InvalidSetting(
            f"a conversation has no setting '{unknown[0]}'; "
            f"it has {', '.join(Settings.__dataclass_fields__)}"
        )
    return replace(settings, **changes)
