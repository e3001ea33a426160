"""Do all groups fare alike? Whether there is a plan, how hard it is, how many questions it took.

A group is compared with the largest one of its kind, its baseline, each pair once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from pear.elicitation.words import Words, capital
from pear.problem import Feature, Problem

SMALLEST_GROUP = 5
"""Figures of fewer people are withheld: they would be about someone."""

CHANCE = 0.05
"""A difference counts where chance alone makes one as large less often, of all compared."""


def groups_of(problem: Problem, record: Mapping[str, Any]) -> dict[str, str]:
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


def fairness(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Validity, effort and questions by protected group, of conversations that came to an end.

    Validity is the share of people for whom there is a plan; effort and questions are means.
    """
    return [_figures(*name, people) for name, people in _members(rows).items()]


def _members(
    rows: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The outcomes of everyone whose conversation came to an end, by feature and group."""
    members: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        outcome = row.get("outcome") or {}
        if outcome.get("success") is None:
            continue
        for feature, group in (row.get("groups") or {}).items():
            members[(feature, group)].append({**outcome, "questions": row["questions"]})
    return dict(sorted(members.items()))


def _figures(feature: str, group: str, people: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    shown = len(people) >= SMALLEST_GROUP
    efforts = _efforts(people)
    return {
        "feature": feature,
        "group": group,
        "people": len(people),
        "validity": float(np.mean([bool(p["success"]) for p in people])) if shown else None,
        "effort": float(np.mean(efforts)) if shown and efforts else None,
        "questions": float(np.mean([p["questions"] for p in people])) if shown else None,
    }


def _efforts(people: Sequence[Mapping[str, Any]]) -> list[float]:
    return [p["effort"] for p in people if p["success"] and p.get("effort") is not None]


@dataclass(frozen=True)
class Pair:
    """A group beside its baseline. ``harder`` is how much more effort its plans are, as a share
    of the baseline's; ``effort_differs`` and ``validity_differs`` whether that is more than chance.
    """

    feature: str
    group: str
    baseline: str
    validity: float
    baseline_validity: float
    harder: float | None
    effort_differs: bool
    validity_differs: bool


def pairs(rows: Iterable[Mapping[str, Any]]) -> tuple[Pair, ...]:
    """Every group of enough people beside the largest one of its kind.

    >>> def row(group, effort):
    ...     return {"groups": {"sex": group}, "questions": 3,
    ...             "outcome": {"success": True, "effort": effort}}
    >>> people = [row("female", 12 + n % 3) for n in range(20)]
    >>> [found] = pairs(people + [row("male", 10 + n % 3) for n in range(30)])
    >>> found.group, found.baseline, round(found.harder, 2), found.effort_differs
    ('female', 'male', 0.18, True)
    """
    kinds: dict[str, dict[str, list[Mapping[str, Any]]]] = defaultdict(dict)
    for (feature, group), people in _members(rows).items():
        if len(people) >= SMALLEST_GROUP:
            kinds[feature][group] = people
    found, chances = [], []
    for feature, groups in kinds.items():
        baseline = max(groups, key=lambda name: len(groups[name]))
        for group, people in groups.items():
            if group != baseline:
                found.append((feature, group, baseline, people, groups[baseline]))
                chances += [_of_efforts(people, groups[baseline])]
                chances += [_of_shares(people, groups[baseline])]
    unlikely = _holm(chances)
    return tuple(
        _pair(*one, effort_differs=unlikely[2 * place], validity_differs=unlikely[2 * place + 1])
        for place, one in enumerate(found)
    )


def _pair(
    feature: str,
    group: str,
    baseline: str,
    people: Sequence[Mapping[str, Any]],
    others: Sequence[Mapping[str, Any]],
    **differs: bool,
) -> Pair:
    own, other = _figures(feature, group, people), _figures(feature, baseline, others)
    efforts = own["effort"], other["effort"]
    harder = efforts[0] / efforts[1] - 1 if None not in efforts and efforts[1] else None
    return Pair(feature, group, baseline, own["validity"], other["validity"], harder, **differs)


def _of_efforts(people: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> float:
    """Probability of efforts this far apart by chance (Welch)."""
    a, b = _efforts(people), _efforts(others)
    if min(len(a), len(b)) < 2 or np.ptp([*a, *b]) == 0:
        return 1.0
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(stats.ttest_ind(a, b, equal_var=False).pvalue))


def _of_shares(people: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> float:
    """Probability of shares with a plan this far apart by chance (Fisher, exact)."""
    table = [
        [sum(bool(p["success"]) == with_plan for p in group) for with_plan in (True, False)]
        for group in (people, others)
    ]
    return float(stats.fisher_exact(table).pvalue)


def _holm(chances: Sequence[float]) -> list[bool]:
    """Which of several probabilities are too small for chance, all taken together (Holm)."""
    order = np.argsort(chances, kind="stable")
    unlikely = [False] * len(chances)
    for rank, place in enumerate(order):
        if chances[place] * (len(chances) - rank) > CHANCE:
            break
        unlikely[place] = True
    return unlikely


# In words


def sentences(found: Sequence[Pair], features: Sequence[str], words: Words) -> list[str]:
    """What is to be said of the comparisons, worst first, each pair once."""
    texts, said = words.texts, []
    for pair in sorted(found, key=lambda pair: -abs(pair.harder or 0)):
        names = {
            "group": capital(group_words(words, pair.feature, pair.group)),
            "baseline": group_words(words, pair.feature, pair.baseline),
        }
        if pair.validity_differs:
            shares = {
                "share": words.share(pair.validity),
                "other": words.share(pair.baseline_validity),
            }
            said.append(texts("lender.fair.fewer", **names, **shares))
        if pair.effort_differs and pair.harder is not None:
            kind = "harder" if pair.harder > 0 else "easier"
            percent = words.share(abs(pair.harder))
            said.append(texts(f"lender.fair.{kind}", **names, percent=percent))
    compared = {pair.feature for pair in found}
    differ = {pair.feature for pair in found if pair.effort_differs or pair.validity_differs}
    for name in features:
        if name not in differ:
            key = "no_difference" if name in compared else "unknown"
            said.append(texts(f"lender.fair.{key}", feature=feature_words(words, name)))
    return said


def feature_words(words: Words, name: str) -> str:
    """A protected feature in words; one that the problem no longer knows by its name."""
    known = name in words.problem.space.names
    return words.problem.space[name].words if known else name


def group_words(words: Words, feature: str, group: str) -> str:
    """A group in words: "age 30 to 39", "sex female"."""
    known = feature in words.problem.space.names
    said = dict(words.problem.space[feature].category_words).get(group, group) if known else group
    lower, _, upper = said.partition(" to ")
    if lower.isdigit() and upper.isdigit():
        said = f"{lower}–{upper}"
    return f"{feature_words(words, feature)} {said}"
