"""The agent's probabilities, masks and loss."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.planning.learned.episodes import build_traces
from pear.planning.learned.network import build_agent, trace_loss
from pear.planning.learned.policy import Observer
from tests.planning.small_problems import small_problem

PROBLEM = small_problem()
OBSERVER = Observer(PROBLEM, with_costs=True)
AGENT = build_agent(PROBLEM, OBSERVER.width, 16, seed=3)
ACTIONS = len(PROBLEM.actions) + 1


def evaluate(legal, seed=0):
    rng = np.random.default_rng(seed)
    seen = torch.from_numpy(rng.normal(size=(len(legal), OBSERVER.width)).astype(np.float32))
    memory = torch.zeros((len(legal), 32))
    with torch.inference_mode():
        log_f, log_x, value, after = AGENT(seen, memory, torch.from_numpy(legal))
        return log_f, log_x, value, after, torch.exp(AGENT.joint(log_f, log_x))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=ACTIONS, max_size=ACTIONS), st.integers(0, 99))
def test_actions_that_are_not_allowed_have_no_probability(allowed, seed):
    legal = np.array([allowed])
    if not legal.any():
        return
    *_, joint = evaluate(legal, seed)
    assert joint.sum().item() == pytest.approx(1, abs=1e-5)
    assert joint.numpy()[~legal].max(initial=0.0) < 1e-6


def test_joint_probability_is_function_times_argument():
    legal = np.ones((1, ACTIONS), bool)
    log_f, log_x, _, _, joint = evaluate(legal)
    arguments = torch.exp(log_x)[0].numpy()
    assert np.bincount(PROBLEM.actions.action_of, arguments) == pytest.approx(np.ones(4), abs=1e-5)
    functions = torch.exp(log_f)[0].numpy()
    for move in range(ACTIONS - 1):
        expected = functions[PROBLEM.actions.action_of[move]] * arguments[move]
        assert joint[0, move].item() == pytest.approx(expected, abs=1e-6)
    assert joint[0, -1].item() == pytest.approx(functions[-1], abs=1e-6)


def test_the_controller_remembers():
    legal = np.ones((1, ACTIONS), bool)
    seen = torch.zeros((1, OBSERVER.width))
    with torch.inference_mode():
        *_, first = AGENT(seen, torch.zeros((1, 32)), torch.from_numpy(legal))
        *_, second = AGENT(seen, first, torch.from_numpy(legal))
    assert not torch.allclose(first, second)


def one_trace(moves, success, reward):
    state = np.array([[50.0, 2.0, 4.0, 0.0]])
    weights = np.ones((1, 1, PROBLEM.costs.n_weights))
    padded = np.full((1, PROBLEM.max_length), -1)
    padded[0, : len(moves)] = moves
    return build_traces(
        OBSERVER, state, weights, padded, np.array([success]), np.array([float(reward)])
    )


def test_loss_is_squared_value_error_and_two_cross_entropies():
    """Step by step with the agent itself: move 1 (function 0), then STOP."""
    traces = one_trace([1], True, 0.7)
    expected, memory = 0.0, torch.zeros((1, 32))
    with torch.inference_mode():
        for step, (function, move) in enumerate([(0, 1), (4, None)]):
            log_f, log_x, value, memory = AGENT(
                torch.from_numpy(traces.seen[:, step]),
                memory,
                torch.from_numpy(traces.legal[:, step]),
            )
            expected += (value[0].item() - 0.7) ** 2 - log_f[0, function].item()
            expected -= log_x[0, move].item() if move is not None else 0.0
        assert trace_loss(AGENT, traces).item() == pytest.approx(expected, rel=1e-5)


def test_failures_teach_the_value_only():
    traces = one_trace([1, 3], False, -1.0)
    expected, memory = 0.0, torch.zeros((1, 32))
    with torch.inference_mode():
        for step in range(3):
            *_, value, memory = AGENT(
                torch.from_numpy(traces.seen[:, step]),
                memory,
                torch.from_numpy(traces.legal[:, step]),
            )
            expected += (value[0].item() + 1) ** 2
        assert trace_loss(AGENT, traces).item() == pytest.approx(expected, rel=1e-5)


def test_a_trace_holds_what_was_legal_and_ends_in_stop():
    traces = one_trace([1, 3], True, 0.5)
    assert traces.target[0, :3].tolist() == [1, 3, ACTIONS - 1]
    assert traces.present[0].tolist() == [True, True, True, False]
    promoted = PROBLEM.actions.move("be promoted", "manager")
    assert not traces.legal[0, 0, promoted]
    assert traces.legal[0, 1, promoted]
    assert traces.legal[0, 2].sum() == 1


def test_the_same_seed_gives_the_same_agent():
    again = build_agent(PROBLEM, OBSERVER.width, 16, seed=3).state_dict()
    other = build_agent(PROBLEM, OBSERVER.width, 16, seed=4).state_dict()
    mine = AGENT.state_dict()
    assert all(torch.equal(again[k], mine[k]) for k in mine)
    assert not all(torch.equal(other[k], mine[k]) for k in mine)
