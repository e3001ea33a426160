"""What do conversations say of the people in them, one value per person?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import InvalidData, InvalidRecord
from pear.portfolio.audit.plans import Plans
from pear.portfolio.conversations import Conversation, read_under
from pear.preferences import GaussianMixturePrior
from pear.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Talks:
    """n people who had conversations: their attributes, and measures of ``(n,)`` each."""

    people: pd.DataFrame
    measures: dict[str, Floats]


def read_talks(
    problem: Problem,
    plans: Plans,
    attributes: pd.DataFrame,
    conversations: Sequence[Conversation],
    prior: GaussianMixturePrior | None,
) -> Talks:
    """Conversations by person: those of one id are one person, however often they talked.

    An attribute that a conversation does not tell is that of the person of the plans with the
    same id, where there is exactly one.
    """
    numbers: dict[tuple[bool, str], list[int]] = {}
    for number, one in enumerate(conversations):
        # A conversation without an id is somebody of their own.
        numbers.setdefault((one.named, one.id), []).append(number)
    rows = _rows_by_id(plans)
    persons, finished, questions, fits = [], [], [], []
    for (named, name), own in numbers.items():
        row = rows.get(name) if named else None
        persons.append(_attributes(problem, attributes, conversations[own[-1]], row))
        ended = [conversations[i].n_questions for i in own if conversations[i].finished]
        finished.append(float(bool(ended)))
        # Who gave up was asked less than needed: that is no advantage.
        questions.append(np.mean(ended) if ended else np.nan)
        if prior is not None:
            fits.append(_fit([(i, conversations[i]) for i in own], prior))
    measures = {"finished": np.array(finished), "questions": np.array(questions, float)}
    if prior is not None:
        measures["fit"] = np.array(fits)
    return Talks(pd.DataFrame(persons, columns=list(attributes.columns), dtype=object), measures)


def _rows_by_id(plans: Plans) -> dict[str, int]:
    ids = list(plans.ids or ())
    found = {name: place for place, name in enumerate(ids) if name}
    if len(found) < len(ids):
        twice = pd.Series(ids)
        for name in twice[twice.duplicated()].unique():
            found.pop(name, None)
    return found


def _attributes(
    problem: Problem, attributes: pd.DataFrame, said: Conversation, row: int | None
) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for name in attributes.columns:
        if name not in said.person:
            own[name] = None if row is None else attributes[name].iloc[row]
            continue
        own[name] = said.person[name]
        if name in problem.space.names:
            try:
                problem.space[name].code(own[name])
            except InvalidRecord as error:
                raise InvalidData(
                    f"the conversation of '{said.id}' is with nobody there can be: {error}"
                ) from None
    return own


def _fit(own: Sequence[tuple[int, Conversation]], prior: GaussianMixturePrior) -> float:
    """Log-likelihood per choice above that of a guess; NaN where nothing was chosen."""
    gains = []
    for number, conversation in own:
        reading = read_under(conversation, prior, np.random.default_rng([17, number]))
        gains.append(reading.log_likelihoods - reading.chance)
    together = np.concatenate(gains)
    return float(together.mean()) if len(together) else float("nan")
