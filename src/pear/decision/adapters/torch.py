"""What does a torch module say?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit, softmax

from pear.arrays import Floats
from pear.decision.blackbox import BlackBox, probe_states, require_class_names
from pear.decision.encoding import Inputs, MatrixScores, what_to_declare
from pear.errors import InvalidSetting, ModelError
from pear.optional import require
from pear.problem import Problem
from pear.problem.features import FeatureSpace, States
from pear.problem.model_inputs import ModelInput
from pear.problem.values import kind_of

Output = Literal["logits", "probabilities"]


def from_torch(
    module: Any,
    problem: Problem,
    *,
    output: Output = "logits",
    inputs: Sequence[ModelInput] | None = None,
    encode: Callable[[States], Floats] | None = None,
    classes: Sequence[Any] = (),
    name: str = "",
) -> BlackBox:
    """A torch module as a black box.

    One output per row is the favourable decision, or the second of two ``classes`` where they
    are named; several are classes. ``logits`` go through a sigmoid or a softmax here,
    ``probabilities`` are taken as they are.

    Parameters
    ----------
    inputs
        The module's columns in order; left out, those of the problem's ``[model.inputs]``.
    encode
        Your own function of states ``(n, d)``, shape ``(n, columns)``, in place of ``inputs``.

    Raises
    ------
    ModelError
        Where nothing says what the columns are, or logits are probabilities already.
    """
    check_output(output)
    torch = require("torch")
    if not isinstance(module, torch.nn.Module):
        raise InvalidSetting(
            f"'module' must be a torch module (got {kind_of(module)}); wrap a function "
            "with from_callable"
        )
    if encode is not None and inputs is not None:
        raise InvalidSetting("'inputs' and 'encode' say the same; give one of the two")
    name = name or type(module).__name__
    declared = tuple(inputs or problem.interface.inputs)
    if encode is None and not declared:
        raise ModelError(
            f"module '{name}' takes columns without names, and nothing says which of them is which "
            f"feature and how it is scaled; {what_to_declare(problem.space)}, or give them as "
            "from_torch(…, inputs=[ModelInput(…), …])"
        )
    function = TorchScores(
        module.eval(), problem.space, output, encode or Inputs(problem.space, declared)
    )
    _check_columns(function, name)
    if output == "logits":
        given = function.probe_inputs()
        refuse_probabilities(
            lambda: (function.raw(x) for x in (given, extreme_inputs(given))), name
        )
    known = tuple(classes) or problem.interface.classes
    if _answers_one_number(function):
        require_class_names(problem.goal, known, name)
    return BlackBox(function, problem.space, problem.goal, name=name, classes=known).checked()


@dataclass
class TorchScores:
    """The score function of a module in evaluation mode; pickles when the module does."""

    module: Any
    space: FeatureSpace
    output: Output
    encode: Callable[[States], Floats]

    def __call__(self, states: States) -> Floats:
        return self._answered(self.encode(states))

    def of_matrix(self) -> MatrixScores | None:
        """The declared columns and the module's answers for them; None for an own encoding."""
        return (self.encode, self._answered) if isinstance(self.encode, Inputs) else None

    def _answered(self, matrix: Floats) -> Floats:
        values = self.raw(matrix)
        return probabilities(values) if self.output == "logits" else values

    def raw(self, matrix: Floats) -> Floats:
        """What the module itself answers for its own inputs ``(n, columns)``."""
        torch = require("torch")
        parameter = next(iter(self.module.parameters()), None)
        settings = (
            {} if parameter is None else {"dtype": parameter.dtype, "device": parameter.device}
        )
        with torch.no_grad():
            result = self.module(torch.as_tensor(matrix).to(**settings))
        return np.asarray(result.detach().cpu().numpy(), float)

    def score_record(self, record: dict[str, Any]) -> Floats:
        """Scores of one record, its columns made one by one."""
        if not isinstance(self.encode, Inputs):
            return self(self.space.encode([record]))
        return self._answered(np.array([self.encode.encode_record(record)]))

    def probe_inputs(self) -> Floats:
        """Inputs of plausible people ``(n, columns)``."""
        return np.asarray(self.encode(probe_states(self.space, 64, np.random.default_rng(4))))


def _check_columns(function: TorchScores, name: str) -> None:
    """Refuse declared columns that the module's first layer does not take."""
    given = function.probe_inputs().shape[1]
    layers = (layer for layer in function.module.modules() if hasattr(layer, "in_features"))
    first = next(layers, None)
    if first is not None and isinstance(function.encode, Inputs) and first.in_features != given:
        raise ModelError(
            f"module '{name}' takes {first.in_features} columns, but the declared inputs make "
            f"{given}: correct [model.inputs]"
        )


def _answers_one_number(function: TorchScores) -> bool:
    try:
        return np.size(function.raw(function.probe_inputs()[:1])) == 1
    except Exception:
        return False  # Asking for scores reports what fails, with the row.


def refuse_probabilities(ask: Callable[[], Iterable[Floats]], name: str) -> None:
    """Refuse logits that are probabilities already: a second sigmoid would bring all near 1/2.

    ``ask`` gives the model's own answers for plausible and for extreme inputs: one that ends in a
    sigmoid or a softmax stays in [0, 1] whatever it is given.
    """
    try:
        answers = [np.asarray(answer, float) for answer in ask()]
    except Exception:
        return  # What it cannot take is reported with the row when it is asked for scores.
    answers = [answer[np.isfinite(answer)] for answer in answers]
    if all(len(a) and (a >= 0.0).all() and (a <= 1.0).all() for a in answers):
        raise ModelError(
            f"model '{name}' answers with numbers in [0, 1] whatever it is given: they are "
            'probabilities already, not logits; say output = "probabilities" (under [model] in '
            "the problem, or when the model is loaded)"
        )


def extreme_inputs(inputs: Floats) -> Floats:
    """Inputs far out on both sides, of the shape of plausible ones."""
    signs = np.random.default_rng(5).choice([-1.0, 1.0], inputs.shape)
    return np.asarray(1e3 * signs * (np.abs(np.nan_to_num(inputs)) + 1.0))


def probabilities(logits: Floats) -> Floats:
    """A sigmoid of one logit per row, a softmax over several.

    >>> probabilities(np.array([0.0])), probabilities(np.array([[1.0, 1.0]]))
    (array([0.5]), array([[0.5, 0.5]]))
    """
    if logits.ndim == 2 and logits.shape[1] > 1:
        return np.asarray(softmax(logits, axis=1))
    return np.asarray(expit(logits))


def check_output(output: str) -> None:
    """Refuse an ``output`` that is neither of the two kinds."""
    if output not in get_args(Output):
        raise InvalidSetting(
            f"'output' must be one of {', '.join(get_args(Output))} (got {output!r})"
        )
