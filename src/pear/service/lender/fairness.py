"""Do all groups fare alike? Whether there is a plan, how hard it is, how many questions it took.

A group is compared with the largest one of its kind, its baseline, each pair once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pear.arrays import Flags, Floats
from pear.elicitation.words import Words, capital
from pear.problem import Feature, Problem
from pear.problem.features import Record
from pear.service import schemas
from pear.service.store.database import Line
from pear.statistics import Estimate, amount_test, holm, relative_difference, share_test

SMALLEST_GROUP = 5
"""Figures of fewer people are withheld: they would be about someone."""

CHANCE = 0.05
"""A difference counts where chance alone makes one as large less often, of all compared."""


def groups_of(problem: Problem, record: Record) -> dict[str, str]:
    """The protected groups someone belongs to, numbers by tens, hundreds…."""
    return {
        feature.name: _group(feature, record[feature.name])
        for feature in problem.space.features
        if feature.protected
    }


def _group(feature: Feature, value: Any) -> str:
    if feature.is_categorical or feature.kind == "boolean" or value is None:
        return feature.show(feature.code(value))
    span = 100.0
    if feature.scale is not None:
        span = feature.scale[1] - feature.scale[0]
    elif feature.lower is not None and feature.upper is not None:
        span = feature.upper - feature.lower
    width = 10.0 ** (math.ceil(math.log10(max(span, 10.0))) - 1)
    first = width * (float(value) // width)
    return f"{first:.0f} to {first + width - 1:.0f}"


def fairness(lines: Iterable[Line]) -> list[schemas.Group]:
    """Validity, effort and questions by protected group, of conversations that came to an end.

    Validity is the share of people for whom there is a plan; effort and questions are means.
    """
    return [_figures(*name, people) for name, people in _members(lines).items()]


def _members(lines: Iterable[Line]) -> dict[tuple[str, str], list[Line]]:
    """Everyone whose conversation came to an end, by feature and group."""
    members: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        for name in line.groups.items() if line.outcome.success is not None else ():
            members[name].append(line)
    return dict(sorted(members.items()))


def _figures(feature: str, group: str, people: Sequence[Line]) -> schemas.Group:
    shown = len(people) >= SMALLEST_GROUP
    efforts = _efforts(people)
    return schemas.Group(
        feature=feature,
        group=group,
        people=len(people),
        validity=float(_with_plan(people).mean()) if shown else None,
        effort=float(efforts.mean()) if shown and len(efforts) else None,
        questions=float(np.mean([line.questions for line in people])) if shown else None,
    )


def _with_plan(people: Sequence[Line]) -> Flags:
    return np.array([bool(line.outcome.success) for line in people])


def _efforts(people: Sequence[Line]) -> Floats:
    outcomes = [line.outcome for line in people if line.outcome.success]
    return np.array([outcome.effort for outcome in outcomes if outcome.effort is not None])


@dataclass(frozen=True)
class Pair:
    """A group beside its baseline, with how many ``people`` are in both. ``harder`` is how much
    more effort its plans are, as a share of the baseline's, with its 95% interval;
    ``effort_differs`` and ``validity_differs`` whether that is more than chance.
    """

    feature: str
    group: str
    baseline: str
    people: tuple[int, int]
    validity: float
    baseline_validity: float
    harder: Estimate | None
    effort_differs: bool
    validity_differs: bool


def pairs(lines: Iterable[Line]) -> tuple[Pair, ...]:
    """Every group of enough people beside the largest one of its kind.

    >>> from pear.service.store.database import Outcome
    >>> facts = {"id": "1", "stage": "plan", "version": 1, "created_at": 0.0, "updated_at": 0.0}
    >>> def line(group, effort):
    ...     outcome = Outcome(success=True, effort=effort)
    ...     return Line(**facts, expires_at=0.0, groups={"sex": group}, outcome=outcome)
    >>> people = [line("female", 12.0 + n % 3) for n in range(20)]
    >>> [found] = pairs(people + [line("male", 10.0 + n % 3) for n in range(30)])
    >>> found.group, found.baseline, round(found.harder.mean, 2), found.effort_differs
    ('female', 'male', 0.18, True)
    """
    kinds: dict[str, dict[str, list[Line]]] = defaultdict(dict)
    for (feature, group), people in _members(lines).items():
        if len(people) >= SMALLEST_GROUP:
            kinds[feature][group] = people
    found, chances = [], []
    for feature, groups in kinds.items():
        baseline = max(groups, key=lambda name: len(groups[name]))
        for group, people in groups.items():
            if group != baseline:
                others = groups[baseline]
                found.append((feature, group, baseline, people, others))
                efforts = _efforts(people), _efforts(others)
                enough = min(map(len, efforts)) > 1
                chances.append(amount_test(*efforts) if enough else 1.0)
                chances.append(share_test(_with_plan(people), _with_plan(others)))
    unlikely = [chance <= CHANCE for chance in holm(chances)]
    return tuple(
        _pair(*one, effort_differs=unlikely[2 * place], validity_differs=unlikely[2 * place + 1])
        for place, one in enumerate(found)
    )


def _pair(
    feature: str,
    group: str,
    baseline: str,
    people: Sequence[Line],
    others: Sequence[Line],
    *,
    effort_differs: bool,
    validity_differs: bool,
) -> Pair:
    own, other = _efforts(people), _efforts(others)
    harder = None
    if len(own) and len(other) and other.mean():
        harder = relative_difference(own, other, np.random.default_rng(0))
    sizes = len(people), len(others)
    shares = float(_with_plan(people).mean()), float(_with_plan(others).mean())
    return Pair(feature, group, baseline, sizes, *shares, harder, effort_differs, validity_differs)


# In words


def sentences(found: Sequence[Pair], features: Sequence[str], words: Words) -> list[str]:
    """What is to be said of the comparisons, worst first, each pair once."""
    texts, said = words.texts, []
    for pair in sorted(found, key=lambda pair: -abs(pair.harder.mean if pair.harder else 0)):
        names = {
            "group": capital(group_words(words, pair.feature, pair.group)),
            "baseline": group_words(words, pair.feature, pair.baseline),
            "number": words.number(pair.people[0]),
            "others": words.number(pair.people[1]),
        }
        if pair.validity_differs:
            shares = {
                "share": words.share(pair.validity),
                "other": words.share(pair.baseline_validity),
            }
            said.append(texts("lender.fair.fewer", **names, **shares))
        if pair.effort_differs and pair.harder is not None:
            share = pair.harder
            kind, sign = ("harder", 1) if share.mean > 0 else ("easier", -1)
            low, high = sorted((sign * share.low, sign * share.high))
            ends = {"low": words.share(low), "high": words.share(high)}
            percent = words.share(abs(share.mean))
            said.append(texts(f"lender.fair.{kind}", **names, **ends, percent=percent))
    return said + [texts(f"lender.fair.{key}", feature=capital(feature_words(words, name)))
                   for name in features if (key := _no_difference(found, name))]  # fmt: skip


def _no_difference(found: Sequence[Pair], feature: str) -> str:
    """In what the groups by a feature do not differ: the name of its text."""
    compared = [pair for pair in found if pair.feature == feature]
    effort = any(pair.effort_differs for pair in compared)
    validity = any(pair.validity_differs for pair in compared)
    if not compared:
        return "unknown"
    if effort or validity:
        return "" if effort and validity else "same_validity" if effort else "same_effort"
    return "no_difference"


def feature_words(words: Words, name: str) -> str:
    """A protected feature in words; one that the problem no longer knows by its name."""
    known = name in words.problem.space.names
    return words.problem.space[name].words if known else name


def group_words(words: Words, feature: str, group: str) -> str:
    """A group with its feature: "age 30–39", "sex female"."""
    return f"{feature_words(words, feature)} {value_words(words, feature, group)}"


def value_words(words: Words, feature: str, group: str) -> str:
    """A group by itself: "30–39", "female"."""
    known = feature in words.problem.space.names
    said = dict(words.problem.space[feature].category_words).get(group, group) if known else group
    lower, _, upper = said.partition(" to ")
    if lower.isdigit() and upper.isdigit():
        said = f"{lower}–{upper}"
    return said
