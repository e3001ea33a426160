"""What do the package's own small models say: a network and a tree, computed with numpy alone?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from pear.arrays import Floats, Indices
from pear.decision.encoding import Inputs
from pear.problem.features import States

Layers = tuple[tuple[Floats, Floats], ...]
"""Weights ``(inputs, outputs)`` and bias ``(outputs,)`` of each layer."""

BLOCK = 2_048
"""Rows worked on at once: what the layers make of them then stays in the processor's cache."""


@dataclass(frozen=True)
class Network:
    """relu layers and a sigmoid over declared inputs; one output; picklable.

    >>> from pear.problem import Feature, FeatureSpace
    >>> from pear.problem.model_inputs import ModelInput
    >>> inputs = Inputs(FeatureSpace((Feature("income"),)), (ModelInput("income", divide=100),))
    >>> layer = (np.array([[4.0]]), np.array([-2.0]))
    >>> Network(inputs, (layer,))(np.array([[50.0], [100.0]])).round(3)
    array([0.5  , 0.881])
    """

    inputs: Inputs
    layers: Layers

    def __call__(self, states: States) -> Floats:
        if len(states) <= BLOCK:
            return self._scores(states)
        blocks = range(0, len(states), BLOCK)
        return np.concatenate([self._scores(states[first : first + BLOCK]) for first in blocks])

    def _scores(self, states: States) -> Floats:
        hidden = self.inputs(states)
        for weights, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        weights, bias = self.layers[-1]
        return np.asarray(expit((hidden @ weights + bias)[:, 0]))


@dataclass(frozen=True)
class DecisionTree:
    """One tree over declared inputs; picklable.

    With k nodes: ``left``, ``right`` (0 at a leaf), ``column`` and ``threshold`` have shape
    ``(k,)``; ``score`` ``(k,)`` is the favourable share of the training people there. Inputs
    are compared in single precision, as scikit-learn does.
    """

    inputs: Inputs
    left: Indices
    right: Indices
    column: Indices
    threshold: Floats
    score: Floats

    def __call__(self, states: States) -> Floats:
        encoded = self.inputs(states).astype(np.float32)
        node = np.zeros(len(encoded), np.intp)
        rows = np.arange(len(encoded))
        while len(rows):
            here = node[rows]
            lower = encoded[rows, self.column[here]] <= self.threshold[here]
            following = np.where(lower, self.left[here], self.right[here])
            # Children come after their parent, so 0 marks a leaf and every walk ends.
            rows = rows[following > 0]
            node[rows] = following[following > 0]
        return self.score[node]

    @classmethod
    def from_sklearn(cls, inputs: Inputs, model: Any) -> DecisionTree:
        """The fitted DecisionTreeClassifier of two classes, the last one favourable."""
        tree = model.tree_
        inner = tree.children_left > 0
        counts = tree.value[:, 0, :]
        return cls(
            inputs,
            left=np.where(inner, tree.children_left, 0),
            right=np.where(inner, tree.children_right, 0),
            column=np.where(inner, tree.feature, 0),
            threshold=np.asarray(tree.threshold, float),
            score=counts[:, -1] / counts.sum(axis=1),
        )
