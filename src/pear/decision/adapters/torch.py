"""What does a torch module say?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pear.decision.blackbox import BlackBox
from pear.errors import InvalidSetting
from pear.optional import require
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States

Output = Literal["logits", "probabilities"]


def from_torch(
    module: Any,
    problem: Problem,
    *,
    output: Output = "logits",
    encode: Callable[[States], NDArray[np.float64]] | None = None,
    classes: Sequence[Any] = (),
    name: str = "",
) -> BlackBox:
    """A torch module over the one-hot encoding (or your own ``encode``) as a black box.

    One output per row is the favourable decision; several are classes. ``logits`` go
    through a sigmoid or a softmax here, ``probabilities`` are taken as they are.
    """
    check_output(output)
    torch = require("torch")
    if not isinstance(module, torch.nn.Module):
        raise InvalidSetting(
            f"'module' must be a torch module (got a {type(module).__name__}); wrap a function "
            "with from_callable"
        )
    function = TorchScores(module.eval(), problem.space, output, encode)
    return BlackBox(
        function,
        problem.space,
        problem.goal,
        name=name or type(module).__name__,
        classes=tuple(classes),
    ).checked()


@dataclass
class TorchScores:
    """The score function of a module in evaluation mode; pickles when the module does."""

    module: Any
    space: FeatureSpace
    output: Output
    encode: Callable[[States], NDArray[np.float64]] | None = None

    def __call__(self, states: States) -> NDArray[np.float64]:
        torch = require("torch")
        encoded = self.space.one_hot(states) if self.encode is None else self.encode(states)
        parameter = next(iter(self.module.parameters()), None)
        settings = (
            {} if parameter is None else {"dtype": parameter.dtype, "device": parameter.device}
        )
        with torch.no_grad():
            result = self.module(torch.as_tensor(encoded).to(**settings))
        values = np.asarray(result.detach().cpu().numpy(), float)
        return probabilities(values) if self.output == "logits" else values


def probabilities(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """A sigmoid of one logit per row, a softmax over several.

    >>> probabilities(np.array([0.0])), probabilities(np.array([[1.0, 1.0]]))
    (array([0.5]), array([[0.5, 0.5]]))
    """
    if logits.ndim == 2 and logits.shape[1] > 1:
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
    decay = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits >= 0, 1.0, decay) / (1.0 + decay))


def check_output(output: str) -> None:
    """Refuse an ``output`` that is neither of the two kinds."""
    if output not in get_args(Output):
        raise InvalidSetting(
            f"'output' must be one of {', '.join(get_args(Output))} (got {output!r})"
        )
