"""How is an automaton learned? From successful plans of a sample of people.

Reference: paper, section "(Explainable) eFficient counterfActual REcourse": 300 people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from pear.arrays import Floats
from pear.decision import BlackBox
from pear.errors import FingerprintMismatch, InvalidSetting
from pear.planning.automaton.automaton import START, Automaton, Inputs
from pear.planning.automaton.tree import STOP, grow
from pear.planning.planner import Planner
from pear.problem import Limits, Plan, Problem, as_samples, walk
from pear.problem.features import States

SampleWeights = Callable[[int, np.random.Generator], Floats]
"""Draws weights of n people, shape ``(n, p)``."""


def train_automaton(
    problem: Problem,
    black_box: BlackBox,
    teacher: Planner,
    states: States,
    weights: Floats | SampleWeights,
    *,
    aware: bool = True,
    people: int = 300,
    margin: float = 0.2,
    max_depth: int = 5,
    min_people: int = 3,
    rng: np.random.Generator | None = None,
) -> Automaton:
    """An automaton from a teacher's plans for ``people`` of the refused among ``states``.

    ``teacher`` is any planner. ``weights`` is one vector ``(p,)`` for everybody (EFARE), one
    for each state ``(n, p)``, or a function that draws them (W-EFARE). ``margin`` asks the
    teacher for plans that pass the required score by so much, where it can: what only just works
    for one person fails for the next.
    """
    rng = rng or np.random.default_rng(0)
    if people < 1:
        raise InvalidSetting(f"'people' must be at least 1 (got {people!r})")
    if teacher.problem.fingerprint != problem.fingerprint:
        raise FingerprintMismatch(
            f"'teacher' plans for another problem ({teacher.problem.fingerprint}, this one is "
            f"{problem.fingerprint}); build it for this one"
        )
    states = np.atleast_2d(np.asarray(states, float))
    refused = np.flatnonzero(~black_box.favourable(states))
    if not len(refused):
        raise InvalidSetting("'states' holds nobody with an unfavourable decision to learn from")
    chosen = rng.permutation(refused)[:people]
    if callable(weights):
        theirs = np.asarray(weights(len(chosen), rng), float)
    else:
        given = problem.costs.check_weights(weights)
        theirs = as_samples(given, len(states))[chosen, 0]
    plans = teach(teacher, states[chosen], theirs, margin, rng)
    return automaton_from_plans(
        problem,
        plans,
        theirs,
        aware=aware,
        max_depth=max_depth,
        min_people=min_people,
        teacher=next((plan.method for plan in plans), ""),
    )


def teach(
    teacher: Planner, states: States, weights: Floats, margin: float, rng: np.random.Generator
) -> list[Plan]:
    """The teacher's plans for n people with a margin, without it where there is none."""
    top = 1 - teacher.problem.goal.threshold - 1e-9
    limits = Limits(margin=min(margin, top))
    plans = teacher.plan_many(states, weights, limits, rng.spawn(len(states)))
    failed = [i for i, plan in enumerate(plans) if not plan.success]
    if failed and margin:
        again = teacher.plan_many(states[failed], weights[failed], rngs=rng.spawn(len(failed)))
        for i, plan in zip(failed, again, strict=True):
            plans[i] = plan
    return plans


def automaton_from_plans(
    problem: Problem,
    plans: Sequence[Plan],
    weights: Floats,
    *,
    aware: bool = True,
    max_depth: int = 5,
    min_people: int = 3,
    teacher: str = "",
) -> Automaton:
    """An automaton from plans with the weights ``(n, p)`` or ``(p,)`` they were made for.

    Plans that fail, have no steps or are off the action grid teach nothing and are left out.
    """
    if max_depth < 1 or min_people < 1:
        raise InvalidSetting(
            "'max_depth' and 'min_people' must be at least 1 "
            f"(got {max_depth!r} and {min_people!r})"
        )
    each = np.broadcast_to(weights, (len(plans), np.shape(weights)[-1]))
    rows: dict[int, list[tuple[Floats, Floats, int]]] = defaultdict(list)
    used = 0
    for plan, theirs in zip(plans, each, strict=True):
        if plan.problem_fingerprint not in ("", problem.fingerprint):
            raise FingerprintMismatch("'plans' holds a plan of another problem; leave it out")
        if not (plan.success and plan.moves):
            continue
        used += 1
        way = walk(problem.state(plan.start), problem.actions, plan.moves)
        nodes, following = (START, *plan.moves), (*plan.moves, STOP)
        for state, node, move in zip(way, nodes, following, strict=True):
            rows[node].append((state, theirs, move))
    if not used:
        raise InvalidSetting("'plans' holds no successful plan with steps to learn from")
    inputs = Inputs(problem, aware)
    trees, usual = {}, np.zeros(len(problem.actions.actions))
    for node, seen in rows.items():
        states = np.array([state for state, _, _ in seen])
        theirs = np.array([weight for _, weight, _ in seen])[:, None]
        moves = np.array([move for _, _, move in seen], np.intp)
        if node == START:
            usual = np.median(inputs.function_costs(states, theirs), axis=0)
        trees[node] = grow(
            inputs.matrix(states, theirs), moves, max_depth=max_depth, min_people=min_people
        )
    return Automaton(problem, aware, trees, usual, used, teacher)
