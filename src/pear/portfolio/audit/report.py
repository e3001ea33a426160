"""What does an audit find: as plain data, and in words a person can follow?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pear.problem.wording import show_number
from pear.statistics import Estimate

MEASURES = {
    "plan": ("Who gets a plan", "Share of the refused people for whom there is a plan"),
    "cost": (
        "How hard the plan is",
        "Effort adds up the steps of a plan; 1 stands for the easiest step there is",
    ),
    "length": ("How many steps it has", "Steps of the plan"),
    "finished": (
        "Who accepts a plan",
        "Share of people whose questions ended with a plan accepted",
    ),
    "questions": ("How many questions it takes", "Questions until a plan was accepted"),
    "fit": (
        "How well their answers are foreseen",
        "How much better than a guess the prior predicts an answer (log-likelihood)",
    ),
}
"""Every measure: its title, and what its numbers are. The first three are over the refused (effort
and steps over those with a plan), the others over conversations."""

SHARES = ("plan", "finished")
"""Measures that are shares of people."""

OF_PLANS = ("cost", "length")
"""Measures of those who have a plan."""

MORE_IS_WORSE = ("cost", "length", "questions")
"""Measures of which people would rather have less."""


@dataclass(frozen=True)
class Cell:
    """One measure of one group.

    ``p`` is of the difference between the group and everybody else, ``adjusted`` after Holm's
    correction; both None where nothing was tested. ``too_small`` groups get no estimate: they
    are never reported as equal.
    """

    n: int
    too_small: bool
    estimate: Estimate | None = None
    difference: float | None = None
    size: float | None = None
    """The difference without its sign, in standard deviations of everybody compared."""
    p: float | None = None
    adjusted: float | None = None
    flagged: bool = False


@dataclass(frozen=True)
class Group:
    """One group: its name and its measures. For ``undecided`` of its refused neither a plan nor
    a proof that there is none was found: they are in no measure."""

    label: str
    cells: dict[str, Cell]
    undecided: int = 0


@dataclass(frozen=True)
class Attribute:
    """All groups by one attribute or by a pair of attributes; ``ungrouped`` of the refused, and
    ``unheard`` of those in conversations, are in none."""

    name: str
    attributes: tuple[str, ...]
    groups: tuple[Group, ...]
    ungrouped: int
    unheard: int = 0


@dataclass(frozen=True)
class Flip:
    """The same people of one group with the protected attribute of another.

    ``share_approved`` of them would be approved as they are; ``share_plan_lost`` would have no
    plan any more, ``share_plan_gained`` have one only then (``plan_p`` of the two);
    ``difference`` is what their plan would cost more (less when negative), over those who have
    one both ways, unless those are too few. ``n`` of the group's refused were taken; ``undecided``
    of them are in none of these numbers. A number became ``value`` for all of them.
    """

    attribute: str
    before: str
    after: str
    n: int
    too_small: bool
    of: int = 0
    value: float | None = None
    undecided: int = 0
    share_approved: float | None = None
    share_plan_lost: float | None = None
    share_plan_gained: float | None = None
    plan_p: float | None = None
    plan_adjusted: float | None = None
    plan_flagged: bool = False
    difference: Estimate | None = None
    effort: float | None = None
    """Of the same people's plans as they are."""
    p: float | None = None
    adjusted: float | None = None
    flagged: bool = False


@dataclass(frozen=True)
class Report:
    """Everything an audit found, and the settings it was found under."""

    problem: str
    problem_fingerprint: str
    model_fingerprint: str
    people: int
    refused: int
    level: float
    smallest: int
    tests: int
    attributes: tuple[Attribute, ...]
    flips: tuple[Flip, ...]
    unused: tuple[str, ...]
    """Protected attributes that neither the model nor the costs look at."""
    not_flipped: str = ""
    """Why no attribute was flipped, if none was."""
    conversations: int = 0
    talkers: int = 0
    """People who had the conversations."""
    verdicts: dict[str, int] = field(default_factory=dict)
    """How many of the refused got each verdict."""
    undecided: int = 0
    bad: int = 0
    most_flips: int = 0
    no_features: tuple[str, ...] = ()
    """Attributes that are not features: the model cannot see them, so nobody can be flipped."""

    @property
    def findings(self) -> dict[str, list[str]]:
        """Every difference found, in words: by single attributes, by pairs, and for the same
        people; the largest first."""
        return findings(self.attributes, self.flips)

    @property
    def flagged(self) -> list[str]:
        """The same in one list."""
        return [words for part in self.findings.values() for words in part]

    @property
    def cautions(self) -> list[str]:
        """What the numbers leave open, in words."""
        found = []
        if self.undecided:
            found.append(
                f"For {self.undecided:,} of the {self.refused:,} refused people the search ended "
                "at its limit (--max-rows of 'pear plan') with neither a plan nor a proof that "
                "there is none. They count neither as having a plan nor as having none."
            )
        planned = sum(self.verdicts.values()) - self.undecided - self.verdicts.get("infeasible", 0)
        unproved = planned - self.verdicts.get("optimal", 0)
        if unproved:
            found.append(
                f"{unproved:,} of {planned:,} plans {'is' if unproved == 1 else 'are'} not proved "
                "cheapest, and may cost more than need be."
            )
        if self.bad:
            found.append(
                f"{self.bad:,} row{' of people is' if self.bad == 1 else 's of people are'} not "
                "among the plans (what could not be used stands in the '.bad.csv' beside the "
                "plans): nothing here is about them."
            )
        return found

    def words(self) -> str:
        """The outcome in a few sentences."""
        return f"{self.headline} {self.care}"

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        if not self.tests:
            return "Nothing could be tested."
        count = len(self.flagged)
        if not count:
            return "No difference between groups stands out."
        return f"{count} difference{'s' if count > 1 else ''} between groups found."

    @property
    def care(self) -> str:
        """With what care it is to be read."""
        if not self.tests:
            return (
                f"No group and its counterpart have {self.smallest} people. This says nothing "
                "about fairness."
            )
        if not self.flagged:
            return f"{self.tests} comparisons were made. That is not a proof of fairness."
        return (
            f"{self.tests} comparisons were made. The method raises even one false alarm in at "
            f"most {self.level:.0%} of audits."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "found": self.flagged, "found_by": self.findings,
                "cautions": self.cautions, "words": self.words()}  # fmt: skip

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


SINGLE, PAIRS, SAME = "By one attribute", "By two attributes", "The same people, changed"

Size = tuple[float, float]
"""What findings of one kind are ranked by: shares of people with a plan before amounts."""

Ranked = dict[object, tuple[Size, str]]


def findings(attributes: Sequence[Attribute], flips: Sequence[Flip]) -> dict[str, list[str]]:
    """Differences that stand out, by kind; kinds without any are left out."""
    by_kind: dict[str, Ranked] = {SINGLE: {}, PAIRS: {}, SAME: {}}
    for attribute in attributes:
        ranked = by_kind[SINGLE if len(attribute.attributes) == 1 else PAIRS]
        for group in attribute.groups:
            for measure, cell in group.cells.items():
                if cell.flagged and cell.difference is not None:
                    # Two groups that make up everybody are one finding, reported once.
                    key = (attribute.name, measure, cell.p, round(abs(cell.difference), 9))
                    words = _group(attribute, group, measure, cell)
                    ranked.setdefault(key, ((0.0, cell.size or 0.0), words))
    for flip in flips:
        for number, found in enumerate(_flip(flip)):
            by_kind[SAME][flip.attribute, flip.before, flip.after, number] = found
    return {
        kind: [words for _, words in sorted(ranked.values(), key=lambda one: one[0], reverse=True)]
        for kind, ranked in by_kind.items()
        if ranked
    }


SENTENCES = {
    "plan": "{mean} of the refused get a plan; of everybody else, {rest} do",
    "cost": "plans take {compared} than for everybody else",
    "length": "plans have {mean} steps on average; for everybody else it is {rest}",
    "finished": "{mean} accept a plan in the end; of everybody else, {rest} do",
    "questions": "it takes {mean} questions on average; for everybody else it is {rest}",
    "fit": "their answers are foreseen {compared} than those of everybody else",
}
"""What is said of a difference found."""


def _group(attribute: Attribute, group: Group, measure: str, cell: Cell) -> str:
    assert cell.estimate is not None
    assert cell.difference is not None
    share = measure in SHARES
    mean, rest = cell.estimate.mean, cell.estimate.mean - cell.difference
    compared = harder(cell.difference, rest)
    if measure == "fit":
        compared = "better" if cell.difference > 0 else "less well"
    said = SENTENCES[measure].format(
        mean=show(mean, share), rest=show(rest, share), compared=compared
    )
    return f"{capital(group_words(attribute, group.label))}: {said}."


def group_words(attribute: Attribute, label: str) -> str:
    """A group with the attributes it is by.

    >>> group_words(Attribute("sex and age", ("sex", "age"), (), 0), "female, below 32")
    'sex female and age below 32'
    """
    parts = label.split(", ") if len(attribute.attributes) > 1 else [label]
    if len(parts) != len(attribute.attributes):
        return f"{attribute.name}: {label}"
    return " and ".join(f"{n} {part}" for n, part in zip(attribute.attributes, parts, strict=True))


def capital(words: str) -> str:
    """The words with an upper-case first letter."""
    return words[:1].upper() + words[1:]


def harder(difference: float, base: float) -> str:
    """How much more one effort is than another, in whole per cent of that.

    >>> harder(13.3, 23.6), harder(-2.0, 10.0), harder(0.01, 10.0)
    ('about 56% more effort', 'about 20% less effort', 'less than 1% more effort')
    """
    share = round(100 * abs(difference) / base) if base > 0 else 0
    size = f"about {share}%" if share else "less than 1%"
    return f"{size} {'more' if difference > 0 else 'less'} effort"


def _flip(flip: Flip) -> list[tuple[Size, str]]:
    who = capital(flipped_words(flip))
    found: list[tuple[Size, str]] = []
    gained, lost = flip.share_plan_gained or 0.0, flip.share_plan_lost or 0.0
    if flip.plan_flagged:
        found.append((
            (1.0, abs(gained - lost)),
            f"{who}: {show(gained, True)} would have a plan who have none, and {show(lost, True)} "
            "none who have one.",
        ))  # fmt: skip
    if flip.flagged and flip.difference is not None:
        amount = flip.difference.mean
        found.append((
            (0.0, abs(amount)),
            f"{who}: their plans would take {harder(amount, flip.effort or 0.0)}.",
        ))  # fmt: skip
    return found


def flipped_words(flip: Flip) -> str:
    """Who became whom.

    >>> flipped_words(Flip("age", "below 31", "31 to below 40", 50, False, value=35.0))
    'the same people (age below 31) if they were 31 to below 40 (35 for all)'
    """
    value = "" if flip.value is None else f" ({show_number(flip.value)} for all)"
    return f"the same people ({flip.attribute} {flip.before}) if they were {flip.after}{value}"


def show(value: float, share: bool) -> str:
    """A number for people: a share in percent, or an amount.

    >>> show(0.515, True), show(123.456, False), show(1.234, False)
    ('52%', '123', '1.2')
    """
    if share:
        return f"{value:.0%}"
    return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.1f}"


def shown_p(p: float | None) -> str:
    """A probability for people.

    >>> shown_p(0.0312), shown_p(1e-9), shown_p(None)
    ('0.031', 'below 0.001', 'not tested')
    """
    if p is None:
        return "not tested"
    return "below 0.001" if p < 0.001 else f"{p:.3f}"
