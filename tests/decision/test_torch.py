"""Torch modules: logits and probabilities, one output and several, in evaluation mode."""

import pickle

import numpy as np
import pytest

from pear.decision import from_torch
from pear.decision.adapters.torch import probabilities
from pear.errors import InvalidSetting
from pear.problem import Goal

from .conftest import SPACE, make_problem

torch = pytest.importorskip("torch", reason="needs the extra 'learned'")


@pytest.fixture
def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(SPACE.one_hot_width, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1)
    )


def test_logits_become_probabilities_without_dropout(module, problem, states):
    model = from_torch(module.train(), problem)
    assert model.name == "Sequential"
    with torch.no_grad():
        inputs = torch.as_tensor(SPACE.one_hot(states), dtype=torch.float32)
        expected = torch.sigmoid(module.eval()(inputs))[:, 0].numpy()
    assert model.score(states) == pytest.approx(expected, abs=1e-6)


def test_probabilities_are_taken_as_they_are(module, problem, states):
    whole = torch.nn.Sequential(module, torch.nn.Sigmoid())
    assert from_torch(whole, problem, output="probabilities").score(states) == pytest.approx(
        from_torch(module, problem).score(states), abs=1e-6
    )


def test_several_classes(problem, states):
    torch.manual_seed(0)
    module = torch.nn.Linear(SPACE.one_hot_width, 3)
    goal = Goal(favourable=("b", "c"))
    model = from_torch(module, make_problem(goal), classes=("a", "b", "c"))
    with torch.no_grad():
        inputs = torch.as_tensor(SPACE.one_hot(states), dtype=torch.float32)
        expected = 1 - torch.softmax(module(inputs), dim=1)[:, 0].numpy()
    assert model.score(states) == pytest.approx(expected, abs=1e-6)


def test_an_encoding_of_your_own(problem, states):
    class Income(torch.nn.Module):
        def forward(self, inputs):
            return inputs[:, 0] / 5_000

    model = from_torch(Income(), problem, output="probabilities", encode=np.asarray)
    assert model.score(states) == pytest.approx(states[:, 0] / 5_000)


def test_it_travels_to_a_worker_process(module, problem, states):
    model = from_torch(module, problem)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.score(states), model.score(states))


def test_output_of_an_unknown_kind_is_refused(module, problem):
    with pytest.raises(InvalidSetting, match="got 'classes'"):
        from_torch(module, problem, output="classes")


def test_a_function_is_no_module(problem):
    with pytest.raises(InvalidSetting, match=r"got a function\); wrap a function with from_call"):
        from_torch(lambda inputs: inputs, problem)


def test_extreme_logits_do_not_overflow():
    assert probabilities(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
    assert probabilities(np.array([[1e4, 0.0]])).tolist() == [[1.0, 0.0]]
