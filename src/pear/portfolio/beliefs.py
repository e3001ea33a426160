"""What is believed of each person of a portfolio: what do changes cost them, what can they not do?

Three answers: draws of the prior for everybody, a table with one row of weights per person in
the order of the people, or draws of what a conversation taught about some of them. A plan under
the prior is the one of least mean cost over few draws. They are spread over the kinds of people
in proportion to their shares, and centred within each kind: as few plain random draws would say
more about chance than about the prior.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Floats
from pear.elicitation.files import Conversation, row_name
from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.preferences import (
    Chosen,
    GaussianMixturePrior,
    ParticlePosterior,
    default_prior,
    stored_prior,
)
from pear.problem import NO_LIMITS, Limits, Problem
from pear.problem.files import prior_location
from pear.tables.people import ROWS_AT_A_TIME, name_of
from pear.tables.reading import Chunk, Source, open_table

SAMPLES = 32
"""Draws by default; more of them change no plan to speak of, and take longer."""

SEED = 0

LAPSE = 0.01
"""Share of answers taken as slips when predictions are judged, so that one does not decide all."""

PREFIX = "w:"
"""Weight columns may carry it, to tell them from the features of the same name."""


@dataclass(frozen=True)
class GroupWeights:
    """Weights ``(n, p)`` of n people, or samples of them ``(n, s, p)``; how the table of plans
    states each; by position why some have none; the limits of each, and whether anything they
    ``said`` is in this."""

    weights: Floats
    stated: list[str]
    limits: list[Limits]
    said: list[bool]
    without: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Everyone:
    """The same weights for everybody, and others for the ids in ``learned``; nothing that
    ``limits`` rule out for an id is ever in its plan.

    Each is ``(p,)``, or samples ``(s, p)``, the same number for all: then the plan of least
    mean cost is searched. ``stated`` is what the table of plans says of ``weights``, where
    that is not their numbers. Both come from so many ``conversations``, of which ``nameless``
    do not say whose they are, and are not used.
    """

    weights: Floats
    learned: Mapping[str, Floats] = field(default_factory=dict)
    stated: str = ""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    conversations: int = 0
    nameless: int = 0
    table: str = ""
    """Digest of the table planned for: some conversations name a row of it in place of an id."""

    def __post_init__(self) -> None:
        shape = np.shape(self.weights)
        for name, own in self.learned.items():
            if np.shape(own) != shape:
                raise InvalidSetting(
                    f"the weights of '{name}' must have the shape {shape} of everybody's "
                    f"(got {np.shape(own)})"
                )

    @classmethod
    def under(
        cls,
        prior: GaussianMixturePrior,
        samples: int = SAMPLES,
        conversations: Sequence[Conversation] = (),
    ) -> Everyone:
        """Draws of the prior; of their posterior for those who had a conversation, and the
        limits they stated there. With one sample, the mean."""
        learned = learned_weights(conversations, prior, samples)
        draws = prior_draws(prior, samples)
        return cls(
            draws if samples > 1 else draws[0],
            learned if samples > 1 else {name: own[0] for name, own in learned.items()},
            stated(draws) if samples > 1 else "",
            stated_limits(conversations),
            len(conversations),
            sum(not one.named for one in conversations),
        )

    @property
    def personal(self) -> bool:
        """Whether it says something about individual people."""
        return bool(self.learned or self.limits)

    @property
    def needs_ids(self) -> bool:
        """Whether it is about people who are not named by a row of this table."""
        own = f" of the table {self.table}"
        return any(not name.endswith(own) for name in (*self.learned, *self.limits))

    def _names(self, rows: Iterable[int], ids: Iterable[str]) -> list[str]:
        """The key of each of these people: their row, where a conversation names it, else their
        id."""
        if not self.personal:
            return list(ids)
        by_row = [row_name(row, self.table) for row in rows]
        return [
            name if name in self.learned or name in self.limits else own
            for name, own in zip(by_row, ids, strict=True)
        ]

    def check(self, problem: Problem) -> None:
        """Refuse weights that are too many, too few, or not finite numbers."""
        for own in (self.weights, *self.learned.values()):
            problem.costs.check_weights(own)

    @property
    def digest(self) -> str:
        """Hash of all the numbers."""
        content = hashlib.sha256(self.stated.encode())
        content.update(np.asarray(self.weights, float).tobytes())
        for name in sorted(self.learned):
            content.update(name.encode())
            content.update(np.asarray(self.learned[name], float).tobytes())
        limits = {name: self.limits[name].to_dict() for name in sorted(self.limits)}
        content.update(as_json(limits).encode())
        return content.hexdigest()

    def only(self, rows: Iterable[int], ids: Iterable[str]) -> Everyone:
        """What a chunk of these people needs, so that no more is sent to its worker."""
        here = self._names(rows, ids)
        return replace(
            self,
            learned={i: self.learned[i] for i in here if i in self.learned},
            limits={i: self.limits[i] for i in here if i in self.limits},
        )

    def of(self, rows: NDArray[np.int64], ids: list[str]) -> GroupWeights:
        """The weights of these people."""
        ids = self._names(rows.tolist(), ids)
        weights = np.array([self.learned.get(name, self.weights) for name in ids], float)
        common = self.stated or as_json(np.asarray(self.weights).tolist())
        learned = {i: as_json(np.asarray(self.learned[i]).tolist()) for i in self.learned}
        return GroupWeights(
            weights.reshape(len(ids), *np.shape(self.weights)),
            [learned.get(name, common) for name in ids],
            [self.limits.get(name, NO_LIMITS) for name in ids],
            [name in self.learned or name in self.limits for name in ids],
        )


@dataclass(frozen=True)
class Table:
    """One row of weights per person, in the same order as the people."""

    source: Source
    columns: tuple[str, ...]
    id_name: str | None

    @property
    def digest(self) -> str:
        """Hash of the table's content."""
        return self.source.digest

    def chunks(self, sizes: Iterable[int]) -> Iterator[TableChunk]:
        """Chunks that go with the chunks of the people."""
        for chunk in self.source.chunks(sizes):
            yield TableChunk(chunk, self.columns, self.id_name)


@dataclass(frozen=True)
class TableChunk:
    """Weights of the people of one chunk, as they stand in the table."""

    chunk: Chunk
    columns: tuple[str, ...]
    id_name: str | None

    def of(self, rows: NDArray[np.int64], ids: list[str]) -> GroupWeights:
        """The weights of these people, ``(n, p)``."""
        known = {int(row): i for i, row in enumerate(self.chunk.frame.index)}
        cells = self.chunk.frame[list(self.columns)].to_numpy(dtype=object)
        names = [name_of(v) for v in self.chunk.frame[self.id_name]] if self.id_name else None
        weights = np.zeros((len(rows), len(self.columns)))
        reasons: dict[int, str] = {}
        for position, row in enumerate(rows.tolist()):
            place = known.get(row)
            if place is None:
                broken = self.chunk.broken.get(row)
                ended = "the table ended"
                reasons[position] = f"no weights: {broken.reason if broken else ended}"
            elif names is not None and names[place] != ids[position]:
                reasons[position] = (
                    f"row {row} of the weights is of '{names[place]}', not of '{ids[position]}'; "
                    "put both tables in the same order"
                )
            elif (own := _numbers(cells[place])) is not None:
                weights[position] = own
            else:
                reasons[position] = (
                    f"the weights must be finite numbers (got {list(cells[place])!r})"
                )
        each = [as_json(own.tolist()) for own in weights]
        return GroupWeights(weights, each, [NO_LIMITS] * len(rows), [False] * len(rows), reasons)


Weights = Everyone | Table


def _numbers(cells: Iterable[Any]) -> Floats | None:
    """Cells as finite numbers; None where one is not."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def weights_table(path: str | Path, problem: Problem, id_name: str | None = None) -> Table:
    """The weights at a path: columns named as the problem's weights, with or without ``w:``."""
    source = open_table(path)
    prefixed = all(PREFIX + name in source.columns for name in problem.weight_names)
    columns = tuple(PREFIX + name if prefixed else name for name in problem.weight_names)
    absent = [name for name in columns if name not in source.columns]
    if absent:
        raise InvalidData(
            f"'{path}' lacks the weights {', '.join(absent)}; its columns must be the weights "
            f"{', '.join(problem.weight_names)}, one row per person"
        )
    first = next(source.chunks(ROWS_AT_A_TIME), None)
    rows: Any = () if first is None else first.frame[list(columns)].to_numpy(dtype=object)
    if len(rows) and all(_numbers(row) is None for row in rows):
        raise InvalidData(
            f"no row of '{path}' has weights that are finite numbers (the first holds "
            f"{list(rows[0])!r:.100}); give a table of numbers, one row per person"
        )
    name = id_name if id_name in source.columns else None
    return Table(source, columns, name)


def with_people(
    source: Source, weights: Weights, sizes: Callable[[], Iterable[int]]
) -> Iterator[tuple[Chunk, Any]]:
    """Chunks of people with their weights; weights of fewer or more people are refused."""
    if isinstance(weights, Everyone):
        for chunk in source.chunks(sizes()):
            yield chunk, weights
        return
    for chunk, own in zip_longest(source.chunks(sizes()), weights.chunks(sizes())):
        people, given = (chunk.size if chunk else 0), (own.chunk.size if own else 0)
        if people != given:
            first = chunk.first if chunk else own.chunk.first
            fewer, more = source.path, weights.source.path
            if people > given:
                fewer, more = more, fewer
            raise InvalidData(
                "the weights must have one row per person, in the same order; "
                f"'{fewer}' ends after {first + min(people, given):,} rows and '{more}' goes on"
            )
        yield chunk, own


def prior_draws(prior: GaussianMixturePrior, n: int, seed: int = SEED) -> Floats:
    """n weights ``(n, p)`` that stand for a prior; the same ones for the same seed.

    >>> prior = GaussianMixturePrior(
    ...     [[0.0], [10.0]], [[1.0], [1.0]], component_weights=[3, 1], background_weight=0
    ... )
    >>> draws = prior_draws(prior, 8)
    >>> (draws > 5).sum(), draws.mean().round(6)
    (np.int64(2), np.float64(2.5))
    """
    if n < 1:
        raise InvalidSetting(f"'samples' must be at least 1 (got {n!r})")
    if n == 1:
        return prior.mean()[None]
    edges = np.cumsum(prior.shares)
    places = (np.arange(n) + 0.5) / n * edges[-1]
    kinds = np.minimum(np.searchsorted(edges, places, side="right"), prior.n_components - 1)
    standard = np.random.default_rng(seed).standard_normal((n, prior.n_weights))
    for kind in np.unique(kinds):
        own = standard[kinds == kind]
        spread = np.sqrt(len(own) / max(1, len(own) - 1))
        standard[kinds == kind] = (own - own.mean(axis=0)) * spread
    # Rounded, so that the last digits of another machine's linear algebra do not change the draws.
    return np.asarray(np.round(prior.centres[kinds] + prior.coloured(standard, kinds), 6))


def stated(draws: Floats, seed: int = SEED) -> str:
    """How a table of plans states draws of the prior, in place of all their numbers.

    >>> stated(np.zeros((4, 2)))
    '{"prior_draws":4,"seed":0,"digest":"f5a5fd42d16a2030"}'
    """
    digest = hashlib.sha256((np.asarray(draws) + 0.0).tobytes()).hexdigest()[:16]
    return as_json({"prior_draws": len(draws), "seed": seed, "digest": digest})


def as_json(content: Any) -> str:
    """Plain data as compact JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def weights_from(text: str, n_weights: int, prior: GaussianMixturePrior | None) -> Floats:
    """Weights ``(s, p)`` that a table of plans states: numbers, or draws of the prior."""
    try:
        content = json.loads(text)
        if isinstance(content, dict):
            n, seed = int(content["prior_draws"]), int(content["seed"])
        else:
            weights = np.atleast_2d(np.array(content, float))
            if weights.ndim != 2 or weights.shape[1] != n_weights:
                raise ValueError(f"{n_weights} numbers are needed")
            return weights
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidData(f"these are not weights: {text[:80]!r} ({error})") from None
    if prior is None:
        raise InvalidSetting("the plans were made under a prior; give it, as 'pear plan' had it")
    draws = prior_draws(prior, n, seed)
    if json.loads(stated(draws, seed)) != content:
        raise FingerprintMismatch(
            "the plans were made under another prior; give the one they were made under "
            "with --prior"
        )
    return draws


def read_prior(problem: Problem, path: Path, prior: Path | None) -> GaussianMixturePrior:
    """The prior of a file, else the one the problem's file names, else the one it implies."""
    place = prior or prior_location(problem, path)
    return default_prior(problem) if place is None else stored_prior(place, problem)


@dataclass(frozen=True, eq=False)
class Prediction:
    """One conversation under one prior.

    ``log_likelihoods`` ``(q,)`` of each choice given those before it, and ``chance`` ``(q,)``
    what a guess would get; ``draws`` ``(m, p)`` and ``mean`` ``(p,)`` of the posterior.
    """

    log_likelihoods: Floats
    chance: Floats
    draws: Floats
    mean: Floats


def predict_choices(
    conversation: Conversation,
    prior: GaussianMixturePrior,
    rng: np.random.Generator,
    *,
    n_particles: int = 1_000,
    n_draws: int = 16,
) -> Prediction:
    """How well each choice was predicted from the prior and the answers before it.

    A choice is predicted by ``(1 - LAPSE) p + LAPSE / k``; other answers inform the posterior
    and are not judged.
    """
    count = max(n_particles, 10 * prior.n_components)
    posterior = ParticlePosterior.start(prior, conversation.response, rng, n_particles=count)
    scores, chance = [], []
    for question, answer in conversation.answered:
        if isinstance(answer, Chosen):
            costs = question.costs(posterior.samples)
            logs = posterior.sample_response().log_probabilities(costs)[:, answer.plan]
            likely = float(posterior.weights @ np.exp(logs))
            scores.append(np.log((1 - LAPSE) * likely + LAPSE / question.n_plans))
            chance.append(-np.log(question.n_plans))
        posterior = posterior.update(question, answer, rng)
    return Prediction(
        np.array(scores), np.array(chance), posterior.draw(n_draws, rng), posterior.mean()
    )


def learned_weights(
    conversations: Iterable[Conversation],
    prior: GaussianMixturePrior,
    samples: int,
) -> dict[str, Floats]:
    """Draws ``(samples, p)`` of the posterior of everyone who answered something, by id; with
    one sample, its mean. Conversations that do not say whose they are are left out.

    All answers of one person count, in the order of their conversations.
    """
    said: dict[str, Conversation] = {}
    for conversation in conversations:
        if conversation.named and conversation.answered:
            before = said.get(conversation.id)
            more = conversation.answered
            answered = more if before is None else before.answered + more
            said[conversation.id] = replace(conversation, answered=answered)
    learned = {}
    for number, (name, whole) in enumerate(said.items()):
        rng = np.random.default_rng([SEED, number])
        prediction = predict_choices(whole, prior, rng, n_particles=2_000, n_draws=samples)
        learned[name] = prediction.draws if samples > 1 else prediction.mean[None]
    return learned


def stated_limits(conversations: Iterable[Conversation]) -> dict[str, Limits]:
    """What everyone who said so cannot do, by id. A limit taken back does not count.

    What was ruled out in an earlier conversation of the same person still is, unless a later
    one speaks of it and ends without it.
    """
    found: dict[str, Limits] = {}
    for conversation in conversations:
        if conversation.named and conversation.limits_stated:
            before = found.get(conversation.id, NO_LIMITS)
            found[conversation.id] = _limits_after(before, conversation.limits_stated)
    return {name: limits for name, limits in found.items() if limits != NO_LIMITS}


def _limits_after(before: Limits, stated: Sequence[Limits]) -> Limits:
    last = stated[-1]

    def standing(key: str) -> tuple[Any, ...]:
        spoken_of = {item for one in stated for item in getattr(one, key)}
        kept = tuple(item for item in getattr(before, key) if item not in spoken_of)
        return kept + tuple(getattr(last, key))

    return Limits(
        features=standing("features"),
        actions=standing("actions"),
        values=standing("values"),
        max_steps=last.max_steps if any(s.max_steps for s in stated) else before.max_steps,
        margin=last.margin if any(s.margin for s in stated) else before.margin,
    )
