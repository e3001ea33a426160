"""Torch modules: logits and probabilities, one output and several, in evaluation mode."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from pear.decision import from_torch
from pear.decision.adapters.torch import probabilities
from pear.decision.encoding import unit_inputs
from pear.errors import InvalidSetting, ModelError
from pear.problem import FeatureSpace, Goal
from pear.problem.model_inputs import Interface

from .conftest import SPACE, UNIT, make_problem

torch = pytest.importorskip("torch", reason="needs the extra 'learned'")


@pytest.fixture
def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(unit_inputs(SPACE).width, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1)
    )


def test_logits_become_probabilities_without_dropout(module, problem, states):
    model = from_torch(module.train(), problem, inputs=UNIT)
    assert model.name == "Sequential"
    with torch.no_grad():
        inputs = torch.as_tensor(unit_inputs(SPACE)(states), dtype=torch.float32)
        expected = torch.sigmoid(module.eval()(inputs))[:, 0].numpy()
    assert model.score(states) == pytest.approx(expected, abs=1e-6)


def test_probabilities_are_taken_as_they_are(module, problem, states):
    whole = torch.nn.Sequential(module, torch.nn.Sigmoid())
    taken = from_torch(whole, problem, output="probabilities", inputs=UNIT)
    expected = from_torch(module, problem, inputs=UNIT).score(states)
    assert taken.score(states) == pytest.approx(expected, abs=1e-6)


def test_a_sigmoid_is_not_applied_twice(module, problem):
    for last in (
        torch.nn.Sigmoid(),
        torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Softmax(1)),
    ):
        with pytest.raises(ModelError, match=r"probabilities already, not logits; say output"):
            from_torch(torch.nn.Sequential(module, last), problem, inputs=UNIT)


def test_columns_are_declared_never_guessed(module, problem, states):
    with pytest.raises(ModelError, match=r"nothing says which .* under \[model.inputs\]"):
        from_torch(module, problem)
    stated = make_problem(interface=Interface(UNIT))
    expected = from_torch(module, problem, inputs=UNIT).score(states)
    assert np.array_equal(from_torch(module, stated).score(states), expected)
    with pytest.raises(ModelError, match="takes 8 columns, but the declared inputs make 7"):
        from_torch(module, problem, inputs=UNIT[1:])


def test_what_costs_see_plays_no_part(module, states):
    space = FeatureSpace(
        tuple(f if f.is_categorical else replace(f, scale=(0, 9)) for f in SPACE.features)
    )
    stretched = make_problem(space=space, interface=Interface(UNIT))
    plain = make_problem(interface=Interface(UNIT))
    scores = [from_torch(module, problem).score(states) for problem in (stretched, plain)]
    assert np.array_equal(*scores)


def test_noise_and_batches_are_found_out(problem):
    class Noisy(torch.nn.Module):
        def forward(self, inputs):
            return inputs[:, 0] + torch.rand(len(inputs))

    class Ranked(torch.nn.Module):
        def forward(self, inputs):
            return inputs[:, 0] - inputs[:, 0].mean()

    with pytest.raises(ModelError, match="'Noisy' does not answer the same twice"):
        from_torch(Noisy(), problem, inputs=UNIT)
    with pytest.raises(ModelError, match="'Ranked' depend on which other people"):
        from_torch(Ranked(), problem, inputs=UNIT)


def test_several_classes(problem, states):
    torch.manual_seed(0)
    module = torch.nn.Linear(unit_inputs(SPACE).width, 3)
    goal = Goal(favourable=("b", "c"))
    model = from_torch(module, make_problem(goal), inputs=UNIT, classes=("a", "b", "c"))
    with torch.no_grad():
        inputs = torch.as_tensor(unit_inputs(SPACE)(states), dtype=torch.float32)
        expected = 1 - torch.softmax(module(inputs), dim=1)[:, 0].numpy()
    assert model.score(states) == pytest.approx(expected, abs=1e-6)


def test_an_encoding_of_your_own(problem, states):
    class Income(torch.nn.Module):
        def forward(self, inputs):
            return inputs[:, 0] / 5_000

    model = from_torch(Income(), problem, output="probabilities", encode=np.asarray)
    assert model.score(states) == pytest.approx(states[:, 0] / 5_000)


def test_it_travels_to_a_worker_process(module, problem, states):
    model = from_torch(module, problem, inputs=UNIT)
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
