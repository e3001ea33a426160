"""Batched sequences against one sequence at a time."""

import numpy as np
import pytest

from pear.planning.planner import best_for_samples
from pear.problem import Limits, walk
from pear.problem.costs import NO_MOVE, as_sequence, padded, roll_out
from tests.planning.small_problems import random_people, small_problem


@pytest.fixture(scope="module")
def rolled():
    problem, rng = small_problem(), np.random.default_rng(0)
    states, weights = random_people(problem, 200, rng)
    moves = rng.integers(NO_MOVE, len(problem.actions), (200, 3))
    return problem, states, weights, moves, roll_out(problem.costs, problem.actions, states, moves)


def test_states_and_costs_agree_with_single_walks(rolled):
    problem, states, weights, moves, rollout = rolled
    costs = rollout.costs(weights[:, None])
    for row in range(len(states)):
        taken = moves[row][rollout.taken[row]]
        assert np.array_equal(walk(states[row], problem.actions, taken)[-1], rollout.final[row])
        cost = problem.costs.sequence_cost(states[row], problem.actions, taken, weights[row])
        assert costs[row] == pytest.approx(cost)


def test_only_what_was_not_allowed_is_left_out(rolled):
    problem, _, _, moves, rollout = rolled
    assert 0 < rollout.illegal.sum() < (moves != NO_MOVE).sum()
    for position in range(moves.shape[1]):
        allowed = problem.actions.allowed(rollout.states[:, position])
        wanted = moves[:, position] != NO_MOVE
        chosen = allowed[np.arange(len(moves)), moves[:, position]]
        assert np.array_equal(rollout.taken[:, position], wanted & chosen)


def test_cost_under_samples_is_the_mean_of_floored_costs(rolled):
    _, _, weights, _, rollout = rolled
    mean = rollout.costs(weights[:7])
    single = [rollout.costs(sample) for sample in weights[:7]]
    assert np.allclose(mean, np.mean(single, axis=0))


def test_limits_forbid_steps():
    problem = small_problem()
    state = problem.space.encode([{"age": 30.0, "income": 3.0, "debt": 2.0, "job": "none"}])
    moves = np.array([[0, NO_MOVE, 3]])
    rollout = roll_out(problem.costs, problem.actions, state, moves, Limits(features=("debt",)))
    assert rollout.taken.tolist() == [[True, False, False]]
    assert rollout.illegal.tolist() == [1]


def test_padding_and_back():
    sequences = [(3,), (), (1, 2)]
    assert [as_sequence(row) for row in padded(sequences)] == sequences


def test_the_plan_of_most_samples_comes_first():
    costs = np.array([[1.0, 9.0, 9.0], [5.0, 5.0, 5.0], [8.0, 8.0, 8.0]])
    assert best_for_samples(costs, 5) == [1, 0]
    assert best_for_samples(costs, 1) == [1]
    assert best_for_samples(np.zeros((0, 3)), 2) == []
