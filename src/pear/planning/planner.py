"""What every planner can do, so that everything above can swap them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.errors import InvalidSetting, ModelOutput
from pear.problem import NO_LIMITS, Limits, Plan, Problem
from pear.problem.plan import plans_along

Floats = NDArray[np.float64]


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


class Planner(Protocol):
    """Finds plans for people.

    A planner is built on a problem and a black box and then asked about people. It always
    returns a plan object with a certificate; ``plan.success`` says whether it is one. How many
    rows were asked of the model for a plan is in its certificate: a black box may be shared,
    so its own count says nothing about one call.
    """

    @property
    def problem(self) -> Problem: ...

    @property
    def black_box(self) -> BlackBox: ...

    def plan(
        self,
        state: Floats,
        weights: Floats,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
    ) -> Plan:
        """The cheapest plan it finds from ``state`` ``(d,)``.

        ``weights`` is one vector ``(p,)``, or posterior samples ``(s, p)``: then one plan
        minimising the mean floored cost.
        """
        ...

    def plan_many(
        self,
        states: Floats,
        weights: Floats,
        limits: Limits | Sequence[Limits] = NO_LIMITS,
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> list[Plan]:
        """A plan for each of n people, the same as each would get alone.

        ``states`` is ``(n, d)``; ``weights`` ``(p,)`` for everybody, a row per person ``(n, p)``,
        or samples ``(n, s, p)``; ``limits`` everybody's or one per person; ``rngs`` one generator
        per person.
        """
        ...

    def candidates(
        self,
        state: Floats,
        samples: Floats,
        n: int,
        limits: Limits = NO_LIMITS,
        rng: np.random.Generator | None = None,
        *,
        memory: Memory | None = None,
        max_rows: int | None = None,
    ) -> Candidates:
        """At most n distinct successful plans, each the planner's best for some of the samples.

        ``memory`` is that of the last call for this person. ``max_rows`` asks for an answer
        within fewer model queries than the planner's own budget, where it has one.
        """
        ...


@dataclass(frozen=True)
class Proposals:
    """Different ways to a favourable decision, as moves, and the rows that finding them took."""

    plans: tuple[tuple[int, ...], ...]
    rows: int = 0


def proposals(
    planner: Planner,
    states: Floats,
    weights: Floats,
    rngs: Sequence[np.random.Generator],
    n: int,
) -> list[Proposals]:
    """Plans of each of m people ``(m, d)`` from one search for their weights ``(m, p)``.

    Two calls with other generators give other plans where the planner has any randomness.
    Planners that have no ``propose`` are asked for n candidates, one person after the other.
    """
    if not len(states):
        return []
    propose = getattr(planner, "propose", None)
    if propose is not None:
        found: list[Proposals] = propose(states, weights, rngs)
        return found
    each = [
        planner.candidates(state, own[None], n, rng=rng)
        for state, own, rng in zip(states, weights, rngs, strict=True)
    ]
    return [Proposals(tuple(plan.moves for plan in c.plans), c.rows) for c in each]


def confirm(problem: Problem, black_box: BlackBox, plans: Sequence[Plan]) -> None:
    """Refuse to hand out a plan whose last record the model does not accept by itself.

    The record is put together from the plan's own start and steps, and the model is asked about
    it alone, in the plainest way there is: what a lender would do with it.
    """
    for plan in plans:
        if not plan.success:
            continue
        record = dict(plan.start) | {step.feature: step.after for step in plan.steps}
        score, required = black_box.plainly(record), problem.goal.bar(plan.limits)
        if not score > required:
            raise ModelOutput(
                f"model '{black_box.name}' gave the end of a plan {plan.score:.6g} among others "
                f"and gives it {score:.6g} alone, where more than {required:g} is needed "
                f"({record}); such a plan is not handed out: look at what the model does with a "
                "single record"
            )


@dataclass
class Counted:
    """A score function that counts the rows one call of a planner asks."""

    score: Callable[[Floats], Floats]
    rows: int = 0

    def __call__(self, states: Floats) -> Floats:
        self.rows += len(states)
        return self.score(states)


def one_per_person(limits: Limits | Sequence[Limits], n: int) -> list[Limits]:
    """The limits of each of n people."""
    if isinstance(limits, Limits):
        return [limits] * n
    if len(limits) != n:
        raise InvalidSetting(f"'limits' must be one per person (got {len(limits)} for {n})")
    return list(limits)


def generators(
    rngs: Sequence[np.random.Generator] | None, n: int
) -> tuple[np.random.Generator, ...]:
    """A generator for each of n people; by default that of a call for one person alone."""
    if rngs is None:
        return tuple(np.random.default_rng(0) for _ in range(n))
    if len(rngs) != n:
        raise InvalidSetting(f"'rngs' must hold one generator per person (got {len(rngs)} for {n})")
    return tuple(rngs)


def by_limits(
    plan_alike: Callable[[NDArray[np.intp], Limits], list[Plan]],
    limits: Limits | Sequence[Limits],
    n: int,
) -> list[Plan]:
    """Plans of n people for planners that plan together only people with the same limits.

    ``plan_alike`` gets the positions of people and their limits.
    """
    each = one_per_person(limits, n)
    plans: dict[int, Plan] = {}
    for limit in dict.fromkeys(each):
        alike = np.array([i for i, own in enumerate(each) if own == limit], np.intp)
        plans.update(zip(alike.tolist(), plan_alike(alike, limit), strict=True))
    return [plans[i] for i in range(n)]


def plan_from_moves(
    planner: Planner,
    state: Floats,
    moves: Any,
    weights: Floats,
    certificate: Any,
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
