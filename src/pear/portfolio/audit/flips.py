"""What would recourse cost the same person with another protected attribute?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pear.arrays import Flags, Floats, Indices
from pear.decision import BlackBox
from pear.decision.blackbox import probe_states
from pear.errors import InvalidSetting
from pear.parallel import run_tasks
from pear.portfolio.audit.groups import Cut
from pear.portfolio.beliefs import weights_from
from pear.portfolio.run import Model, Search, prepare, prepared
from pear.preferences import GaussianMixturePrior
from pear.problem import NO_LIMITS, Limits, Plan, Problem

PROBES = 1_000

Task = tuple[Floats, list[Floats], list[Limits]]
"""States ``(n, d)``, with the weights ``(s, p)`` and the limits of each."""

MOST_OTHER = 0.02
"""Share of plans that may come out otherwise when made again."""


@dataclass(frozen=True)
class Flipped:
    """Some people of one group, flipped into another: shape ``(n,)`` each.

    ``own`` costs as they are, and the ``difference``, NaN where there is no plan; ``approved`` who
    need no plan any more; ``lost`` who have none any more; ``gained`` who have one only now;
    ``undecided`` of whom the search told neither, one way or the other. They are some ``of`` so
    many, and a number became ``value``.
    """

    attribute: str
    before: str
    after: str
    own: Floats
    difference: Floats
    approved: Flags
    lost: Flags
    gained: Flags
    undecided: Flags
    of: int
    value: float | None


def is_used(problem: Problem, model: BlackBox, name: str, states: Floats) -> bool:
    """Whether a feature can matter: to the model's scores, to a cost, or to what is possible."""
    if any(name in edge for edge in problem.costs.edges):
        return True
    for action in problem.actions.actions:
        if any(requirement.feature == name for requirement in action.requires):
            return True
    column = problem.space.index(name)
    probes = probe_states(problem.space, PROBES, np.random.default_rng(0))
    base = np.concatenate([probes, states])
    other = base.copy()
    other[:, column] = np.random.default_rng(1).permutation(base[:, column])
    return bool(np.abs(model.score(base) - model.score(other)).max() > 1e-12)


def flip(
    problem: Problem,
    model: Model,
    cut: Cut,
    states: Floats,
    weights: Sequence[str],
    costs: Floats,
    *,
    limits: Sequence[Limits] | None,
    prior: GaussianMixturePrior | None,
    search: Search,
    most: int,
    rng: np.random.Generator,
    workers: int | None,
) -> list[Flipped]:
    """Refused people, at most ``most`` of each group, as members of each other group.

    ``costs`` ``(n,)`` are of their own plans, NaN for none and infinite where that is not
    proved. Those are made again too: plans made with another search would differ without anybody
    being flipped, and are refused.
    """
    column = problem.space.index(cut.name)
    feature = problem.space[cut.name]
    frame = problem.space.frame(states)
    codes = cut.codes(frame[cut.name])
    everyone = limits if limits is not None else [NO_LIMITS] * len(states)
    tasks: list[Task] = []
    known: dict[str, Floats] = {}
    kept: list[tuple[int, int, Indices]] = []
    for before in range(len(cut.labels)):
        members = np.flatnonzero(codes == before)
        if len(members) > most:
            members = np.sort(rng.choice(members, most, replace=False))
        others = [v for k, v in enumerate(cut.values) if k != before and v is not None]
        if not len(members) or not others:
            continue
        for text in {weights[int(member)] for member in members} - known.keys():
            known[text] = weights_from(text, problem.costs.n_weights, prior)
        for after in range(len(cut.values)):
            if cut.values[after] is None:
                continue
            changed = states[members].copy()
            if after != before:
                changed[:, column] = feature.code(_value(cut.values[after], feature))
            own = [known[weights[int(member)]] for member in members]
            tasks.append((changed, own, [everyone[int(member)] for member in members]))
            kept.append((before, after, members))
    results = run_tasks(
        _plan_costs,
        tasks,
        workers=workers,
        initializer=prepare,
        initargs=(problem, model, search, None),
        ordered=True,
    )
    found = {
        (before, after): now for (before, after, _), (_, now) in zip(kept, results, strict=True)
    }
    _check_same_search([(costs[members], found[b, a]) for b, a, members in kept if a == b])
    return [
        _flipped(cut, before, after, found[before, before], found[before, after], codes)
        for before, after, _ in kept
        if after != before
    ]


def _flipped(
    cut: Cut, before: int, after: int, own: Floats, other: Floats, codes: Indices
) -> Flipped:
    undecided = np.isinf(own) | np.isinf(other)
    value = None if cut.edges is None else cut.values[after]
    own, other = (np.where(undecided, np.nan, costs) for costs in (own, other))
    return Flipped(
        cut.name,
        cut.labels[before],
        cut.labels[after],
        own=own,
        difference=other - own,
        approved=other == 0.0,
        lost=np.isnan(other) & ~np.isnan(own),
        gained=np.isnan(own) & ~np.isnan(other),
        undecided=undecided,
        of=int((codes == before).sum()),
        value=value,
    )


def _check_same_search(pairs: list[tuple[Floats, Floats]]) -> None:
    """Refuse plans that come out differently now, for more than a few borderline people."""
    if not pairs:
        return
    stored, again = (np.concatenate(side) for side in zip(*pairs, strict=True))
    same = np.isclose(stored, again, rtol=1e-6, atol=1e-9, equal_nan=True)
    if same.mean() < 1 - MOST_OTHER:
        raise InvalidSetting(
            f"{(~same).sum():,} of {len(same):,} plans come out otherwise when made again; give "
            "the --max-length, --max-rows and --changes-per-feature that 'pear plan' was given"
        )


def _value(value: Any, feature: Any) -> Any:
    if feature.kind == "boolean":
        return value in ("yes", True)
    return int(float(value)) if feature.kind == "integer" else value


def _plan_costs(task: Task) -> Floats:
    """Costs ``(n,)`` of the plans of flipped people; 0 when approved, NaN without a plan,
    infinite where none was found and none is proved not to exist.

    Each has samples ``(s, p)`` of weights; those with equally many are searched together.
    """
    states, weights, limits = task
    planner, together = prepared().planner, prepared().together
    costs = np.full(len(states), np.nan)
    counts = np.array([len(own) for own in weights])
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        for first in range(0, len(alike), together):
            here = alike[first : first + together]
            plans = planner.plan_many(
                states[here], np.array([weights[i] for i in here]), [limits[i] for i in here]
            )
            costs[here] = [_cost(plan) for plan in plans]
    return costs


def _cost(plan: Plan) -> float:
    if plan.success:
        return plan.cost
    return np.nan if plan.certificate.verdict == "infeasible" else np.inf
