"""How does recourse differ between protected groups, and is it more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pear.errors import FingerprintMismatch, InvalidSetting
from pear.portfolio.audit.cells import Attribute
from pear.portfolio.audit.compared import attributes_of, names_of
from pear.portfolio.audit.family import Tests, judged, judged_flip
from pear.portfolio.audit.flips import Flipped, flip, is_used
from pear.portfolio.audit.groups import Cut, Grouping, groupings, make_cut
from pear.portfolio.audit.plans import Plans
from pear.portfolio.audit.report import Report
from pear.portfolio.audit.statistics import holm
from pear.portfolio.audit.talks import Talks, read_talks
from pear.portfolio.conversations import Conversation
from pear.portfolio.worker import Model, Search, load_black_box
from pear.preferences import GaussianMixturePrior
from pear.problem import Problem


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

    ``people`` is the table the plans were made from, for attributes that are no features; any
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
        talks = read_talks(problem, plans, attributes, conversations, prior)
        talkers = len(talks.people)
        spoken = groupings(cuts, talks.people)
        parts = [
            _with_talks(part, grouping, talks, tests)
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


def _with_talks(part: Attribute, grouping: Grouping, talks: Talks, tests: Tests) -> Attribute:
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
