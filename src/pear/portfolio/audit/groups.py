"""Who belongs to which protected group?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import InvalidSetting
from pear.problem import Problem
from pear.problem.checks import is_missing
from pear.problem.words import show_number

BINS = 4
"""Parts a number is cut into, with about as many people in each."""


@dataclass(frozen=True)
class Cut:
    """How one protected attribute is cut into groups: by category, or at ``edges``.

    >>> cut = Cut("age", ("below 30", "30 or more"), edges=(30.0,))
    >>> cut.codes(pd.Series([18, 30, None])).tolist()
    [0, 1, -1]
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...] | None = None
    values: tuple[Any, ...] = ()
    """What a member of each group looks like: the category, or the middle member's number,
    None where there is nobody."""

    def codes(self, column: pd.Series) -> NDArray[np.intp]:
        """Group of each value, shape ``(n,)``; -1 for none of them."""
        if self.edges is None:
            places = {label: place for place, label in enumerate(self.labels)}
            texts = (None if pd.isna(value) else _text(value) for value in column)
            return np.array([-1 if t is None else places.get(t, -1) for t in texts], np.intp)
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
        codes = np.searchsorted(np.asarray(self.edges), numbers, side="right")
        return np.where(np.isnan(numbers), -1, codes)


@dataclass(frozen=True)
class Grouping:
    """People by one attribute, or by two at once. ``of`` ``(n,)`` is -1 for none."""

    name: str
    attributes: tuple[str, ...]
    labels: tuple[str, ...]
    of: NDArray[np.intp]


def make_cut(name: str, column: pd.Series, problem: Problem, edges: Sequence[float] = ()) -> Cut:
    """Groups of one attribute, as these people have it; who has none is in no group."""
    known = name in problem.space.names
    feature = problem.space[name] if known else None
    stated = column[[not is_missing(value) for value in column]]
    numbers = pd.to_numeric(stated, errors="coerce").astype(float)
    is_number = feature.is_number if feature else bool(len(stated) and numbers.notna().all())
    if edges and not is_number:
        raise InvalidSetting(
            f"'{name}' is no number, so that it cannot be cut at {_listed(edges)}; leave out "
            f"'--cut {name}=...'"
        )
    if not is_number or (not edges and numbers.nunique() <= BINS + 2):
        present = {_text(value): value for value in stated}
        order = [c for c in feature.categories if c in present] if feature else []
        labels = tuple(order or sorted(present, key=_in_order))
        is_number = feature is not None and feature.is_number
        return Cut(name, labels, values=tuple(present[n] for n in labels) if is_number else labels)
    places = list(edges) or np.quantile(numbers, np.arange(1, BINS) / BINS).tolist()
    if not edges and bool((numbers % 1 == 0).all()):
        places = np.ceil(places).tolist()
    inside = sorted({float(place) for place in places if numbers.min() < place <= numbers.max()})
    if not inside:
        raise InvalidSetting(
            f"'{name}' must be cut between {show_number(numbers.min())} and "
            f"{show_number(numbers.max())}, where its people are (got {_listed(places)})"
        )
    cut = Cut(name, _bin_labels(inside), tuple(inside))
    codes = cut.codes(numbers)
    members = [np.sort(numbers.to_numpy(float)[codes == code]) for code in range(len(cut.labels))]
    middles = tuple(float(own[len(own) // 2]) if len(own) else None for own in members)
    return Cut(name, cut.labels, cut.edges, middles)


def _listed(places: Sequence[float]) -> str:
    return ", ".join(show_number(place) for place in places)


def groupings(cuts: Sequence[Cut], people: pd.DataFrame) -> list[Grouping]:
    """People by each attribute, then by each pair of attributes."""
    single = [
        Grouping(cut.name, (cut.name,), cut.labels, cut.codes(people[cut.name])) for cut in cuts
    ]
    return single + [_crossed(first, second) for first, second in combinations(single, 2)]


def _crossed(first: Grouping, second: Grouping) -> Grouping:
    labels = tuple(f"{a}, {b}" for a in first.labels for b in second.labels)
    codes = first.of * len(second.labels) + second.of
    return Grouping(
        f"{first.name} and {second.name}",
        (first.name, second.name),
        labels,
        np.where((first.of < 0) | (second.of < 0), -1, codes),
    )


def _bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    shown = [show_number(edge) for edge in edges]
    middle = [f"{low} to below {high}" for low, high in pairwise(shown)]
    return (f"below {shown[0]}", *middle, f"{shown[-1]} or more")


def _in_order(label: str) -> tuple[float, str]:
    """Numbers by their size and before all else, then by the alphabet."""
    try:
        return float(label), label
    except ValueError:
        return np.inf, label


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return str(value)
