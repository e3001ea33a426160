"""One recourse problem: features, actions, costs, the goal, and expert ranges of weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.errors import InvalidProblem, InvalidSetting
from pear.problem.actions import Action, ActionSpace
from pear.problem.costs import CostGraph, as_samples
from pear.problem.features import Feature, FeatureSpace, PeopleLike, PersonLike
from pear.problem.limits import NO_LIMITS, Limits
from pear.problem.model_inputs import Interface
from pear.problem.notebook import html_table, problem_frame
from pear.problem.plan import Certificate, Plan, Step, make_plans
from pear.problem.schema import toml_path
from pear.problem.values import (
    as_tuple,
    check_type,
    class_key,
    is_finite,
    is_whole,
    plain,
    refusal_at,
    tuple_of,
)
from pear.problem.wording import Words, check_phrase, phrase

SAID_OF_FEATURES = ("label", "unit", "used", "language", "category_words")
SAID_OF_THE_GOAL = ("just_enough", "target")
SAID_OF_ACTIONS = ("phrase", "reviewed", "weeks", "once", "monthly", "priority")


@dataclass(frozen=True)
class Goal:
    """When a decision is favourable: the score is above ``threshold + margin``.

    Parameters
    ----------
    favourable
        The favourable class or classes of the model; the score is the sum of their probabilities.
        Empty: the model's score is taken as it is, or the positive (last) class of a two-class
        model.
    threshold, margin
        What the score must exceed, together.
    target
        The column of a table that holds the decisions taken, if there is one, to compare the model
        with.
    just_enough
        A plan whose score exceeds what is required by at most this share, in whole per cent, is
        called only just enough; with 0 none is.

    Raises
    ------
    InvalidProblem
        Where a class is listed twice, or no score can be above the two together.

    Examples
    --------
    >>> Goal(("approved",), threshold=0.6, margin=0.05).required(Limits(margin=0.1))
    0.7
    """

    favourable: tuple[Any, ...] = ()
    threshold: float = 0.5
    margin: float = 0.0
    target: str = ""
    just_enough: float = 0.01

    def __post_init__(self) -> None:
        if not is_finite(self.just_enough) or not 0 <= self.just_enough < 1:
            raise refusal_at(
                "just_enough",
                f"'just_enough' must be a number in [0, 1) (got {self.just_enough!r})",
            )
        if not isinstance(self.target, str):
            raise refusal_at("target", f"'target' must be a text (got {self.target!r})")
        classes = as_tuple(self.favourable)
        if classes is None:
            raise refusal_at(
                "favourable", f"'favourable' must be a list of classes (got {self.favourable!r})"
            )
        for name in classes:
            if not isinstance(plain(name), (str, bool, int, float)):
                raise refusal_at("favourable", f"a class must be a text or a number (got {name!r})")
        if len({class_key(plain(name)) for name in classes}) != len(classes):
            raise refusal_at(
                "favourable",
                f"'favourable' lists a class twice (got {list(classes)!r}); remove one of them",
            )
        object.__setattr__(self, "favourable", tuple(plain(name) for name in classes))
        if not is_finite(self.threshold) or not 0 <= self.threshold < 1:
            raise refusal_at(
                "threshold", f"'threshold' must be a number in [0, 1) (got {self.threshold!r})"
            )
        if (
            not is_finite(self.margin)
            or not 0 <= self.margin < 1
            or self.threshold + self.margin >= 1
        ):
            raise refusal_at(
                "margin",
                f"'margin' must be at least 0 and leave room below 1 (got {self.margin!r} "
                f"above a threshold of {self.threshold!r})",
            )

    def required(self, limits: Limits = NO_LIMITS) -> float:
        """The score that must be exceeded, with the larger of the two margins.

        A margin of the limits that no score can keep is refused.
        """
        if limits.margin and self.threshold + limits.margin >= 1:
            raise InvalidSetting(
                f"'margin' must leave room below 1 (got {limits.margin!r} in the limits, above a "
                f"threshold of {self.threshold!r}); no score is above that: give a smaller one"
            )
        return self.threshold + max(self.margin, limits.margin)


@dataclass(frozen=True)
class Offer:
    """What somebody would get: the loan, its months, each month's payment and all of them."""

    amount: float
    months: int | None = None
    monthly: float | None = None
    in_all: float | None = None


@dataclass(frozen=True)
class Asked:
    """The loan applied for: which features hold its amount and the months to pay it back.

    ``rate`` is the yearly interest, as a share. Facts to show; no plan depends on them.

    >>> offer = Asked("amount", "months", 0.06).offer({"amount": 1200, "months": 12})
    >>> offer.months, round(offer.monthly, 2), round(offer.in_all, 2)
    (12, 103.28, 1239.36)
    """

    amount: str
    months: str = ""
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and not (is_finite(self.rate) and 0 <= self.rate < 1):
            raise refusal_at("rate", f"'rate' must be a share in [0, 1) (got {self.rate!r})")

    def offer(self, record: Mapping[str, Any]) -> Offer | None:
        """The loan of a record; None where its amount is not known."""
        amount = record.get(self.amount)
        months = record.get(self.months) if self.months else None
        if amount is None:
            return None
        if not months or self.rate is None:
            return Offer(float(amount), int(months) if months else None)
        part = self.rate / 12
        monthly = amount * part / (1 - (1 + part) ** -months) if part else amount / months
        return Offer(float(amount), int(months), float(monthly), float(monthly * months))


@dataclass(frozen=True)
class Archetype:
    """A kind of person: mean and spread of the weights, ``(p,)`` each, and a share."""

    name: str
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    share: float = 1.0

    def __post_init__(self) -> None:
        where = f"archetype '{self.name}'"
        if not isinstance(self.name, str) or not self.name:
            raise refusal_at("name", f"an archetype's 'name' must be a text (got {self.name!r})")
        for key in ("mean", "spread"):
            content = tuple(plain(number) for number in getattr(self, key))
            if not all(is_finite(number) for number in content):
                raise refusal_at(key, f"{where}: '{key}' must be finite numbers (got {content!r})")
            object.__setattr__(self, key, content)
        if not all(number > 0 for number in self.spread):
            raise refusal_at("spread", f"{where}: 'spread' must be positive (got {self.spread!r})")
        if not is_finite(self.share) or not self.share > 0:
            raise refusal_at(
                "share", f"{where}: 'share' must be a positive number (got {self.share!r})"
            )


UNLIKE_ANYONE = 0.1
"""Share of people who are like none of the archetypes."""


@dataclass(frozen=True, init=False, repr=False)
class Problem:
    """What people can change, what it costs them, and what decision they need: everything but the
    model and the person.

    Parameters
    ----------
    space
        The features: a list of :class:`Feature`, or a :class:`FeatureSpace`.
    actions
        What can be changed: a list of :class:`Action`, or an :class:`ActionSpace`.
    costs
        A :class:`CostGraph` where its settings are not the usual ones; else give ``edges``.
    goal
        When a decision is favourable.
    max_length
        Most changes of a plan.
    name
        What the problem is called.
    weight_range, default_range
        (low, high) by weight name, within which experts expect most people's weights, and the range
        of the weights left out.
    archetypes
        Kinds of people, with the mean and the spread of their weights.
    model, prior
        Where those are kept, as a path relative to the problem's file, or the model's address.
    asked
        The features that hold the amount and the months applied for.
    interface
        How the model is called and how it answers, where the model itself does not say.
    words
        Labels and phrases of features and actions in further languages.
    edges
        Pairs (parent, child) of feature names: a higher value of the parent makes changes of
        the child harder.

    Raises
    ------
    InvalidProblem
        Where the parts contradict themselves or each other.

    Examples
    --------
    >>> problem = Problem(
    ...     [Feature("income", scale=(0, 5_000), unit="€"), Feature("savings", scale=(0, 20_000))],
    ...     [Action("earn", "income", "add", (100.0, 500.0)),
    ...      Action("save", "savings", "add", (1_000.0,))],
    ...     edges=[("income", "savings")],
    ... )
    >>> problem
    Problem('recourse': 2 features, 2 actions with 3 choices, 1 edge, at most 5 changes)
    >>> problem.weight_names
    ('income', 'savings', 'income->savings')
    """

    space: FeatureSpace
    actions: ActionSpace
    costs: CostGraph
    goal: Goal
    max_length: int
    name: str
    weight_range: Mapping[str, tuple[float, float]]
    default_range: tuple[float, float]
    archetypes: tuple[Archetype, ...]
    model: str
    prior: str
    asked: Asked | None
    words: Mapping[str, Words]
    interface: Interface

    def __init__(
        self,
        space: FeatureSpace | Iterable[Feature],
        actions: ActionSpace | Iterable[Action],
        costs: CostGraph | None = None,
        goal: Goal | None = None,
        max_length: int = 5,
        name: str = "recourse",
        weight_range: Mapping[str, tuple[float, float]] | None = None,
        default_range: tuple[float, float] = (1.0, 100.0),
        archetypes: Iterable[Archetype] = (),
        model: str = "",
        prior: str = "",
        asked: Asked | None = None,
        words: Mapping[str, Words] | None = None,
        interface: Interface | None = None,
        *,
        edges: Iterable[tuple[str, str]] | None = None,
    ) -> None:
        if not isinstance(space, FeatureSpace):
            space = FeatureSpace(tuple_of(Feature, space, "the features"))
        if not isinstance(actions, ActionSpace):
            actions = ActionSpace(space, tuple_of(Action, actions, "the actions"))
        if costs is not None and edges is not None:
            raise InvalidProblem("'edges' are in 'costs' already; give one of the two")
        pairs: Any = () if edges is None else edges
        costs = CostGraph(space, pairs) if costs is None else costs
        given = (space, actions, costs, goal or Goal(), max_length, name, weight_range or {})
        kinds = tuple_of(Archetype, archetypes, "'archetypes'")
        rest = (default_range, kinds, model, prior, asked, words or {})
        stated = (*given, *rest, interface or Interface())
        for stored, value in zip(fields(self), stated, strict=True):
            object.__setattr__(self, stored.name, value)
        self._check()

    def _check(self) -> None:
        tables = {"costs": CostGraph, "goal": Goal, "interface": Interface}
        for key, kind in {**tables, "weight_range": Mapping, "words": Mapping}.items():
            check_type(key, getattr(self, key), kind)
        if self.asked is not None:
            check_type("asked", self.asked, Asked)
        for said in self.words.values():
            check_type("words", said, Words)
        if self.actions.space != self.space or self.costs.space != self.space:
            raise InvalidProblem(
                "actions and costs must be over the problem's own features; give lists of features "
                "and actions, or build all three on one FeatureSpace"
            )
        if not is_whole(self.max_length) or self.max_length < 1:
            raise refusal_at(
                "max_length",
                f"'max_length' must be a whole number of at least 1 (got {self.max_length!r})",
            )
        for key in ("name", "model", "prior"):
            if not isinstance(getattr(self, key), str):
                raise refusal_at(key, f"'{key}' must be a text (got {getattr(self, key)!r})")
        self._check_ranges()
        self._check_asked()
        self._check_words()
        for entry in self.interface.inputs:
            entry.check(self.space[entry.source])
        names = [archetype.name for archetype in self.archetypes]
        if len(set(names)) != len(names):
            raise refusal_at("archetypes", f"the archetypes' names must differ (got {names!r})")
        for archetype in self.archetypes:
            if not len(archetype.mean) == len(archetype.spread) == self.costs.n_weights:
                raise refusal_at(
                    "archetypes",
                    f"archetype '{archetype.name}' must give mean and spread of all "
                    f"{self.costs.n_weights} weights",
                )

    def __repr__(self) -> str:
        def counted(n: int, name: str) -> str:
            return f"{n} {name}" if n == 1 else f"{n} {name}s"

        actions = counted(len(self.actions.actions), "action")
        return (
            f"Problem({self.name!r}: {counted(len(self.space), 'feature')}, {actions} with "
            f"{counted(len(self.actions), 'choice')}, {counted(len(self.costs.edges), 'edge')}, "
            f"at most {counted(self.max_length, 'change')})"
        )

    def to_frame(self) -> pd.DataFrame:
        """The features, a row each, with the actions that change them."""
        return problem_frame(self)

    def _repr_html_(self) -> str:
        return html_table(repr(self), self.to_frame())

    def _check_ranges(self) -> None:
        known = self.costs.weight_names
        for name in self.weight_range:
            if name not in known:
                raise refusal_at(
                    toml_path("weights", "ranges", name),
                    f"there is no weight {name!r}; the weights are {', '.join(known)}",
                )
        ranges = {name: _range(name, pair) for name, pair in self.weight_range.items()}
        object.__setattr__(self, "weight_range", ranges)
        object.__setattr__(self, "default_range", _range("default", self.default_range))

    def _check_asked(self) -> None:
        for key in ("amount", "months") if self.asked else ():
            name = getattr(self.asked, key)
            known = [feature.name for feature in self.space.features if feature.is_number]
            if (name or key == "amount") and name not in known:
                raise refusal_at(
                    f"asked.{key}",
                    f"'{key}' must name a feature that is a number (got {name!r}); "
                    f"these are {', '.join(known)}",
                )

    def _check_words(self) -> None:
        for language, said in self.words.items():
            known = {
                "labels": self.space.names,
                "units": self.space.names,
                "categories": tuple(f.name for f in self.space.features if f.is_categorical),
                "phrases": tuple(action.name for action in self.actions.actions),
            }
            for key, names in known.items():
                for name in getattr(said, key):
                    if name not in names:
                        raise refusal_at(
                            toml_path("words", language, key, name),
                            f"there is nothing called {name!r}; there are {', '.join(names)}",
                        )
            for name, categories in said.categories.items():
                for category in categories:
                    if category not in self.space[name].categories:
                        raise refusal_at(
                            toml_path("words", language, "categories", name, category),
                            f"'{name}' has no category {category!r}; "
                            f"it has {', '.join(self.space[name].categories)}",
                        )
            for name, template in said.phrases.items():
                check_phrase(f"action '{name}' in the language '{language}'", template)

    def in_language(self, language: str) -> Problem:
        """The same problem, said in another language; English is what it says by itself.

        States, moves and the fingerprint are the same. What has no words in that language stays as
        it is, with numbers in the style of the language.
        """
        said = self.words.get(language, Words())
        features = tuple(
            replace(
                feature,
                language=language,
                label=said.labels.get(feature.name, feature.label),
                unit=said.units.get(feature.name, feature.unit),
                category_words=tuple(said.categories.get(feature.name, {}).items()),
            )
            for feature in self.space.features
        )
        actions = tuple(
            replace(action, phrase=said.phrases.get(action.name, action.phrase))
            for action in self.actions.actions
        )
        return replace(self._said_with(features, actions), words={})

    def with_unused(self, names: Collection[str]) -> Problem:
        """The same problem, in which the model uses all features but these."""
        features = tuple(replace(f, used=f.name not in names) for f in self.space.features)
        return self._said_with(features, self.actions.actions)

    def _said_with(self, features: tuple[Feature, ...], actions: tuple[Action, ...]) -> Problem:
        space = FeatureSpace(features)
        costs = replace(self.costs, space=space)
        return replace(self, space=space, actions=ActionSpace(space, actions), costs=costs)

    def say(self, step: Step) -> str:
        """A step of a plan for this problem, in the words of this problem's language."""
        feature = self.space[step.feature]
        action = next(action for action in self.actions.actions if action.name == step.action)
        return phrase(
            action, feature, feature.code(step.before), feature.code(step.after), step.argument
        )

    def longest(self, limits: Limits = NO_LIMITS) -> int:
        """Most changes of a plan for somebody with these limits."""
        return min(self.max_length, limits.max_steps or self.max_length)

    @property
    def weight_names(self) -> tuple[str, ...]:
        return self.costs.weight_names

    @property
    def weight_ranges(self) -> Floats:
        """Expert ranges of all weights, shape ``(p, 2)``."""
        return np.array(
            [self.weight_range.get(n, self.default_range) for n in self.weight_names], float
        )

    def states(self, people: PeopleLike) -> Floats:
        """People as states, shape ``(n, d)``: see :meth:`FeatureSpace.encode`."""
        return self.space.encode(people)

    def state(self, person: PersonLike) -> Floats:
        """One person as a state, shape ``(d,)``; a table of more than one row is refused."""
        states = self.space.encode(person)
        if len(states) != 1:
            raise InvalidSetting(f"one person was expected (got {len(states)} rows)")
        return np.asarray(states[0])

    @cached_property
    def usual_weights(self) -> Floats:
        """What experts expect of people on average, shape ``(p,)``: the prior's mean."""
        middle = self.weight_ranges.mean(axis=1)
        if not self.archetypes:
            return np.asarray(middle)
        shares = np.array([archetype.share for archetype in self.archetypes])
        known = shares / shares.sum() @ np.array([archetype.mean for archetype in self.archetypes])
        return np.asarray((1 - UNLIKE_ANYONE) * known + UNLIKE_ANYONE * middle)

    def weights(self, given: Mapping[str, float] | Floats | None = None) -> Floats:
        """Weights of one person as samples, shape ``(s, p)``.

        Parameters
        ----------
        given
            One vector ``(p,)``, samples ``(s, p)``, or a number for each weight by name: a dict or
            a row of a table, or a table for samples. Left out: :attr:`usual_weights`.

        Raises
        ------
        InvalidSetting
            Where there are too few or too many, or one is not a finite number.
        """
        if given is None:
            return self.usual_weights[None]
        return np.atleast_2d(self.costs.check_weights(self._by_name(given)))

    def weights_of(self, n: int, given: Mapping[str, float] | Floats | None = None) -> Floats:
        """Weights of n people as samples of each, shape ``(n, s, p)``.

        As :meth:`weights`; but a matrix holds one vector per person ``(n, p)``, and samples are
        ``(n, s, p)``, or ``(1, s, p)`` for everybody.
        """
        each = self.usual_weights if given is None else self._by_name(given)
        if np.ndim(each) == 3:
            samples = np.asarray(each, float)
            self.costs.check_weights(samples.reshape(-1, samples.shape[2]))
            return as_samples(samples, n)
        return as_samples(self.costs.check_weights(each), n)

    def _by_name(self, given: Any) -> Any:
        if isinstance(given, pd.DataFrame):
            return np.stack([self._by_name(row) for _, row in given.iterrows()])
        if not isinstance(given, (Mapping, pd.Series)):
            return given
        given = dict(given)
        absent = [name for name in self.weight_names if name not in given]
        if absent:
            raise InvalidSetting(f"weights are missing for {', '.join(absent)}")
        unknown = [name for name in given if name not in self.weight_names]
        if unknown:
            raise InvalidSetting(
                f"there is no weight {unknown[0]!r}; the weights are {', '.join(self.weight_names)}"
            )
        return np.array([given[name] for name in self.weight_names], float)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything that decides what plans exist and what they cost.

        Labels, phrases and other words are left out: they change no plan.
        """
        content = {
            "features": [_without(asdict(f), *SAID_OF_FEATURES) for f in self.space.features],
            "actions": [_decides(action) for action in self.actions.actions],
            "edges": self.costs.edges,
            "cost": [self.costs.floor, self.costs.offset, self.costs.zero_change],
            "goal": _without(asdict(self.goal), *SAID_OF_THE_GOAL),
            "max_length": self.max_length,
        }
        text = json.dumps(_canonical(content), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def make_plan(
        self,
        start: Floats,
        moves: Sequence[int],
        weights: Floats,
        scores: Floats,
        certificate: Certificate,
        *,
        limits: Limits = NO_LIMITS,
        method: str = "exact",
        model_fingerprint: str = "",
    ) -> Plan:
        """A :class:`Plan` from a sequence of moves; see :func:`pear.problem.plan.make_plans`."""
        [plan] = make_plans(
            self, [start], [moves], [weights], [scores], [certificate],
            limits=[limits], method=method, model_fingerprint=model_fingerprint,
        )  # fmt: skip
        return plan


def _range(name: str, pair: Any) -> tuple[float, float]:
    key = "weights.default" if name == "default" else toml_path("weights", "ranges", name)
    ends = as_tuple(pair)
    if ends is None or len(ends) != 2 or not all(is_finite(end) for end in ends):
        raise refusal_at(key, f"the range of weight '{name}' must be two numbers (got {pair!r})")
    if not ends[0] < ends[1]:
        raise refusal_at(key, f"the range of weight '{name}' must increase (got {list(ends)!r})")
    return plain(ends[0]), plain(ends[1])


def _without(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in keys}


def _decides(action: Action) -> dict[str, Any]:
    """What decides which plans an action gives; no tolerance is left out, so that the fingerprints
    of older plans still match."""
    content = _without(asdict(action), *SAID_OF_ACTIONS)
    return content if action.tolerance else _without(content, "tolerance")


def _canonical(content: Any) -> Any:
    """Plain data in which equal numbers look equal: 1 and 1.0 are both 1.0."""
    if isinstance(content, Mapping):
        return {str(key): _canonical(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_canonical(value) for value in content]
    content = plain(content)
    return float(content) if is_finite(content) else content
