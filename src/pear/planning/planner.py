"""What every planner can do, so that everything above can swap them.

A planner is built on a problem and a black box, and then asked about people. :class:`Planner` reads
what it is given in one place; each kind of planner implements two methods, for
:class:`Query` objects that are checked already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import InvalidSetting, ModelOutput
from pear.problem import NO_LIMITS, Certificate, Limits, Plan, Problem
from pear.problem.features import PeopleLike, PersonLike
from pear.problem.plan import plans_along
from pear.problem.values import check_type, is_whole

Weights = Mapping[str, float] | Floats
"""What changes cost: a number for each weight by name, or an array."""


class Memory:
    """What a planner keeps of one person between two questions about them.

    Only the planner that made it can read it, and only about the same start and model.
    """


@dataclass(frozen=True)
class Candidates:
    """Distinct successful plans, the best supported first, and what finding them took.

    ``rows`` counts the model queries of this call; ``memory`` makes the next call for the same
    person cheaper, and is None for planners that keep nothing.
    """

    plans: tuple[Plan, ...]
    rows: int = 0
    memory: Memory | None = None


@dataclass(frozen=True)
class Proposals:
    """Different ways to a favourable decision, as moves, and the rows that finding them took."""

    plans: tuple[tuple[int, ...], ...]
    rows: int = 0


@dataclass(frozen=True)
class Query:
    """One person: the ``state`` ``(d,)``, weights as ``samples`` ``(s, p)``, and limits."""

    state: Floats
    samples: Floats
    limits: Limits = NO_LIMITS
    rng: np.random.Generator | None = None

    def __post_init__(self) -> None:
        check_type("limits", self.limits, Limits)

    @property
    def generator(self) -> np.random.Generator:
        """The generator given, or one that is the same every time."""
        return np.random.default_rng(0) if self.rng is None else self.rng


class Planner(ABC):
    """Finds plans for people.

    It always returns a plan object with a certificate; ``plan.success`` says whether there is a
    plan. How many rows were asked of the model is in the certificate: a black box may be shared,
    so its own count says nothing about one call.
    """

    problem: Problem
    black_box: BlackBox

    def plan(
        self,
        person: PersonLike,
        weights: Weights | None = None,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> Plan:
        """The cheapest plan it finds for one person.

        Parameters
        ----------
        person
            A record, a row of a table, a table of one row, or a state ``(d,)``.
        weights
            What changes cost them: a number for each weight by name, one vector ``(p,)``, or
            samples ``(s, p)``: then the plan of least mean floored cost. Left out: the mean of
            what the problem says of people (:attr:`Problem.usual_weights`).
        limits
            What they cannot do.
        rng
            Where the planner is random; the same seed gives the same plan.

        Raises
        ------
        InvalidRecord
            Where the person does not fit the problem, naming the feature and the value.
        InvalidSetting
            Where the weights or limits do not.
        ModelOutput
            Where the model refuses the end of the plan when it is asked about it alone.
        """
        state, samples = self.problem.state(person), self.problem.weights(weights)
        plans = self._plan_each([Query(state, samples, limits, rng)])
        confirm(self.problem, self.black_box, plans)
        return plans[0]

    def plan_many(
        self,
        people: PeopleLike,
        weights: Weights | None = None,
        limits: Limits | Sequence[Limits] = NO_LIMITS,
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Plan]:
        """A plan for each of n people, the same as each would get alone.

        Parameters
        ----------
        people
            A table, a list of records or rows, or states ``(n, d)``.
        weights
            By name or ``(p,)`` for everybody, a row per person ``(n, p)``, or samples
            ``(n, s, p)``, or ``(1, s, p)`` for everybody.
        limits
            Everybody's, or one per person.
        rngs
            A generator per person.

        Raises
        ------
        InvalidRecord
            Where somebody does not fit the problem, naming the row, the feature and the value.
        InvalidSetting
            Where weights, limits or generators do not fit, or are not as many as people.
        ModelOutput
            Where the model refuses the end of a plan when it is asked about it alone.
        """
        states = self.problem.states(people)
        n = len(states)
        if not n:
            return []
        samples, each = self.problem.weights_of(n, weights), one_per_person(limits, n)
        if rngs is not None and len(rngs) != n:
            raise InvalidSetting(
                f"'rngs' must hold one generator per person (got {len(rngs)} for {n})"
            )
        plans = self._plan_each(
            [
                Query(states[i], samples[i], each[i], None if rngs is None else rngs[i])
                for i in range(n)
            ]
        )
        confirm(self.problem, self.black_box, plans)
        return plans

    def candidates(
        self,
        person: PersonLike,
        samples: Weights,
        n: int,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
        *,
        memory: Memory | None = None,
        max_rows: int | None = None,
    ) -> Candidates:
        """At most n distinct successful plans, each the planner's best for some of the samples.

        Parameters
        ----------
        person, limits, rng
            As in :meth:`plan`.
        samples
            Weights ``(s, p)`` to plan for.
        n
            Most plans.
        memory
            That of the last call for this person.
        max_rows
            Asks for an answer within fewer model queries than the planner's own budget.

        The plans are to choose from: their ends are not asked once more alone, as that of
        :meth:`plan` is, and as a session does before it hands out its result.

        Raises
        ------
        InvalidRecord
            Where the person does not fit the problem, naming the feature and the value.
        InvalidSetting
            Where another setting does not, or the memory is of another person, problem or model.
        """
        check_count("n", n)
        if max_rows is not None:
            check_count("max_rows", max_rows)
        check_type("memory", Memory() if memory is None else memory, Memory)
        query = Query(self.problem.state(person), self.problem.weights(samples), limits, rng)
        return self._candidates(query, n, memory, max_rows)

    def plans_by_length(
        self, person: PersonLike, weights: Weights | None = None, limits: Limits = NO_LIMITS
    ) -> list[Plan]:
        """The cheapest plan with at most 1, 2, 3… changes, by planners that find all in one pass.

        Others give none. Parameters as in :meth:`plan`.
        """
        return []

    def propose(
        self,
        states: Floats,
        weights: Floats,
        rngs: Sequence[np.random.Generator],
        n: int,
    ) -> list[Proposals]:
        """Plans for each of m people ``(m, d)``, from one search for their weights ``(m, p)``.

        Calls with different generators may give different plans, if the planner is random.
        Planners that search for one person at a time are asked for n candidates.
        """
        found = []
        for state, own, rng in zip(states, weights, rngs, strict=True):
            mine = self.candidates(state, own[None], n, rng=rng)
            found.append(Proposals(tuple(plan.moves for plan in mine.plans), mine.rows))
        return found

    @abstractmethod
    def _plan_each(self, queries: Sequence[Query]) -> list[Plan]:
        """A plan for each of some people whose samples are equally many."""

    @abstractmethod
    def _candidates(
        self, query: Query, n: int, memory: Memory | None, max_rows: int | None
    ) -> Candidates:
        """As :meth:`candidates`."""


def by_limits(
    queries: Sequence[Query], plan_alike: Callable[[list[Query], Limits], list[Plan]]
) -> list[Plan]:
    """Plans for planners that plan together only people with the same limits."""
    plans: dict[int, Plan] = {}
    for limits in dict.fromkeys(query.limits for query in queries):
        alike = [i for i, query in enumerate(queries) if query.limits == limits]
        plans |= zip(alike, plan_alike([queries[i] for i in alike], limits), strict=True)
    return [plans[i] for i in range(len(queries))]


def check_parts(problem: Any, black_box: Any) -> None:
    """Refuse what is not a problem, or not a black box, or one that was made for another."""
    check_type("problem", problem, Problem)
    if not isinstance(black_box, BlackBox):
        raise InvalidSetting(
            f"'black_box' must be a BlackBox (got {black_box!r:.100}); "
            "give load_model(model, problem)"
        )
    black_box.check_problem(problem)


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a whole number of at least 1."""
    if not is_whole(value) or value < 1:
        raise InvalidSetting(f"'{name}' must be a whole number of at least 1 (got {value!r})")


def one_per_person(limits: Limits | Sequence[Limits], n: int) -> list[Limits]:
    """The limits of each of n people."""
    if isinstance(limits, Limits):
        return [limits] * n
    if isinstance(limits, (str, Mapping)) or not isinstance(limits, Sequence):
        raise InvalidSetting(f"'limits' must be a Limits, or one per person (got {limits!r:.100})")
    if len(limits) != n:
        raise InvalidSetting(f"'limits' must be one per person (got {len(limits)} for {n})")
    return list(limits)


def best_for_samples(costs: Floats, n: int) -> list[int]:
    """Which of q plans are cheapest for some sample, those of most samples first.

    ``costs`` ``(q, s)``. At most n are given; ties go to the earlier plan.

    >>> best_for_samples(np.array([[1.0, 9.0, 9.0], [5.0, 5.0, 5.0]]), 2)
    [1, 0]
    """
    if not costs.size:
        return []
    winners, wins = np.unique(costs.argmin(axis=0), return_counts=True)
    return [int(winner) for winner in winners[np.argsort(-wins, kind="stable")][:n]]


@dataclass
class Counted:
    """A score function that counts the rows one call of a planner asks."""

    score: Callable[[Floats], Floats]
    rows: int = 0

    def __call__(self, states: Floats) -> Floats:
        self.rows += len(states)
        return self.score(states)


def plan_from_moves(
    planner: Planner,
    state: Floats,
    moves: Sequence[int],
    weights: Floats,
    certificate: Certificate,
    *,
    limits: Limits = NO_LIMITS,
    method: str,
) -> Plan:
    """A plan with the score before and after each step, asked of the planner's black box."""
    [plan] = plans_along(
        planner.problem, state, [moves], [weights], planner.black_box.score, [certificate],
        limits=[limits], method=method, model_fingerprint=planner.black_box.fingerprint,
    )  # fmt: skip
    return plan


def confirm(problem: Problem, black_box: BlackBox, plans: Sequence[Plan]) -> None:
    """Refuse a plan whose last record the model does not accept when asked about it alone.

    The record is put together from the plan's own start and steps, and the model is asked about it
    alone and without any shortcut, as a lender would ask.
    """
    for plan in plans:
        if not plan.success:
            continue
        record = dict(plan.start) | {step.feature: step.after for step in plan.steps}
        score, required = black_box.score_record(record), problem.goal.required(plan.limits)
        if not score > required:
            raise ModelOutput(
                f"model '{black_box.name}' gave the end of a plan {plan.score:.6g} among others "
                f"and gives it {score:.6g} alone, where more than {required:g} is needed "
                f"({record}); such a plan is not handed out: check what the model does with a "
                "single record"
            )
