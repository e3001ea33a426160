"""Costs against the paper's worked examples, and batches against the formula one by one."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from pear.errors import InvalidProblem, InvalidSetting
from pear.problem import CostGraph, Feature, FeatureSpace, costs_under, walk
from tests.problem.examples import (
    PROBLEMS,
    chain_problem,
    every_problem,
    mixed_problem,
    mixed_space,
    random_records,
)


def formula(problem, record, move, weights):
    """Paper, eqn. cost, with the settings of the tables, in plain Python."""
    graph, name = problem.costs, problem.actions.actions[problem.actions.action_of[move]].feature
    weight = dict(zip(problem.weight_names, weights.tolist(), strict=True))

    def seen(key, value):
        feature = problem.space[key]
        if feature.is_categorical:
            return feature.levels[feature.categories.index(value)] if feature.levels else 1.0
        if feature.scale is None:
            return float(value)
        low, high = feature.scale
        return min(1.0, max(0.0, (value - low) / (high - low)))

    argument = problem.actions.argument(move)
    added = problem.actions.adds[move]
    after = record[name] + argument if added else argument
    change = 1.0
    if not problem.space[name].is_categorical:
        change = abs(seen(name, after) - seen(name, record[name]))
        if change == 0.0 and graph.zero_change is not None:
            change = graph.zero_change
    cost = weight[name] * change
    for parent, child in graph.edges:
        if child == name:
            cost += weight[f"{parent}->{child}"] * (graph.offset + seen(parent, record[parent]))
    return cost if graph.floor is None else max(graph.floor, cost)


def test_the_papers_example_costs_1_and_1_5_and_together_3_5():
    # s1 -> s2, s = (1, 1), w = (1, 0.5, 1): C(a1) = 1|2-1| = 1, C(a2) = 0.5|2-1| + 1·1 = 1.5,
    # and a1 then a2: 1 + (0.5|2-1| + 1·2) = 3.5.
    problem = chain_problem(2)
    start, weights = np.ones(2), np.array([1.0, 0.5, 1.0])
    first, second = problem.actions.move("set s1", 2.0), problem.actions.move("set s2", 2.0)
    costs = problem.costs.costs(
        np.ones((2, 2)), problem.actions, np.array([first, second]), weights
    )
    assert costs.tolist() == [1.0, 1.5]
    assert problem.costs.sequence_cost(start, problem.actions, [first, second], weights) == 3.5


def test_order_matters_22_against_14():
    # Chain 1 -> 2 -> 3, unit weights, offset 0, [1,1,1] to [5,5,5]: 4 + (4+5) + (4+5) = 22
    # in order 1, 2, 3, and (4+1) + (4+1) + 4 = 14 in order 3, 2, 1.
    problem = chain_problem(3)
    moves = [problem.actions.move(f"set s{i}", 5.0) for i in (1, 2, 3)]
    cost = problem.costs.sequence_cost
    assert cost(np.ones(3), problem.actions, moves, np.ones(5)) == 22.0
    assert cost(np.ones(3), problem.actions, moves[::-1], np.ones(5)) == 14.0


@every_problem
def test_all_costs_and_whole_sequences_are_those_of_single_steps(name):
    problem = PROBLEMS[name]()
    graph, actions = problem.costs, problem.actions
    rng = np.random.default_rng(4)
    states = problem.space.encode(random_records(problem.space, 6, rng))
    weights = rng.normal(20, 30, (6, 3, graph.n_weights))
    every = graph.all_costs(states, actions, weights)
    assert every.shape == (6, len(actions))
    for move in range(len(actions)):
        one = graph.costs(states, actions, np.full(6, move), weights)
        assert one.shape == (6, 3)
        assert np.allclose(one.mean(axis=1), every[:, move], equal_nan=True)
    moves = rng.integers(len(actions), size=(5, 3))
    moves[1, 2:] = moves[2, 1:] = moves[3] = -1
    costs = graph.sequence_costs(states[0], actions, moves, weights[0])
    for row, sequence in enumerate(moves):
        alone = graph.sequence_cost(states[0], actions, sequence[sequence >= 0], weights[0])
        assert np.allclose(costs[row], alone, equal_nan=True)


@every_problem
def test_batches_agree_with_the_formula(name):
    problem = PROBLEMS[name]()
    rng = np.random.default_rng(3)
    records = random_records(problem.space, 200, rng)
    states = problem.space.encode(records)
    moves = rng.integers(0, len(problem.actions), 200)
    weights = rng.normal(10.0, 30.0, (3, problem.costs.n_weights))
    batch = problem.costs.costs(states, problem.actions, moves, weights)
    assert batch.shape == (200, 3)
    one = problem.costs.costs(states, problem.actions, moves, weights[0])
    assert np.allclose(one, batch[:, 0], rtol=1e-12)
    expected = [
        [formula(problem, record, move, w) for w in weights]
        for record, move in zip(records, moves, strict=True)
    ]
    assert np.allclose(batch, expected, rtol=1e-9, atol=1e-9)


def test_settings_of_floor_offset_and_zero_change():
    problem = mixed_problem()
    record = {
        "age": 30, "income": 9000.0, "debt": 4, "school": "school", "job": "clerk", "owner": False,
    }  # fmt: skip
    state = problem.state(record)[None]
    earn = np.array([problem.actions.move("earn", 100)])
    weights = np.full(problem.costs.n_weights, -2.0)
    # Income is above its scale, so a raise changes nothing scaled; its parent 'job' counts 1.
    assert problem.costs.costs(state, problem.actions, earn, weights) == pytest.approx(-2 * 1.25)
    strict = CostGraph(problem.space, problem.costs.edges, floor=1.0, offset=1.0, zero_change=1.0)
    assert strict.costs(state, problem.actions, earn, weights) == 1.0
    assert strict.costs(state, problem.actions, earn, -weights) == 2 * 1 + 2 * 2
    assert (problem.costs.least, strict.least) == (-np.inf, 1.0)


def test_a_sequence_is_the_sum_of_its_steps_along_the_states():
    problem = mixed_problem()
    start = problem.space.encode(random_records(problem.space, 1, np.random.default_rng(0)))[0]
    moves = np.array([0, 13, 4, 16])
    weights = np.random.default_rng(1).normal(size=(5, problem.costs.n_weights))
    states = walk(start, problem.actions, moves)
    steps = problem.costs.costs(states[:-1], problem.actions, moves, weights)
    total = problem.costs.sequence_cost(start, problem.actions, moves, weights)
    assert np.allclose(total, steps.sum(axis=0))
    features = problem.costs.sequence_features(start, problem.actions, moves)
    assert np.allclose(costs_under(features, weights, problem.costs.floor), total)
    assert problem.costs.sequence_cost(start, problem.actions, [], weights).tolist() == [0.0] * 5
    assert problem.costs.sequence_features(start, problem.actions, []).shape == (0, 10)


def test_weights_are_features_then_edges():
    graph = mixed_problem().costs
    assert graph.weight_names[:2] == ("age", "income")
    assert graph.weight_names[6:] == ("school->job", "age->job", "job->income", "debt->owner")
    assert graph.n_weights == 10
    places = {column: i for i, column in enumerate(graph.order)}
    for parent, child in graph.edges:
        assert places[graph.space.index(parent)] < places[graph.space.index(child)]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(9), r"must have 10 entries.*\(got shape \(9,\)\)"),
        (np.ones((0, 10)), "10 entries"),
        (np.ones((1, 1, 10)), "10 entries"),
        ([np.nan] * 10, "finite numbers"),
        ("heavy", "must be numbers"),
        ({"age": 1.0}, "Problem.weights"),
    ],
)
def test_weights_of_the_wrong_form_are_refused(weights, message):
    with pytest.raises(InvalidSetting, match=message):
        mixed_problem().costs.check_weights(weights)


def test_removals_are_nested_per_seed():
    graph = CostGraph(
        FeatureSpace(tuple(Feature(f"f{i}") for i in range(8))),
        tuple((f"f{i}", f"f{j}") for i in range(8) for j in range(i + 1, 8)),
    )
    shares = np.linspace(0, 1, 11)
    for seed in range(5):
        left = [set(graph.without_edges(share, seed).edges) for share in shares]
        assert [len(edges) for edges in left] == [28 - int(s * 28) for s in shares]
        assert all(more >= fewer for more, fewer in pairwise(left))
    assert graph.without_edges(0.5, 0).edges != graph.without_edges(0.5, 1).edges
    assert graph.without_edges(0.5, 0) == graph.without_edges(0.5, 0)
    smaller = graph.without_edges(0.5, 0)
    picked = np.array(graph.weight_names)[smaller.positions_in(graph)]
    assert tuple(picked) == smaller.weight_names
    for share in (-0.1, 1.1, float("nan"), "half"):
        with pytest.raises(InvalidSetting, match="'share' must be between 0 and 1"):
            graph.without_edges(share, 0)
    with pytest.raises(InvalidSetting, match="'seed' must be a whole number"):
        graph.without_edges(0.5, 0.5)
    with pytest.raises(InvalidSetting, match="the other graph has no weight"):
        graph.positions_in(smaller)


@every_problem
def test_graphs_go_to_networkx_and_come_back(name):
    graph = PROBLEMS[name]().costs
    settings = {"floor": graph.floor, "offset": graph.offset, "zero_change": graph.zero_change}
    drawn = graph.to_networkx()
    assert set(drawn.nodes) == set(graph.space.names)
    assert CostGraph.from_networkx(graph.space, drawn, **settings) == graph


def test_cycles_are_refused_by_name():
    space = FeatureSpace(tuple(Feature(name) for name in "abcd"))
    with pytest.raises(InvalidProblem, match=r"cycle: (a -> b -> c -> a|b -> c -> a -> b|c -> a)"):
        CostGraph(space, (("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")))
    with pytest.raises(InvalidProblem, match="cycle: d -> d; remove one of its edges"):
        CostGraph(space, (("d", "d"),))


@pytest.mark.parametrize(
    ("settings", "key", "message"),
    [
        ({"edges": (("age", "job"), ("age", "job"))}, "edges", "'age', 'job'. twice; remove one"),
        ({"edges": ("age->job",)}, "edges", "pair of parent and child .got 'age->job'"),
        ({"edges": (("age", "pay"),)}, "edges", "there is no feature 'pay'"),
        ({"floor": "none"}, "floor", "must be a number, or none .got 'none'"),
        ({"zero_change": float("nan")}, "zero_change", "must be a number"),
        ({"offset": None}, "offset", "must be a number .got None"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, key, message):
    with pytest.raises(InvalidProblem, match=message) as refusal:
        CostGraph(mixed_space(), **settings)
    assert refusal.value.key == key


def test_an_undirected_graph_is_refused():
    with pytest.raises(InvalidProblem, match="give a networkx DiGraph"):
        CostGraph.from_networkx(mixed_space(), nx.Graph([("age", "job")]))
