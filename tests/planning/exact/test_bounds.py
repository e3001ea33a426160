"""Bounds never exceed the cheapest order, and a band of costs holds all that belongs to it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.planning.exact.kernel import at_the_root, below, bounds_of
from pear.planning.exact.options import Layout, options_of
from pear.planning.exact.pricing import Pricing
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


def options_for(case, weights=None, max_changes=1):
    """The case's options, each row of weights a query of its own."""
    weights = np.atleast_2d(case.weights if weights is None else weights)[:, None]
    limits = [case.limits] * len(weights)
    longest = case.problem.max_length
    return options_of(Layout.of(case.problem), case.state, weights, limits, longest, max_changes)


def every_assignment(options):
    """All assignments that some query allows, within the steps."""
    choices = options.choices
    allowed = [np.flatnonzero(np.isfinite(row).any(axis=1)) for row in choices.own]
    chosen = np.array(list(product(*allowed)), np.intp).reshape(-1, len(allowed))
    steps = options.steps(chosen)
    return chosen[(steps > 0) & (steps <= choices.max_steps.max())]


def listed(options, low, high, buffer, nodes):
    """What the kernel lists between two limits, and whether anything was cut off."""
    cursor, width = at_the_root(options), len(options.columns)
    found = {}
    assignments, bounds = np.empty((buffer, width), np.int16), np.empty(buffer)
    finished = False
    while not finished:
        count, _, finished = below(options.choices, cursor, low, high, nodes, assignments, bounds)
        for row, bound in zip(assignments[:count].tolist(), bounds[:count], strict=True):
            assert tuple(row) not in found
            found[tuple(row)] = bound
    return found, cursor.cut


@settings(max_examples=80, deadline=None)
@given(cases(samples=3), st.booleans())
def test_no_bound_is_above_the_cheapest_order(case, as_one_query):
    weights = case.weights[None] if as_one_query else case.weights[:, None]
    limits = [case.limits] * len(weights)
    options = options_of(
        Layout.of(case.problem), case.state, weights, limits, case.problem.max_length
    )
    assignments = every_assignment(options)
    bounds = bounds_of(options, assignments)
    pricing, queries = Pricing(options, weights, tuple(limits)), np.arange(len(weights))
    for chosen, bound in zip(assignments, bounds, strict=True):
        priced = pricing.cheapest(chosen, queries, np.full(len(queries), np.inf))
        for mine, (cost, moves) in zip(bound, priced, strict=True):
            assert mine <= cost
            if np.isfinite(cost):
                sequence = case.problem.costs.sequence_cost
                given = weights[0] if as_one_query else weights[priced.index((cost, moves))]
                again = sequence(case.state, case.problem.actions, moves, given).mean()
                assert cost == pytest.approx(again, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(cases(samples=4), st.floats(-30, 60), st.floats(0, 40), st.integers(0, 10**6))
def test_a_band_holds_exactly_the_assignments_between_its_limits(case, middle, width, seed):
    """With small buffers, left and taken up again."""
    rng = np.random.default_rng(seed)
    for queries in (1, 4):
        options = options_for(case, case.weights[:queries])
        low = middle + rng.normal(0, 5, queries)
        high = low + width
        assignments = every_assignment(options)
        bounds = bounds_of(options, assignments)
        inside = ((bounds > low) & (bounds <= high)).any(axis=1) & ~(bounds <= low).any(axis=1)
        possible = [
            np.isfinite(Pricing(options, case.weights[:queries, None], (case.limits,) * queries)
            .cheapest(chosen, np.arange(queries), np.full(queries, np.inf))[0][0])
            for chosen in assignments
        ]  # fmt: skip
        expected = {
            tuple(map(int, chosen)): bound[(bound > low) & (bound <= high)].min()
            for chosen, bound, mine in zip(assignments, bounds, inside, strict=True)
            if mine
        }
        found, cut = listed(options, low, high, buffer=3, nodes=7)
        assert set(found) <= set(expected)
        # What is not listed has no legal order.
        orders = {tuple(map(int, c)): ok for c, ok in zip(assignments, possible, strict=True)}
        assert not any(orders[chosen] for chosen in set(expected) - set(found))
        for chosen, bound in found.items():
            assert bound == pytest.approx(expected[chosen], rel=1e-12, abs=1e-12)
        for query in range(queries):
            if not cut[query]:
                reachable = np.array([orders[tuple(map(int, c))] for c in assignments], bool)
                dear = np.isfinite(bounds[:, query]) & (bounds[:, query] > high[query])
                assert not (dear & reachable).any()


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
