"""What does one worker do with one chunk of people?

A worker loads the model once. Everybody of a chunk is planned in lockstep by the exact
planner, so that the states of many people go to the model in one call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pear.decision import BlackBox
from pear.errors import InvalidSetting, ModelOutput
from pear.planning.exact import ExactPlanner
from pear.planning.reasons import explain_plans
from pear.portfolio.output import bad_table, plans_table
from pear.portfolio.weights import Given
from pear.problem import Plan, Problem
from pear.problem.people import People, people_of
from pear.problem.tables import Chunk


@dataclass(frozen=True)
class ModelPlace:
    """A model to be loaded where it is used: a file or an address, not the model itself."""

    place: str
    options: dict[str, Any] = field(default_factory=dict)

    def load(self, problem: Problem) -> BlackBox:
        """The model, loaded now."""
        from pear.decision.adapters import load_model

        return load_model(self.place, problem, **self.options)


Model = BlackBox | ModelPlace


@dataclass(frozen=True)
class Search:
    """How plans are searched: the settings of :class:`ExactPlanner`.

    ``together`` people are searched in lockstep: more of them means fewer and larger calls of
    the model, for models that are slow to start, and more memory.
    """

    max_length: int | None = None
    max_rows: int = 200_000
    max_changes_per_feature: int = 1
    together: int = 64

    def __post_init__(self) -> None:
        if self.together < 1:
            raise InvalidSetting(f"'together' must be at least 1 (got {self.together!r})")

    def planner(self, problem: Problem, black_box: BlackBox) -> ExactPlanner:
        """The planner with these settings."""
        return ExactPlanner(
            problem,
            black_box,
            max_length=self.max_length,
            max_rows=self.max_rows,
            max_changes_per_feature=self.max_changes_per_feature,
        )


def load_black_box(model: Model, problem: Problem) -> BlackBox:
    """The model itself, loaded if it is only named."""
    return model.load(problem) if isinstance(model, ModelPlace) else model


@dataclass(frozen=True)
class Result:
    """One chunk, done: its plans and its bad rows as Arrow tables, and how many are what.

    Of the ``planned``, ``bounded`` are not proved cheapest; of the others who were refused,
    ``unknown`` are not proved to have no plan. What ``said`` people said in conversations was
    used. ``joined_lines`` are in bad rows of several lines.
    """

    chunk: int
    plans: Any
    bad: Any
    people: int
    refused: int
    planned: int
    bounded: int = 0
    unknown: int = 0
    said: int = 0
    joined_lines: int = 0


@dataclass(frozen=True)
class _Workplace:
    planner: ExactPlanner
    id_name: str | None
    together: int


_workplace: _Workplace | None = None


def prepare(problem: Problem, model: Model, search: Search, id_name: str | None) -> None:
    """Run once in every worker: load the model, build the planner."""
    global _workplace
    planner = search.planner(problem, load_black_box(model, problem))
    _workplace = _Workplace(planner, id_name, search.together)


def workplace() -> _Workplace:
    """What this worker was prepared with."""
    if _workplace is None:
        raise InvalidSetting("a worker must be prepared before it plans; call prepare(...) first")
    return _workplace


def plan_chunk(task: tuple[Chunk, Any]) -> Result:
    """Plans for the people of a chunk; rows that cannot be planned are listed with the reason."""
    chunk, weights_of = task
    place = workplace()
    planner = place.planner
    people = people_of(chunk, planner.problem.space, place.id_name)
    given: Given = weights_of.of(people.rows, people.ids)
    without = given.without
    bad = [*people.bad, *((int(people.rows[i]), people.ids[i], why) for i, why in without.items())]
    usable = np.array([i for i in range(len(people)) if i not in without], np.intp)
    plans: list[Plan] = []
    kept: list[int] = []
    for first in range(0, len(usable), place.together):
        these = usable[first : first + place.together]
        found, failed = _plan(planner, people, given, these)
        plans += [found[i] for i in found]
        kept += list(found)
        bad += failed
    table = plans_table(people, given.stated, plans, kept)
    verdicts = Counter(plan.certificate.verdict for plan in plans)
    return Result(
        chunk.number,
        table,
        bad_table(bad, chunk),
        people=len(plans),
        refused=sum(1 for plan in plans if plan.steps or not plan.success),
        planned=sum(1 for plan in plans if plan.steps),
        bounded=verdicts["bounded"],
        unknown=verdicts["unknown"],
        said=sum(1 for position in kept if given.said[position]),
        joined_lines=sum(b.lines for b in chunk.broken.values() if b.lines > 1),
    )


def _plan(
    planner: ExactPlanner, people: People, given: Given, these: Any
) -> tuple[dict[int, Plan], list[tuple[int, str, str]]]:
    """Plans with reasons, by position. Where the model fails on somebody, the others are
    planned alone."""
    try:
        limits = [given.limits[i] for i in these]
        plans = planner.plan_many(people.states[these], given.weights[these], limits)
        explained = explain_plans(planner.problem, planner.black_box, plans)
        return {i: one.plan for i, one in zip(these.tolist(), explained, strict=True)}, []
    except ModelOutput as error:
        if len(these) == 1:
            [only] = these.tolist()
            return {}, [(int(people.rows[only]), people.ids[only], str(error))]
    middle = len(these) // 2
    left, bad_left = _plan(planner, people, given, these[:middle])
    right, bad_right = _plan(planner, people, given, these[middle:])
    return {**left, **right}, bad_left + bad_right
