"""Networks of linear layers: linear relaxations over discrete options with at most r changes.

Every activation is enclosed by two lines between the least and the largest sum it can get. Going
back through the layers with these lines, a sum of a later layer becomes a linear function of the
first layer's sums, and the best completion of a linear function is found exactly: the r features
with the largest gain, each at its best open option (CROWN, over options instead of a ball).

References
----------
Zhang, Weng, Chen, Hsieh and Daniel (2018), "Efficient neural network robustness certification
with general activation functions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pear.decision.ceilings.linear import Linear
from pear.decision.ceilings.margins import (
    NETWORK,
    SINGLE,
    EncodedOptions,
    Matrix,
    ReadModel,
    Sigmoid,
    Specialised,
    empty_fields,
    favoured,
    largest,
)

BLOCK = 512
"""Rows worked on at once: what the layers make of them then stays in the processor's cache."""
SIGMOID, TANH = -1.0, -2.0
"""Activations; a number from 0 to 1 is the slope of a rectifier below zero."""


@dataclass(frozen=True)
class Layers:
    """Weights ``(inputs, outputs)`` and bias ``(outputs,)`` of each layer; the last has one output.

    ``activations`` between them are one less than there are layers. ``rounding`` is the relative
    error of one operation; ``single`` rounds the inputs to single precision.
    """

    layers: tuple[tuple[Matrix, Matrix], ...]
    activations: tuple[float, ...]
    single: bool = False
    rounding: float = 2.0**-53

    @property
    def worth_after(self) -> float:
        """Every neuron after the first layer is bounded through all before it."""
        later = sum(weights.size for weights, _ in self.layers[1:])
        return 4_000.0 * max(1.0, later / 150) ** 2

    def inputs(self, matrix: Matrix) -> Matrix:
        matrix = np.asarray(matrix, float)
        return matrix.astype(np.float32).astype(float) if self.single else matrix

    def margins(self, matrix: Matrix) -> Matrix:
        values = self.inputs(matrix)
        for (weights, bias), activation in zip(self.layers, self.activations, strict=False):
            values = _activated(values @ weights + bias, activation)
        weights, bias = self.layers[-1]
        return np.asarray((values @ weights + bias)[:, 0])

    def used_columns(self) -> NDArray[np.intp]:
        return np.flatnonzero((self.layers[0][0] != 0).any(axis=1))

    def specialise(
        self, options: EncodedOptions, required: float, max_changes: int
    ) -> Specialised | None:
        """The first layer as a sum of one vector per option, and bounds of all layers."""
        if not np.isfinite(options.rows).all():
            return None
        n_features = len(options.counts)
        fields = empty_fields(n_features, options.counts)
        sizes = np.array([len(b) for _, b in self.layers], np.int64)
        n_neurons = int(sizes[:-1].sum())
        sums, slack = self._rounding(options.rows)
        start, steps = self._first_layer(options)
        fields |= {
            "steps": steps,
            "hidden": np.tile(start, (n_features + 1, 1)),
            "weights": np.concatenate([w.ravel() for w, _ in self.layers[1:]]),
            "biases": np.concatenate([b for _, b in self.layers[1:]]),
            "sizes": sizes,
            "activations": np.array(self.activations, float),
            "low": np.full((n_features + 2, n_neurons), -np.inf),
            "high": np.full((n_features + 2, n_neurons), np.inf),
            "widen": 2.0**-52 * np.concatenate(sums[:-1]),
            "seen": np.zeros((n_features + 1, n_features, steps.shape[1]), np.bool_),
            "lines": np.zeros((4, n_neurons)),
        }
        special = Specialised(kind=NETWORK, required=required - slack, **fields)
        everything = np.arange(steps.shape[1]) < options.counts[:, None]
        special.seen_remaining[:] = -1
        network_ceiling(special, 0, everything, max_changes)
        special.low[-1], special.high[-1] = special.low[0], special.high[0]
        return special

    def reduced(self, options: EncodedOptions, required: float) -> ReducedNetwork | None:
        """The first layer as a sum of one vector per option; nothing is bounded."""
        if not np.isfinite(options.rows).all():
            return None
        _, slack = self._rounding(options.rows)
        return ReducedNetwork(self, *self._first_layer(options), required - slack)

    def _first_layer(self, options: EncodedOptions) -> tuple[Matrix, Matrix]:
        """Its sums ``(H,)`` at the start, and what each option adds to them ``(F, V, H)``."""
        rows, (weights, bias) = options.rows, self.layers[0]
        # An option moves no inputs but those of its own feature.
        added = (rows - rows[0]) @ weights
        steps = np.zeros((len(options.counts), int(options.counts.max()), len(bias)))
        for feature, (first, count) in enumerate(zip(options.first, options.counts, strict=True)):
            steps[feature, :count] = added[first : first + count]
        return rows[0] @ weights + bias, steps

    def _rounding(self, rows: Matrix) -> tuple[list[Matrix], float]:
        """What rounding does at most.

        To the sums of each layer by themselves, in relative errors of one operation, and to the
        output through all layers. Sums are taken as large as if nothing cancelled; no activation
        is steeper than 1.
        """
        operations = 4.0 * (rows.shape[1] + sum(len(bias) for _, bias in self.layers) + 64)
        size, error, sums = np.abs(rows).max(axis=0), np.zeros(rows.shape[1]), []
        for (weights, bias), activation in zip(self.layers, (*self.activations, 0.0), strict=True):
            size = size @ np.abs(weights) + np.abs(bias)
            error = error @ np.abs(weights) + operations * size
            sums.append(operations * size)
            if activation < 0:
                size = np.minimum(size, 1.0)
                error = error + operations
        return sums, (self.rounding + 2.0**-48) * float(error[0])


@dataclass(frozen=True)
class ReducedNetwork:
    """A network for one person's assignments, computed from the second layer on.

    ``start`` ``(H,)`` are the sums of the first layer, ``steps`` ``(F, V, H)`` what each option
    adds to them. ``required`` is the margin that a favourable state exceeds, lowered by more than
    rounding can do.
    """

    model: Layers
    start: Matrix
    steps: Matrix
    required: float

    def margins(self, assignments: NDArray[np.intp]) -> Matrix:
        """The margins ``(n,)`` of assignments ``(n, F)``."""
        margins = np.empty(len(assignments))
        for first in range(0, len(margins), BLOCK):
            block = slice(first, first + BLOCK)
            values = np.empty((len(margins[block]), len(self.start)))
            _add_steps(self.start, self.steps, assignments[block], values)
            for (weights, bias), activation in zip(
                self.model.layers[1:], self.model.activations, strict=True
            ):
                values = _activated(values, activation) @ weights
                values += bias
            margins[block] = values[:, 0]
        return margins


@numba.njit(cache=True)
def _add_steps(start: Matrix, steps: Matrix, assignments: NDArray[np.intp], sums: Matrix) -> None:
    """The first layer's sums ``(n, H)`` of assignments ``(n, F)``."""
    for number in range(len(assignments)):
        sums[number] = start
        for feature in range(assignments.shape[1]):
            option = assignments[number, feature]
            if option > 0:
                for neuron in range(sums.shape[1]):
                    sums[number, neuron] += steps[feature, option, neuron]


def _activated(values: Matrix, activation: float) -> Matrix:
    """Sums after their activation, in place where that is quick."""
    if activation == TANH:
        return np.tanh(values)
    if activation == SIGMOID:
        return np.asarray(expit(values))
    return np.maximum(values, activation * values if activation else 0.0, out=values)


@numba.njit(cache=True)
def network_ceiling(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> float:
    """An upper bound of the output for every completion."""
    _first_lines(special, depth, open_options, remaining)
    start = special.sizes[0]
    first_weight = first_bias = 0
    for layer in range(1, len(special.activations)):
        n_in, n_out = special.sizes[layer - 1], special.sizes[layer]
        weights = special.weights[first_weight : first_weight + n_in * n_out].reshape((n_in, n_out))
        for neuron in range(n_out):
            place = start + neuron
            low, high = special.low[depth, place], special.high[depth, place]
            if special.activations[layer] >= 0 and (low >= 0 or high <= 0):
                # Its two lines are one already.
                continue
            bias, wide = special.biases[first_bias + neuron], special.widen[place]
            coefficients = weights[:, neuron].copy()
            top = _back(special, depth, layer, coefficients, bias, open_options, remaining)
            coefficients = -weights[:, neuron]
            bottom = -_back(special, depth, layer, coefficients, -bias, open_options, remaining)
            special.high[depth, place] = min(high, top + wide)
            special.low[depth, place] = max(low, bottom - wide)
        _draw_lines(special, depth, layer, start, start + n_out)
        start += n_out
        first_weight += n_in * n_out
        first_bias += n_out
    return _last_sum(special, depth, open_options, remaining)


@numba.njit(cache=True)
def _first_lines(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> None:
    """Lines of the first layer for these completions, of the others for all further up."""
    if not _covers(special, depth, open_options, remaining):
        special.low[depth], special.high[depth] = special.low[-1], special.high[-1]
    special.seen[depth] = open_options
    special.seen_remaining[depth] = remaining
    _bound_first_layer(special, depth, open_options, remaining)
    start = 0
    for layer in range(len(special.activations)):
        _draw_lines(special, depth, layer, start, start + special.sizes[layer])
        start += special.sizes[layer]


@numba.njit(cache=True)
def _last_sum(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> float:
    """The largest output within the lines; leaves what each option adds in ``gains``."""
    n_hidden = len(special.activations)
    width = special.sizes[n_hidden - 1]
    coefficients = special.weights[len(special.weights) - width :].copy()
    bias = special.biases[len(special.biases) - 1]
    return _back(special, depth, n_hidden, coefficients, bias, open_options, remaining)


@numba.njit(cache=True)
def _covers(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> bool:
    """Whether the bounds kept at this depth were computed for at least these completions."""
    if special.seen_remaining[depth] < remaining:
        return False
    free = special.free[depth]
    for feature in range(len(special.counts)):
        if free >> np.uint64(feature) & np.uint64(1):
            for option in range(1, special.counts[feature]):
                if open_options[feature, option] and not special.seen[depth, feature, option]:
                    return False
    return True


@numba.njit(cache=True)
def _bound_first_layer(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> None:
    n_features, width = len(special.counts), special.sizes[0]
    rises = np.zeros((n_features, width))
    falls = np.zeros((n_features, width))
    free = special.free[depth]
    for feature in range(n_features):
        if not free >> np.uint64(feature) & np.uint64(1):
            continue
        for option in range(1, special.counts[feature]):
            if open_options[feature, option]:
                for neuron in range(width):
                    step = special.steps[feature, option, neuron]
                    rises[feature, neuron] = max(rises[feature, neuron], step)
                    falls[feature, neuron] = max(falls[feature, neuron], -step)
    for neuron in range(width):
        here, wide = special.hidden[depth, neuron], special.widen[neuron]
        top = here + largest(rises[:, neuron], free, remaining) + wide
        bottom = here - largest(falls[:, neuron], free, remaining) - wide
        special.high[depth, neuron] = min(special.high[depth, neuron], top)
        special.low[depth, neuron] = max(special.low[depth, neuron], bottom)


@numba.njit(cache=True)
def _back(
    special: Specialised,
    depth: int,
    layer: int,
    coefficients: Any,
    constant: float,
    open_options: NDArray[np.bool_],
    remaining: int,
) -> float:
    """The largest value of ``coefficients`` times the layer before, plus ``constant``."""
    end = 0
    last_weight = 0
    last_bias = 0
    for number in range(layer):
        end += special.sizes[number]
        if number:
            last_weight += special.sizes[number - 1] * special.sizes[number]
            last_bias += special.sizes[number]
    lines = special.lines
    for number in range(layer - 1, -1, -1):
        n_out = special.sizes[number]
        for neuron in range(n_out):
            place = end - n_out + neuron
            weight = coefficients[neuron]
            side = 0 if weight >= 0 else 2
            constant += weight * lines[side + 1, place]
            coefficients[neuron] = weight * lines[side, place]
        end -= n_out
        if number == 0:
            break
        n_in = special.sizes[number - 1]
        last_weight -= n_in * n_out
        last_bias -= n_out
        weights = special.weights[last_weight : last_weight + n_in * n_out].reshape((n_in, n_out))
        before = np.zeros(n_in)
        for neuron in range(n_out):
            constant += coefficients[neuron] * special.biases[last_bias + neuron]
        for neuron in range(n_in):
            before[neuron] = _product(weights[neuron], coefficients)
        coefficients = before
    gains = special.gains
    for neuron in range(special.sizes[0]):
        constant += coefficients[neuron] * special.hidden[depth, neuron]
    free, best = special.free[depth], special.best
    for feature in range(len(best)):
        best[feature] = 0.0
        if not free >> np.uint64(feature) & np.uint64(1):
            continue
        for option in range(1, special.counts[feature]):
            if open_options[feature, option]:
                total = _product(coefficients, special.steps[feature, option])
                gains[feature, option] = total
                best[feature] = max(best[feature], total)
    special.level[depth] = constant
    return float(constant + largest(best, free, remaining))


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def _product(left: Any, right: Any) -> float:
    """The sum of products, in the order that is fastest: the allowance is for any."""
    total = 0.0
    for place in range(len(left)):
        total += left[place] * right[place]
    return total


@numba.njit(cache=True)
def network_gains(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> None:
    """What each option adds, with the lines that later layers have from further up: cheap."""
    special.here[depth] = special.level[depth] = _forward(special, depth, 0, 0)
    if remaining > 0:
        _first_lines(special, depth, open_options, remaining)
        _last_sum(special, depth, open_options, remaining)
        special.potential[depth] = special.gains


@numba.njit(cache=True)
def closer_gains(
    special: Specialised, depth: int, open_options: NDArray[np.bool_], remaining: int
) -> None:
    """The same with all lines drawn anew; exactly, where only one more feature may change."""
    gains = special.potential[depth]
    if remaining > 1:
        network_ceiling(special, depth, open_options, remaining)
        gains[:] = special.gains
        return
    special.level[depth] = special.here[depth]
    free = special.free[depth]
    for feature in range(len(special.counts)):
        if free >> np.uint64(feature) & np.uint64(1):
            for option in range(1, special.counts[feature]):
                if open_options[feature, option]:
                    margin = _forward(special, depth, feature, option)
                    gains[feature, option] = margin - special.here[depth]


@numba.njit(cache=True)
def _forward(special: Specialised, depth: int, feature: int, option: int) -> float:
    """The margin with one further change and no other."""
    values = special.hidden[depth] + special.steps[feature, option]
    first_weight = first_bias = 0
    for layer in range(len(special.activations)):
        activation = special.activations[layer]
        for neuron in range(len(values)):
            if activation < 0:
                values[neuron] = _curve(activation, values[neuron])
            elif values[neuron] < 0:
                values[neuron] *= activation
        n_in, n_out = special.sizes[layer], special.sizes[layer + 1]
        following = special.biases[first_bias : first_bias + n_out].copy()
        for neuron in range(n_in):
            if values[neuron] != 0.0:
                place = first_weight + neuron * n_out
                for later in range(n_out):
                    following[later] += values[neuron] * special.weights[place + later]
        values = following
        first_weight += n_in * n_out
        first_bias += n_out
    return float(values[0])


@numba.njit(cache=True)
def _draw_lines(special: Specialised, depth: int, layer: int, start: int, end: int) -> None:
    """Slope and height of the line above and the line below each activation of a layer."""
    activation, lines = special.activations[layer], special.lines
    for place in range(start, end):
        low, high = special.low[depth, place], special.high[depth, place]
        high = max(low, high)
        if activation < 0:
            lines[0, place], lines[1, place] = _line_above(activation, low, high)
            slope, height = _line_above(activation, -high, -low)
            lines[2, place] = slope
            lines[3, place] = (1.0 if activation == SIGMOID else 0.0) - height
        elif low >= 0:
            lines[:, place] = 0.0
            lines[0, place] = lines[2, place] = 1.0
        elif high <= 0:
            lines[:, place] = 0.0
            lines[0, place] = lines[2, place] = activation
        else:
            slope = (high - activation * low) / (high - low)
            lines[0, place], lines[1, place] = slope, (activation - slope) * low
            lines[2, place], lines[3, place] = (1.0 if high > -low else activation), 0.0


@numba.njit(cache=True)
def _curve(activation: float, x: float) -> float:
    return float(np.tanh(x) if activation == TANH else 0.5 * (1.0 + np.tanh(0.5 * x)))


@numba.njit(cache=True)
def _slope(activation: float, x: float) -> float:
    value = _curve(activation, x)
    return 1.0 - value * value if activation == TANH else value * (1.0 - value)


@numba.njit(cache=True)
def _line_above(activation: float, low: float, high: float) -> tuple[float, float]:
    """A line above a curve that is convex below zero and concave above, between two points."""
    padding = 1e-13
    if high - low < 1e-9:
        return 0.0, _curve(activation, high) + padding
    if low >= 0:
        middle = 0.5 * (low + high)
        slope = _slope(activation, middle)
        return slope, _curve(activation, middle) - slope * middle + padding
    at_low = _curve(activation, low)
    chord = (_curve(activation, high) - at_low) / (high - low)
    if high <= 0 or chord <= _slope(activation, high):
        return chord, at_low - chord * low + padding * (1.0 + abs(chord * low))
    # The tangent from a point above zero that still passes over the curve at ``low``.
    near, far = 0.0, high
    for _ in range(60):
        middle = 0.5 * (near + far)
        if _curve(activation, middle) + _slope(activation, middle) * (low - middle) >= at_low:
            far = middle
        else:
            near = middle
    slope = _slope(activation, far)
    return slope, _curve(activation, far) - slope * far + padding * (1.0 + abs(slope * low))


def own_network(network: Any) -> ReadModel:
    """The package's own network."""
    activations = (0.0,) * (len(network.layers) - 1)
    return network_found([(np.asarray(w), np.asarray(b)) for w, b in network.layers], activations)


def network_found(
    layers: Sequence[tuple[Matrix, Matrix]], activations: Sequence[float], single: bool = False
) -> ReadModel:
    """Layers with their activations as a model; one layer is a linear one."""
    link = Sigmoid(error=SINGLE) if single else Sigmoid()
    rounding = 2.0**-24 if single else 2.0**-53
    if len(layers) == 1:
        weights, bias = layers[0]
        model: Any = Linear(weights[:, 0], float(bias[0]), single, rounding)
        return ReadModel(model, link, "the coefficients")
    model = Layers(tuple(layers), tuple(activations), single, rounding)
    widths = ", ".join(str(len(bias)) for _, bias in layers[:-1])
    return ReadModel(model, link, f"a network with {widths} hidden units")


def perceptron(model: Any, columns: Sequence[int]) -> ReadModel | None:
    """scikit-learn's MLPClassifier."""
    side = favoured(columns, len(model.classes_))
    activations = {"relu": 0.0, "logistic": SIGMOID, "tanh": TANH, "identity": 1.0}
    if not side or model.out_activation_ != "logistic":
        return None
    layers = [
        (np.asarray(w, float), np.asarray(b, float))
        for w, b in zip(model.coefs_, model.intercepts_, strict=True)
    ]
    single = model.coefs_[0].dtype == np.float32
    layers[-1] = (side * layers[-1][0], side * layers[-1][1])
    return network_found(layers, [activations[model.activation]] * (len(layers) - 1), single)


def torch_network(module: Any, output: str) -> ReadModel | None:
    """A torch module that is a sequence of linear layers and activations, with one output."""
    layers: list[tuple[Matrix, Matrix]] = []
    activations: list[float] = []
    single = False
    ended = False
    for part in _sequence(module):
        kind = type(part).__name__
        if ended:
            return None
        if kind in ("Dropout", "Identity", "Flatten"):
            continue
        if kind == "Linear":
            weights = part.weight.detach().cpu().numpy()
            single |= weights.dtype == np.float32
            bias = np.zeros(len(weights)) if part.bias is None else part.bias.detach().cpu().numpy()
            layer = (np.asarray(weights.T, float), np.asarray(bias, float))
            if len(layers) > len(activations):
                # Two linear layers with nothing between them are one.
                before, shift = layers.pop()
                layer = (before @ layer[0], shift @ layer[0] + layer[1])
            layers.append(layer)
        elif len(layers) == len(activations) or kind not in _TORCH:
            return None
        elif kind == "Sigmoid" and layers[-1][0].shape[1] == 1 and output == "probabilities":
            ended = True
        else:
            activation = float(part.negative_slope) if kind == "LeakyReLU" else _TORCH[kind]
            if kind == "LeakyReLU" and not 0.0 <= activation <= 1.0:
                return None
            activations.append(activation)
    if not layers or len(layers) != len(activations) + 1 or layers[-1][0].shape[1] != 1:
        return None
    if ended != (output == "probabilities"):
        return None
    return network_found(layers, activations, single)


def _sequence(module: Any) -> list[Any]:
    """The parts of nested sequences, in order."""
    if type(module).__name__ == "Sequential":
        return [part for child in module for part in _sequence(child)]
    return [module]


_TORCH = {"ReLU": 0.0, "LeakyReLU": 0.0, "Sigmoid": SIGMOID, "Tanh": TANH}

NETWORK_READERS: dict[str, Callable[[Any, Sequence[int]], ReadModel | None]] = {
    "MLPClassifier": perceptron
}
