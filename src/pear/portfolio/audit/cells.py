"""What does an audit say of one group, and of the same people twice?"""

from __future__ import annotations

from dataclasses import dataclass

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
    p: float | None = None
    adjusted: float | None = None
    flagged: bool = False
