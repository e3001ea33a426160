"""The best order by dynamic programming against trying every permutation."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import InvalidSetting
from pear.problem import (
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Limits,
    Requirement,
    best_order,
    walk,
)


def random_case(seed, repeated=False):
    """A random small problem with requirements, a start and a set of moves."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    space = FeatureSpace(tuple(Feature(f"f{i}", lower=-4.0, upper=4.0) for i in range(d)))
    declared = []
    for i in range(d):
        requires = ()
        if d > 1 and rng.random() < 0.3:
            other = int(rng.choice([j for j in range(d) if j != i]))
            requires = (Requirement(f"f{other}", lower=float(rng.integers(-2, 3))),)
        mode = "add" if rng.random() < 0.5 else "set"
        amounts = (1.0, -1.0, 2.0) if mode == "add" else (0.0, 3.0, -3.0)
        declared.append(Action(f"a{i}", f"f{i}", mode, amounts, requires=requires))
    actions = ActionSpace(space, tuple(declared))
    pairs = [(f"f{i}", f"f{j}") for i in range(d) for j in range(i + 1, d)]
    edges = tuple(pair for pair in pairs if rng.random() < 0.6)
    floor = None if rng.random() < 0.5 else 1.0
    graph = CostGraph(space, edges, floor=floor, offset=float(rng.integers(0, 2)))
    columns = rng.permutation(d)[: rng.integers(0, d + 1)].tolist()
    if repeated and columns:
        columns.append(columns[0])
    moves = [int(rng.choice(np.flatnonzero(actions.feature_of == column))) for column in columns]
    start = rng.integers(-2, 3, d).astype(float)
    weights = rng.integers(-5, 6, graph.n_weights).astype(float)
    return graph, start, actions, moves, weights


def by_permutations(graph, start, actions, moves, weights, limits):
    """Cheapest allowed permutation; moves of one feature keep their order."""
    best = (np.inf, ())
    for order in permutations(range(len(moves))):
        columns = actions.feature_of[[moves[i] for i in order]] if order else []
        keeps = all(
            i < j
            for a, i in enumerate(order)
            for b, j in enumerate(order)
            if a < b and columns[a] == columns[b]
        )
        sequence = [moves[i] for i in order]
        states = walk(start, actions, sequence)
        legal = all(
            actions.allowed(state, limits)[0, move]
            for state, move in zip(states[:-1], sequence, strict=True)
        )
        if keeps and legal:
            cost = graph.sequence_cost(start, actions, sequence, weights)
            cost = float(np.mean(cost))
            best = min(best, (cost, tuple(sequence)))
    return best


@given(seed=st.integers(0, 2**32 - 1), repeated=st.booleans())
@settings(max_examples=150, deadline=None)
def test_best_order_equals_brute_force(seed, repeated):
    # All numbers are small and whole, so that equal costs are equal exactly and the tie-break
    # by move number shows.
    graph, start, actions, moves, weights = random_case(seed, repeated)
    for limits in (Limits(), Limits(values=(("f0", 3.0),))):
        order, cost = best_order(graph, start, actions, moves, weights, limits)
        expected_cost, expected = by_permutations(graph, start, actions, moves, weights, limits)
        assert cost == expected_cost
        assert order == expected


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_with_samples_the_mean_floored_cost_counts(seed):
    graph, start, actions, moves, _ = random_case(seed)
    samples = np.random.default_rng(seed).normal(0.0, 5.0, (7, graph.n_weights))
    order, cost = graph.best_order(start, actions, moves, samples)
    expected, _ = by_permutations(graph, start, actions, moves, samples, Limits())
    if np.isinf(expected):
        assert (order, cost) == ((), np.inf)
    else:
        assert cost == pytest.approx(expected, rel=1e-12, abs=1e-12)
        reached = graph.sequence_cost(start, actions, order, samples).mean()
        assert reached == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_requirement_decides_the_order_although_it_costs_more():
    space = FeatureSpace((Feature("degree", "boolean"), Feature("income")))
    actions = ActionSpace(
        space,
        (
            Action("study", "degree", "set", (True,)),
            Action("rise", "income", "add", (1.0,), requires=(Requirement("degree", (True,)),)),
        ),
    )
    graph = CostGraph(space, (("degree", "income"),), floor=0.0, offset=0.0)
    # Income first would cost 1 + 1; the degree it needs adds its weight of 10.
    assert graph.best_order(np.zeros(2), actions, [0, 1], np.array([1, 1, 10.0])) == ((0, 1), 12.0)
    assert graph.best_order(np.zeros(2), actions, [1], np.ones(3)) == ((), np.inf)


def test_no_moves_cost_nothing_and_too_many_are_refused():
    graph, start, actions, _, weights = random_case(0)
    assert best_order(graph, start, actions, [], weights) == ((), 0.0)
    with pytest.raises(InvalidSetting, match="at most 14 moves"):
        best_order(graph, start, actions, [0] * 15, weights)
