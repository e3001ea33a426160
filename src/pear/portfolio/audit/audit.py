"""How does recourse differ between protected groups, and is that more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Flags, Floats
from pear.elicitation.files import Conversation
from pear.errors import FingerprintMismatch, InvalidData, InvalidRecord, InvalidSetting
from pear.portfolio.audit.flips import Flipped, flip, is_used
from pear.portfolio.audit.groups import (
    Cut,
    Grouping,
    attributes_of,
    groupings,
    make_cut,
    names_of,
)
from pear.portfolio.audit.report import SHARES, Attribute, Cell, Flip, Group, Report
from pear.portfolio.beliefs import predict_choices
from pear.portfolio.plans import Plans
from pear.portfolio.run import Model, Search, load_black_box
from pear.preferences import GaussianMixturePrior
from pear.problem import Problem
from pear.statistics import (
    amount_test,
    estimate,
    gained_or_lost_test,
    holm,
    paired_test,
    share_estimate,
    share_test,
)


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
        for name, option in (("smallest", "--smallest"), ("most_flips", "--flips")):
            if getattr(self, name) < 2:
                value = getattr(self, name)
                raise InvalidSetting(f"'{option}' ({name}) must be at least 2 (got {value!r})")


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

    ``people`` is the table the plans were made from, for attributes that are not features; any
    other table is refused.
    ``prior`` is the one plans were made under, where they were. With ``conversations`` too, the
    questions needed and the prior's fit.
    """
    names = names_of(problem, settings.by, settings.edges)
    rng = np.random.default_rng(settings.seed)
    attributes = attributes_of(problem, plans, names, people)
    cuts = [make_cut(n, attributes[n], problem, settings.edges.get(n, ())) for n in names]
    tests = Tests(settings.smallest, rng)
    parts = [_of_plans(grouping, plans, tests) for grouping in groupings(cuts, attributes)]
    talkers = 0
    if conversations:
        talks = read_measures(problem, plans, attributes, conversations, prior)
        talkers = len(talks.people)
        spoken = groupings(cuts, talks.people)
        parts = [
            _with_conversations(part, grouping, talks, tests)
            for part, grouping in zip(parts, spoken, strict=True)
        ]
    features = [cut for cut in cuts if cut.name in problem.space.names]
    flips, unused, why = _flips(
        problem, plans, features, model, prior, search, workers, settings.most_flips, rng
    )
    judged_twice = [tests.flip(flipped) for flipped in flips]
    adjusted = holm(tests.entries)
    return Report(
        problem=problem.name,
        problem_fingerprint=problem.fingerprint,
        model_fingerprint=plans.model_fingerprint,
        people=len(plans),
        refused=int(plans.refused.sum()),
        level=settings.level,
        smallest=settings.smallest,
        tests=len(adjusted),
        attributes=tuple(judged(part, adjusted, settings.level) for part in parts),
        flips=tuple(judged_flip(entry, adjusted, settings.level) for entry in judged_twice),
        unused=tuple(unused),
        not_flipped=why,
        conversations=len(conversations),
        talkers=talkers,
        verdicts=plans.counts(),
        undecided=int(plans.undecided.sum()),
        bad=plans.bad,
        most_flips=settings.most_flips,
        no_features=tuple(cut.name for cut in cuts if cut not in features),
    )


def _of_plans(grouping: Grouping, plans: Plans, tests: Tests) -> Attribute:
    decided = plans.refused & ~plans.undecided
    measures = {
        "plan": np.where(decided, plans.success.astype(float), np.nan),
        "cost": np.where(plans.refused & plans.success, plans.cost, np.nan),
        "length": np.where(plans.refused & plans.success, plans.length, np.nan),
    }
    return Attribute(
        grouping.name,
        grouping.attributes,
        tests.groups(grouping, measures, plans.undecided),
        int((plans.refused & (grouping.of < 0)).sum()),
    )


def _with_conversations(
    part: Attribute, grouping: Grouping, talks: Conversations, tests: Tests
) -> Attribute:
    """The groups with the questions and the prior's fit, where anybody's group is known."""
    unheard = int((grouping.of < 0).sum())
    if unheard == len(talks.people):
        return replace(part, unheard=unheard)
    said = tests.groups(grouping, talks.measures)
    groups = tuple(
        replace(group, cells={**group.cells, **more.cells})
        for group, more in zip(part.groups, said, strict=True)
    )
    return replace(part, groups=groups, unheard=unheard)


def _flips(
    problem: Problem,
    plans: Plans,
    cuts: Sequence[Cut],
    model: Model | None,
    prior: GaussianMixturePrior | None,
    search: Search,
    workers: int | None,
    most: int,
    rng: np.random.Generator,
) -> tuple[list[Flipped], list[str], str]:
    if not cuts:
        return [], [], ""
    if model is None:
        return [], [], "no model was given, so nobody's attribute could be flipped"
    if plans.weights is None:
        return [], [], "the plans do not say under which weights they were made"
    black_box = load_black_box(model, problem)
    if plans.model_fingerprint not in ("", black_box.fingerprint):
        raise FingerprintMismatch(
            f"the plans were made with another model (fingerprint {plans.model_fingerprint}, "
            f"this one is {black_box.fingerprint}); give that one, or plan again"
        )
    refused = np.flatnonzero(plans.refused)
    states, weights = plans.states[refused], [plans.weights[int(i)] for i in refused]
    limits = None if plans.limits is None else [plans.limits[int(i)] for i in refused]
    costs = np.where(plans.success, plans.cost, np.where(plans.undecided, np.inf, np.nan))
    found: list[Flipped] = []
    unused: list[str] = []
    for cut in cuts:
        if not is_used(problem, black_box, cut.name, states):
            unused.append(cut.name)
            continue
        found += flip(
            problem, model, cut, states, weights, costs[refused], limits=limits,
            prior=prior, search=search, most=most, rng=rng, workers=workers,
        )  # fmt: skip
    return found, unused, ""


@dataclass(frozen=True)
class Conversations:
    """n people who had conversations: their attributes, and measures of ``(n,)`` each."""

    people: pd.DataFrame
    measures: dict[str, Floats]


def read_measures(
    problem: Problem,
    plans: Plans,
    attributes: pd.DataFrame,
    conversations: Sequence[Conversation],
    prior: GaussianMixturePrior | None,
) -> Conversations:
    """Conversations by person: those of one id are one person, however often they talked.

    An attribute that a conversation does not tell is that of the person of the plans with the
    same id, where there is exactly one.
    """
    numbers: dict[tuple[bool, str], list[int]] = {}
    for number, one in enumerate(conversations):
        # A conversation without an id counts as a person of its own.
        numbers.setdefault((one.named, one.id), []).append(number)
    rows = _rows_by_id(plans)
    persons, finished, questions, fits = [], [], [], []
    for (named, name), own in numbers.items():
        row = rows.get(name) if named else None
        persons.append(_attributes(problem, attributes, conversations[own[-1]], row))
        ended = [conversations[i].n_questions for i in own if conversations[i].finished]
        finished.append(float(bool(ended)))
        # Whoever gave up was asked too little: that must not count in their favour.
        questions.append(np.mean(ended) if ended else np.nan)
        if prior is not None:
            fits.append(_fit([(i, conversations[i]) for i in own], prior))
    measures = {"finished": np.array(finished), "questions": np.array(questions, float)}
    if prior is not None:
        measures["fit"] = np.array(fits)
    return Conversations(
        pd.DataFrame(persons, columns=list(attributes.columns), dtype=object), measures
    )


def _rows_by_id(plans: Plans) -> dict[str, int]:
    ids = list(plans.ids or ())
    found = {name: place for place, name in enumerate(ids) if name}
    if len(found) < len(ids):
        twice = pd.Series(ids)
        for name in twice[twice.duplicated()].unique():
            found.pop(name, None)
    return found


def _attributes(
    problem: Problem, attributes: pd.DataFrame, said: Conversation, row: int | None
) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for name in attributes.columns:
        if name not in said.person:
            own[name] = None if row is None else attributes[name].iloc[row]
            continue
        own[name] = said.person[name]
        if name in problem.space.names:
            try:
                problem.space[name].code(own[name])
            except InvalidRecord as error:
                raise InvalidData(
                    f"the conversation of '{said.id}' is with nobody there can be: {error}"
                ) from None
    return own


def _fit(own: Sequence[tuple[int, Conversation]], prior: GaussianMixturePrior) -> float:
    """Log-likelihood per choice above that of a guess; NaN where nothing was chosen."""
    gains = []
    for number, conversation in own:
        reading = predict_choices(conversation, prior, np.random.default_rng([17, number]))
        gains.append(reading.log_likelihoods - reading.chance)
    together = np.concatenate(gains)
    return float(together.mean()) if len(together) else float("nan")


class Tests:
    """All tests of one report; a test's number waits in ``adjusted`` until all are known."""

    def __init__(self, smallest: int, rng: np.random.Generator) -> None:
        self.smallest, self.rng = smallest, rng
        self.entries: list[float] = []
        self._known: dict[Any, int] = {}

    def add(self, p: float, key: Any = None) -> int:
        """The number of a test; the same comparison from the other side is the same test."""
        self.entries.append(p)
        if key is not None:
            self._known[key] = len(self.entries) - 1
        return len(self.entries) - 1

    def groups(
        self,
        grouping: Grouping,
        measures: Mapping[str, Floats],
        undecided: Flags | None = None,
    ) -> tuple[Group, ...]:
        """Every group by every measure ``(n,)``; people in no group are not counted."""
        inside = {m: np.where(grouping.of >= 0, values, np.nan) for m, values in measures.items()}
        return tuple(
            Group(
                label,
                {m: self.cell(grouping.of == code, values, m) for m, values in inside.items()},
                0 if undecided is None else int((undecided & (grouping.of == code)).sum()),
            )
            for code, label in enumerate(grouping.labels)
        )

    def cell(self, members: Flags, values: Floats, measure: str) -> Cell:
        """One measure of a group against everybody else; values NaN do not count."""
        counted = ~np.isnan(values)
        inside, outside = values[members & counted], values[~members & counted]
        n, share = len(inside), measure in SHARES
        if n < self.smallest:
            return Cell(n, too_small=True)
        middle = share_estimate(inside > 0) if share else estimate(inside, self.rng)
        found = Cell(n, too_small=False, estimate=middle)
        if len(outside) < self.smallest:
            return found
        key = (
            measure,
            frozenset([(members & counted).tobytes(), (~members & counted).tobytes()]),
        )
        number = self._known.get(key)
        if number is None:
            p = share_test(inside > 0, outside > 0) if share else amount_test(inside, outside)
            number = self.add(p, key)
        difference = float(inside.mean() - outside.mean())
        return replace(
            found,
            difference=difference,
            size=abs(difference) / (float(values[counted].std()) or 1.0),
            p=self.entries[number],
            adjusted=number,
        )

    def flip(self, flipped: Any) -> Flip:
        """The same people twice; those undecided in either case count only as undecided."""
        decided = ~flipped.undecided
        n = int(decided.sum())
        entry = Flip(
            flipped.attribute,
            flipped.before,
            flipped.after,
            len(decided),
            n < self.smallest,
            of=flipped.of,
            value=flipped.value,
            undecided=int(flipped.undecided.sum()),
        )
        if entry.too_small:
            return entry
        gained, lost = flipped.gained[decided], flipped.lost[decided]
        plan_p = gained_or_lost_test(int(gained.sum()), int(lost.sum()))
        entry = replace(
            entry,
            share_approved=float(flipped.approved[decided].mean()),
            share_plan_lost=float(lost.mean()),
            share_plan_gained=float(gained.mean()),
            plan_p=plan_p,
            plan_adjusted=self.add(plan_p),
        )
        paired = ~np.isnan(flipped.difference)
        both = flipped.difference[paired]
        if len(both) < self.smallest:
            return entry
        p = paired_test(both)
        return replace(
            entry,
            difference=estimate(both, self.rng),
            effort=float(flipped.own[paired].mean()),
            p=p,
            adjusted=self.add(p),
        )


def judged(part: Attribute, adjusted: Sequence[float], level: float) -> Attribute:
    """The groups with their adjusted probabilities in place of their tests' numbers."""
    groups = (
        replace(g, cells={m: _judge(cell, adjusted, level) for m, cell in g.cells.items()})
        for g in part.groups
    )
    return replace(part, groups=tuple(groups))


def judged_flip(entry: Flip, adjusted: Sequence[float], level: float) -> Flip:
    """The same for people flipped."""
    found: Flip = _judge(entry, adjusted, level)
    if found.plan_adjusted is None:
        return found
    value = adjusted[int(found.plan_adjusted)]
    return replace(found, plan_adjusted=value, plan_flagged=value <= level)


def _judge(entry: Any, adjusted: Sequence[float], level: float) -> Any:
    if entry.adjusted is None:
        return entry
    value = adjusted[int(entry.adjusted)]
    return replace(entry, adjusted=value, flagged=value <= level)
