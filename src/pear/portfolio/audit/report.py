"""What does an audit find, as plain data?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pear.portfolio.audit.statistics import Estimate

MEASURES = {
    "plan": "share of the refused with a plan",
    "cost": "cost of the plan",
    "length": "steps of the plan",
    "finished": "share of conversations that ended with a plan accepted",
    "questions": "questions answered until a plan was accepted",
    "fit": "how much better than a guess the prior predicts an answer (log-likelihood per choice)",
}
"""Every measure, in words. The first three are over the refused (cost and steps over those with
a plan), the others over conversations."""

SHARES = ("plan", "finished")
"""Measures that are shares of people."""


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
    p: float | None = None
    adjusted: float | None = None
    flagged: bool = False


@dataclass(frozen=True)
class Group:
    """One group: its name and its measures."""

    label: str
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Attribute:
    """All groups by one attribute or by a pair of attributes."""

    name: str
    attributes: tuple[str, ...]
    groups: tuple[Group, ...]
    ungrouped: int


@dataclass(frozen=True)
class Flip:
    """The same people of one group with the protected attribute of another.

    ``share_approved`` of them would be approved as they are; ``share_plan_lost`` would have no
    plan any more, ``share_plan_gained`` have one only then (``plan_p`` of the two);
    ``difference`` is what their plan would cost more (less when negative), over those who have
    one both ways, unless those are too few.
    """

    attribute: str
    before: str
    after: str
    n: int
    too_small: bool
    share_approved: float | None = None
    share_plan_lost: float | None = None
    share_plan_gained: float | None = None
    plan_p: float | None = None
    plan_adjusted: float | None = None
    plan_flagged: bool = False
    difference: Estimate | None = None
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

    @property
    def flagged(self) -> list[str]:
        """Every difference found, in words."""
        found: dict[object, str] = {}
        for attribute in self.attributes:
            for group in attribute.groups:
                for measure, cell in group.cells.items():
                    if cell.flagged and cell.difference is not None:
                        # Two groups that are each other's rest are one finding, told once.
                        key = (attribute.name, measure, cell.p, round(abs(cell.difference), 9))
                        found.setdefault(
                            key,
                            f"{attribute.name}: {group.label}, {MEASURES[measure]}: "
                            f"{cell.difference:+.3g} against everybody else "
                            f"(adjusted p = {shown_p(cell.adjusted)})",
                        )
        for flip in self.flips:
            if flip.plan_flagged:
                found["plan", flip.attribute, flip.before, flip.after] = (
                    f"{flip.attribute}: for the same people, {flip.before} as {flip.after}, "
                    f"{flip.share_plan_gained:.1%} would have a plan who have none, and "
                    f"{flip.share_plan_lost:.1%} none who have one "
                    f"(adjusted p = {shown_p(flip.plan_adjusted)})"
                )
            if flip.flagged and flip.difference is not None:
                amount = flip.difference.mean
                found[flip.attribute, flip.before, flip.after] = (
                    f"{flip.attribute}: for the same people, {flip.before} as {flip.after}, the "
                    f"plan would cost {abs(amount):.3g} {'more' if amount > 0 else 'less'} "
                    f"(adjusted p = {shown_p(flip.adjusted)})"
                )
        return list(found.values())

    def words(self) -> str:
        """The outcome in a few sentences."""
        family = f"{self.tests} tests, at most {self.level:.0%} chance of any false alarm"
        if not self.tests:
            return (
                f"Nothing could be tested: no group and its counterpart have {self.smallest} "
                "people. This says nothing about fairness."
            )
        if not self.flagged:
            return f"No difference stands out ({family}). That is not a proof of fairness."
        count = len(self.flagged)
        return f"{count} difference{'s' if count > 1 else ''} found ({family})."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "found": self.flagged, "words": self.words()}

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def shown_p(p: float | None) -> str:
    """A probability for people.

    >>> shown_p(0.0312), shown_p(1e-9), shown_p(None)
    ('0.031', 'below 0.001', 'not tested')
    """
    if p is None:
        return "not tested"
    return "below 0.001" if p < 0.001 else f"{p:.3f}"
