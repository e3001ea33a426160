"""The numpy network against scikit-learn's own, and far from zero."""

import pickle

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from pear.decision.inputs import unit_inputs
from pear.decision.network import Network

from .conftest import SPACE


def test_it_computes_what_scikit_learn_does(states, labels):
    model = MLPClassifier((6, 4), max_iter=2_000, tol=1e-3, random_state=0)
    model.fit(SPACE.one_hot(states), labels)
    network = Network(unit_inputs(SPACE), tuple(zip(model.coefs_, model.intercepts_, strict=True)))
    expected = model.predict_proba(SPACE.one_hot(states))[:, 1]
    assert network(states) == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(network))(states), network(states))


@pytest.mark.filterwarnings("error")
def test_large_logits_do_not_overflow(states):
    layer = (np.full((SPACE.one_hot_width, 1), 1e4), np.zeros(1))
    opposite = (-layer[0], layer[1])
    assert (Network(unit_inputs(SPACE), (layer,))(states) == 1.0).all()
    assert (Network(unit_inputs(SPACE), (opposite,))(states) == 0.0).all()
