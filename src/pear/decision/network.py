"""What does a small feed-forward network say, computed with numpy alone?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pear.decision.inputs import Inputs
from pear.problem.features import States

Layers = tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
"""Weights ``(inputs, outputs)`` and bias ``(outputs,)`` of each layer."""

BLOCK = 2_048
"""Rows worked on at once: what the layers make of them then stays in the processor's cache."""


@dataclass(frozen=True)
class Network:
    """relu layers and a sigmoid over declared inputs; one output; picklable.

    >>> from pear.problem import Feature, FeatureSpace
    >>> from pear.problem.inputs import ModelInput
    >>> inputs = Inputs(FeatureSpace((Feature("income"),)), (ModelInput("income", divide=100),))
    >>> layer = (np.array([[4.0]]), np.array([-2.0]))
    >>> Network(inputs, (layer,))(np.array([[50.0], [100.0]])).round(3)
    array([0.5  , 0.881])
    """

    inputs: Inputs
    layers: Layers

    def __call__(self, states: States) -> NDArray[np.float64]:
        if len(states) <= BLOCK:
            return self._scores(states)
        blocks = range(0, len(states), BLOCK)
        return np.concatenate([self._scores(states[first : first + BLOCK]) for first in blocks])

    def _scores(self, states: States) -> NDArray[np.float64]:
        hidden = self.inputs(states)
        for weights, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weights + bias, 0.0)
        weights, bias = self.layers[-1]
        logits = (hidden @ weights + bias)[:, 0]
        # Two forms of one sigmoid, so that no exponential overflows.
        decay = np.exp(-np.abs(logits))
        return np.where(logits >= 0, 1.0, decay) / (1.0 + decay)
