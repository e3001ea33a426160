"""The numpy network and tree against scikit-learn's own."""

import pickle

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from pear.decision.blackbox import probe_states
from pear.decision.encoding import unit_inputs
from pear.decision.numpy_models import DecisionTree, Network

from .conftest import SPACE


def test_a_network_computes_what_scikit_learn_does(states, labels):
    model = MLPClassifier((6, 4), max_iter=2_000, tol=1e-3, random_state=0)
    model.fit(unit_inputs(SPACE)(states), labels)
    network = Network(unit_inputs(SPACE), tuple(zip(model.coefs_, model.intercepts_, strict=True)))
    expected = model.predict_proba(unit_inputs(SPACE)(states))[:, 1]
    assert network(states) == pytest.approx(expected, abs=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(network))(states), network(states))


@pytest.mark.filterwarnings("error")
def test_large_logits_do_not_overflow(states):
    layer = (np.full((unit_inputs(SPACE).width, 1), 1e4), np.zeros(1))
    opposite = (-layer[0], layer[1])
    assert (Network(unit_inputs(SPACE), (layer,))(states) == 1.0).all()
    assert (Network(unit_inputs(SPACE), (opposite,))(states) == 0.0).all()


@pytest.mark.parametrize("depth", [1, 3, 9])
def test_a_tree_computes_what_scikit_learn_does(depth, states, labels):
    fitted = DecisionTreeClassifier(max_depth=depth, class_weight="balanced", random_state=0)
    fitted.fit(unit_inputs(SPACE)(states), labels)
    tree = DecisionTree.from_sklearn(unit_inputs(SPACE), fitted)
    people = probe_states(SPACE, 3_000, np.random.default_rng(8))
    expected = fitted.predict_proba(unit_inputs(SPACE)(people))[:, 1]
    assert np.allclose(tree(people), expected, atol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(tree))(people), tree(people))


def test_a_tree_of_one_leaf_scores_everybody_alike(states, labels):
    fitted = DecisionTreeClassifier(min_samples_leaf=len(states)).fit(
        unit_inputs(SPACE)(states), labels
    )
    scores = DecisionTree.from_sklearn(unit_inputs(SPACE), fitted)(states[:5])
    assert scores == pytest.approx(np.full(5, labels.mean()))
