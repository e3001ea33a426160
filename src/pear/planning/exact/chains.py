"""Options of a feature that may be changed more than once.

An option is a pair (value reached, number of changes). Its own cost is the least over all
chains that reach it; the values on the way are known by their least and largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.problem import Limits, Problem

Floats = NDArray[np.float64]


def chain_options(
    problem: Problem,
    column: int,
    starts: Floats,
    weights: Floats,
    limits: Sequence[Limits],
    longest: int,
) -> dict[str, Any]:
    """Options of one level for every lane, padded to the same number of options."""
    lanes = [
        _chains(problem, column, start, weight[:, column], limit, longest)
        for start, weight, limit in zip(starts, weights, limits, strict=True)
    ]
    width = max(len(values) for values, *_ in lanes)
    count, samples = weights.shape[:2]
    padded: dict[str, Any] = {
        "values": np.repeat(starts[:, [column]], width, axis=1),
        "links": np.zeros((count, width), np.intp),
        "moves": np.full((count, width), -1),
        "valid": np.zeros((count, width), bool),
        "alone": np.zeros((count, samples, width)),
        "low": np.zeros((count, width)),
        "high": np.zeros((count, width)),
    }
    for lane, (values, links, own, low, high) in enumerate(lanes):
        # The first layer, no change, goes to the end, where every level has it.
        size = len(values) - 1
        for name, content in (("values", values), ("links", links), ("low", low), ("high", high)):
            padded[name][lane, :size] = content[1:]
            padded[name][lane, -1] = content[0]
        padded["alone"][lane, :, :size] = own[:, 1:]
        padded["valid"][lane, :size] = padded["valid"][lane, -1] = True
    return padded


def _chains(
    problem: Problem, column: int, start: Floats, weight: Floats, limits: Limits, longest: int
) -> tuple[Floats, NDArray[np.intp], Floats, Floats, Floats]:
    actions, graph = problem.actions, problem.costs
    moves = np.flatnonzero(actions.feature_of == column)
    scale = problem.space.scale_column
    values = start[[column]]
    own = np.zeros((len(weight), 1))
    low = high = scale(column, values)
    layers = [(values, np.zeros(1, np.intp), own, low, high)]
    for links in range(1, longest + 1):
        states = np.repeat(start[None], len(values), axis=0)
        states[:, column] = values
        results = actions.results(states)
        legal = actions.changes_legally(states) & actions.within_limits(results, limits)
        origin, which = np.nonzero(legal[:, moves])
        if not len(origin):
            break
        after = results[origin, moves[which]]
        change = graph.change(column, values[origin], after)
        cost = own[:, origin] + weight[:, None] * change
        scaled = scale(column, after)
        lows, highs = np.minimum(low[origin], scaled), np.maximum(high[origin], scaled)
        _, first, inverse = np.unique(np.round(after, 9), return_index=True, return_inverse=True)
        values = after[first]
        own = np.full((len(weight), len(values)), np.inf)
        low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
        np.minimum.at(own.T, inverse, cost.T)
        np.minimum.at(low, inverse, lows)
        np.maximum.at(high, inverse, highs)
        layers.append((values, np.full(len(values), links, np.intp), own, low, high))
    return (
        np.concatenate([layer[0] for layer in layers]),
        np.concatenate([layer[1] for layer in layers]),
        np.concatenate([layer[2] for layer in layers], axis=1),
        np.concatenate([layer[3] for layer in layers]),
        np.concatenate([layer[4] for layer in layers]),
    )
