"""What do people find costly, judged by the choices they made in conversations?

Monte Carlo EM: each person's posterior under the present prior is sampled (E), and a mixture is
fitted to everybody's samples (M). Where the answers say nothing, the spread of the old prior stays,
since the posterior keeps it. The result is used only if it predicts the choices of people it has
not seen better than the old prior does.

References: Wei and Tanner (1990), A Monte Carlo implementation of the EM algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pear.arrays import Floats
from pear.elicitation.files import Conversation
from pear.errors import InvalidData, InvalidSetting
from pear.parallel import run_tasks
from pear.portfolio.beliefs import Prediction, predict_choices
from pear.preferences import Chosen, GaussianMixturePrior
from pear.problem.values import is_whole
from pear.statistics import Estimate, estimate, sign_test

FEWEST = 20
"""Conversations with a choice that a fit needs, in all."""

CANDIDATES = (1, 2, 4)
"""Numbers of kinds of people that are tried."""

AT_ONCE = 16
"""Conversations of one task."""


@dataclass(frozen=True)
class FitSettings:
    """How a prior is fitted.

    ``components`` kinds of people; None takes the number, of ``CANDIDATES``, that predicts best
    for a part of the people it was not fitted on. A share ``held_out`` of the people is kept
    for the check and seen by no fit; ``level`` is the probability of taking a prior that is
    no better.
    """

    components: int | None = None
    rounds: int = 4
    held_out: float = 0.3
    level: float = 0.05
    n_particles: int = 600
    n_draws: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("held_out", "level"):
            if not 0 < getattr(self, name) < 1:
                value = getattr(self, name)
                raise InvalidSetting(f"'{name}' must lie between 0 and 1 (got {value!r})")
        for name in ("rounds", "n_particles", "n_draws", "components"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InvalidSetting(f"'{name}' must be at least 1 (got {getattr(self, name)!r})")
        if not is_whole(self.seed) or self.seed < 0:
            raise InvalidSetting(f"'seed' must be a whole number of at least 0 (got {self.seed!r})")


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted prior and the check of it.

    ``old`` and ``new`` are log-likelihoods per choice on the held-out people, and ``guess``
    that of a guess among the plans on offer; ``gain`` is the difference of new and old per
    person, ``p`` the probability of such a gain if there were none.
    """

    prior: GaussianMixturePrior
    fitted_on: int
    checked_on: int
    choices: int
    old: float
    new: float
    guess: float
    gain: Estimate
    p: float
    level: float

    @property
    def better(self) -> bool:
        """Whether the new prior predicts held-out choices better, beyond chance."""
        return self.gain.mean > 0 and self.p <= self.level

    @property
    def beats_guessing(self) -> bool:
        """Whether the new prior predicts held-out choices better than a guess."""
        return self.new > self.guess

    def words(self) -> str:
        """The outcome in sentences."""
        text = (
            f"Fitted on {self.fitted_on} people, checked on {self.checked_on} others with "
            f"{self.choices} choices. Log-likelihood per choice: {self.old:.3f} with the old "
            f"prior, {self.new:.3f} with the new one, {self.guess:.3f} for a guess; per person "
            f"{self.gain.mean:+.3f} ({self.gain.low:+.3f} to {self.gain.high:+.3f}) from old to "
            f"new, p = {self.p:.4f}."
        )
        if self.better and not self.beats_guessing:
            return text + (
                " The new prior predicts choices better than the old one, but worse than a guess: "
                "do not rely on it. People may choose by something the costs do not know, or less "
                "carefully than the conversations' response model says."
            )
        if self.better:
            return text + " The new prior predicts choices better."
        return text + " Refused: it is not shown to predict choices better than the old one."

    def to_dict(self) -> dict[str, Any]:
        """The check as plain data for JSON, without the prior itself."""
        names = ("fitted_on", "checked_on", "choices", "old", "new", "guess", "p", "level")
        judged = {"better": self.better, "beats_guessing": self.beats_guessing}
        return {n: getattr(self, n) for n in names} | judged | {"gain": asdict(self.gain)}


def fit_prior(
    conversations: Sequence[Conversation],
    old: GaussianMixturePrior,
    settings: FitSettings = FitSettings(),
    workers: int | None = 1,
) -> Fit:
    """A population prior from conversations, starting from ``old``, and the held-out check."""
    useful = [c for c in conversations if any(isinstance(a, Chosen) for _, a in c.answered)]
    names = list(dict.fromkeys(c.id for c in useful))
    if len(names) < FEWEST:
        raise InvalidData(
            f"a prior needs at least {FEWEST} people who made a choice "
            f"(got {len(names)} in {len(conversations)} conversations); collect more"
        )
    rng = np.random.default_rng(settings.seed)
    kept = max(2, round(settings.held_out * len(names)))
    if len(names) - kept < FEWEST // 2:
        raise InvalidSetting(
            f"'held_out' must leave {FEWEST // 2} people to fit on (got {settings.held_out!r} "
            f"of {len(names)} people)"
        )
    # Split by person: who talked twice is either fitted on or checked on, never both.
    checked = {names[i] for i in rng.permutation(len(names))[:kept]}
    held_out = [c for c in useful if c.id in checked]
    training = [c for c in useful if c.id not in checked]
    components = settings.components or _best_number(training, old, settings, workers)
    prior = _fitted(training, old, components, settings, workers)
    seed = [settings.seed, 2]
    before = _read_all(held_out, old, settings, seed, workers)
    after = _read_all(held_out, prior, settings, seed, workers)
    old_sums, new_sums = (_by_person(held_out, predictions) for predictions in (before, after))
    choices = sum(len(prediction.log_likelihoods) for prediction in before)
    gain = estimate(new_sums - old_sums, rng)
    assert gain is not None
    return Fit(
        prior=prior,
        fitted_on=len(names) - kept,
        checked_on=kept,
        choices=choices,
        old=float(old_sums.sum() / choices),
        new=float(new_sums.sum() / choices),
        guess=float(sum(prediction.chance.sum() for prediction in before) / choices),
        gain=gain,
        p=sign_test(new_sums - old_sums, rng, "greater")[0],
        level=settings.level,
    )


def _by_person(conversations: Sequence[Conversation], predictions: Sequence[Prediction]) -> Floats:
    """Log-likelihood of all choices of each person, shape ``(n,)``."""
    sums: dict[str, float] = {}
    for conversation, prediction in zip(conversations, predictions, strict=True):
        sums[conversation.id] = sums.get(conversation.id, 0.0) + prediction.log_likelihoods.sum()
    return np.array(list(sums.values()))


def _best_number(
    people: Sequence[Conversation],
    old: GaussianMixturePrior,
    settings: FitSettings,
    workers: int | None,
) -> int:
    """The number of kinds whose fit on three quarters of the people predicts the rest best."""
    aside = set(list(dict.fromkeys(c.id for c in people))[::4])
    rest = [c for c in people if c.id in aside]
    part = [c for c in people if c.id not in aside]
    scores = {}
    for components in CANDIDATES:
        prior = _fitted(part, old, components, settings, workers)
        predictions = _read_all(rest, prior, settings, [settings.seed, 3], workers)
        scores[components] = sum(prediction.log_likelihoods.sum() for prediction in predictions)
    return max(scores, key=lambda components: scores[components])


def _fitted(
    people: Sequence[Conversation],
    old: GaussianMixturePrior,
    components: int,
    settings: FitSettings,
    workers: int | None,
) -> GaussianMixturePrior:
    """Rounds of Monte Carlo EM from the old prior."""
    prior = old
    for number in range(settings.rounds):
        seed = [settings.seed, 1, number]
        predictions = _read_all(people, prior, settings, seed, workers)
        draws = np.concatenate([prediction.draws for prediction in predictions])
        prior = GaussianMixturePrior.fit(
            draws,
            components,
            np.random.default_rng([*seed, components]),
            background_weight=old.background_weight,
            background_spread=old.background_spread,
        )
    return prior


def _read_all(
    conversations: Sequence[Conversation],
    prior: GaussianMixturePrior,
    settings: FitSettings,
    seed: Sequence[int],
    workers: int | None,
) -> list[Prediction]:
    tasks = [
        (conversations[first : first + AT_ONCE], prior, settings, (*seed, first))
        for first in range(0, len(conversations), AT_ONCE)
    ]
    results = run_tasks(_read_some, tasks, workers=workers, ordered=True)
    return [prediction for _, part in results for prediction in part]


def _read_some(
    task: tuple[Sequence[Conversation], GaussianMixturePrior, FitSettings, tuple[int, ...]],
) -> list[Prediction]:
    conversations, prior, settings, seed = task
    return [
        predict_choices(
            conversation,
            prior,
            np.random.default_rng([*seed, number]),
            n_particles=settings.n_particles,
            n_draws=settings.n_draws,
        )
        for number, conversation in enumerate(conversations)
    ]
