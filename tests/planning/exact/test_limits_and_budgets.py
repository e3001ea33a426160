"""Where the search ends early or has nothing to do: its verdict, its bound, its budget."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.decision import BlackBox
from pear.errors import BudgetTooSmall, InvalidRecord, InvalidSetting
from pear.planning.exact import ExactPlanner, ScoreMemory, asking
from pear.planning.planner import Memory
from pear.problem import Limits
from tests.planning.exact.small_problems import Case, brute_force, cases
from tests.planning.exact.test_ties_and_batches import accepts, flags


def test_someone_already_favourable_has_nothing_to_do():
    problem = flags(floor=None)
    planner = ExactPlanner(problem, accepts(problem, "", "a"))
    # Even where a change would cost less than nothing.
    for plan in (
        planner.plan(np.zeros(4), np.full(4, -5.0)),
        *planner.plan_many(np.zeros((2, 4)), np.full(4, -5.0)),
        *planner.candidates(np.zeros(4), np.full((3, 4), -5.0), 3).plans,
    ):
        assert plan.success
        assert plan.steps == ()
        assert plan.cost == 0
        assert plan.certificate.verdict == "optimal"


def test_someone_who_can_change_nothing_has_no_plan():
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "a"))
    plan = planner.plan(np.ones(4), np.ones(4))
    assert plan.certificate.verdict == "infeasible"
    assert plan.certificate.rows == 1
    assert plan.certificate.blocking == ()
    assert not plan.success


def test_forbidding_everything_is_proven_infeasible_and_names_what_blocks():
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "b"))
    limits = Limits(features=("a", "b", "c", "d"))
    plan = planner.plan(np.zeros(4), np.ones(4), limits)
    assert plan.certificate.verdict == "infeasible"
    assert plan.certificate.blocking == (("no change of b",),)
    by_action = Limits(actions=tuple(action.name for action in problem.actions.actions))
    plan = planner.plan(np.zeros(4), np.ones(4), by_action)
    assert plan.certificate.blocking == (("no action on_b",),)


def test_a_pair_of_limits_is_named_when_no_single_one_opens_a_plan():
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "ac"))
    limits = Limits(features=("a", "b"), values=(("c", 1.0),), max_steps=3)
    plan = planner.plan(np.zeros(4), np.ones(4), limits)
    assert plan.certificate.blocking == (("no change of a", "not c = 1.0"),)
    [same] = planner.plan_many(np.zeros((1, 4)), np.ones(4), [limits])
    assert same.certificate.blocking == plan.certificate.blocking


def test_steps_and_margin_are_named_too():
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "abc"))
    plan = planner.plan(np.zeros(4), np.ones(4), Limits(max_steps=2))
    assert plan.certificate.blocking == (("at most 2 steps",),)
    plan = planner.plan(np.zeros(4), np.ones(4), Limits(margin=0.45))
    assert plan.certificate.blocking == (("a margin of 0.45",),)
    plan = planner.plan(np.zeros(4), np.ones(4), Limits(margin=0.45, max_steps=2))
    assert plan.certificate.blocking == (("at most 2 steps", "a margin of 0.45"),)


def test_what_blocks_has_a_budget_of_its_own_shared_by_all_limits_tried():
    problem = flags("abcdefgh", max_length=8)
    black_box = accepts(problem)
    planner = ExactPlanner(problem, black_box, max_rows=40, first_batch=4)
    limits = Limits(features=tuple("abcdef"))
    plan = planner.plan(np.zeros(8), np.ones(8), limits)
    assert plan.certificate.verdict == "infeasible"
    assert plan.certificate.blocking == ()
    assert plan.certificate.rows <= 40
    assert black_box.rows <= 3 * 40  # the plan, single limits, pairs of limits


@settings(max_examples=40, deadline=None)
@given(cases(samples=6), st.integers(60, 90))
def test_candidates_share_one_budget_and_their_bounds_hold(case, max_rows):
    asked = case.black_box.rows
    planner = ExactPlanner(case.problem, case.black_box, max_rows=max_rows, first_batch=3)
    plans = planner.optima(case.state, case.weights, case.limits)
    assert case.black_box.rows - asked <= max_rows
    for weights, plan in zip(case.weights, plans, strict=True):
        best = brute_force(Case(case.problem, case.black_box, case.state, weights, case.limits))
        if plan.certificate.lower_bound is not None:
            assert plan.certificate.lower_bound <= best + 1e-6
        if plan.certificate.verdict == "infeasible":
            assert best == math.inf


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from([1e6, 1e9, 1e12]))
def test_weights_of_any_size_are_planned_as_well(case, size):
    large = Case(case.problem, case.black_box, case.state, case.weights * size, case.limits)
    plan = ExactPlanner(case.problem, case.black_box).plan(large.state, large.weights, large.limits)
    best = brute_force(large)
    assert plan.success == np.isfinite(best)
    if plan.success:
        assert plan.certificate.verdict == "optimal"
        assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-9 * size)


@settings(max_examples=40, deadline=None)
@given(cases(samples=6))
def test_candidates_are_distinct_optima_most_supported_first(case):
    planner = ExactPlanner(case.problem, case.black_box)
    optima = [plan.moves for plan in planner.optima(case.state, case.weights) if plan.success]
    found = planner.candidates(case.state, case.weights, 6).plans
    assert {plan.moves for plan in found} == set(optima)
    assert len({plan.moves for plan in found}) == len(found)
    support = [optima.count(plan.moves) for plan in found]
    assert support == sorted(support, reverse=True)
    assert [plan.moves for plan in planner.candidates(case.state, case.weights, 2).plans] == [
        plan.moves for plan in found[:2]
    ]


@settings(max_examples=40, deadline=None)
@given(cases(samples=6))
def test_a_survey_changes_the_rows_asked_and_not_the_plans(case):
    planner = ExactPlanner(case.problem, case.black_box)
    first, later = case.weights[:3], case.weights[3:]
    fresh = planner.candidates(case.state, first, 3)
    found = planner.candidates(case.state, first, 3, max_rows=200_000)
    assert [p.moves for p in found.plans] == [p.moves for p in fresh.plans]
    expected = planner.candidates(case.state, later, 3, case.limits)
    again = planner.candidates(case.state, later, 3, case.limits, memory=found.memory)
    assert [plan.moves for plan in again.plans] == [plan.moves for plan in expected.plans]
    assert again.rows <= expected.rows


def test_progress_is_told_and_only_ever_advances():
    problem = flags("abcdefgh", max_length=6)
    told = []
    planner = ExactPlanner(problem, accepts(problem, "abcdef"), first_batch=4, progress=told.append)
    plan = planner.plan(np.zeros(8), np.arange(2.0, 10.0))
    assert len(told) > 3
    assert all(a.rows <= b.rows for a, b in pairwise(told))
    assert all(a.lower_bound <= b.lower_bound + 1e-6 for a, b in pairwise(told))
    assert all(one.lower_bound <= plan.cost + 1e-9 for one in told)
    assert told[-1].open_queries <= told[-1].queries == 1
    assert told[-1].rows <= plan.certificate.rows


def test_settings_that_make_no_sense_are_refused():
    problem = flags()
    black_box = accepts(problem, "a")
    with pytest.raises(InvalidSetting, match="'max_length' must be a whole number of at least 1"):
        ExactPlanner(problem, black_box, max_length=0)
    with pytest.raises(InvalidSetting, match="'max_changes_per_feature' must be a whole"):
        ExactPlanner(problem, black_box, max_changes_per_feature=0)
    with pytest.raises(BudgetTooSmall, match="'max_rows' must be at least 8"):
        ExactPlanner(problem, black_box, max_rows=7)
    for seconds in (float("nan"), -1.0, "2"):
        with pytest.raises(InvalidSetting, match="'max_seconds' must be a number of at least 0"):
            ExactPlanner(problem, black_box, max_seconds=seconds)
    planner = ExactPlanner(problem, black_box, max_rows=20)
    with pytest.raises(InvalidRecord, match="row 0: 'b' cannot be nan in a state"):
        planner.plan(np.array([0.0, np.nan, 0.0, 0.0]), np.ones(4))
    with pytest.raises(InvalidSetting, match=r"one per person.* 2 people \(got shape \(3, 4\)\)"):
        planner.plan_many(np.zeros((2, 4)), np.ones((3, 4)))
    with pytest.raises(InvalidSetting, match=r"'limits' must be one per person \(got 1 for 2\)"):
        planner.plan_many(np.zeros((2, 4)), np.ones(4), [Limits()])


def test_a_budget_that_was_accepted_is_never_refused_later():
    problem = flags()
    for repeats in (1, 3):
        planner = ExactPlanner(
            problem, accepts(problem, "ab"), max_rows=8, max_changes_per_feature=repeats
        )
        assert planner.plan(np.zeros(4), np.ones(4)).certificate.rows <= 8
        assert len(planner.optima(np.zeros(4), np.ones((10, 4)))) == 10
        assert len(planner.plans_by_length(np.zeros(4), np.ones(4))) == 4


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_where_nothing_is_legal_or_time_is_up_every_call_says_so(seconds):
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "a"), max_seconds=seconds)
    nothing = Limits(features=tuple("abcd"))
    expected = {"infeasible"} if seconds is None else {"infeasible", "unknown"}
    plans = planner.optima(np.zeros(4), np.ones((3, 4)), nothing)
    plans += planner.plans_by_length(np.zeros(4), np.ones(4), nothing)
    assert {plan.certificate.verdict for plan in plans} <= expected
    assert planner.candidates(np.zeros(4), np.ones((3, 4)), 3, nothing).plans == ()


class SlowWorld:
    """Time that passes only when the model is asked, and a little whenever the clock is read."""

    def __init__(self, per_row, per_look=0.0):
        self.now, self.per_row, self.per_look = 100.0, per_row, per_look

    def monotonic(self):
        self.now += self.per_look
        return self.now

    def asked(self, problem):
        def score(states):
            self.now += self.per_row * len(states)
            return np.full(len(states), 0.1)

        return BlackBox(score, problem.space, problem.goal, fingerprint="slow")


@pytest.mark.parametrize("per_row", [0.0001, 0.001, 0.02])
@pytest.mark.parametrize("people", [1, 5])
def test_the_clock_ends_a_slow_model_within_a_tenth(monkeypatch, per_row, people):
    problem = flags("abcdefghijklmnop", max_length=8)
    world = SlowWorld(per_row)
    monkeypatch.setattr(asking.time, "monotonic", world.monotonic)
    planner = ExactPlanner(problem, world.asked(problem), max_rows=10**6, max_seconds=2.0)
    began = world.now
    plans = planner.plan_many(np.zeros((people, 16)), np.arange(2.0, 18.0))
    # Time for the scores along five plans of eight steps is kept back.
    assert 1.6 - people * 7 * per_row <= world.now - began <= 2.2
    for plan in plans:
        assert plan.certificate.verdict == "unknown"
        assert not plan.certificate.reproducible
        assert 0 < plan.certificate.lower_bound <= 16 * 17


def test_the_clock_ends_a_long_enumeration_too(monkeypatch):
    problem = flags("abcdefghijklmnopqrstuvwxyz", max_length=8)
    world = SlowWorld(per_row=0.0, per_look=0.02)
    monkeypatch.setattr(asking.time, "monotonic", world.monotonic)
    planner = ExactPlanner(problem, world.asked(problem), max_rows=10**6, max_seconds=1.0)
    began = world.now
    plan = planner.plan(np.zeros(26), np.arange(2.0, 28.0))
    assert world.now - began <= 1.1
    assert plan.certificate.verdict == "unknown"
    assert not plan.certificate.reproducible


def test_a_guard_that_was_never_near_leaves_the_result_reproducible():
    problem = flags()
    planner = ExactPlanner(problem, accepts(problem, "abc"), max_seconds=1e6, max_rows=8)
    plan = planner.plan(np.zeros(4), np.arange(2.0, 6.0))
    assert plan.certificate.verdict in ("unknown", "bounded")
    assert plan.certificate.reproducible
    free = ExactPlanner(problem, accepts(problem, "abc"), max_rows=8)
    assert free.plan(np.zeros(4), np.arange(2.0, 6.0)).moves == plan.moves


def test_a_memory_of_another_person_problem_or_model_is_refused():
    problem = flags()
    model = accepts(problem, "b", "ab")
    planner = ExactPlanner(problem, model)
    start, weights = np.zeros(4), np.ones((2, 4))
    memory = planner.candidates(start, weights, 2).memory
    again = planner.candidates(start, weights, 2, Limits(max_steps=1), memory=memory)
    assert [plan.moves for plan in again.plans] == [(1,)]
    shorter = flags(max_length=3)
    for other, person, what in (
        (planner, np.array([1.0, 0, 0, 0]), "person"),
        (ExactPlanner(problem, accepts(problem, "c")), start, "model"),
        (ExactPlanner(shorter, model), start, "problem"),
    ):
        with pytest.raises(InvalidSetting, match=f"'memory' is of another {what}"):
            other.candidates(person, weights, 2, memory=memory)
    with pytest.raises(InvalidSetting, match="'memory'"):
        planner.candidates(start, weights, 2, memory=Memory())
    with pytest.raises(InvalidSetting, match="'memory'"):
        planner.candidates(start, weights, 2, memory=ScoreMemory())


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("first_batch", 0),
        ("first_batch", 1.5),
        ("look_inside", "no"),
        ("look_inside", 1),
        ("progress", "yes"),
        ("max_seconds", float("nan")),
        ("max_seconds", -1),
        ("max_seconds", "1s"),
        ("max_rows", 1e6),
        ("max_rows", True),
    ],
)
def test_settings_out_of_their_range_are_refused_when_the_planner_is_made(name, setting):
    problem = flags()
    with pytest.raises(InvalidSetting, match=f"'{name}'"):
        ExactPlanner(problem, accepts(problem, "a"), **{name: setting})
