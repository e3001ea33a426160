"""Which groups are compared, and who belongs to which?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Indices
from pear.errors import InvalidData, InvalidSetting
from pear.portfolio.plans import ROWS_AT_A_TIME, Plans
from pear.problem import Problem
from pear.problem.values import is_missing
from pear.problem.wording import show_number
from pear.tables.people import ids_of, people_of
from pear.tables.reading import Chunk, Source, open_table, typed

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

    def codes(self, column: pd.Series) -> Indices:
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
    of: Indices


def make_cut(name: str, column: pd.Series, problem: Problem, edges: Sequence[float] = ()) -> Cut:
    """Groups of one attribute, as these people have it; people without one are in no group."""
    known = name in problem.space.names
    feature = problem.space[name] if known else None
    stated = column[[not is_missing(value) for value in column]]
    numbers = pd.to_numeric(stated, errors="coerce").astype(float)
    is_number = feature.is_number if feature else bool(len(stated) and numbers.notna().all())
    if edges and not is_number:
        raise InvalidSetting(
            f"'{name}' is not a number, so it cannot be cut at {_listed(edges)}; leave out "
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


def names_of(
    problem: Problem, by: Sequence[str], edges: Mapping[str, Sequence[float]]
) -> tuple[str, ...]:
    """The attributes asked for, each once, or the protected features."""
    names = tuple(dict.fromkeys(by)) or tuple(
        feature.name for feature in problem.space.features if feature.protected
    )
    if not names:
        raise InvalidSetting(
            "the problem marks no feature as protected; mark some, or name them with --by"
        )
    for name, places in edges.items():
        if name not in names:
            raise InvalidSetting(
                f"'--cut' must name an attribute that is compared, of {', '.join(names)} "
                f"(got {name!r}); name it with --by too"
            )
        if not len(places) or not np.isfinite(np.asarray(places, float)).all():
            raise InvalidSetting(
                f"'--cut {name}' must be finite numbers, such as {name}=25,40,60 "
                f"(got {list(places)!r})"
            )
    return names


def attributes_of(
    problem: Problem, plans: Plans, names: Sequence[str], people: str | Path | None
) -> pd.DataFrame:
    """The attributes of the people of the plans, in their order."""
    frame = problem.space.frame(plans.states)
    frame.index = pd.Index(plans.rows)
    others = [name for name in names if name not in problem.space.names]
    if people is None:
        if others:
            raise InvalidSetting(
                f"'{others[0]}' is no feature of the problem; give the table that has it "
                "with --people"
            )
        return frame[list(names)]
    source = open_table(people)
    absent = [name for name in others if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{people}' has no column '{absent[0]}'; it has {', '.join(source.columns)}"
        )
    columns = _checked(problem, plans, source, others)
    return frame.join(columns.reindex(plans.rows))[list(names)]


def _checked(problem: Problem, plans: Plans, source: Source, wanted: list[str]) -> pd.DataFrame:
    """The columns wanted, of a table that is that of the plans and no other."""
    table = _SameTable(problem, plans, source)
    parts = [pd.DataFrame(columns=wanted)]
    for chunk in source.chunks(ROWS_AT_A_TIME):
        planned = chunk.frame[chunk.frame.index.isin(plans.rows)]
        if len(planned):
            table.check(replace(chunk, frame=planned, broken={}))
            parts.append(typed(planned[wanted], problem.space))
    columns = pd.concat(parts) if len(parts) > 1 else parts[0]
    lost = np.setdiff1d(plans.rows, columns.index.to_numpy())
    if len(lost):
        raise InvalidData(
            f"'{source.path}' has no row {lost[0]} that could be read; give the table that was "
            "planned for"
        )
    table.finish()
    return columns


class _SameTable:
    """Whether a table holds the people of the plans: by their features, and by their ids."""

    def __init__(self, problem: Problem, plans: Plans, source: Source) -> None:
        self.problem, self.plans, self.source = problem, plans, source
        space = problem.space
        self.has_features = all(name in source.columns for name in space.names)
        ids = plans.ids or ()
        self.has_ids = any(i != str(row) for i, row in zip(ids, plans.rows, strict=False))
        # The plans do not say which column their ids are from: any that agrees will do.
        self.columns = [name for name in source.columns if name not in space.names]
        if not self.has_features and not self.has_ids:
            raise InvalidData(
                f"'{source.path}' has neither the features of the problem nor ids, so that nobody "
                "knows whether its rows are the people of the plans; give the table that was "
                "planned for"
            )

    def check(self, chunk: Chunk) -> None:
        """Refuse rows of other people than the plans'."""
        places = pd.Index(self.plans.rows).get_indexer(chunk.frame.index)
        if self.has_features:
            people = people_of(chunk, self.problem.space, None)
            if people.bad:
                row, _, reason = people.bad[0]
                raise self._other(row, reason)
            theirs = self.plans.states[places]
            differ = ~np.isclose(people.states, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)
            if differ.any():
                at, column = np.argwhere(differ)[0]
                name = self.problem.space.names[column]
                raise self._other(int(people.rows[at]), f"'{name}' is not what the plan is for")
        if self.has_ids and self.plans.ids is not None:
            stated = [self.plans.ids[place] for place in places.tolist()]
            self.columns = [
                name for name in self.columns if ids_of(chunk, self.problem.space, name) == stated
            ]
            if not self.columns and not self.has_features:
                raise self._other(int(chunk.frame.index[0]), "the ids of the plans are not there")

    def finish(self) -> None:
        """Refuse a table that names its people, and otherwise than the plans."""
        if self.has_ids and not self.columns and "id" in self.source.columns:
            raise self._other(int(self.plans.rows[0]), "its people have other ids than the plans")

    def _other(self, row: int, reason: str) -> InvalidData:
        return InvalidData(
            f"'{self.source.path}' is not the table of these plans (about row {row}: {reason}); "
            "give the table that was planned for, with its rows in the same order"
        )
