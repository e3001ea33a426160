"""Which differences were found, in words a person can follow, the largest first?"""

from __future__ import annotations

from collections.abc import Sequence

from pear.portfolio.audit.cells import MEASURES, SHARES, Attribute, Cell, Flip, Group
from pear.problem.words import show_number

SINGLE, PAIRS, SAME = "By one attribute", "By two attributes", "The same people, flipped"

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
                    # Two groups that are each other's rest are one finding, told once.
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


def _group(attribute: Attribute, group: Group, measure: str, cell: Cell) -> str:
    assert cell.estimate is not None
    assert cell.difference is not None
    share = measure in SHARES
    mean, rest = cell.estimate.mean, cell.estimate.mean - cell.difference
    return (
        f"{attribute.name}: {group.label}: {MEASURES[measure]}: {show(mean, share)} against "
        f"{show(rest, share)} for everybody else (adjusted p = {shown_p(cell.adjusted)})"
    )


def _flip(flip: Flip) -> list[tuple[Size, str]]:
    who = flipped_words(flip)
    found: list[tuple[Size, str]] = []
    gained, lost = flip.share_plan_gained or 0.0, flip.share_plan_lost or 0.0
    if flip.plan_flagged:
        found.append((
            (1.0, abs(gained - lost)),
            f"{who}: {gained:.1%} would have a plan who have none, and {lost:.1%} none who have "
            f"one (adjusted p = {shown_p(flip.plan_adjusted)})",
        ))  # fmt: skip
    if flip.flagged and flip.difference is not None:
        amount = flip.difference.mean
        found.append((
            (0.0, abs(amount)),
            f"{who}: the plan would cost {abs(amount):.3g} {'more' if amount > 0 else 'less'} on "
            f"average (adjusted p = {shown_p(flip.adjusted)})",
        ))  # fmt: skip
    return found


def flipped_words(flip: Flip) -> str:
    """Who became whom.

    >>> flipped_words(Flip("age", "below 31", "31 to below 40", 50, False, value=35.0))
    'age: the same people (below 31) if they were 31 to below 40 (35 for all)'
    """
    value = "" if flip.value is None else f" ({show_number(flip.value)} for all)"
    return f"{flip.attribute}: the same people ({flip.before}) if they were {flip.after}{value}"


def show(value: float, share: bool) -> str:
    """A number for people: a share in percent, or an amount.

    >>> show(0.515, True), show(123.456, False), show(1.234, False)
    ('51.5%', '123', '1.23')
    """
    return f"{value:.1%}" if share else f"{value:.3g}"


def shown_p(p: float | None) -> str:
    """A probability for people.

    >>> shown_p(0.0312), shown_p(1e-9), shown_p(None)
    ('0.031', 'below 0.001', 'not tested')
    """
    if p is None:
        return "not tested"
    return "below 0.001" if p < 0.001 else f"{p:.3f}"
