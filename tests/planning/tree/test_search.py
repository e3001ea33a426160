"""Whole trees against stored ones, and what must hold for every tree."""

import json
from pathlib import Path

import numpy as np
import pytest

from pear.planning.tree.rules import LengthRules, SavingRules
from pear.planning.tree.search import search
from pear.planning.tree.trees import Effort, People, UniformPrior
from pear.problem.costs import as_samples
from tests.planning.small_problems import random_people, small_model, small_problem
from tests.planning.tree.searches import HandEvaluator, hand_search, tree_as_data

GOLDEN = Path(__file__).with_name("golden_trees.json")
KINDS = ("mcts", "fare", "wfare")


def refused_people(n, seed=0, max_length=3):
    problem = small_problem(max_length)
    black_box = small_model(problem)
    states, weights = random_people(problem, 6 * n, np.random.default_rng(seed))
    refused = np.flatnonzero(~black_box.favourable(states))[:n]
    return problem, black_box, states[refused], weights[refused]


def nodes_beside_the_path(outcome, person):
    """Nodes that never were the start of a later step: those gather visits of their own."""
    path, node = {0}, 0
    for move in outcome.executed[person]:
        if move >= 0:
            node = int(outcome.trees.child[person, node, move])
            path.add(node)
    return [n for n in range(outcome.trees.size[person]) if n not in path]


@pytest.mark.parametrize("kind", KINDS)
def test_whole_trees_are_as_stored(kind):
    problem, black_box, states, weights = refused_people(3)
    outcome = hand_search(problem, black_box, states, weights, simulations=6, kind=kind)
    stored = json.loads(GOLDEN.read_text())[kind]
    assert [tree_as_data(outcome.trees, person) for person in range(3)] == stored["trees"]
    assert outcome.executed.tolist() == stored["executed"]
    assert outcome.rows.tolist() == stored["rows"]


@pytest.mark.parametrize("kind", KINDS)
def test_visits_of_the_start_sum_to_the_simulations(kind):
    problem, black_box, states, weights = refused_people(8, max_length=1)
    outcome = hand_search(problem, black_box, states, weights, simulations=9, kind=kind)
    assert outcome.trees.visits[:, 0].sum(axis=1).tolist() == [9] * 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_is_visited_once_more_than_the_branches_below_it(kind):
    problem, black_box, states, weights = refused_people(8)
    outcome = hand_search(problem, black_box, states, weights, simulations=12, kind=kind)
    trees = outcome.trees
    for person in range(8):
        for node in nodes_beside_the_path(outcome, person):
            parent, move = trees.parent[person, node], trees.move[person, node]
            below = trees.visits[person, node].sum()
            dead = not trees.legal[person, node].any()
            visits = trees.visits[person, parent, move]
            assert visits == 1 + below or (dead and visits >= 1)


def test_values_are_means_of_backed_up_rewards():
    """Every branch's total is its own leaf's value plus the totals of the branches below."""
    problem, black_box, states, weights = refused_people(8)
    outcome = hand_search(problem, black_box, states, weights, simulations=60, kind="fare")
    trees = outcome.trees
    checked = 0
    for person in range(8):
        for node in nodes_beside_the_path(outcome, person):
            total = trees.totals[person, trees.parent[person, node], trees.move[person, node]]
            visits = trees.visits[person, trees.parent[person, node], trees.move[person, node]]
            depth = trees.depth[person, node]
            if trees.favourable[person, node]:
                assert total == pytest.approx(visits * 0.97**depth)
            elif not trees.legal[person, node].any():
                assert total == pytest.approx(-visits)
            else:
                income, debt = trees.states[person, node, [1, 2]]
                below = trees.totals[person, node].sum()
                assert total == pytest.approx((income - debt) / 10 + below)
            checked += 1
    assert checked > 50


def test_costs_and_states_follow_the_branches():
    problem, black_box, states, weights = refused_people(4)
    trees = hand_search(problem, black_box, states, weights, simulations=10).trees
    moves, scores = trees.way_to(np.zeros(10, int), np.arange(10), problem.max_length)
    for node in range(10):
        path = [move for move in moves[node] if move >= 0]
        cost = problem.costs.sequence_cost(states[0], problem.actions, path, weights[0])
        assert trees.cost[0, node] == pytest.approx(cost)
        assert np.isfinite(scores[node]).sum() == len(path) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_most_visited_move_is_taken(kind):
    problem, black_box, states, weights = refused_people(8, max_length=1)
    outcome = hand_search(problem, black_box, states, weights, simulations=11, kind=kind)
    visits, totals = outcome.trees.visits[:, 0], outcome.trees.totals[:, 0]
    for person in range(8):
        ranked = sorted(
            np.flatnonzero(visits[person]),
            key=lambda a, p=person: (-visits[p, a], -totals[p, a] / visits[p, a], a),
        )
        assert outcome.executed[person, 0] == ranked[0]


@pytest.mark.parametrize("kind", KINDS)
def test_together_and_one_by_one_agree(kind):
    problem, black_box, states, weights = refused_people(6)
    together = hand_search(problem, black_box, states, weights, simulations=8, kind=kind)
    streams = np.random.default_rng(7).spawn(6)
    for person in range(6):
        reference = np.array([np.nan if person == 0 else 50.0])
        alone = search(
            problem,
            black_box.score,
            People(
                states[[person]],
                as_samples(weights[[person]], 1),
                reference,
                streams=(streams[person],),
            ),
            SavingRules().build() if kind == "wfare" else LengthRules().build(),
            UniformPrior() if kind == "mcts" else HandEvaluator(),
            Effort(8),
        )
        assert tree_as_data(alone.trees, 0) == tree_as_data(together.trees, person)
        assert alone.executed[0].tolist() == together.executed[person].tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_rows", [1, 2, 5, 17])
def test_no_search_asks_more_rows_than_it_may(kind, max_rows):
    problem, black_box, states, weights = refused_people(6)
    before = black_box.rows
    outcome = hand_search(
        problem, black_box, states, weights, simulations=20, max_rows=max_rows, kind=kind
    )
    assert outcome.rows.max() <= max_rows
    assert black_box.rows - before == outcome.rows.sum()


def test_one_call_of_the_black_box_per_simulation():
    problem, black_box, states, weights = refused_people(10, max_length=1)
    calls = []
    function = black_box.function
    black_box.function = lambda rows: calls.append(len(rows)) or function(rows)
    hand_search(problem, black_box, states, weights, simulations=7, kind="mcts")
    assert len(calls) <= 8
    assert max(calls) > 1


def test_costs_of_all_moves_are_the_cost_graphs():
    problem, _, states, _ = refused_people(5)
    rng = np.random.default_rng(3)
    samples = rng.normal(10, 20, (5, 4, problem.costs.n_weights))
    costs = problem.costs.all_costs(states, problem.actions, samples)
    for person in range(5):
        for move in range(len(problem.actions)):
            each = problem.costs.costs(
                states[[person]], problem.actions, np.array([move]), samples[person]
            )
            assert costs[person, move] == pytest.approx(each.mean())
