"""Which features does the model look at? Known from the model where it can be, else as declared.

A feature is called unused only where that is known: the model is not given it, or every input that
can change its answer is made of other features, or the problem says so and no probe shows the
contrary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pear.arrays import Indices
from pear.decision.adapters.sklearn import SklearnScores, final_estimator
from pear.decision.blackbox import BlackBox, probes_with_gaps
from pear.decision.ceilings.white_box import Encoding, WhiteBox, encoding_of, is_known
from pear.decision.encoding import same_numbers
from pear.decision.several_models import SeveralScores
from pear.problem import Problem
from pear.problem.features import Feature, States

CHANGED = 1e-6
"""A score that moves by more than this depends on what changed; rounding moves it by less."""

PEOPLE, VALUES = 16, 12
"""People whose features are varied one at a time, and how many values of a number are tried."""


@dataclass(frozen=True)
class UsedFeatures:
    """Features that can change a model's answer, and those that are known not to.

    Nothing is known about a feature in neither.
    """

    used: frozenset[str]
    unused: frozenset[str]


def used_features(black_box: BlackBox) -> UsedFeatures:
    """What is known of the features that a model looks at.

    >>> from pear.datasets import loan_book_classifier
    >>> sorted(used_features(loan_book_classifier()).unused)
    ['education', 'sex']
    """
    function = black_box.function
    if isinstance(function, SeveralScores):
        each = [used_features(one) for one in function.black_boxes]
        return UsedFeatures(
            frozenset.union(*(one.used for one in each)),
            frozenset.intersection(*(one.unused for one in each)),
        )
    names = frozenset(black_box.space.names)
    unused = names - frozenset(black_box.uses) if black_box.uses else frozenset[str]()
    used, never = _read(black_box)
    unused |= never
    seen = shown_to_matter(black_box, unused)
    return UsedFeatures(used | seen, unused - seen)


def mark_used(problem: Problem, black_box: BlackBox) -> Problem:
    """The problem with ``used`` of each feature as it is for this model; its fingerprint stays.

    What the problem declares counts where nothing is known of the model, unless a probe shows the
    contrary.
    """
    known = used_features(black_box)
    declared = {feature.name for feature in problem.space.features if not feature.used}
    doubtful = declared - known.used - known.unused
    return problem.with_unused(known.unused | (doubtful - shown_to_matter(black_box, doubtful)))


def wrongly_unused(problem: Problem, black_box: BlackBox) -> list[str]:
    """Warnings about features that the problem calls unused although the model uses them."""
    said = {feature.name for feature in problem.space.features if not feature.used}
    told = mark_used(problem, black_box).space
    return [
        f"the problem says that '{name}' is not used, but model '{black_box.name}' uses it, and "
        f"people are told so; remove 'used = false' from '{name}'"
        for name in sorted(said)
        if told[name].used
    ]


def shown_to_matter(black_box: BlackBox, names: Iterable[str]) -> frozenset[str]:
    """Those of the features that change the score of a probe when nothing else changes."""
    space, wanted = black_box.space, sorted(set(names))
    if not wanted:
        return frozenset()
    people = probes_with_gaps(space, PEOPLE, np.random.default_rng(9))
    base = black_box.probe(people)

    def matters(name: str) -> bool:
        states, _ = _varied(space[name], space.index(name), people)
        there = np.tile(base, len(states) // len(people))
        return bool((np.abs(black_box.probe(states) - there) > CHANGED).any())

    return frozenset(filter(matters, wanted))


def _read(black_box: BlackBox) -> tuple[frozenset[str], frozenset[str]]:
    """The features behind inputs that can change the answer, and the features behind none."""
    try:
        opened = _encoding_read(black_box)
        return (
            (frozenset(), frozenset())
            if opened is None
            else _features_of_columns(black_box, *opened)
        )
    except Exception:
        # Whatever is wrong with this model, nothing is known about it.
        return frozenset(), frozenset()


def _encoding_read(black_box: BlackBox) -> tuple[Encoding, Indices | None] | None:
    """The encoding in front of a model, whose every column is made of one feature, and the columns
    that can change its answer: None where it cannot be said which.
    """
    function: Any = black_box.function
    if isinstance(inside := black_box.inside, WhiteBox):
        return inside.encode, inside.model.used_columns()
    if not isinstance(function, SklearnScores):
        return None
    estimator = final_estimator(function.model)
    if not is_known(function.model) or not is_known(estimator):
        return None
    encode = encoding_of(function, estimator)
    return None if encode is None else (encode, None)


def _features_of_columns(
    black_box: BlackBox, encode: Encoding, seen: Indices | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Which feature each input is made of, found by varying one feature at a time.

    Each column of the encoding is made of one feature, so a column that changes with a feature
    belongs to it alone. A column that never changes belongs to no feature all of whose values were
    tried.
    """
    space = black_box.space
    people = probes_with_gaps(space, PEOPLE, np.random.default_rng(9))
    base = encode(people)
    owner = np.full(base.shape[1], -1)
    exhausted = np.zeros(len(space), bool)
    for place, feature in enumerate(space.features):
        states, exhausted[place] = _varied(feature, place, people)
        moved = encode(states)
        there = np.tile(base, (len(states) // len(people), 1))
        mine = ~same_numbers(moved, there).all(axis=0)
        if (owner[mine] >= 0).any():
            return frozenset(), frozenset()
        owner[mine] = place
    matter = owner if seen is None else owner[seen]
    rest = set(range(len(space))) - set(matter.tolist())
    if (matter < 0).any():
        rest = {place for place in rest if exhausted[place]}
    used = set() if seen is None else set(matter[matter >= 0].tolist())
    names = space.names
    return frozenset(names[place] for place in used), frozenset(names[place] for place in rest)


def _varied(feature: Feature, place: int, people: States) -> tuple[States, bool]:
    """The people with other values of a feature, one block for each value; whether those are all
    the values there are."""
    if feature.is_number:
        low, high = np.nanmin(people[:, place]), np.nanmax(people[:, place])
        ends = [end for end in (feature.lower, feature.upper) if end is not None]
        values = [*np.linspace(low, high, VALUES), *ends]
        if feature.kind == "integer":
            values = [*dict.fromkeys(np.rint(values))]
    else:
        values = [float(code) for code in range(len(feature.categories) or 2)]
    if feature.may_be_missing:
        values.append(np.nan)
    states = np.tile(people, (len(values), 1))
    states[:, place] = np.repeat(values, len(people))
    return states, not feature.is_number
