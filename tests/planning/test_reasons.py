"""Reasons of any plan: every number they name is recomputed here one state at a time."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import FingerprintMismatch, InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.planning.neighbours import NeighboursPlanner
from pear.planning.planner import plan_from_moves
from pear.planning.reasons import explain, explain_plans, show_score
from pear.problem import Certificate, Limits, walk
from tests.planning.small_problems import random_people, small_model, small_problem

PROBLEM = small_problem()
MODEL = small_model(PROBLEM)
PLANNER = ExactPlanner(PROBLEM, MODEL)


def carry_out(state, moves):
    """Last state of a sequence, None where a step is not allowed."""
    for move in moves:
        if not PROBLEM.actions.allowed(state[None])[0, move]:
            return None
        state = PROBLEM.actions.apply(state[None], np.array([move]))[0]
    return state


def plan_of(state, moves, weights):
    return plan_from_moves(
        PLANNER, state, moves, weights, Certificate("heuristic"), method="by hand"
    )


people = st.integers(0, 10_000).map(
    lambda seed: [a[0] for a in random_people(PROBLEM, 1, np.random.default_rng(seed))]
)
sequences = st.lists(st.integers(0, len(PROBLEM.actions) - 1), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None)
@given(people, sequences)
def test_what_happens_without_a_step_is_true(person, moves):
    state, weights = person
    if carry_out(state, moves) is None:
        return
    for i, reason in enumerate(
        explain(PROBLEM, MODEL, plan_of(state, moves, weights), weights).reasons
    ):
        end = carry_out(state, moves[:i] + moves[i + 1 :])
        if end is None:
            assert reason.without.score is None
            assert reason.without.blocked
        else:
            assert reason.without.score == pytest.approx(MODEL.score(end[None])[0])
        assert reason.needed == (end is None or not MODEL.favourable(end[None])[0])


@settings(max_examples=150, deadline=None)
@given(people, sequences)
def test_the_cheaper_alternative_is_cheaper_possible_and_the_nearest(person, moves):
    state, weights = person
    if carry_out(state, moves) is None:
        return
    plan = plan_of(state, moves, weights)
    for i, reason in enumerate(explain(PROBLEM, MODEL, plan, weights).reasons):
        action = PROBLEM.actions.action_of[moves[i]]
        possible = []
        for other in np.flatnonzero(PROBLEM.actions.action_of == action):
            replaced = [*moves[:i], int(other), *moves[i + 1 :]]
            end = carry_out(state, replaced)
            cost = PROBLEM.costs.sequence_cost(state, PROBLEM.actions, replaced, weights)
            if other != moves[i] and end is not None and cost < plan.cost - 1e-9:
                possible.append((cost, bool(MODEL.favourable(end[None])[0])))
        enough = [cost for cost, good in possible if good]
        if enough:
            assert reason.cheaper.succeeds
            assert reason.cheaper.cost == pytest.approx(min(enough))
        elif possible:
            assert not reason.cheaper.succeeds
            assert reason.cheaper.cost == pytest.approx(max(cost for cost, _ in possible))
        elif reason.cheaper is not None:
            assert reason.cheaper.blocked


def test_every_step_of_an_optimal_plan_is_needed_and_nothing_cheaper_does():
    states, weights = random_people(PROBLEM, 60, np.random.default_rng(0))
    plans = PLANNER.plan_many(states, weights)
    steps = 0
    for plan, weight in zip(plans, weights, strict=True):
        for reason in explain(PROBLEM, MODEL, plan, weight).reasons:
            steps += 1
            assert reason.needed
            assert reason.cheaper is None or not reason.cheaper.succeeds
    assert steps > 30


def test_the_words_say_what_fails_with_the_numbers():
    state = PROBLEM.state({"age": 30.0, "income": 2.0, "debt": 0.0, "job": "none"})
    moves = [PROBLEM.actions.move("earn", 4.0), PROBLEM.actions.move("be promoted", "manager")]
    weights = np.array([1.0, 50.0, 1.0, 1.0, 0.0, 0.0])
    explained = explain(PROBLEM, MODEL, plan_of(state, moves, weights), weights)
    earn, promoted = (step.reason for step in explained.plan.steps)
    # Without the income of 3 there is no promotion; earning 1 leads to 3 + 4 - 6: enough.
    assert earn.startswith("Without this step you could not do a later one: change your job")
    assert "A cheaper choice, income 3, would do too: it reaches 0.73" in earn
    # 2 + 4 - 6 = 0: exactly one half, and the score must exceed it.
    assert promoted == "Without this step the score would be 0.50, not above 0.5."
    assert earn in explained.words()


def test_all_states_of_all_plans_are_scored_in_one_call():
    states, weights = random_people(PROBLEM, 10, np.random.default_rng(1))
    plans = PLANNER.plan_many(states, weights)
    calls = []
    original = MODEL.function

    def counting(batch):
        calls.append(len(batch))
        return original(batch)

    MODEL.function = counting
    try:
        explained = explain_plans(PROBLEM, MODEL, plans, weights.mean(axis=0))
    finally:
        MODEL.function = original
    assert len(calls) == 1
    assert len(explained) == 10


def test_a_planners_own_reason_is_kept_in_front():
    states, weights = random_people(PROBLEM, 30, np.random.default_rng(2))
    states[:, 0], states[:, 1] = 30.0, states[:, 1] + 4
    face = NeighboursPlanner(PROBLEM, MODEL, states, share=1.0, k=20)
    person = np.array([30.0, 0.0, 4.0, 0.0])
    plan = face.plan(person, weights[0])
    assert plan.success
    assert plan.length > 0
    explained = explain(PROBLEM, MODEL, plan, weights[0])
    for step, reason in zip(explained.plan.steps, explained.reasons, strict=True):
        assert step.reason.startswith("Taken from a person in the training data")
        assert reason.cheaper is None
        end = person.copy()
        for other in plan.steps:
            if other.feature != step.feature:
                end[PROBLEM.space.index(other.feature)] = PROBLEM.space[other.feature].code(
                    other.after
                )
        assert reason.without.score == pytest.approx(MODEL.score(end[None])[0])
        # Costs depend on the state before: they are counted anew, not taken off the sum.
        rest = [
            PROBLEM.space.index(other.feature)
            for other in plan.steps
            if other.feature != step.feature
        ]
        paid = PROBLEM.costs.change_costs(person, end, rest, weights[0]).sum()
        assert reason.without.cost == pytest.approx(paid)


def test_limits_decide_which_alternatives_are_open():
    state = PROBLEM.state({"age": 30.0, "income": 2.0, "debt": 0.0, "job": "clerk"})
    moves = [PROBLEM.actions.move("earn", 4.0)]
    weights = np.full(6, 50.0)
    free = explain(PROBLEM, MODEL, plan_of(state, moves, weights), weights)
    assert free.reasons[0].cheaper.argument == 2.0
    held = explain(
        PROBLEM,
        MODEL,
        plan_of(state, moves, weights),
        weights,
        Limits(values=(("income", 4.0),)),
    )
    assert held.reasons[0].cheaper.argument == 1.0


def test_a_plans_own_weights_and_limits_are_the_default():
    states, weights = random_people(PROBLEM, 12, np.random.default_rng(7))
    limits = [Limits(max_steps=1 + i % 3) for i in range(12)]
    plans = PLANNER.plan_many(states, weights, limits)
    for plan, weight, limit, found in zip(
        plans, weights, limits, explain_plans(PROBLEM, MODEL, plans), strict=True
    ):
        assert found.reasons == explain(PROBLEM, MODEL, plan, weight, limit).reasons


def test_plans_of_another_problem_or_without_weights_are_refused():
    plan = PLANNER.plan(random_people(PROBLEM, 1, np.random.default_rng(0))[0][0], np.ones(6))
    with pytest.raises(FingerprintMismatch, match="of another problem"):
        explain(small_problem(max_length=2), MODEL, plan)
    with pytest.raises(InvalidSetting, match="'weights' must be given"):
        explain(PROBLEM, MODEL, replace(plan, weights=()))


def test_a_plan_of_no_steps_has_no_reasons_and_everything_is_json():
    state = PROBLEM.state({"age": 30.0, "income": 9.0, "debt": 0.0, "job": "manager"})
    explained = explain(PROBLEM, MODEL, PLANNER.plan(state, np.ones(6)), np.ones(6))
    assert explained.reasons == ()
    states, weights = random_people(PROBLEM, 20, np.random.default_rng(5))
    for other in explain_plans(PROBLEM, MODEL, PLANNER.plan_many(states, weights), weights[0]):
        assert json.loads(json.dumps(other.to_dict(), allow_nan=False)) == json.loads(
            json.dumps(other.to_dict())
        )


@given(st.floats(0, 1), st.sampled_from([0.5, 0.6, 0.75]))
def test_a_score_never_looks_like_the_bar_when_it_is_not(score, bar):
    if abs(score - bar) > 1e-8:
        assert float(show_score(score, bar)) != bar


def test_moves_of_the_plan_are_untouched():
    states, weights = random_people(PROBLEM, 8, np.random.default_rng(3))
    for state, weight in zip(states, weights, strict=True):
        plan = PLANNER.plan(state, weight)
        explained = explain(PROBLEM, MODEL, plan, weight).plan
        assert explained.moves == plan.moves
        assert np.array_equal(
            walk(state, PROBLEM.actions, explained.moves)[-1],
            walk(state, PROBLEM.actions, plan.moves)[-1],
        )
