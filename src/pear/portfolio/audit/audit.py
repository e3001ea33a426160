"""How does recourse differ between protected groups, and is it more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.portfolio.audit.flips import flip, is_used
from pear.portfolio.audit.groups import Cut, Grouping, groupings, make_cut
from pear.portfolio.audit.plans import Plans
from pear.portfolio.audit.report import SHARES, Attribute, Cell, Flip, Group, Report
from pear.portfolio.audit.statistics import (
    amount_test,
    estimate,
    gained_or_lost_test,
    holm,
    paired_test,
    share_test,
)
from pear.portfolio.conversations import Conversation, read_under
from pear.portfolio.tables import open_table
from pear.portfolio.worker import Model, Search, load_black_box
from pear.preferences import GaussianMixturePrior
from pear.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AuditSettings:
    """How an audit is done.

    ``by`` names the attributes (the problem's protected features by default); ``edges`` cuts
    numbers at given places. Groups of fewer than ``smallest`` people are not judged. ``level``
    is the probability of any false alarm. At most ``most_flips`` people of a group are flipped.
    """

    by: tuple[str, ...] = ()
    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    level: float = 0.05
    smallest: int = 30
    most_flips: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InvalidSetting(f"'level' must lie between 0 and 1 (got {self.level!r})")
        for name in ("smallest", "most_flips"):
            if getattr(self, name) < 2:
                raise InvalidSetting(f"'{name}' must be at least 2 (got {getattr(self, name)!r})")


def audit(
    problem: Problem,
    plans: Plans,
    *,
    settings: AuditSettings = AuditSettings(),
    model: Model | None = None,
    people: str | Path | None = None,
    conversations: Sequence[Conversation] = (),
    prior: GaussianMixturePrior | None = None,
    search: Search = Search(),
    workers: int | None = 1,
) -> Report:
    """Compare groups; with a ``model``, also the same people with the attribute flipped.

    ``people`` is the table the plans were made from, for attributes that are no features.
    ``prior`` is the one plans were made under, where they were. With ``conversations`` too, the
    questions needed and the prior's fit.
    """
    names = settings.by or tuple(f.name for f in problem.space.features if f.protected)
    if not names:
        raise InvalidSetting(
            "the problem marks no feature as protected; mark some, or name them with --by"
        )
    rng = np.random.default_rng(settings.seed)
    attributes = _attributes(problem, plans, names, people)
    cuts = [make_cut(n, attributes[n], problem, settings.edges.get(n, ())) for n in names]
    tests = _Tests(settings)
    parts = [_of_plans(grouping, plans, tests, rng) for grouping in groupings(cuts, attributes)]
    if conversations:
        said = _of_conversations(problem, cuts, conversations, prior, tests, rng)
        parts = [_merged(part, said.get(part.name, {})) for part in parts]
    flips, unused, why = _flips(problem, plans, cuts, model, prior, search, workers, tests, rng)
    adjusted = holm([p for p, _ in tests.entries])
    return Report(
        problem=problem.name,
        problem_fingerprint=problem.fingerprint,
        model_fingerprint=plans.model_fingerprint,
        people=len(plans),
        refused=int(plans.refused.sum()),
        level=settings.level,
        smallest=settings.smallest,
        tests=len(adjusted),
        attributes=tuple(_judged(part, adjusted, settings.level) for part in parts),
        flips=tuple(_judged_flip(entry, adjusted, settings.level) for entry in flips),
        unused=unused,
        not_flipped=why,
        conversations=len(conversations),
    )


class _Tests:
    """All tests of one report; a test's number waits in ``adjusted`` until all are known."""

    def __init__(self, settings: AuditSettings) -> None:
        self.settings = settings
        self.entries: list[tuple[float, Any]] = []
        self._known: dict[Any, int] = {}

    def add(self, p: float, key: Any) -> float:
        """The number of a test; the same comparison from the other side is the same test."""
        if key not in self._known:
            self._known[key] = len(self.entries)
            self.entries.append((p, key))
        return float(self._known[key])

    def cell(
        self, name: str, members: NDArray[np.bool_], values: Floats, measure: str, rng: Any
    ) -> Cell:
        """One measure of a group against everybody else; values NaN do not count."""
        counted = ~np.isnan(values)
        inside, outside = values[members & counted], values[~members & counted]
        n, smallest = len(inside), self.settings.smallest
        if n < smallest:
            return Cell(n, too_small=True)
        found = Cell(n, too_small=False, estimate=estimate(inside, rng))
        if len(outside) < smallest:
            return found
        sides = frozenset([(members & counted).tobytes(), (~members & counted).tobytes()])
        key = (measure, sides)
        if key not in self._known:
            share = measure in SHARES
            p = share_test(inside > 0, outside > 0) if share else amount_test(inside, outside)
            self.add(p, key)
        number = self._known[key]
        p = self.entries[number][0]
        difference = float(inside.mean() - outside.mean())
        return replace(found, difference=difference, p=p, adjusted=number)


def _attributes(
    problem: Problem, plans: Plans, names: Sequence[str], people: str | Path | None
) -> pd.DataFrame:
    frame = problem.space.frame(plans.states)
    frame.index = pd.Index(plans.rows)
    others = [name for name in names if name not in problem.space.names]
    if not others:
        return frame[list(names)]
    if people is None:
        raise InvalidSetting(
            f"'{others[0]}' is no feature of the problem; give the table that has it with --people"
        )
    source = open_table(people)
    absent = [name for name in others if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{people}' has no column '{absent[0]}'; it has {', '.join(source.columns)}"
        )
    columns = pd.concat([chunk.frame[others] for chunk in source.chunks(10_000)])
    lost = np.setdiff1d(plans.rows, columns.index.to_numpy())
    if len(lost):
        raise InvalidData(f"'{people}' has no row {lost[0]}; give the table that was planned for")
    return frame.join(columns.reindex(plans.rows))[list(names)]


def _of_plans(grouping: Grouping, plans: Plans, tests: _Tests, rng: Any) -> Attribute:
    refused = plans.refused & (grouping.of >= 0)
    measures = {
        "plan": np.where(refused, plans.success.astype(float), np.nan),
        "cost": np.where(refused & plans.success, plans.cost, np.nan),
        "length": np.where(refused & plans.success, plans.length, np.nan),
    }
    return Attribute(
        grouping.name,
        grouping.attributes,
        _groups(grouping, measures, tests, rng),
        int((plans.refused & (grouping.of < 0)).sum()),
    )


def _groups(
    grouping: Grouping, measures: Mapping[str, Floats], tests: _Tests, rng: Any
) -> tuple[Group, ...]:
    return tuple(
        Group(
            label,
            {
                measure: tests.cell(grouping.name, grouping.of == code, values, measure, rng)
                for measure, values in measures.items()
            },
        )
        for code, label in enumerate(grouping.labels)
    )


def _of_conversations(
    problem: Problem,
    cuts: Sequence[Cut],
    conversations: Sequence[Conversation],
    prior: GaussianMixturePrior | None,
    tests: _Tests,
    rng: Any,
) -> dict[str, dict[str, dict[str, Cell]]]:
    """Questions answered and the prior's fit, by grouping and group."""
    people = pd.DataFrame([dict(conversation.person) for conversation in conversations])
    known = [cut for cut in cuts if cut.name in people.columns]
    finished = np.array([c.finished for c in conversations], float)
    asked = np.array([c.n_questions for c in conversations], float)
    # Who gave up was asked less than needed: that is no advantage.
    measures = {"finished": finished, "questions": np.where(finished > 0, asked, np.nan)}
    if prior is not None:
        measures["fit"] = np.array([_fit(c, prior, i) for i, c in enumerate(conversations)])
    return {
        grouping.name: {
            group.label: group.cells for group in _groups(grouping, measures, tests, rng)
        }
        for grouping in groupings(known, people)
    }


def _fit(conversation: Conversation, prior: GaussianMixturePrior, number: int) -> float:
    """Log-likelihood per choice above that of a guess; NaN where nothing was chosen."""
    reading = read_under(conversation, prior, np.random.default_rng([17, number]))
    if not len(reading.log_likelihoods):
        return float("nan")
    return float((reading.log_likelihoods - reading.chance).mean())


def _merged(part: Attribute, said: Mapping[str, dict[str, Cell]]) -> Attribute:
    groups = (replace(g, cells={**g.cells, **said.get(g.label, {})}) for g in part.groups)
    return replace(part, groups=tuple(groups))


def _flips(
    problem: Problem,
    plans: Plans,
    cuts: Sequence[Cut],
    model: Model | None,
    prior: GaussianMixturePrior | None,
    search: Search,
    workers: int | None,
    tests: _Tests,
    rng: Any,
) -> tuple[list[Flip], tuple[str, ...], str]:
    if model is None:
        return [], (), "no model was given, so nobody's attribute could be flipped"
    if plans.weights is None:
        return [], (), "the plans do not say under which weights they were made"
    black_box = load_black_box(model, problem)
    if plans.model_fingerprint not in ("", black_box.fingerprint):
        raise FingerprintMismatch(
            f"the plans were made with another model (fingerprint {plans.model_fingerprint}, "
            f"this one is {black_box.fingerprint}); give that one, or plan again"
        )
    refused = np.flatnonzero(plans.refused)
    states, weights = plans.states[refused], [plans.weights[int(i)] for i in refused]
    costs = np.where(plans.success[refused], plans.cost[refused], np.nan)
    found: list[Flip] = []
    unused: list[str] = []
    for cut in cuts:
        if cut.name not in problem.space.names:
            continue
        if not is_used(problem, black_box, cut.name, states):
            unused.append(cut.name)
            continue
        for flipped in flip(
            problem, model, cut, states, weights, costs,
            prior=prior, search=search, most=tests.settings.most_flips, rng=rng, workers=workers,
        ):  # fmt: skip
            found.append(_flip(flipped, tests, rng))
    return found, tuple(unused), ""


def _flip(flipped: Any, tests: _Tests, rng: Any) -> Flip:
    n = len(flipped.difference)
    entry = Flip(flipped.attribute, flipped.before, flipped.after, n, n < tests.settings.smallest)
    if entry.too_small:
        return entry
    both = flipped.difference[~np.isnan(flipped.difference)]
    entry = replace(
        entry,
        share_approved=float(flipped.approved.mean()),
        share_plan_lost=float(flipped.lost.mean()),
        share_plan_gained=float(flipped.gained.mean()),
    )
    plan_p = gained_or_lost_test(int(flipped.gained.sum()), int(flipped.lost.sum()))
    number = tests.add(plan_p, ("flip", len(tests.entries)))
    entry = replace(entry, plan_p=plan_p, plan_adjusted=number)
    if len(both) < tests.settings.smallest:
        return entry
    p = paired_test(both)
    number = tests.add(p, ("flip", len(tests.entries)))
    return replace(entry, difference=estimate(both, rng), p=p, adjusted=number)


def _judge(entry: Any, adjusted: Sequence[float], level: float) -> Any:
    """The entry with its adjusted probability in place of its test's number."""
    if entry.adjusted is None:
        return entry
    value = adjusted[int(entry.adjusted)]
    return replace(entry, adjusted=value, flagged=value <= level)


def _judged_flip(entry: Flip, adjusted: Sequence[float], level: float) -> Flip:
    judged: Flip = _judge(entry, adjusted, level)
    if judged.plan_adjusted is None:
        return judged
    value = adjusted[int(judged.plan_adjusted)]
    return replace(judged, plan_adjusted=value, plan_flagged=value <= level)


def _judged(part: Attribute, adjusted: Sequence[float], level: float) -> Attribute:
    groups = (
        replace(g, cells={m: _judge(cell, adjusted, level) for m, cell in g.cells.items()})
        for g in part.groups
    )
    return replace(part, groups=tuple(groups))
