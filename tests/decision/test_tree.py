"""The numpy tree against scikit-learn's own, on many people and on a single leaf."""

import pickle

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from pear.decision.blackbox import probe_states
from pear.decision.inputs import unit_inputs
from pear.decision.tree import DecisionTree

from .conftest import SPACE


@pytest.mark.parametrize("depth", [1, 3, 9])
def test_it_computes_what_scikit_learn_does(depth, states, labels):
    fitted = DecisionTreeClassifier(max_depth=depth, class_weight="balanced", random_state=0)
    fitted.fit(SPACE.one_hot(states), labels)
    tree = DecisionTree.from_sklearn(unit_inputs(SPACE), fitted)
    people = probe_states(SPACE, 3_000, np.random.default_rng(8))
    expected = fitted.predict_proba(SPACE.one_hot(people))[:, 1]
    assert np.allclose(tree(people), expected, atol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(tree))(people), tree(people))


def test_a_tree_of_one_leaf_scores_everybody_alike(states, labels):
    fitted = DecisionTreeClassifier(min_samples_leaf=len(states)).fit(SPACE.one_hot(states), labels)
    scores = DecisionTree.from_sklearn(unit_inputs(SPACE), fitted)(states[:5])
    assert scores == pytest.approx(np.full(5, labels.mean()))
