"""Bounds never exceed the cheapest order, and shells miss nothing below their threshold."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.planning.exact.assignments import below, bounds_of
from pear.planning.exact.codes import Codes
from pear.planning.exact.fronts import front_tables
from pear.planning.exact.levels import Group
from pear.planning.exact.options import build_tables
from pear.planning.exact.order import best_orders
from pear.problem import (
    NO_LIMITS,
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Problem,
)
from tests.planning.exact.small_problems import Case, brute_force, cases, random_model


def tables_of(case, max_changes=1):
    weights = np.atleast_2d(case.weights)[:, None]
    starts = np.repeat(case.state[None], len(weights), axis=0)
    limits = [case.limits] * len(weights)
    return build_tables(case.problem, starts, weights, limits, case.problem.max_length, max_changes)


def every_assignment(tables, lane):
    """Options of every assignment within the steps, and their codes."""
    valid = [np.flatnonzero(level.valid[lane]) for level in tables.levels]
    lasts = [level.last for level in tables.levels]
    chosen = [
        options
        for options in product(*valid)
        if 0
        < sum(o != last for o, last in zip(options, lasts, strict=True))
        <= tables.max_steps[lane]
    ]
    options = np.array(chosen, np.intp).reshape(len(chosen), len(valid))
    return options, tables.codes.encode(list(options.T))


@settings(max_examples=80, deadline=None)
@given(cases())
def test_no_bound_is_above_the_cheapest_order(case):
    tables = tables_of(case)
    options, words = every_assignment(tables, 0)
    bounds = bounds_of(tables, np.zeros(len(options), np.intp), words)
    for chosen, bound in zip(options, bounds, strict=True):
        moves = np.array(
            [
                level.moves[0, option]
                for level, option in zip(tables.levels, chosen, strict=True)
                if option != level.last
            ]
        )
        costs, _ = best_orders(case.problem, case.state, moves, tables.weights)
        assert bound <= costs[0] + 1e-6


@settings(max_examples=80, deadline=None)
@given(cases(samples=4), st.floats(-30, 60))
def test_a_shell_holds_all_assignments_below_its_threshold(case, threshold):
    tables = tables_of(case)
    lanes, thresholds = np.arange(4), np.full(4, threshold)
    shell = below(tables, lanes, thresholds, np.full(4, 10**6))
    assert not shell.dropped.any()
    for lane in range(4):
        options, words = every_assignment(tables, lane)
        bounds = bounds_of(tables, np.full(len(options), lane), words)
        expected = {tuple(w[i] for w in words) for i in np.flatnonzero(bounds < threshold)}
        mine = np.flatnonzero(shell.rows.lanes == lane)
        assert {shell.rows.key(i) for i in mine} == expected
        assert len(mine) == len(expected)
        if not shell.cut[lane]:
            assert len(expected) == len(options)
        found = dict(zip((shell.rows.key(i) for i in mine), shell.rows.bounds[mine], strict=True))
        for i in np.flatnonzero(bounds < threshold):
            assert found[tuple(w[i] for w in words)] == pytest.approx(bounds[i], abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(cases(samples=4))
def test_the_bounds_of_a_front_hold_for_each_of_its_lanes(case):
    tables = tables_of(case)
    front = front_tables(tables, np.zeros(4, np.intp))
    options, words = every_assignment(tables, 0)
    together = bounds_of(front, np.zeros(len(options), np.intp), words)
    for lane in range(4):
        alone = bounds_of(tables, np.full(len(options), lane), words)
        assert (together <= alone + 1e-6).all()


@pytest.mark.parametrize("cap", [1, 5, 20])
def test_a_lane_over_its_cap_is_dropped_and_the_others_are_kept(cap):
    case = chain_case()
    tables = tables_of(case)
    twice = tables_of(Case(case.problem, case.black_box, case.state, np.tile(case.weights, (2, 1))))
    alone = below(tables, np.array([0]), np.array([30.0]), np.array([10**6]))
    assert len(alone.rows) > 20
    both = below(twice, np.arange(2), np.array([30.0, 30.0]), np.array([cap, 10**6]))
    assert both.dropped.tolist() == [True, False]
    assert len(both.rows) == len(alone.rows)


@settings(max_examples=50)
@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_counting_below_a_limit_is_counting_one_by_one(lanes, width, seed):
    rng = np.random.default_rng(seed)
    alone = np.sort(
        np.where(rng.random((lanes, width)) < 0.2, np.inf, rng.normal(0, 50, (lanes, width)))
    )
    alone[0, 0] = 1.0
    alone = np.sort(alone)
    group = Group(1, np.zeros((lanes, width), np.intp), alone)
    which = rng.integers(0, lanes, 30)
    limits = np.concatenate([rng.normal(0, 60, 27), [-np.inf, np.inf, 1e9]])
    counted = [
        int((alone[lane][np.isfinite(alone[lane])] < limit).sum())
        for lane, limit in zip(which, limits, strict=True)
    ]
    assert np.minimum(group.count_below(which, limits), group.sizes[which]).tolist() == counted


def test_codes_compare_by_the_first_level_and_hold_many_levels():
    codes = Codes.of([20] * 24, ranks=list(range(24)))
    assert len(codes.nothing) == 2
    rng = np.random.default_rng(0)
    options = rng.integers(0, 21, size=(200, 24))
    words = codes.encode(list(options.T))
    for level in range(24):
        assert (codes.option(words, level) == options[:, level]).all()
    assert codes.options_of([int(word[7]) for word in words]) == options[7].tolist()
    order = np.lexsort(words[::-1])
    assert (options[order] == options[np.lexsort(options.T[::-1])]).all()


def chain_case(share=0.1, seed=3):
    """a -> b -> c, where the cheapest value of each parent is the dearest for its child."""
    space = FeatureSpace(tuple(Feature(name, lower=0.0, scale=(0.0, 8.0)) for name in "abc"))
    arguments = tuple(float(value) for value in range(0, 9, 2))
    actions = ActionSpace(
        space, tuple(Action(f"set_{name}", name, "set", arguments) for name in "abc")
    )
    graph = CostGraph(space, (("a", "b"), ("b", "c"), ("a", "c")), offset=0.0)
    problem = Problem(space, actions, graph, Goal(), max_length=3)
    # A small change upwards is cheap for the parent itself; a low parent is cheap for children.
    weights = np.array([10.0, 12.0, 9.0, 40.0, 40.0, 30.0])
    state = np.array([4.0, 4.0, 4.0])
    return Case(problem, random_model(problem, state, share, seed), state, weights)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.003, 0.02, 0.1]), st.booleans())
def test_cheapest_for_the_parent_may_be_dearest_for_its_children(seed, share, samples):
    case = chain_case(share, seed)
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0, 1.0], size=(3 if samples else 1, 6))
    weights = case.weights * signs * rng.uniform(0.5, 1.5, size=signs.shape)
    case = Case(case.problem, case.black_box, case.state, weights if samples else weights[0])
    plan = ExactPlanner(case.problem, case.black_box).plan(case.state, case.weights)
    best = brute_force(case)
    assert plan.success == np.isfinite(best)
    if plan.success:
        assert plan.cost == pytest.approx(best, abs=1e-6)


def test_a_bound_that_ties_own_cost_and_parents_would_miss_this_plan():
    """Lowering a costs more than raising it, yet makes the change of b so much cheaper."""
    case = chain_case()
    goal = np.array([0.0, 8.0, 4.0])
    black_box = BlackBox(
        lambda states: np.where((states == goal).all(axis=1), 0.9, 0.1),
        case.problem.space,
        case.problem.goal,
        fingerprint="one state",
    )
    plan = ExactPlanner(case.problem, black_box).plan(case.state, case.weights, NO_LIMITS)
    assert plan.certificate.verdict == "optimal"
    assert [step.feature for step in plan.steps] == ["a", "b"]
    assert plan.cost == pytest.approx(10 * 0.5 + max(1, 12 * 0.5 + 40 * 0))
