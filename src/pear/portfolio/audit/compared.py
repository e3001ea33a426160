"""By what are people compared, and whose is which attribute?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from pear.errors import InvalidData, InvalidSetting
from pear.portfolio.audit.plans import Plans
from pear.problem import Problem
from pear.problem.people import ids_of, people_of
from pear.problem.tables import Chunk, Source, open_table, typed

CHUNK = 10_000


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
    for chunk in source.chunks(CHUNK):
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
