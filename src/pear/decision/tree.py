"""What does a decision tree say, computed with numpy alone?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision.inputs import Inputs
from pear.problem.features import States


@dataclass(frozen=True)
class DecisionTree:
    """One tree over declared inputs; picklable.

    With k nodes: ``left``, ``right`` (0 at a leaf), ``column`` and ``threshold`` have shape
    ``(k,)``; ``score`` ``(k,)`` is the favourable share of the training people there. Inputs
    are compared in single precision, as scikit-learn does.
    """

    inputs: Inputs
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    column: NDArray[np.intp]
    threshold: NDArray[np.float64]
    score: NDArray[np.float64]

    def __call__(self, states: States) -> NDArray[np.float64]:
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
